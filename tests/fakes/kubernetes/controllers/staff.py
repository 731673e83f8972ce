"""Who works at a server: controllers that hear of changes and look at what they concern, one after another.

Nothing is polled. A change leads to keys, each key is looked at once however often it was named, and what is to
happen later lies with the event loop's timers. While the server is stopped no one works, as controllers that cannot
reach it; afterwards they go on with what has come up.
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
"""After how long a pod that was denied is tried again; Kubernetes begins with 1 s, and doubles that."""
AT_ONCE = 64
"""How many keys are looked at before others of the event loop have their turn."""


class Staff:
    """Those who work at one server, and their shared queue; used on the thread of its loop."""

    def __init__(self, store: Store, verbs: Verbs) -> None:
        self.store = store
        self.verbs = verbs
        self.members: list[Controller[Any]] = []
        self._due: dict[tuple[Controller[Any], Hashable], None] = {}
        self._timers: set[asyncio.TimerHandle] = set()
        self._awake = False
        self._working = False

    def hire(self, controller: Controller[Any]) -> None:
        """Have a user hear of what changes from now on."""
        self.members.append(controller)

        def hear(event: Event) -> None:
            for key in controller.hear(event):
                self.add(controller, key)

        self.store.follow(hear, controller.kinds)

    def add(self, controller: Controller[K], key: K) -> None:
        """Have a user look at something soon."""
        self._due[controller, key] = None
        self._wake()

    def later(self, seconds: float, controller: Controller[K], key: K) -> None:
        """Have a user look at something after a while."""
        if seconds <= 0:
            self.add(controller, key)
            return

        def now() -> None:
            self._timers.discard(timer)
            self.add(controller, key)

        timer = asyncio.get_running_loop().call_later(seconds, now)
        self._timers.add(timer)

    def start(self) -> None:
        """Begin to work, or go on."""
        self._awake = True
        self._wake()

    def stop(self) -> None:
        """Work no more for now."""
        self._awake = False

    def end(self) -> None:
        """Work no more, and forget what was to be done."""
        self._awake = False
        for timer in self._timers:
            timer.cancel()
        self._timers.clear()
        self._due.clear()

    @property
    def idle(self) -> bool:
        """Whether nothing is to be looked at now (timers may run)."""
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
    """One who works at a server.

    Attributes
    ----------
    kinds
        What he hears of; None for everything.
    staff
        His colleagues, and the queue.
    failures
        What he was refused.
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
        """What may be done to them."""
        return self.staff.verbs

    @abstractmethod
    def hear(self, event: Event) -> Iterable[K]:
        """Return what to look at after a change."""

    @abstractmethod
    def look(self, key: K) -> None:
        """Look at something and do what is to be done."""

    def stamp(self) -> str:
        """Return the time of day as objects have it."""
        return stamp(self.verbs.now())

    def owned(self, owner: Stored, kind: Kind) -> list[Stored]:
        """Return what an object owns of a kind."""
        keys = self.store.dependents.get(owner.uid, {})
        shelf = self.store.shelves[kind].items
        return [shelf[key] for of, key in keys if of is kind and key in shelf]

    def write_status(self, one: Stored, change: Callable[[Json], None]) -> None:
        """Change the status of an object if it is still there; writing the same changes nothing."""
        found = self.store.find(one.kind, one.namespace, one.name)
        if found is None or found.uid != one.uid:
            return
        body = found.view()
        status: Json = orjson.loads(orjson.dumps(body.get("status") or {}))
        change(status)
        if status != body.get("status"):
            self.store.put(one.kind, {**body, "metadata": dict(body["metadata"]), "status": status}, status=True)

    def report(self, about: Stored, reason: str, message: str, *, kind: str = "Normal", source: str = "") -> None:
        """Write an event about an object; the same again only counts."""
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
            return  # the namespace is on its way out

    def report_denied(self, owner: Stored, failure: FailureError, source: str, key: K) -> None:
        """Report that a pod was denied, and look again in a while."""
        self.report(owner, "FailedCreate", f"Error creating: {failure}", kind="Warning", source=source)
        self.staff.later(AGAIN_S, self, key)


def set_condition(status: Json, kind: str, value: str, moment: str, reason: str = "", message: str = "") -> None:
    """Set a condition; when it last changed is kept while its value is."""
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
    """Say nothing of a condition any more."""
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
    """Return what says that an object is owned and controlled by another."""
    return {
        "apiVersion": owner.kind.api_version,
        "kind": owner.kind.kind,
        "name": owner.name,
        "uid": owner.uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }
