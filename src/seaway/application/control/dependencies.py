"""Held jobs: their release when their predecessors allow it, and their end when these never will."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import islice

from seaway.application.changes import Change
from seaway.application.ports.store import Store
from seaway.application.records import JobRecord
from seaway.application.transitions import awaits_text, blocked, moved, stepped
from seaway.domain.dependencies import After
from seaway.domain.job import DataSource
from seaway.domain.job_state import JobState
from seaway.domain.reasons import Reason

ACTOR = "controller"

MAX_HELD = 256
"""Maximum number of held jobs that one cycle considers."""


class Dependencies:
    """Held jobs by their predecessors. It changes only by stored changes of jobs.

    Attributes
    ----------
    due
        Held jobs to consider, since they are new, or one of their predecessors started or ended.
    """

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Drop all jobs."""
        self.due: dict[str, JobRecord] = {}
        self._held: dict[str, JobRecord] = {}
        self._followers: defaultdict[str, set[str]] = defaultdict(set)
        self._ended: dict[str, JobRecord] = {}  # predecessors that were seen to end, which the state may drop

    def note(self, job: JobRecord) -> None:
        """Apply a stored job."""
        before = self._held.pop(job.id, None)
        for each in before.awaits if before else ():
            self._followers[each.job].discard(job.id)
            if not self._followers[each.job]:
                del self._followers[each.job]
                self._ended.pop(each.job, None)
        self.due.pop(job.id, None)
        if job.state is JobState.HELD:
            self._held[job.id] = self.due[job.id] = job
            for each in job.awaits:
                self._followers[each.job].add(job.id)
        if (job.state.final or job.started_ns is not None) and (followers := self._followers.get(job.id)):
            if job.state.final:
                self._ended[job.id] = job
            self.due.update((each, self._held[each]) for each in followers)

    def look_up(self, jobs: Mapping[str, JobRecord], store: Store) -> dict[str, JobRecord | None]:
        """Return the predecessors of the jobs that `changes` considers; None for those that do not exist any more.

        Those that are not in memory are read from the database.
        """
        known: dict[str, JobRecord | None] = {}
        for held in islice(self.due.values(), MAX_HELD):
            for each in held.awaits:
                if each.job not in known:
                    known[each.job] = jobs.get(each.job) or self._ended.get(each.job) or store.job(each.job)
        return known

    def changes(self, known: Mapping[str, JobRecord | None], now_ns: int) -> Iterator[Change]:
        """Yield the changes of held jobs, given the result of `look_up`. Others stay due until these are stored."""
        for held in list(islice(self.due.values(), MAX_HELD)):
            if not all(each.job in known for each in held.awaits):
                continue
            change = _step(held, known, now_ns)
            if change is None:
                del self.due[held.id]
            else:
                yield change


def _step(held: JobRecord, known: Mapping[str, JobRecord | None], now_ns: int) -> Change | None:
    """Return the change of a held job; None if it waits on as before."""
    verdicts = [_verdict(each, known[each.job]) for each in held.awaits]
    if False in verdicts:
        never = held.awaits[verdicts.index(False)]
        return stepped(moved(held, JobState.SKIPPED, _why_never(never, known[never.job]), now_ns), ACTOR)
    met = [known[each.job] for each, verdict in zip(held.awaits, verdicts, strict=True) if verdict]
    if held.awaits and not met:
        return None
    outputs = [output for job in met if job for output in _outputs(job)]
    data = replace(held.spec.data, others=(*held.spec.data.others, *outputs))
    rest = tuple(each for each, verdict in zip(held.awaits, verdicts, strict=True) if not verdict)
    after = replace(held, awaits=rest, spec=replace(held.spec, data=data) if outputs else held.spec)
    if rest:
        return blocked(after, awaits_text(rest, known), ACTOR, now_ns)
    return stepped(moved(after, JobState.PENDING, _why_now(met), now_ns), ACTOR)


def _verdict(each: After, predecessor: JobRecord | None) -> bool | None:
    """Report whether a condition is met. A predecessor that does not exist any more was deleted."""
    if predecessor is None:
        return each.met(JobState.DELETED, started=False)
    return each.met(predecessor.state, started=predecessor.started_ns is not None)


def _outputs(job: JobRecord) -> Iterator[DataSource]:
    """Yield the outputs of a job that ran, in equal parts in the clusters of its last attempt."""
    if job.spec.output_mib and job.started_ns is not None:
        for cluster in job.clusters:
            yield DataSource(cluster, -(-job.spec.output_mib // len(job.clusters)))


def _why_now(met: Iterable[JobRecord | None]) -> str:
    jobs = [Reason("job_is", job=f"{job.spec.name} ({job.id})", state=job.state.value) for job in met if job]
    return Reason("released", jobs=tuple(jobs)) if jobs else Reason("released_alone")


def _why_never(each: After, predecessor: JobRecord | None) -> str:
    required = Reason(f"required_{each.when.value}")
    if predecessor is None:
        return Reason("predecessor_deleted", job=each.job, required=required)
    job, state = f"{predecessor.spec.name} ({predecessor.id})", predecessor.state.value
    why = "" if predecessor.state is JobState.COMPLETED else predecessor.reason
    return Reason("predecessor_is", job=job, required=required, state=state, why=why)
