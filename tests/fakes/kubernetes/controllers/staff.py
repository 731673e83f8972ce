"""The controllers of a server, and the queue of keys that they process one after another.

Nothing is polled. A change yields keys, each key is processed once however often it was added, and later work waits on
the event loop's timers. While the server is stopped, controllers pause, as they cannot reach it; afterwards they
process the changes that have accumulated.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any, ClassVar, Generic, TypeVar
from zlib import crc32

import orjson

from tests.fakes.kubernetes.failures import FailureError
from tests.fakes.kubernetes.kinds import EVENTS, Json, Kind
from tests.fakes.kubernetes.store import Event, Store, Stored
from tests.fakes.kubernetes.verbs import Verbs, stamp

K = TypeVar("K", bound=Hashable)
AGAIN_S = 0.5
"""Delay before a denied pod is retried; Kubernetes begins with 1 s, and doubles that."""
AT_ONCE = 64
"""Number of keys to process before other tasks of the event loop run."""


class Staff:
    """The controllers of one server, and their shared queue; used on the thread of its loop."""

    def __init__(self, store: Store, verbs: Verbs) -> None:
        self.store = store
        self.verbs = verbs
        self.members: list[Controller[Any]] = []
        self._due: dict[tuple[Controller[Any], Hashable], None] = {}
        self._timers: set[asyncio.TimerHandle] = set()
        self._awake = False
        self._working = False

    def hire(self, controller: Controller[Any]) -> None:
        """Register a controller for the changes from now on."""
        self.members.append(controller)

        def receive(event: Event) -> None:
            for key in controller.receive(event):
                self.add(controller, key)

        self.store.follow(receive, controller.kinds)

    def add(self, controller: Controller[K], key: K) -> None:
        """Add a key to the queue of a controller."""
        self._due[controller, key] = None
        self._wake()

    def later(self, seconds: float, controller: Controller[K], key: K) -> None:
        """Add a key to the queue of a controller after a delay."""
        if seconds <= 0:
            self.add(controller, key)
            return

        def now() -> None:
            self._timers.discard(timer)
            self.add(controller, key)

        timer = asyncio.get_running_loop().call_later(seconds, now)
        self._timers.add(timer)

    def start(self) -> None:
        """Start or resume the controllers."""
        self._awake = True
        self._wake()

    def stop(self) -> None:
        """Pause the controllers."""
        self._awake = False

    def end(self) -> None:
        """Stop the controllers and clear the queue."""
        self._awake = False
        for timer in self._timers:
            timer.cancel()
        self._timers.clear()
        self._due.clear()

    @property
    def idle(self) -> bool:
        """True if the queue is empty (timers may run)."""
        return not self._due or not self._awake

    def _wake(self) -> None:
        if self._awake and not self._working and self._due:
            self._working = True
            asyncio.get_running_loop().call_soon(self._work)

    def _work(self) -> None:
        self._working = False
        if not self._awake:
            return
        for _ in range(min(AT_ONCE, len(self._due))):
            controller, key = next(iter(self._due))
            del self._due[controller, key]
            try:
                controller.look(key)
            except FailureError as failure:
                controller.failures.append(str(failure))
        self._wake()


class Controller(ABC, Generic[K]):
    """A controller of a server.

    Attributes
    ----------
    kinds
        The kinds that it watches; None for all.
    staff
        The other controllers, and the queue.
    failures
        The requests that the server rejected.
    """

    kinds: ClassVar[Sequence[Kind] | None] = ()

    def __init__(self, staff: Staff) -> None:
        self.staff = staff
        self.failures: list[str] = []

    @property
    def store(self) -> Store:
        """The objects."""
        return self.staff.store

    @property
    def verbs(self) -> Verbs:
        """The operations on them."""
        return self.staff.verbs

    @abstractmethod
    def receive(self, event: Event) -> Iterable[K]:
        """Return the keys to process after a change."""

    @abstractmethod
    def look(self, key: K) -> None:
        """Process a key."""

    def stamp(self) -> str:
        """Return the time of day as objects have it."""
        return stamp(self.verbs.now())

    def owned(self, owner: Stored, kind: Kind) -> list[Stored]:
        """Return the objects of a kind that an object owns."""
        keys = self.store.dependents.get(owner.uid, {})
        shelf = self.store.shelves[kind].items
        return [shelf[key] for of, key in keys if of is kind and key in shelf]

    def write_status(self, one: Stored, change: Callable[[Json], None]) -> None:
        """Change the status of an object if it still exists; writing the same changes nothing."""
        found = self.store.find(one.kind, one.namespace, one.name)
        if found is None or found.uid != one.uid:
            return
        body = found.view()
        status: Json = orjson.loads(orjson.dumps(body.get("status") or {}))
        change(status)
        if status != body.get("status"):
            self.store.put(one.kind, {**body, "metadata": dict(body["metadata"]), "status": status}, status=True)

    def report(self, about: Stored, reason: str, message: str, *, kind: str = "Normal", source: str = "") -> None:
        """Write an event about an object; a repetition only increases its count."""
        namespace = about.namespace or "default"
        mark = crc32(f"{about.uid} {reason} {message}".encode())
        name = f"{about.name[:240]}.{mark:08x}"
        found = self.store.find(EVENTS, namespace, name)
        if found is not None:
            body = found.read()
            body["count"] += 1
            body["lastTimestamp"] = self.stamp()
            self.store.put(EVENTS, body)
            return
        involved = {
            "kind": about.kind.kind,
            "namespace": about.namespace,
            "name": about.name,
            "uid": about.uid,
            "apiVersion": about.kind.api_version,
            "resourceVersion": str(about.version),
        }
        event: Json = {
            "metadata": {"name": name},
            "involvedObject": involved,
            "reason": reason,
            "message": message,
            "source": {"component": source},
            "reportingComponent": source,
            "firstTimestamp": self.stamp(),
            "lastTimestamp": self.stamp(),
            "count": 1,
            "type": kind,
        }
        try:
            self.verbs.create(EVENTS, namespace, event)
        except FailureError:
            return  # the namespace is being deleted

    def report_denied(self, owner: Stored, failure: FailureError, source: str, key: K) -> None:
        """Report that a pod was denied, and retry after a delay."""
        self.report(owner, "FailedCreate", f"Error creating: {failure}", kind="Warning", source=source)
        self.staff.later(AGAIN_S, self, key)


def set_condition(status: Json, kind: str, value: str, moment: str, reason: str = "", message: str = "") -> None:
    """Set a condition; its transition time only changes with its value."""
    conditions: list[Json] = status.setdefault("conditions", [])
    made: Json = {"type": kind, "status": value, "lastTransitionTime": moment}
    if reason:
        made["reason"] = reason
    if message:
        made["message"] = message
    for at, one in enumerate(conditions):
        if one["type"] == kind:
            if one["status"] == value:
                made["lastTransitionTime"] = one.get("lastTransitionTime", moment)
            conditions[at] = {**{key: one[key] for key in one if key not in ("reason", "message")}, **made}
            return
    conditions.append(made)


def remove_condition(status: Json, kind: str) -> None:
    """Remove a condition."""
    left = [one for one in status.get("conditions") or () if one["type"] != kind]
    if left:
        status["conditions"] = left
    else:
        status.pop("conditions", None)


def condition(status: Json, kind: str) -> str:
    """Return the value of a condition, or ``Unknown``."""
    for one in status.get("conditions") or ():
        if one["type"] == kind:
            return str(one["status"])
    return "Unknown"


def owner_reference(owner: Stored) -> Json:
    """Return the reference that makes an object the owner and controller of another."""
    return {
        "apiVersion": owner.kind.api_version,
        "kind": owner.kind.kind,
        "name": owner.name,
        "uid": owner.uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }
