"""Durations of the stages of jobs, and number of jobs that reached each state, for monitoring."""

from __future__ import annotations

from collections import Counter, defaultdict
from enum import StrEnum

from seaway.application.histogram import Timing
from seaway.application.ports.clock import Clock
from seaway.domain.attempt import Attempt
from seaway.domain.job_record import JobRecord
from seaway.domain.job_state import JobState

NS = 1_000_000_000


class Stage(StrEnum):
    """Stages between the submit and a running job, except the wait in the queue."""

    DECIDE = "decide"
    """Time to decide a batch of jobs."""
    STORE = "store"
    """Time from the decision on a batch to its storage, including the wait behind other changes."""
    DISPATCH = "dispatch"
    """Time from the stored placement to its acceptance by all clusters."""
    START = "start"
    """Time from the acceptance until all replicas run."""


class Deployed(StrEnum):
    """Result of a deployment in a cluster before its job ran."""

    RUNNING = "running"
    """The job runs."""
    REFUSED = "refused"
    """The cluster rejected the job."""
    FAILED = "failed"
    """A replica failed before all of them ran."""
    STRUCK = "struck"
    """The node or device failed."""
    LATE = "late"
    """The cluster did not confirm the deployment in time, or the job did not start in time."""
    GONE = "gone"
    """The workloads were removed repeatedly."""


class Stages:
    """Stages of jobs, from stored changes. Only the thread of the loop calls it.

    Parameters
    ----------
    clock
        Clock for the duration of a cycle. Other times come from the stored records.

    Attributes
    ----------
    began_ns
        Wall-clock time at which each unfinished job began its wait or its current stage.
    wanting_ns
        Wall-clock time since which each job without a running attempt could run: since its submit, or since it last ran
        or was suspended. A failed attempt does not reset it.
    times
        Durations by stage.
    waits
        Time from the start of the wait to the stored placement, by queue.
    placed, waited_s
        Number of placements, and the sum of the waits before them, by queue and tenant.
    started_in, waited_in_s
        Number of jobs that started to run in a cluster, and the sum of their waits until placement, by cluster. A job
        in several clusters counts in each.
    reached
        Number of jobs that reached each state.
    deployed
        Number of deployments, by cluster and result.
    reading
        Whether stored records are being reloaded, so that they do not count as events.
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
        self.placed: Counter[tuple[str, str]] = Counter()
        self.waited_s: defaultdict[tuple[str, str], float] = defaultdict(float)
        self.started_in: Counter[str] = Counter()
        self.waited_in_s: defaultdict[str, float] = defaultdict(float)
        self._last_wait_s: dict[str, float] = {}  # by job that is placed and does not run yet
        self.reached: Counter[JobState] = Counter()
        self.deployed: Counter[tuple[str, Deployed]] = Counter()
        self.reading = False

    def took(self, stage: Stage, began_ns: int) -> None:
        """Record the duration of a stage that ends now; `began_ns` is the monotonic start."""
        self.times[stage].note((self._clock.monotonic_ns() - began_ns) / NS)

    def became(self, attempt: Attempt, clusters: tuple[str, ...], what: Deployed) -> None:
        """Count the result of a deployment in these clusters, unless the attempt already ran."""
        if attempt.running_ns is None:
            self.deployed.update((cluster, what) for cluster in clusters)
        waited_s = self._last_wait_s.pop(attempt.job_id, None) if what is Deployed.RUNNING else None
        if waited_s is not None:
            for cluster in clusters:
                self.started_in[cluster] += 1
                self.waited_in_s[cluster] += waited_s

    def went(self, before: JobRecord | None, job: JobRecord) -> None:
        """Record the change of the state of a job."""
        if before is not None and before.state is job.state:
            return
        if self.reading:
            if job.state.waits or job.state.placed:
                self._found(job)
            return
        self.reached[job.state] += 1
        self._note_unschedulable(before, job)
        began = self._began.get(job.id)
        if began and job.state.placed:
            self._note(began, job)
        if not (job.state.waits or job.state.placed):
            self._began.pop(job.id, None)
            self._last_wait_s.pop(job.id, None)
            self.began_ns.pop(job.id, None)
        elif not (began and began.waits and job.state.waits):
            self._began[job.id], self.began_ns[job.id] = job.state, job.changed_ns

    def waits_since_ns(self, job: JobRecord) -> int | None:
        """Return the wall-clock start of a job's wait; None if it does not wait. Thread-safe.

        After a failed attempt, the wait counts from before that attempt. The job also waits while a cluster may still
        reject it.
        """
        if job.state.waits or (job.state is JobState.SCHEDULED and job.attempt > 1):
            return self.wanting_ns.get(job.id, job.changed_ns)
        return None

    def reset(self) -> None:
        """Reset before all jobs are reloaded, until `go_on`. Jobs in the same stage retain their start."""
        self.reading = True
        self._before |= {job_id: (state, self.began_ns[job_id]) for job_id, state in self._began.items()}
        self._began, self.began_ns = {}, {}
        self._wanting_before |= self.wanting_ns
        self.wanting_ns = {}

    def go_on(self) -> None:
        """Count events again, after all records are loaded."""
        self.reading = False
        self._before, self._wanting_before = {}, {}

    def _note_unschedulable(self, before: JobRecord | None, job: JobRecord) -> None:
        if job.state is JobState.RUNNING or not (job.state.waits or job.state.placed):
            self.wanting_ns.pop(job.id, None)
        elif job.id not in self.wanting_ns:
            self.wanting_ns[job.id] = job.submitted_ns if before is None else job.changed_ns

    def _note(self, began: JobState, job: JobRecord) -> None:
        seconds = (job.changed_ns - self.began_ns[job.id]) / NS
        if began.waits:
            self.waits[job.spec.queue].note(seconds)
            self.placed[job.spec.queue, job.spec.tenant] += 1
            self.waited_s[job.spec.queue, job.spec.tenant] += max(0.0, seconds)
            self._last_wait_s[job.id] = max(0.0, seconds)
        elif began is JobState.SCHEDULED:
            self.times[Stage.DISPATCH].note(seconds)
            if job.state is JobState.RUNNING:  # it ran before its cluster confirmed the command
                self.times[Stage.START].note(0)
        elif began is JobState.DEPLOYING and job.state is JobState.RUNNING:
            self.times[Stage.START].note(seconds)

    def _found(self, job: JobRecord) -> None:
        """Restore the stage of a stored job. A job that was never placed waits since its submit.

        The database does not store past suspensions, so after a restart the wait counts from the submit.
        """
        state, began_ns = self._before.get(job.id, (None, 0))
        if state is None or not (state is job.state or (state.waits and job.state.waits)):
            began_ns = job.submitted_ns if job.state.waits and not job.attempt else job.changed_ns
        self._began[job.id], self.began_ns[job.id] = job.state, began_ns
        if job.state is not JobState.RUNNING:
            since_ns = job.submitted_ns if job.started_ns is None else began_ns
            self.wanting_ns[job.id] = self._wanting_before.get(job.id, since_ns)
