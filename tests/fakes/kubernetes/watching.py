"""Watches: every change after a version, in order, for each watcher."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Mapping
from time import monotonic

import orjson

from tests.fakes.kubernetes.exchange import Answer
from tests.fakes.kubernetes.failures import FailureError, expired
from tests.fakes.kubernetes.kinds import Kind
from tests.fakes.kubernetes.listing import Lister, Selection
from tests.fakes.kubernetes.store import Event, Store

MAX_WAITING_BYTES = 256 << 20
"""Limit of the queue of one watcher, which is cut off beyond it."""
LONGEST_S = 3600.0
INITIAL_EVENTS_END = "k8s.io/initial-events-end"


class CutError(Exception):
    """The connection is to be closed without the end that HTTP requires."""


class Watcher:
    """One watch: its queue, and how it ends.

    Attributes
    ----------
    kind
        The watched kind.
    paths
        The requested path, and if it came through a proxy, the path there.
    cut
        Set to drop the connection in the middle.
    silencers
        Reasons to send nothing for now, as if the network had swallowed the connection.
    """

    def __init__(self, kind: Kind, path: str, selection: Selection) -> None:
        self.kind = kind
        self.paths = [path]
        self.cut = False
        self.silencers: set[object] = set()
        self._selection = selection
        self._waiting: list[bytes] = []
        self._size = 0
        self._wake = asyncio.Event()

    def offer(self, event: Event) -> None:
        """Add a change to the queue if the selectors select it."""
        now = event.type != "DELETED" and self._selection.wants(event.now)
        before = event.before is not None and self._selection.wants(event.before)
        if now:
            self.give(event.frame("MODIFIED" if before else "ADDED"))
        elif before:
            self.give(event.frame("DELETED"))

    def give(self, frame: bytes) -> None:
        """Add a line to the queue."""
        self._waiting.append(frame)
        self._size += len(frame)
        if self._size > MAX_WAITING_BYTES:
            self.cut = True
        self._wake.set()

    @property
    def unreachable(self) -> bool:
        """True while nothing is sent."""
        return bool(self.silencers)

    def hits(self, matches: Callable[[str], bool]) -> bool:
        """Report whether any of its paths matches."""
        return any(matches(path) for path in self.paths)

    def wake(self) -> None:
        """Make it check `cut` and `silencers`."""
        self._wake.set()

    async def take(self, seconds: float) -> bytes:
        """Wait up to `seconds` for lines, and return them.

        Raises
        ------
        CutError
            If the connection is to be dropped.
        """
        if not self._waiting or self.unreachable:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._wake.wait(), max(0.0, seconds))
        self._wake.clear()
        if self.cut:
            raise CutError
        if self.unreachable:
            return b""
        found = b"".join(self._waiting)
        self._waiting.clear()
        self._size = 0
        return found

    def cut_off(self) -> None:
        """Drop the connection."""
        self.cut = True
        self._wake.set()


class Watches:
    """All watches of one server.

    Parameters
    ----------
    store
        The watched objects.
    lister
        Source of the initial state.
    bookmark_s
        Interval of bookmarks for watches that request them, seconds.

    Attributes
    ----------
    open
        The open watches.
    """

    def __init__(self, store: Store, lister: Lister, bookmark_s: float = 60.0) -> None:
        self.bookmark_s = bookmark_s
        self.open: set[Watcher] = set()
        self._store = store
        self._lister = lister

    def start(self, kind: Kind, namespace: str, path: str, query: Mapping[str, str]) -> Answer:
        """Begin a watch.

        Raises
        ------
        FailureError
            For an invalid query.
        """
        version = query.get("resourceVersion", "")
        if version and not version.isdigit():
            why = f'strconv.ParseUint: parsing "{version}": invalid syntax'
            raise FailureError(500, "", f'resourceVersion: Invalid value: "{version}": {why}')
        watcher = Watcher(kind, path, Selection.read(kind, namespace, query))
        initial = query.get("sendInitialEvents") == "true"
        bookmarks = query.get("allowWatchBookmarks") in ("true", "1")
        too_old = version not in ("", "0") and not initial and int(version) < self._store.shelves[kind].floor
        if too_old:
            error = expired(f"too old resource version: {version} ({self._store.shelves[kind].floor})")
            return Answer(_only(_error(error)))
        if version in ("", "0") or initial:
            for one in self._lister.select(kind, Selection.read(kind, namespace, query)):
                watcher.give(b'{"type":"ADDED","object":%b}\n' % one.encode())
            if initial and bookmarks:
                watcher.give(self._bookmark(kind, ended=True))
        else:
            for event in self._store.shelves[kind].since(int(version)):
                watcher.offer(event)
        end = self._store.follow(watcher.offer, [kind])
        self.open.add(watcher)
        seconds = float(query.get("timeoutSeconds") or LONGEST_S)
        return Answer(self._lines(watcher, end, seconds, bookmarks=bookmarks), watcher=watcher)

    async def _lines(
        self, watcher: Watcher, end: Callable[[], None], seconds: float, *, bookmarks: bool
    ) -> AsyncIterator[bytes]:
        try:
            yield b""
            over = monotonic() + seconds
            bookmark = monotonic() + self.bookmark_s
            while (now := monotonic()) < over:
                wait = min(over, bookmark if bookmarks else over) - now
                if lines := await watcher.take(wait):
                    yield lines
                if bookmarks and not watcher.unreachable and monotonic() >= bookmark:
                    bookmark = monotonic() + self.bookmark_s
                    yield self._bookmark(watcher.kind)
        finally:
            self.open.discard(watcher)
            end()

    def _bookmark(self, kind: Kind, *, ended: bool = False) -> bytes:
        meta: dict[str, object] = {"resourceVersion": str(self._store.version), "creationTimestamp": None}
        if ended:
            meta["annotations"] = {INITIAL_EVENTS_END: "true"}
        return b'{"type":"BOOKMARK","object":%b"metadata":%b}}\n' % (kind.opening, orjson.dumps(meta))


async def _only(line: bytes) -> AsyncIterator[bytes]:
    yield line


def _error(error: FailureError) -> bytes:
    return b'{"type":"ERROR","object":%b}\n' % orjson.dumps(error.status())
