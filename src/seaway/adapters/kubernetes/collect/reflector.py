"""Reflector: lists the objects of one kind once, then watches them.

References
----------
Kubernetes documentation, "API Concepts": efficient detection of changes, bookmarks, 410 Gone, chunked lists.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Generic, Protocol, TypeVar

from seaway.adapters.kubernetes.collect.changes import TIME_SLICE_S
from seaway.adapters.kubernetes.collect.health import Health
from seaway.adapters.kubernetes.connection.api import RETRY_AFTER_S, Api
from seaway.adapters.kubernetes.connection.backoff import Backoff
from seaway.adapters.kubernetes.connection.responses import MAX_BYTES, ApiError
from seaway.adapters.kubernetes.objects.core import Item, Meta, Part
from seaway.adapters.kubernetes.objects.decode import (
    Broken,
    Failure,
    Page,
    RawPage,
    UndecodableError,
    WatchEvent,
    page_of,
    read_body,
    read_event,
    read_item,
    read_page,
)
from seaway.adapters.kubernetes.templates.namespaces import Namespaces
from seaway.domain.errors import UnavailableError
from seaway.domain.reasons import Reason, in_cluster, reason_of

LIST_TIMEOUT_CALLS = 12
"""Timeout of a full list, as a multiple of a call's timeout. The idle timeout is that of a call."""

T = TypeVar("T", bound=Part)


async def read_in_slices(api: Api, path: str, params: Mapping[str, str], kind: type[T]) -> Page[T]:
    """Read a list of up to 50,000 objects, and decode it in time slices, so that other clusters can use the event loop.

    Raises
    ------
    ApiError
        When the server refuses the request.
    UnavailableError
        When the server does not answer in time, or the answer exceeds `MAX_BYTES`.
    UndecodableError
        When the answer is not a list.
    """
    page = read_body(await _whole(api, path, params), RawPage)
    read: list[T | Broken] = []
    end_s = perf_counter() + TIME_SLICE_S
    for raw in page.items or ():
        read.append(read_item(raw, kind))
        if perf_counter() >= end_s:
            await asyncio.sleep(0)
            end_s = perf_counter() + TIME_SLICE_S
    return page_of(page, read)


async def _whole(api: Api, path: str, params: Mapping[str, str]) -> bytes:
    said, size = [], 0
    async with (
        api.pieces(path, params, api.request_timeout_s) as pieces,
        asyncio.timeout(LIST_TIMEOUT_CALLS * api.request_timeout_s),
    ):
        async for piece in pieces:
            said.append(piece)
            size += len(piece)
            if size > MAX_BYTES:
                raise UnavailableError(f"{api.name} sends more than {MAX_BYTES} bytes for {path}")
    return b"".join(said)


log = logging.getLogger(__name__)

PAGE = 500
"""Number of objects per page of a list."""

WATCH_S = 290
"""Requested duration of a watch, in seconds."""

IDLE_TIMEOUT_S = 75.0
"""Time in seconds without data after which a watch is closed. Servers send a bookmark about every minute."""

ABSENT_RETRY_S = 300.0
"""Delay in seconds before Seaway requests a missing kind again."""

MIN_WATCH_S = 1.0
"""Minimum duration of a successful watch in seconds. After a shorter watch, back-off delays the next one."""

T_contra = TypeVar("T_contra", bound=Part, contravariant=True)


