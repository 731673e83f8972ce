"""List once, then watch: keeps whoever asks told of every object of one kind.

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
from seaway.adapters.kubernetes.objects.meta import Item, Meta, Part
from seaway.domain.errors import UnavailableError

LIST_TIMEOUT_CALLS = 12
"""How many times as long as a call it may take in all; without a byte no longer than a call."""

T = TypeVar("T", bound=Part)


async def read_in_slices(api: Api, path: str, params: Mapping[str, str], kind: type[T]) -> Page[T]:
    """Read a list that may have 50,000 objects, and decode it in turns: other clusters are followed meanwhile.

    Raises
    ------
    ApiError
        The server refused.
    UnavailableError
        It did not answer in time, or more than anybody can take.
    UndecodableError
        It is not a list.
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
                raise UnavailableError(f"{api.name} answers more than {MAX_BYTES} bytes at once to {path}")
    return b"".join(said)


log = logging.getLogger(__name__)

PAGE = 500
"""Objects in a page of a list."""

WATCH_S = 290
"""How long a watch is asked to go on."""

IDLE_TIMEOUT_S = 75.0
"""After how long without a byte a watch is given up; servers send a bookmark about every minute."""

ABSENT_RETRY_S = 300.0
"""How long until a kind that the server does not have is asked for again."""

MIN_WATCH_S = 1.0
"""A watch that a server ends before that was none: it is begun again later every time."""

T_contra = TypeVar("T_contra", bound=Part, contravariant=True)


@dataclass(frozen=True, slots=True)
class Source(Generic[T]):
    """Objects to follow.

    Attributes
    ----------
    path
        Their collection, like ``/api/v1/nodes``.
    kind
        What they are decoded as.
    selector
        Only objects with these labels; empty for all.
    optional
        Whether a server may not have them at all.
    namespace
        Where they are looked for; empty for everywhere.
    fields
        Only objects with these fields; empty for all.
    label
        What a cluster's health calls them; their path when empty.
    skippable
        Whether Seaway can do without seeing them, where it has no right to that, or where they fail for long.
    versioned
        Whether they may be at another path once they are not at this one: then they are followed no more.
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

    def within(self, namespace: str) -> Source[T]:
        """Return the same, looked for in one namespace only."""
        return replace(self, namespace=namespace)

    @property
    def selectors(self) -> dict[str, str]:
        """What narrows lists and watches down, as parameters."""
        named = {"labelSelector": self.selector, "fieldSelector": self.fields}
        return {name: text for name, text in named.items() if text}

    @property
    def name(self) -> str:
        """What a cluster's health calls them."""
        return self.label or self.path

    @property
    def address(self) -> str:
        """What is asked of the server."""
        prefix, _, plural = self.path.rpartition("/")
        return f"{prefix}/namespaces/{self.namespace}/{plural}" if self.namespace else self.path


class Sink(Protocol[T_contra]):
    """Who is told; on the event loop, so it may not wait for anybody."""

    async def replace(self, items: Sequence[T_contra]) -> None:
        """Take these for all there are; others are to have their turn where these are many."""

    def put(self, item: T_contra) -> None:
        """Take an object as it is now."""

    def drop(self, item: T_contra) -> None:
        """Note that an object is gone."""

    def broken(self, what: Broken) -> None:
        """Note that an object cannot be read; what was known of it counts no more."""


class _OverrunError(Exception):
    """The version that was asked from is too old: everything must be listed again."""


@dataclass(slots=True)
class _Position:
    """Up to which version a sink was told, however the telling ended; empty when everything must be listed."""

    version: str = ""


async def reflect(api: Api, source: Source[T], sink: Sink[T], health: Health, backoff: Backoff) -> None:
    """Keep `sink` told, until cancelled, or until what moves is not there.

    Whatever fails is noted in `health` and tried again, later every time; what was heard before stands meanwhile.
    """
    position = _Position()
    while True:
        try:
            if not position.version:
                position.version = await _list(api, source, sink)
                health.succeeded(source.name)
            began_s = asyncio.get_running_loop().time()
            await _watch(api, source, sink, position, health, backoff)
            if asyncio.get_running_loop().time() - began_s < MIN_WATCH_S:
                await backoff.pause()
        except _OverrunError:
            position.version = ""
            await backoff.pause()
        except ApiError as error:
            position.version = ""
            if await _should_stop(error, api, source, sink, health, backoff):
                return
        except UnavailableError as error:
            health.failed(source.name, str(error), optional=source.skippable)
            await backoff.pause(error.retry_after_s if error.retry_after_s > RETRY_AFTER_S else 0)
        except UndecodableError as error:
            position.version = ""
            health.failed(source.name, f"{api.name} answers what is no Kubernetes: {error}", optional=source.skippable)
            await backoff.pause()
        except Exception as error:  # a mistake of ours must not end the view of a cluster for ever
            position.version = ""
            log.exception("%s: following %s failed", api.name, source.path)
            health.failed(source.name, str(error) or type(error).__name__, optional=source.skippable)
            await backoff.pause()


async def _should_stop(
    error: ApiError, api: Api, source: Source[T], sink: Sink[T], health: Health, backoff: Backoff
) -> bool:
    """Take a refusal, and wait until it makes sense to ask again; tell whether that never does."""
    if not await _can_skip(error, api, source, sink, health):
        health.failed(source.name, f"{api.name}: {error}", optional=source.skippable)
        await backoff.pause()
        return False
    if source.versioned and error.missing:
        return True
    await asyncio.sleep(ABSENT_RETRY_S)
    return False


async def _can_skip(error: ApiError, api: Api, source: Source[T], sink: Sink[T], health: Health) -> bool:
    """Tell whether a view can be relied on without what is not there, or may not be seen; then note that."""
    if source.optional and error.missing:
        await sink.replace(())
        health.succeeded(source.name)
        return True
    if source.skippable and error.forbidden:
        health.forbidden(source.name, f"{api.name}: {error}")
        return True
    return False


async def _list(api: Api, source: Source[T], sink: Sink[T]) -> str:
    """List everything; return the version that it is of."""
    items, broken, version = await read_all(api, source)
    for each in broken:
        sink.broken(each)
    await sink.replace(items)
    return version


async def read_all(api: Api, source: Source[T]) -> tuple[list[T], list[Broken], str]:
    """Read all objects, page by page; return them, those that cannot be read, and the version that this is of."""
    params = {"limit": str(PAGE), **source.selectors}
    items: list[T] = []
    broken: list[Broken] = []
    while True:
        try:
            page = read_page(await api.get(source.address, params), source.kind)
        except ApiError as error:
            if not error.gone or "continue" not in params:
                raise
            items.clear()  # it took too long: from the start, and all of it at once
            broken.clear()
            page = await read_in_slices(api, source.address, source.selectors, source.kind)
        items += page.items
        broken += page.broken
        if not page.metadata.next_page:
            break
        params["continue"] = page.metadata.next_page
        await asyncio.sleep(0)  # others want to be heard too
    return items, broken, page.metadata.resource_version


async def _watch(  # what is followed, and the three who keep how it goes
    api: Api, source: Source[T], sink: Sink[T], position: _Position, health: Health, backoff: Backoff
) -> None:
    """Hand on changes for as long as the server tells of them, and keep up to which it did.

    That a watch is open is an answer, though it may have nothing to tell for long.
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
    """Hand on one change; return the version that it brought."""
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
