"""The states of a job and of its attempts, and which may follow which."""

from __future__ import annotations

from enum import Enum

from seaway.domain.errors import ConflictError


class JobState(Enum):
    """State of a job. Users see the values."""

    PENDING = "pending"
    """Accepted and stored; the control loop has not taken it in yet."""
    QUEUED = "queued"
    """Waits for a place."""
    SCHEDULED = "scheduled"
    """Placed; no cluster has confirmed the commands yet."""
    DEPLOYING = "deploying"
    """Its clusters took it over and are starting it."""
    RUNNING = "running"
    """Every replica runs."""
    COMPLETED = "completed"
    FAILED = "failed"
    PREEMPTED = "preempted"
    """Had to make room for another job, and goes back into its queue."""
    SUSPENDED = "suspended"
    """Stopped by a person, until a user resumes it."""
    CANCELLED = "cancelled"
    """Ended by a person; the record stays."""
    DELETED = "deleted"
    """Ended by a person and no longer listed; the record goes with the next pruning."""

    @property
    def final(self) -> bool:
        """True if the job is over."""
        return self in FINAL

    @property
    def waits(self) -> bool:
        """True if the job is to be given a place."""
        return self in WAITING

    @property
    def placed(self) -> bool:
        """True if the job has a place that it is on the way to, or at."""
        return self in PLACED


FINAL = frozenset({JobState.COMPLETED, JobState.FAILED, JobState.CANCELLED, JobState.DELETED})
WAITING = frozenset({JobState.PENDING, JobState.QUEUED, JobState.PREEMPTED})
PLACED = frozenset({JobState.SCHEDULED, JobState.DEPLOYING, JobState.RUNNING})

_STOPS = frozenset({JobState.SUSPENDED, JobState.CANCELLED, JobState.DELETED})
_MAKES_WAY = frozenset({JobState.QUEUED, JobState.PREEMPTED, JobState.FAILED, JobState.COMPLETED})

FOLLOWS: dict[JobState, frozenset[JobState]] = {
    JobState.PENDING: _STOPS | {JobState.QUEUED, JobState.FAILED},
    JobState.QUEUED: _STOPS | {JobState.SCHEDULED, JobState.FAILED},
    JobState.SCHEDULED: _STOPS | _MAKES_WAY | {JobState.DEPLOYING, JobState.RUNNING},
    JobState.DEPLOYING: _STOPS | _MAKES_WAY | {JobState.RUNNING},
    JobState.RUNNING: _STOPS | _MAKES_WAY | {JobState.DEPLOYING},
    JobState.PREEMPTED: _STOPS | {JobState.QUEUED},
    JobState.SUSPENDED: frozenset({JobState.QUEUED, JobState.CANCELLED, JobState.DELETED}),
    JobState.COMPLETED: frozenset({JobState.DELETED}),
    JobState.FAILED: frozenset({JobState.DELETED}),
    JobState.CANCELLED: frozenset({JobState.DELETED}),
    JobState.DELETED: frozenset(),
}
"""Allowed transitions. A running job returns to deploying when one of its workloads disappeared."""


def require_may_follow(now: JobState, then: JobState) -> None:
    """Check a change of state.

    Raises
    ------
    ConflictError
        When a job in state `now` cannot become `then`; says what it could become.
    """
    if then not in FOLLOWS[now]:
        could = ", ".join(sorted(state.value for state in FOLLOWS[now])) or "nothing else"
        raise ConflictError(f"the job is {now.value} and cannot become {then.value}; it can become: {could}")


class AttemptState(Enum):
    """State of an attempt, which carries out one placement of a job."""

    ASSUMED = "assumed"
    """The placement is stored; no cluster has confirmed it. It expires."""
    SENT = "sent"
    """Every cluster concerned took it over."""
    RUNNING = "running"
    """Every replica was seen running."""
    ENDING = "ending"
    """Its copies are to be removed; what they hold is not given to anyone yet."""
    ENDED = "ended"
    """Nothing of it is left, and it holds nothing."""

    @property
    def live(self) -> bool:
        """True if the attempt carries its job: of each job's attempts, at most one is."""
        return self in LIVE

    @property
    def holds(self) -> bool:
        """True if devices are kept for it."""
        return self is not AttemptState.ENDED


LIVE = frozenset({AttemptState.ASSUMED, AttemptState.SENT, AttemptState.RUNNING})
