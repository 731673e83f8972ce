"""How long jobs take from one stage to the next, and how often they reach each state: for monitoring."""

from __future__ import annotations

from collections import Counter, defaultdict
from enum import StrEnum

from seaway.application.histogram import Timing
from seaway.application.ports.clock import Clock
from seaway.application.records import Attempt, JobRecord
from seaway.domain.job_state import JobState

NS = 1_000_000_000


class Stage(StrEnum):
    """What takes time between a submit and a running job, besides the wait in its queue."""

    DECIDE = "decide"
    """Trying a batch of jobs."""
    STORE = "store"
    """Until what was decided of a batch is stored, the wait behind others' changes included."""
    DISPATCH = "dispatch"
    """From a stored placement until all its clusters took it over."""
    START = "start"
    """From there until every replica runs."""


class Deployed(StrEnum):
    """What became of a deployment in a cluster before its job ran."""

    RUNNING = "running"
    """It runs."""
    REFUSED = "refused"
    """The cluster would not have it."""
    FAILED = "failed"
    """A replica ended badly before all of them ran."""
    STRUCK = "struck"
    """What it was on failed."""
    LATE = "late"
    """The cluster did not confirm it in time."""
    GONE = "gone"
    """A user removed it, again and again."""


class Stages:
    """Follows jobs by what is stored of them; told by the loop's thread alone.

    Parameters
    ----------
    clock
        For how long a round took; of jobs, what is stored says when.

    Attributes
    ----------
    began_ns
        Since when each unfinished job waits, or is at its present stage, by the wall clock.
    wanting_ns
        Since when each job that does not run wants to, by the wall clock: since its submit, or since it ran, or a
        person held it, last. An attempt that came to nothing does not begin it again.
    times
        By stage.
    waits
        From when a job began to wait until its placement was stored, by queue.
    reached
        How often jobs came into each state.
    deployed
        Deployments, by cluster and what became of them.
    reading
        Whether what is stored is being read again: nothing of it happens now.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._began: dict[str, JobState] = {}
        self._before: dict[str, tuple[JobState, int]] = {}
        self._wanting_before: dict[str, int] = {}
        self.began_ns: dict[str, int] = {}
        self.wanting_ns: dict[str, int] = {}
        self.times = {stage: Timing() for stage in Stage}
        self.waits: defaultdict[str, Timing] = defaultdict(Timing)
        self.reached: Counter[JobState] = Counter()
        self.deployed: Counter[tuple[str, Deployed]] = Counter()
        self.reading = False

    def took(self, stage: Stage, began_ns: int) -> None:
        """Note that a stage is done which began then, by the monotonic clock."""
        self.times[stage].note((self._clock.monotonic_ns() - began_ns) / NS)

    def became(self, attempt: Attempt, clusters: tuple[str, ...], what: Deployed) -> None:
        """Note what became of an attempt in some of its clusters; once it ran, that is no matter of deploying it."""
        if attempt.running_ns is None:
            self.deployed.update((cluster, what) for cluster in clusters)

    def went(self, before: JobRecord | None, job: JobRecord) -> None:
        """Note where a job is now, and where it was."""
        if before is not None and before.state is job.state:
            return
        if self.reading:
            if job.state.waits or job.state.placed:
                self._found(job)
            return
        self.reached[job.state] += 1
        self._note_wanting(before, job)
        began = self._began.get(job.id)
        if began and job.state.placed:
            self._note(began, job)
        if not (job.state.waits or job.state.placed):
            self._began.pop(job.id, None)
            self.began_ns.pop(job.id, None)
        elif not (began and began.waits and job.state.waits):
            self._began[job.id], self.began_ns[job.id] = job.state, job.changed_ns

    def waits_since_ns(self, job: JobRecord) -> int | None:
        """Return since when a job waits, by the wall clock; None for one that does not. Asked by any thread.

        One that came back from an attempt in vain has waited all the time; so it does while it is told to a cluster
        that may refuse it again.
        """
        if job.state.waits or (job.state is JobState.SCHEDULED and job.attempt > 1):
            return self.wanting_ns.get(job.id, job.changed_ns)
        return None

    def reset(self) -> None:
        """Reset until `go_on`, as all jobs are read again. Jobs in the same stage keep their start."""
        self.reading = True
        self._before |= {job_id: (state, self.began_ns[job_id]) for job_id, state in self._began.items()}
        self._began, self.began_ns = {}, {}
        self._wanting_before |= self.wanting_ns
        self.wanting_ns = {}

    def go_on(self) -> None:
        """Count what happens from now on: everything is read."""
        self.reading = False
        self._before, self._wanting_before = {}, {}

    def _note_wanting(self, before: JobRecord | None, job: JobRecord) -> None:
        if job.state is JobState.RUNNING or not (job.state.waits or job.state.placed):
            self.wanting_ns.pop(job.id, None)
        elif job.id not in self.wanting_ns:
            self.wanting_ns[job.id] = job.submitted_ns if before is None else job.changed_ns

    def _note(self, began: JobState, job: JobRecord) -> None:
        seconds = (job.changed_ns - self.began_ns[job.id]) / NS
        if began.waits:
            self.waits[job.spec.queue].note(seconds)
        elif began is JobState.SCHEDULED:
            self.times[Stage.DISPATCH].note(seconds)
            if job.state is JobState.RUNNING:  # it ran before anybody heard that it was taken over
                self.times[Stage.START].note(0)
        elif began is JobState.DEPLOYING and job.state is JobState.RUNNING:
            self.times[Stage.START].note(seconds)

    def _found(self, job: JobRecord) -> None:
        """Note where a job was found that was stored before; one that never had a place has waited all the time.

        Nothing that is stored tells that a person held it meanwhile: after a restart it counts from its submit.
        """
        state, began_ns = self._before.get(job.id, (None, 0))
        if state is None or not (state is job.state or (state.waits and job.state.waits)):
            began_ns = job.submitted_ns if job.state.waits and not job.attempt else job.changed_ns
        self._began[job.id], self.began_ns[job.id] = job.state, began_ns
        if job.state is not JobState.RUNNING:
            since_ns = job.submitted_ns if job.started_ns is None else began_ns
            self.wanting_ns[job.id] = self._wanting_before.get(job.id, since_ns)
