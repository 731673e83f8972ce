"""Injected faults: the kind of fault, its requests, and how often.

A path is a shell pattern (``*`` also matches slashes) for the whole path of the request: ``*`` for all, ``*/pods*`` for
pods, ``/apis/cluster.karmada.io/*/proxy/*`` for a proxy.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from tests.fakes.kubernetes.failures import FailureError, unauthorized
from tests.fakes.kubernetes.watching import Watcher


@dataclass(slots=True, eq=False)
class Fault:
    """An injected fault.

    Attributes
    ----------
    kind
        ``hang``, ``slow``, ``error`` or ``drop``.
    path, method
        Patterns of the requests that it affects.
    code
        HTTP status of an error.
    seconds
        Delay; for an error, the value of Retry-After, or 0.
    left
        Number of requests that it still affects; None for all until it is removed.
    hits
        Number of requests that it has affected.
    """

    kind: str
    path: str = "*"
    method: str = "*"
    code: int = 500
    seconds: float = 0.0
    left: int | None = None
    hits: int = 0
    over: asyncio.Event = field(default_factory=asyncio.Event)

    def matches(self, method: str, path: str) -> bool:
        """Report whether the fault affects a request."""
        return self.left != 0 and fnmatchcase(method, self.method) and fnmatchcase(path, self.path)

    def matches_get(self, path: str) -> bool:
        """Report whether the fault affects a GET of a path."""
        return self.matches("GET", path)

    def failure(self) -> FailureError:
        """Return the error of the fault."""
        retry = {"Retry-After": str(round(self.seconds))} if self.seconds else {}
        match self.code:
            case 401:
                return unauthorized()
            case 403:
                return FailureError(403, "Forbidden", "forbidden: a fault on command", {})
            case 429:
                details = {"retryAfterSeconds": round(self.seconds)} if self.seconds else {}
                return FailureError(
                    429, "TooManyRequests", "The server has received too many requests and has asked us to try again "
                    "later", details, retry,
                )  # fmt: skip
            case 503:
                return FailureError(
                    503, "ServiceUnavailable", "the server is currently unable to handle the request", {}, retry
                )
        return FailureError(self.code, "InternalError", "Internal error occurred: a fault on command", {}, retry)


class DropError(Exception):
    """The connection is closed without an answer."""


class FaultList:
    """The faults of one server; used on the thread of its loop.

    Attributes
    ----------
    followers
        Functions to call when the faults change.
    """

    def __init__(self, watchers: Callable[[], Iterable[Watcher]]) -> None:
        self._faults: list[Fault] = []
        self.followers: list[Callable[[], None]] = []
        self._watchers = watchers

    def add(self, fault: Fault) -> Fault:
        """Begin a fault; a hang also silences open watches."""
        self._faults.append(fault)
        self._silence()
        return fault

    def remove(self, fault: Fault) -> None:
        """End a fault; hanging requests continue."""
        if fault in self._faults:
            self._faults.remove(fault)
        fault.over.set()
        self._silence()

    def clear(self) -> None:
        """End all faults."""
        for fault in list(self._faults):
            self.remove(fault)

    @property
    def active(self) -> list[Fault]:
        """The faults that can still affect requests."""
        return [fault for fault in self._faults if fault.left != 0]

    def cut_watches(self, path: str = "*") -> int:
        """Drop the connections of open watches in the middle of a chunk; return how many."""
        found = [watcher for watcher in self._watchers() if watcher.hits(lambda one: fnmatchcase(one, path))]
        for watcher in found:
            watcher.cut_off()
        return len(found)

    def blocks(self, method: str, path: str) -> bool:
        """Report whether a request would fail."""
        return any(fault.kind != "slow" and fault.matches(method, path) for fault in self._faults)

    async def meet(self, method: str, path: str, gone: Callable[[], Coroutine[object, object, object]]) -> None:
        """Apply the faults to a request; `gone` waits until its client has left.

        Raises
        ------
        FailureError
            For an error.
        DropError
            If it gets no answer.
        """
        if not self._faults:
            return
        for fault in list(self._faults):
            if not fault.matches(method, path):
                continue
            fault.hits += 1
            if fault.left is not None:
                fault.left -= 1
            match fault.kind:
                case "hang":
                    await _either(fault.over.wait(), gone())
                case "slow":
                    await asyncio.sleep(fault.seconds)
                case "drop":
                    raise DropError
                case _:
                    raise fault.failure()

    def _silence(self) -> None:
        for watcher in self._watchers():
            if any(fault.kind == "hang" and watcher.hits(fault.matches_get) for fault in self._faults):
                watcher.silencers.add(self)
            else:
                watcher.silencers.discard(self)
            watcher.wake()
        for reported in self.followers:
            reported()


async def _either(*waits: Coroutine[object, object, object]) -> None:
    tasks = [asyncio.ensure_future(wait) for wait in waits]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
