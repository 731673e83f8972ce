"""Interface of the control loop to a cluster."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from secrets import token_hex
from typing import Any, Generic, Protocol, TypeVar, runtime_checkable

from seaway.domain.cluster import Cluster
from seaway.domain.deployment import Deployment, UnmanagedPod, Workload
from seaway.domain.network import Gateway, Link


@dataclass(frozen=True, slots=True)
class Removal:
    """Command that removes all objects of an attempt from a cluster."""

    job_id: str
    attempt: int
    cluster: str


Command = Deployment | Removal


@dataclass(frozen=True, slots=True)
class Answer:
    """Answer of a cluster to a command.

    Attributes
    ----------
    done
        The command was carried out, now or earlier.
    refused
        The cluster rejects the command permanently, with a `reason`. If neither this nor `done` is set, the command can
        be sent again later.
    everywhere
        For a rejection: no node of the cluster is suitable, for example because the kind of an object is unknown there.
    underway
        For a command neither done nor rejected: the cluster accepted the command, or more objects of it than before,
        and still works on it.
    by
        For a rejection by a component in front of several clusters: its name, since its other clusters reject the
        command too. Empty for the cluster itself.
    """

    done: bool
    refused: bool = False
    reason: str = ""
    everywhere: bool = False
    underway: bool = False
    by: str = ""


Answers = Sequence[Answer | Future[Answer]]
"""Answer to each command, or a future for a pending answer.

A future ends with an answer, or with `UnavailableError` after a time limit of the backend.
"""


@dataclass(frozen=True, slots=True)
class Changes:
    """Changes in a cluster since the last request.

    Attributes
    ----------
    cursor
        Cursor for the next request.
    complete
        Whether this is a complete listing instead of changes: objects missing from it do not exist.
    workloads
        Changed workloads in their current state.
    inventory
        The cluster with its current nodes and devices; None if unchanged.
    unmanaged_pods
        Current unmanaged pods with allocations.
    age_s
        Age of the data, seconds. If part of the cluster does not respond, the backend reports its last known state.
    """

    cursor: str
    complete: bool
    workloads: tuple[Workload, ...] = ()
    inventory: Cluster | None = None
    unmanaged_pods: tuple[UnmanagedPod, ...] = ()
    age_s: float = 0.0


class Backend(Protocol):
    """Interface to one cluster. Thread-safe.

    Every call ends within a time limit of the backend. An unresponsive cluster raises `UnavailableError`. The command
    may or may not have been carried out then, and is sent again.
    """

    @property
    def cluster(self) -> str:
        """Name of the cluster."""

    def changes(self, cursor: str, wait_s: float) -> Changes:
        """Return the changes since `cursor`; a complete listing if it is empty or too old.

        Waits up to `wait_s` seconds for a change.
        """

    def send(self, commands: Sequence[Command]) -> Answers:
        """Carry out independent commands; return an answer for each, in order.

        Creating existing objects, or removing absent ones, counts as done. The caller sends the second command for an
        attempt only after the answer to the first.
        """

    def manifests(self, deployment: Deployment) -> list[dict[str, Any]]:
        """Return the objects of a deployment as they would be sent."""

    def logs(  # which log, and which lines
        self, copy: str, replica: int, tail: int, container: str = "", since_ns: int = 0, *, times: bool = False
    ) -> Iterator[str]:
        """Return the last log lines of a container of a replica, by default of the first container.

        Parameters
        ----------
        since_ns
            Only return lines from this second on, nanoseconds since 1970.
        times
            True to begin each line with its time, like ``2026-11-21T10:00:00.5Z``, and a space.

        Raises
        ------
        RejectedError
            If the workload or replica does not exist, or the backend has no logs; `NoContainerError` if the replica has
            no such container.
        """


@dataclass(frozen=True, slots=True)
class CollectorState:
    """State of the collector of a cluster.

    Attributes
    ----------
    problems
        Number of problems in the data of the cluster, by kind. Every kind is present.
    failing_s
        Seconds since each source last responded; 0 if it responds.
    scrapes
        Number of scrapes of the measured use, by outcome; empty if the use is not measured.
    """

    problems: dict[str, int]
    failing_s: dict[str, float]
    scrapes: dict[str, int] = field(default_factory=dict)


@runtime_checkable
class Collecting(Protocol):
    """Backend that reports the state of its collector; optional."""

    def collector_state(self) -> CollectorState:
        """Return the state of the collector; sends no request."""


@runtime_checkable
class Recreating(Protocol):
    """Backend behind a component that may create deleted objects again; optional."""

    @property
    def recreates(self) -> bool:
        """True if deleted objects are created again, so that completed ones are written as such."""


class Backends(Protocol):
    """All clusters, and the network between them."""

    def clusters(self) -> Sequence[Backend]:
        """Return the clusters, in the order that decides ties."""

    def gateways(self) -> Sequence[Gateway]:
        """Return the gateways."""

    def links(self) -> Sequence[Link]:
        """Return the links with their latest measurements."""


Key = TypeVar("Key", bound=Hashable)


class ChangeLog(Generic[Key]):
    """Log of the keys of changed objects, in order.

    Parameters
    ----------
    retained
        Minimum number of stored changes.

    Attributes
    ----------
    count
        Number of changes since the log was created.
    """

    def __init__(self, retained: int) -> None:
        self.count = 0
        self._retained = retained
        self._keys: list[Key] = []
        self._run = token_hex(4)  # cursors of an earlier log count as too old

    @property
    def cursor(self) -> str:
        """Current position."""
        return f"{self._run}-{self.count}"

    def add(self, key: Key) -> None:
        """Record a change."""
        self._keys.append(key)
        self.count += 1
        if len(self._keys) > 2 * self._retained:
            del self._keys[: self._retained]

    def clear(self) -> None:
        """Invalidate all cursors."""
        self._keys.clear()
        self.count += 1

    def since(self, cursor: str) -> dict[Key, None] | None:
        """Return the keys that changed since `cursor`, each once; None if the cursor is too old."""
        run, _, number = cursor.partition("-")
        if run != self._run or not number.isdecimal():
            return None
        behind = self.count - int(number)
        if not 0 <= behind <= len(self._keys):
            return None
        return dict.fromkeys(self._keys[len(self._keys) - behind :])
