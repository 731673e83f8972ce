"""States of a job and of its attempts, and their transitions."""

from __future__ import annotations

from enum import Enum

from seaway.domain.errors import ConflictError
from seaway.domain.reasons import Reason, also, either


class JobState(Enum):
    """State of a job. Users see the values."""

    HELD = "held"
    """Waits for its predecessors, outside its queue."""
    PENDING = "pending"
    """Accepted and stored, but not yet processed by the control loop."""
    QUEUED = "queued"
    """Waits in its queue."""
    SCHEDULED = "scheduled"
    """Placed; no cluster has confirmed the commands yet."""
    DEPLOYING = "deploying"
    """Its clusters confirmed the commands and start it."""
    RUNNING = "running"
    """All replicas run."""
    COMPLETED = "completed"
    FAILED = "failed"
    PREEMPTED = "preempted"
    """Stopped to free resources for another job; returns to its queue."""
    SUSPENDED = "suspended"
    """Stopped by a user until it is resumed."""
    CANCELLED = "cancelled"
    """Stopped by a user; the record stays."""
    SKIPPED = "skipped"
    """Never ran, because its predecessors ended in another way than it requires."""
    DELETED = "deleted"
    """Deleted by a user and no longer listed. The record is removed later."""

    @property
    def final(self) -> bool:
        """True if the job has ended."""
        return self in FINAL

    @property
    def waits(self) -> bool:
        """True if the job waits for a placement."""
        return self in WAITING

    @property
    def placed(self) -> bool:
        """True if the job has a placement."""
        return self in PLACED


FINAL = frozenset({JobState.COMPLETED, JobState.FAILED, JobState.CANCELLED, JobState.SKIPPED, JobState.DELETED})
UNFINISHED = frozenset(JobState) - FINAL
WAITING = frozenset({JobState.PENDING, JobState.QUEUED, JobState.PREEMPTED})
PLACED = frozenset({JobState.SCHEDULED, JobState.DEPLOYING, JobState.RUNNING})

_STOPS = frozenset({JobState.SUSPENDED, JobState.CANCELLED, JobState.DELETED})
_MAKES_WAY = frozenset({JobState.QUEUED, JobState.PREEMPTED, JobState.FAILED, JobState.COMPLETED})
_AGAIN = frozenset({JobState.HELD, JobState.PENDING, JobState.DELETED})

FOLLOWS: dict[JobState, frozenset[JobState]] = {
    JobState.HELD: _STOPS | {JobState.PENDING, JobState.SKIPPED},
    JobState.PENDING: _STOPS | {JobState.QUEUED, JobState.FAILED},
    JobState.QUEUED: _STOPS | {JobState.SCHEDULED, JobState.FAILED},
    JobState.SCHEDULED: _STOPS | _MAKES_WAY | {JobState.DEPLOYING, JobState.RUNNING},
    JobState.DEPLOYING: _STOPS | _MAKES_WAY | {JobState.RUNNING},
    JobState.RUNNING: _STOPS | _MAKES_WAY | {JobState.DEPLOYING},
    JobState.PREEMPTED: _STOPS | {JobState.QUEUED},
    JobState.SUSPENDED: frozenset({JobState.HELD, JobState.QUEUED, JobState.CANCELLED, JobState.DELETED}),
    JobState.COMPLETED: frozenset({JobState.DELETED}),
    JobState.FAILED: _AGAIN,
    JobState.CANCELLED: _AGAIN,
    JobState.SKIPPED: _AGAIN,
    JobState.DELETED: frozenset(),
}
"""Allowed transitions. A running job returns to deploying if one of its workloads disappears."""


def require_may_follow(now: JobState, then: JobState) -> None:
    """Check a change of state.

    Raises
    ------
    ConflictError
        When a job in state `now` cannot become `then`, with the possible states.
    """
    if then not in FOLLOWS[now]:
        could = [Reason("in_state", state=state) for state in sorted(state.value for state in FOLLOWS[now])]
        said = Reason("cannot_become", state=now.value, then=Reason("in_state", state=then.value))
        raise ConflictError(also(said, Reason("can_become", states=either(could)) if could else Reason("final_state")))


class AttemptState(Enum):
    """State of an attempt, which is one placement of a job."""

    ASSUMED = "assumed"
    """The placement is stored, but no cluster has confirmed it. It expires."""
    SENT = "sent"
    """All its clusters confirmed it."""
    RUNNING = "running"
    """All replicas were observed running."""
    ENDING = "ending"
    """Its workloads are being removed. Their resources stay allocated."""
    ENDED = "ended"
    """All its workloads are removed, and their resources are free."""

    @property
    def live(self) -> bool:
        """True if this is the current attempt of its job, of which there is at most one."""
        return self in LIVE

    @property
    def holds(self) -> bool:
        """True if it has allocated devices."""
        return self is not AttemptState.ENDED


LIVE = frozenset({AttemptState.ASSUMED, AttemptState.SENT, AttemptState.RUNNING})
