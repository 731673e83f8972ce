"""A cluster, as far as Seaway's control loop is concerned."""

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
    """Have a cluster remove whatever it has of one attempt."""

    job_id: str
    attempt: int
    cluster: str


Command = Deployment | Removal


@dataclass(frozen=True, slots=True)
class Answer:
    """What a cluster said to a command.

    Attributes
    ----------
    done
        The command is carried out, or was before.
    refused
        The cluster will not, and asking again will not help; `reason` says why. With neither, the
        command may be tried again later.
    everywhere
        Of what is refused: none of its nodes would do, as when it does not know the kind of an object.
    underway
        Of what is neither done nor refused: the cluster took it, or more of it than before, and is not done with it.
    by
        Of what is refused: who did, where that is not the cluster, but what all clusters are told through, so that no
        other of them would do either; empty for the cluster itself.
    """

    done: bool
    refused: bool = False
    reason: str = ""
    everywhere: bool = False
    underway: bool = False
    by: str = ""


Answers = Sequence[Answer | Future[Answer]]
"""An answer to each command, or the promise of one that is still waited for.

A promise, too, ends after a time of the backend's choosing: with an answer, or with `UnavailableError`.
"""


@dataclass(frozen=True, slots=True)
class Changes:
    """What happened in a cluster since it was asked last.

    Attributes
    ----------
    cursor
        To ask from the next time.
    complete
        Whether this is everything there is, rather than what changed: what is not in it is not there.
    copies
        Copies as they are now.
    inventory
        The cluster with its nodes and devices as they are now; None when nothing about them changed.
    occupants
        What else is there and holds something, as it is now.
    age_s
        How old this may be, seconds: for so long something of the cluster has not answered. While a backend still
        hopes that it will, it tells what it knows all the same.
    """

    cursor: str
    complete: bool
    workloads: tuple[Workload, ...] = ()
    inventory: Cluster | None = None
    unmanaged_pods: tuple[UnmanagedPod, ...] = ()
    age_s: float = 0.0


class Backend(Protocol):
    """One cluster. Every method may be called from any thread.

    Every call ends after a time of the backend's own choosing. A cluster that does not answer raises
    `UnavailableError`; whether a command that ended so was carried out is not known, and it is sent again.
    """

    @property
    def cluster(self) -> str:
        """Its name."""

    def changes(self, cursor: str, wait_s: float) -> Changes:
        """Return what changed since `cursor`; everything when it is empty or too old.

        Waits up to `wait_s` seconds for a change.
        """

    def send(self, commands: Sequence[Command]) -> Answers:
        """Carry out commands, each for itself; return an answer for each, in their order.

        Creating what is there already, or removing what is not, is done. Of one attempt nothing more is sent
        before there is an answer to what was sent last.
        """

    def manifests(self, deployment: Deployment) -> list[dict[str, Any]]:
        """Return the objects that a deployment becomes, as they would be sent."""

    def logs(self, copy: str, replica: int, tail: int, container: str = "") -> Iterator[str]:
        """Return the last lines that a container of a replica wrote; the first container where none is named.

        Raises
        ------
        RejectedError
            When there is no such copy or replica, or the backend has no logs; `NoContainerError` when the replica has
            no such container.
        """


@dataclass(frozen=True, slots=True)
class CollectorState:
    """How collecting from a cluster goes.

    Attributes
    ----------
    troubles
        How much of what it says is broken, or otherwise to be looked at, by kind; of few kinds, each of them there.
    failing_s
        For how long each of its sources has not answered, seconds; 0 for one that does.
    scrapes
        How often it was read what is really used, by what became of it; empty where that is not read.
    """

    problems: dict[str, int]
    failing_s: dict[str, float]
    scrapes: dict[str, int] = field(default_factory=dict)


@runtime_checkable
class Collecting(Protocol):
    """A backend that collects, and can say how that goes; not every one does."""

    def collector_state(self) -> CollectorState:
        """Return how collecting goes; asks nobody."""


class Backends(Protocol):
    """All clusters there are, and what lies between them."""

    def clusters(self) -> Sequence[Backend]:
        """Return the clusters, in the order that decides ties."""

    def gateways(self) -> Sequence[Gateway]:
        """Return the gateways."""

    def links(self) -> Sequence[Link]:
        """Return the links as they were measured last."""


Key = TypeVar("Key", bound=Hashable)


class ChangeLog(Generic[Key]):
    """Names what changed, in order.

    Parameters
    ----------
    kept
        How many changes to keep at least.

    Attributes
    ----------
    count
        Changes since the log began.
    """

    def __init__(self, retained: int) -> None:
        self.count = 0
        self._retained = retained
        self._keys: list[Key] = []
        self._run = token_hex(4)  # a log that started over knows the cursors of another as too old

    @property
    def cursor(self) -> str:
        """Where the log is now."""
        return f"{self._run}-{self.count}"

    def add(self, key: Key) -> None:
        """Note that something changed."""
        self._keys.append(key)
        self.count += 1
        if len(self._keys) > 2 * self._retained:
            del self._keys[: self._retained]

    def clear(self) -> None:
        """Have every cursor so far be too old."""
        self._keys.clear()
        self.count += 1

    def since(self, cursor: str) -> dict[Key, None] | None:
        """Return what changed since `cursor`, each once; None when that is not known any more."""
        run, _, number = cursor.partition("-")
        if run != self._run or not number.isdecimal():
            return None
        behind = self.count - int(number)
        if not 0 <= behind <= len(self._keys):
            return None
        return dict.fromkeys(self._keys[len(self._keys) - behind :])