@dataclass(frozen=True, slots=True)
class Source(Generic[T]):
    """Objects to list and watch.

    Attributes
    ----------
    path
        Path of their collection, such as ``/api/v1/nodes``.
    kind
        Type to decode the objects as.
    selector
        Label selector; empty for all.
    optional
        True if a server may not have the kind.
    namespace
        Namespace of the objects; empty for all.
    fields
        Field selector; empty for all.
    label
        Name of the health source; the path if empty.
    skippable
        True if Seaway can skip the kind when it has no permission, or when the kind keeps failing.
    versioned
        True if the kind may move to another path. Following then ends when this path is missing.
    fallback
        Namespace to follow while Seaway may not list all namespaces; empty for none.
    """

    path: str
    kind: type[T]
    selector: str = ""
    optional: bool = False
    namespace: str = ""
    fields: str = ""
    label: str = ""
    skippable: bool = False
    versioned: bool = False
    fallback: str = ""

    def across(self, namespaces: Namespaces) -> Source[T]:
        """Return the same source, limited to the namespaces of Seaway's objects if there is only one."""
        return replace(self, namespace=namespaces.scope, fallback=namespaces.shared)

    def limited(self) -> Source[T]:
        """Return the same source, limited to its fallback."""
        return replace(self, namespace=self.fallback)

    @property
    def selectors(self) -> dict[str, str]:
        """Query parameters of the selectors."""
        named = {"labelSelector": self.selector, "fieldSelector": self.fields}
        return {name: text for name, text in named.items() if text}

    @property
    def name(self) -> str:
        """Name of the health source."""
        return self.label or self.path

    @property
    def address(self) -> str:
        """Path of the collection, with the namespace."""
        prefix, _, plural = self.path.rpartition("/")
        return f"{prefix}/namespaces/{self.namespace}/{plural}" if self.namespace else self.path


class Sink(Protocol[T_contra]):
    """Receiver of objects. It runs on the event loop and must not block."""

    async def replace(self, items: Sequence[T_contra]) -> None:
        """Replace all objects; yield to other tasks if there are many."""

    def put(self, item: T_contra) -> None:
        """Add or update an object."""

    def drop(self, item: T_contra) -> None:
        """Remove an object."""

    def broken(self, what: Broken) -> None:
        """Discard the data of an object that cannot be decoded."""


class _OverrunError(Exception):
    """Error for an expired resource version. Everything must be listed again."""


@dataclass(slots=True)
class _Position:
    """Resource version up to which the sink is current; empty if everything must be listed."""

    version: str = ""


@dataclass(slots=True)
class _Scope(Generic[T]):
    """Source to follow now. A server may not allow Seaway to list all namespaces, as after an upgrade of Seaway.

    Attributes
    ----------
    everywhere
        The source in all namespaces.
    limited_until_s
        Time until which only its fallback is followed; 0 if it was never limited.
    """

    everywhere: Source[T]
    limited_until_s: float = 0.0

    def current(self, now_s: float) -> Source[T]:
        """Return the source to follow."""
        return self.everywhere.limited() if now_s < self.limited_until_s else self.everywhere

    def limit(self, api: Api, error: ApiError, source: Source[T], now_s: float) -> bool:
        """Limit the source after a refusal, and log this once; return False if that does not help."""
        if not error.forbidden or error.transient or not source.fallback or source.namespace:
            return False
        if not self.limited_until_s:
            log.warning("%s: %s; only namespace %r is followed until then", api.name, error, source.fallback)
        self.limited_until_s = now_s + ABSENT_RETRY_S
        return True


async def reflect(api: Api, source: Source[T], sink: Sink[T], health: Health, backoff: Backoff) -> None:
    """Keep `sink` current until cancelled, or until a versioned source is missing.

    Record failures in `health` and retry with back-off. Earlier data stays valid until then.
    """
    position, scope, clock = _Position(), _Scope(source), asyncio.get_running_loop().time
    while True:
        if (current := scope.current(clock())) != source:
            source, position.version = current, ""
        try:
            await _list_and_watch(api, source, sink, position, health, backoff)
        except _OverrunError:
            position.version = ""
            await backoff.pause()
        except ApiError as error:
            position.version = ""
            if scope.limit(api, error, source, clock()):
                continue
            if await _should_stop(error, api, source, sink, health, backoff):
                return
        except UnavailableError as error:
            health.failed(source.name, reason_of(error), optional=source.skippable)
            await backoff.pause(error.retry_after_s if error.retry_after_s > RETRY_AFTER_S else 0)
        except UndecodableError as error:
            position.version = ""
            why = Reason("not_kubernetes", name=api.name, why=str(error))
            health.failed(source.name, why, optional=source.skippable)
            await backoff.pause()
        except Exception as error:  # a bug must not end the view of a cluster
            position.version = ""
            log.exception("%s: following %s failed", api.name, source.path)
            health.failed(source.name, str(error) or type(error).__name__, optional=source.skippable)
            await backoff.pause()


