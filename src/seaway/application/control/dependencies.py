"""Held jobs: their release when their predecessors allow it, and their end when these never will."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import islice
from typing import NamedTuple

from seaway.application.changes import Change
from seaway.application.ports.store import Store
from seaway.application.transitions import awaits_text, blocked, moved, stepped
from seaway.domain.dependencies import After
from seaway.domain.job import DataSource
from seaway.domain.job_record import JobRecord
from seaway.domain.job_state import JobState
from seaway.domain.reasons import Reason

ACTOR = "controller"

MAX_HELD = 256
"""Maximum number of held jobs that one cycle considers."""


class Predecessors(NamedTuple):
    """Predecessors of held jobs.

    Attributes
    ----------
    jobs
        The predecessors by ID; None for those that do not exist any more.
    task_clusters
        Of each array with outputs that releases a job: the number of started tasks by the clusters of a task.
    """

    jobs: Mapping[str, JobRecord | None]
    task_clusters: Mapping[str, Mapping[tuple[str, ...], int]]


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

    def look_up(self, jobs: Mapping[str, JobRecord], store: Store) -> Predecessors:
        """Return the predecessors of the jobs that `changes` considers.

        Those that are not in memory are read from the database.
        """
        known: dict[str, JobRecord | None] = {}
        arrays: dict[str, None] = {}
        for held in islice(self.due.values(), MAX_HELD):
            for each in held.awaits:
                if each.job not in known:
                    known[each.job] = jobs.get(each.job) or self._ended.get(each.job) or store.job(each.job)
                job = known[each.job]
                if job and job.is_array and job.spec.output_mib and _verdict(each, job):
                    arrays[job.id] = None
        return Predecessors(known, store.task_clusters([*arrays]) if arrays else {})

    def changes(self, found: Predecessors, now_ns: int) -> Iterator[Change]:
        """Yield the changes of held jobs, given the result of `look_up`. Others stay due until these are stored."""
        for held in list(islice(self.due.values(), MAX_HELD)):
            if not all(each.job in found.jobs for each in held.awaits):
                continue
            change = _step(held, found, now_ns)
            if change is None:
                del self.due[held.id]
            else:
                yield change


def _step(held: JobRecord, found: Predecessors, now_ns: int) -> Change | None:
    """Return the change of a held job; None if it waits on as before."""
    known = found.jobs
    verdicts = [_verdict(each, known[each.job]) for each in held.awaits]
    if False in verdicts:
        never = held.awaits[verdicts.index(False)]
        return stepped(moved(held, JobState.SKIPPED, _why_never(never, known[never.job]), now_ns), ACTOR)
    met = [known[each.job] for each, verdict in zip(held.awaits, verdicts, strict=True) if verdict]
    if held.awaits and not met:
        return None
    rest = tuple(each for each, verdict in zip(held.awaits, verdicts, strict=True) if not verdict)
    data = _with_outputs(held.spec.data, [job for job in met if job], found.task_clusters)
    after = replace(held, awaits=rest, spec=held.spec if data == held.spec.data else replace(held.spec, data=data))
    if rest:
        return blocked(after, awaits_text(rest, known), ACTOR, now_ns)
    return stepped(moved(after, JobState.PENDING, _why_now(met), now_ns), ACTOR)


def _verdict(each: After, predecessor: JobRecord | None) -> bool | None:
    """Report whether a condition is met. A predecessor that does not exist any more was deleted."""
    if predecessor is None:
        return each.met(JobState.DELETED, started=False)
    return each.met(predecessor.state, started=predecessor.started_ns is not None)


def _with_outputs(
    data: DataSource, met: Iterable[JobRecord], task_clusters: Mapping[str, Mapping[tuple[str, ...], int]]
) -> DataSource:
    """Return data with the outputs of predecessors, in equal parts in the clusters of the last attempt of each."""
    found = Counter({each.location: each.size_mib for each in data.others})
    for job in met:
        ran = {job.clusters: 1} if job.started_ns is not None and not job.is_array else task_clusters.get(job.id, {})
        for clusters, count in ran.items():
            for cluster in clusters:
                found[cluster] += count * -(-job.spec.output_mib // len(clusters))
    return replace(data, others=tuple(DataSource(*each) for each in found.items() if each[1]))


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
