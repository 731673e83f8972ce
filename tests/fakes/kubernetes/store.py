"""The objects of one server, as bytes, with one version counter and a bounded history.

An object is stored as its JSON, less its outer braces and its kind: a list is then a join of bytes, and a get adds a
few bytes around them. The fields for selectors and controllers are stored beside it.

Everything here runs on one thread, that of the server's event loop. Followers are called in order, synchronously.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from random import Random

import orjson

from tests.fakes.kubernetes.failures import not_found
from tests.fakes.kubernetes.kinds import Json, Kind, Kinds

NO_LABELS: Mapping[str, str] = {}
VIEWS = 2048
"""Number of decoded objects in the cache."""
AFTER_SLASH = "0"
"""The character after ``/``: the end of the keys of a namespace."""


class Stored:
    """One object at one version; it never changes.

    Attributes
    ----------
    kind, namespace, name, key, uid
        The identity of the object.
    version
        The version of this state.
    inside
        Its JSON less the outer braces, kind and apiVersion.
    labels
        Its labels.
    fields
        Values for the kind's field selectors.
    owners
        Uids of its owners.
    deleting
        Whether it has a deletionTimestamp.
    """

    __slots__ = (
        "deleting",
        "fields",
        "inside",
        "key",
        "kind",
        "labels",
        "name",
        "namespace",
        "owners",
        "uid",
        "version",
    )

    def __init__(self, kind: Kind, body: Json) -> None:
        meta = body["metadata"]
        self.kind = kind
        self.namespace: str = meta.get("namespace", "")
        self.name: str = meta["name"]
        self.key = kind.key(self.namespace, self.name)
        self.uid: str = meta["uid"]
        self.version = int(meta.get("resourceVersion", 0))
        self.labels: Mapping[str, str] = meta.get("labels") or NO_LABELS
        self.fields = tuple([_text(body, path) for path in kind.field_paths])
        self.owners = tuple([owner["uid"] for owner in meta.get("ownerReferences") or ()])
        self.deleting = "deletionTimestamp" in meta
        self.inside = orjson.dumps({key: body[key] for key in body if key not in ("kind", "apiVersion")})[1:-1]

    def encode(self) -> bytes:
        """Return the object as it is sent."""
        return self.kind.opening + self.inside + b"}"

    def view(self) -> Json:
        """Return the object for reading, not for changes; recent results are cached."""
        return _viewed(self)

    def read(self) -> Json:
        """Return a new copy of the object, which the caller may change."""
        found: Json = orjson.loads(self.encode())
        return found


@lru_cache(maxsize=VIEWS)
def _viewed(one: Stored) -> Json:
    return one.read()


def _text(body: Json, path: tuple[str, ...]) -> str:
    found: object = body
    for key in path:
        found = found.get(key) if isinstance(found, dict) else None
    if isinstance(found, bool):
        return "true" if found else "false"
    return "" if found is None else str(found)


class Event:
    """One change: ``ADDED``, ``MODIFIED`` or ``DELETED``, with the current (or last) and the previous state.

    `status` marks a change of nothing but the status: the controller that wrote it can skip the event.
    """

    __slots__ = ("_frames", "before", "now", "status", "type")

    def __init__(self, kind: str, now: Stored, before: Stored | None, *, status: bool = False) -> None:
        self.type = kind
        self.now = now
        self.before = before
        self.status = status
        self._frames: dict[str, bytes] = {}

    def frame(self, kind: str) -> bytes:
        """Return the line that a watch sends, as an event of a type; all watchers share it."""
        frame = self._frames.get(kind)
        if frame is None:
            frame = self._frames[kind] = b'{"type":"%b","object":%b}\n' % (kind.encode(), self.now.encode())
        return frame


class Shelf:
    """All objects of one kind, sorted, and the last changes to them."""

    def __init__(self, history: int) -> None:
        self.items: dict[str, Stored] = {}
        self.keys: list[str] = []
        self.history: deque[Event] = deque()
        self.floor = 0
        self.most = history

    def within(self, namespace: str) -> list[str]:
        """Return the sorted keys of one namespace, or of all."""
        if not namespace:
            return self.keys
        first = bisect_left(self.keys, f"{namespace}/")
        return self.keys[first : bisect_left(self.keys, f"{namespace}{AFTER_SLASH}")]

    def log(self, event: Event) -> None:
        """Add to the history and drop old changes."""
        self.history.append(event)
        while len(self.history) > self.most:
            self.floor = self.history.popleft().now.version

    def since(self, version: int) -> Iterator[Event]:
        """Yield all changes after a version."""
        for event in self.history:
            if event.now.version > version:
                yield event


Follower = Callable[[Event], None]


class Store:
    """The objects of one server.

    Parameters
    ----------
    kinds
        Kinds that the store serves.
    seed
        Seed of the uids.
    history
        Number of changes of each kind that are stored for watches.

    Attributes
    ----------
    version
        The latest version.
    dependents
        The dependents of each uid.
    """

    def __init__(self, kinds: Kinds, seed: int | str = 0, history: int = 5000) -> None:
        self.kinds = kinds
        self.version = 1
        self.shelves = {kind: Shelf(history) for kind in kinds.all}
        self.dependents: dict[str, dict[tuple[Kind, str], None]] = {}
        self._random = Random(seed)
        self._followers: list[Follower] = []
        self._followers_of: dict[Kind, list[Follower]] = {kind: [] for kind in kinds.all}

    def new_uid(self) -> str:
        """Return a new uid."""
        text = f"{self._random.getrandbits(128):032x}"
        return f"{text[:8]}-{text[8:12]}-4{text[13:16]}-a{text[17:20]}-{text[20:]}"

    def new_suffix(self) -> str:
        """Return the five-character suffix of a generated name."""
        return "".join(self._random.choices("bcdfghjklmnpqrstvwxz2456789", k=5))

    def follow(self, follower: Follower, kinds: Iterable[Kind] | None = None) -> Callable[[], None]:
        """Call a function after every change (of some kinds); return a function that ends this."""
        lists = [self._followers] if kinds is None else [self._followers_of[kind] for kind in kinds]
        for followers in lists:
            followers.append(follower)

        def end() -> None:
            for followers in lists:
                if follower in followers:
                    followers.remove(follower)

        return end

    def find(self, kind: Kind, namespace: str, name: str) -> Stored | None:
        """Return an object, or None."""
        return self.shelves[kind].items.get(kind.key(namespace, name))

    def get(self, kind: Kind, namespace: str, name: str) -> Stored:
        """Return an object.

        Raises
        ------
        FailureError
            404 if there is none.
        """
        found = self.find(kind, namespace, name)
        if found is None:
            raise not_found(kind, name)
        return found

    def all(self, kind: Kind, namespace: str = "") -> Iterator[Stored]:
        """Yield all objects of a kind, sorted."""
        shelf = self.shelves[kind]
        return (shelf.items[key] for key in list(shelf.within(namespace)))

    def put(self, kind: Kind, body: Json, *, status: bool = False) -> Stored:
        """Store an object at the next version and notify all followers.

        `status` marks a change of nothing but the status.
        """
        self.version += 1
        body["metadata"]["resourceVersion"] = str(self.version)
        now = Stored(kind, body)
        shelf = self.shelves[kind]
        before = shelf.items.get(now.key)
        if before is None:
            insort(shelf.keys, now.key)
        shelf.items[now.key] = now
        self._index(now, before)
        self._tell(shelf, Event("MODIFIED" if before else "ADDED", now, before, status=status))
        return now

    def remove(self, kind: Kind, body: Json) -> Stored:
        """Remove an object with its last state, and notify all followers."""
        self.version += 1
        body["metadata"]["resourceVersion"] = str(self.version)
        last = Stored(kind, body)
        shelf = self.shelves[kind]
        before = shelf.items.pop(last.key)
        del shelf.keys[bisect_left(shelf.keys, last.key)]
        self._index(None, before)
        self._tell(shelf, Event("DELETED", last, before))
        return last

    def load(self, objects: Iterable[Stored]) -> int:
        """Add many new objects in one call, without history and notifications; return how many.

        Their versions must be above the latest.
        """
        count = 0
        touched = set()
        for one in objects:
            shelf = self.shelves[one.kind]
            if one.key not in shelf.items:
                shelf.keys.append(one.key)
            shelf.items[one.key] = one
            self._index(one, None)
            self.version = max(self.version, one.version)
            touched.add(one.kind)
            count += 1
        for kind in touched:
            shelf = self.shelves[kind]
            shelf.keys.sort()
            shelf.history.clear()
            shelf.floor = self.version
        return count

    def forget(self) -> None:
        """Drop all history, as a compaction does: older versions can no longer be watched or paged."""
        self.version += 1
        for shelf in self.shelves.values():
            shelf.history.clear()
            shelf.floor = self.version

    def _index(self, now: Stored | None, before: Stored | None) -> None:
        if before is not None and before.owners and (now is None or now.owners != before.owners):
            for owner in before.owners:
                owned = self.dependents.get(owner)
                if owned is not None:
                    owned.pop((before.kind, before.key), None)
                    if not owned:
                        del self.dependents[owner]
        if now is not None:
            for owner in now.owners:
                self.dependents.setdefault(owner, {})[now.kind, now.key] = None

    def _tell(self, shelf: Shelf, event: Event) -> None:
        shelf.log(event)
        for follower in (*self._followers_of[event.now.kind], *self._followers):
            follower(event)