async def _list_and_watch(  # a source and its state
    api: Api, source: Source[T], sink: Sink[T], position: _Position, health: Health, backoff: Backoff
) -> None:
    """List a source unless its position is known, and watch it once."""
    clock = asyncio.get_running_loop().time
    if not position.version:
        position.version = await _list(api, source, sink)
        health.succeeded(source.name)
    began_s = clock()
    await _watch(api, source, sink, position, health, backoff)
    if clock() - began_s < MIN_WATCH_S:
        await backoff.pause()


async def _should_stop(
    error: ApiError, api: Api, source: Source[T], sink: Sink[T], health: Health, backoff: Backoff
) -> bool:
    """Handle a refusal and wait for the next try; return whether to stop."""
    if not await _can_skip(error, api, source, sink, health):
        health.failed(source.name, in_cluster(api.name, reason_of(error)), optional=source.skippable)
        await backoff.pause()
        return False
    if source.versioned and error.missing:
        return True
    await asyncio.sleep(ABSENT_RETRY_S)
    return False


async def _can_skip(error: ApiError, api: Api, source: Source[T], sink: Sink[T], health: Health) -> bool:
    """Report whether the view is usable without a missing or forbidden source; if so, record the source as skipped."""
    if source.optional and error.missing:
        await sink.replace(())
        health.succeeded(source.name)
        return True
    if source.skippable and error.forbidden:
        health.forbidden(source.name, f"{api.name}: {error}")
        return True
    return False


async def _list(api: Api, source: Source[T], sink: Sink[T]) -> str:
    """List all objects; return the version of the list."""
    items, broken, version = await read_all(api, source)
    for each in broken:
        sink.broken(each)
    await sink.replace(items)
    return version


async def read_all(api: Api, source: Source[T]) -> tuple[list[T], list[Broken], str]:
    """Read all objects page by page.

    Return the decoded objects, the undecodable objects, and the version of the list.
    """
    params = {"limit": str(PAGE), **source.selectors}
    items: list[T] = []
    broken: list[Broken] = []
    while True:
        try:
            page = read_page(await api.get(source.address, params), source.kind)
        except ApiError as error:
            if not error.gone or "continue" not in params:
                raise
            items.clear()  # the pages expired: read the list in one request
            broken.clear()
            page = await read_in_slices(api, source.address, source.selectors, source.kind)
        items += page.items
        broken += page.broken
        if not page.metadata.next_page:
            break
        params["continue"] = page.metadata.next_page
        await asyncio.sleep(0)  # yields to other clusters
    return items, broken, page.metadata.resource_version


async def _watch(  # a source and its state
    api: Api, source: Source[T], sink: Sink[T], position: _Position, health: Health, backoff: Backoff
) -> None:
    """Deliver changes until the watch ends, and update the position.

    An open watch counts as an answer, even if it sends no changes for a long time.
    """
    params = {
        "watch": "true",
        "allowWatchBookmarks": "true",
        "resourceVersion": position.version,
        "timeoutSeconds": str(WATCH_S),
        **source.selectors,
    }
    try:
        async with api.stream(source.address, params, IDLE_TIMEOUT_S) as lines:
            health.succeeded(source.name)
            async for line in lines:
                event = read_event(line)
                position.version = _deliver(event, source, sink) or position.version
                health.succeeded(source.name)
                backoff.reset()
    except ApiError as error:
        raise (_OverrunError if error.gone else error) from None


def _deliver(event: WatchEvent, source: Source[T], sink: Sink[T]) -> str:
    """Deliver one change; return its version."""
    if event.type == "ERROR":
        said = read_body(bytes(event.object), Failure)
        if said.code == 410:
            raise _OverrunError
        raise UnavailableError(said.message or said.reason or "the watch failed", retry_after_s=RETRY_AFTER_S)
    if event.type == "BOOKMARK":
        return read_body(bytes(event.object), Item).metadata.resource_version
    item = read_item(event.object, source.kind)
    if isinstance(item, Broken):
        if event.type == "DELETED":
            meta = Meta(name=item.name, namespace=item.namespace, uid=item.uid)
            sink.drop(source.kind(metadata=meta))
        else:
            sink.broken(item)
        return item.resource_version
    if event.type == "DELETED":
        sink.drop(item)
    else:
        sink.put(item)
    return str(item.metadata.resource_version)  # type: ignore[attr-defined]  # every kind that is followed has it
