"""Jobs with what became of them.

Times are nanoseconds since 1970 by the wall clock; None for an event that has not happened.
"""

from __future__ import annotations

from dataclasses import dataclass

from seaway.domain.arrays import count_of, stored_indexes
from seaway.domain.dependencies import After
from seaway.domain.job_spec import JobSpec, following_id, id_distance
from seaway.domain.job_state import JobState
from seaway.domain.reasons import Reason


@dataclass(frozen=True, slots=True)
class Pair:
    """Link of a job to its standby, and the latest switch between them.

    Attributes
    ----------
    other
        ID of the other copy of the service; empty without one, as with a cold standby.
    active
        False for the standby.
    left
        Cluster of the active copy before the latest switch; empty before the first. If `switched_ns` is None, the
        switch is due.
    lost_ns
        Time of the last report of that cluster; None if the cluster was not lost.
    switched_ns
        Time of the latest switch.
    """

    other: str = ""
    active: bool = True
    left: str = ""
    lost_ns: int | None = None
    switched_ns: int | None = None

    @property
    def leaving(self) -> bool:
        """True from the stop of the active copy until the switch."""
        return bool(self.left) and self.switched_ns is None


@dataclass(frozen=True, slots=True)
class JobRecord:
    """A job.

    Attributes
    ----------
    id
        See `seaway.domain.job_spec`.
    spec
        The spec with all later changes.
    state, reason
        State, and the reason for it as a sentence for people.
    version
        Counter of stored changes. Callers can name the version that a change is based on.
    attempt
        Number of the latest attempt; 0 before the first.
    failures
        Number of attempts that failed by themselves, not because of their node or device.
    clusters, nodes
        Clusters and nodes of the latest attempt, each name once; empty before the first.
    submitted_by
        Name of the token, or ``anonymous``.
    not_before_ns
        Earliest time of the next attempt after a failure.
    completed
        Number of replicas, from the first on, that completed in earlier attempts.
    awaits
        Predecessors whose conditions are not met yet, while it is held.
    pair
        Link to the other copy of a service with a standby; None for other jobs, and before a standby was needed.
    array
        ID of the array of a task; empty for other jobs.
    unstarted
        Indexes of the tasks of an array that are not stored as jobs yet, as text.
    expires_ns
        End of its lease; None without one, and before it runs.
    held_replicas
        Number of replicas of the latest attempt that hold resources while it is placed; 0 before the first.
    """

    id: str
    spec: JobSpec
    state: JobState
    submitted_ns: int
    changed_ns: int
    submitted_by: str
    reason: str = ""
    version: int = 1
    attempt: int = 0
    failures: int = 0
    clusters: tuple[str, ...] = ()
    nodes: tuple[str, ...] = ()
    started_ns: int | None = None
    ended_ns: int | None = None
    not_before_ns: int | None = None
    completed: int = 0
    awaits: tuple[After, ...] = ()
    pair: Pair | None = None
    array: str = ""
    unstarted: str = ""
    expires_ns: int | None = None
    held_replicas: int = 0

    @property
    def other(self) -> str:
        """ID of the other copy of a service with a warm standby; empty without one."""
        return self.pair.other if self.pair else ""

    @property
    def is_standby(self) -> bool:
        """True if it is the standby of another job."""
        return self.pair is not None and not self.pair.active

    @property
    def is_array(self) -> bool:
        """True for the record of an array, which is never placed itself."""
        return self.spec.array is not None and not self.array

    @property
    def display_name(self) -> str:
        """Name for people: that of a task has the index too, like ``sweep_7``."""
        return f"{self.spec.name}_{self.index}" if self.array else self.spec.name

    @property
    def index(self) -> int:
        """Index of a task in its array."""
        return id_distance(self.array, self.id) - 1

    @property
    def ref(self) -> str:
        """ID for people: that of a task has the array and the index, like ``6hhgq2g019edv_7``."""
        return f"{self.array}_{self.index}" if self.array else self.id

    @property
    def run_spec(self) -> JobSpec:
        """Specification of its next attempt."""
        return self.spec.task(self.array, self.index) if self.array else self.spec

    @property
    def waiting(self) -> int:
        """Number of waiting jobs that it stands for."""
        if not self.is_array:
            return int(self.state.waits)
        return self.unstarted_count if self.state.waits or self.state is JobState.RUNNING else 0

    @property
    def unstarted_count(self) -> int:
        """Number of the tasks of an array that are not stored as jobs yet."""
        return count_of(stored_indexes(self.unstarted))

    def task(self, index: int) -> JobRecord:
        """Return the new record of a task."""
        return JobRecord(
            id=following_id(self.id, 1 + index),
            spec=self.spec,
            state=JobState.PENDING,
            submitted_ns=self.submitted_ns,
            changed_ns=self.changed_ns,
            submitted_by=self.submitted_by,
            reason=Reason("accepted"),
            array=self.id,
        )
