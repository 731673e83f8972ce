"""How objects are decoded. What is of the wrong type spoils its object, never the page that it came with."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Generic, TypeVar, cast

import msgspec

from seaway.adapters.kubernetes.objects.meta import Part


class Failure(Part, frozen=True):
    """Kubernetes' ``Status``: why a call, or a watch, failed."""

    reason: str = ""
    message: str = ""
    code: int = 0


class PageMeta(Part, frozen=True):
    """Where a list stands, and how to get its next page."""

    resource_version: str = ""
    next_page: str = msgspec.field(default="", name="continue")
    """Give this as ``continue``; empty on the last page."""


class RawPage(Part, frozen=True):
    """A page of a list, its items not decoded yet."""

    metadata: PageMeta = PageMeta()
    items: list[msgspec.Raw] | None = None


T = TypeVar("T", bound=Part)


class WholePage(Part, Generic[T], frozen=True):
    """A page of a list with its items, where all of them are as they should be."""

    metadata: PageMeta = PageMeta()
    items: tuple[T, ...] | None = None


class WatchEvent(Part, frozen=True):
    """A change; `type` is ``ADDED``, ``MODIFIED``, ``DELETED``, ``BOOKMARK`` or ``ERROR``.

    The object of a bookmark is an `Item`, that of an error a `Failure`.
    """

    type: str = ""
    object: msgspec.Raw = msgspec.Raw(b"{}")


@dataclass(frozen=True, slots=True)
class Broken:
    """An object that could not be decoded.

    Attributes
    ----------
    name, namespace, uid, resource_version
        Its metadata as far as they could be read.
    text
        What is wrong with it.
    """

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    text: str = ""


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    """A page of a list: what could be decoded, and what could not."""

    metadata: PageMeta
    items: tuple[T, ...]
    broken: tuple[Broken, ...]


class UndecodableError(ValueError):
    """What came is not what Kubernetes sends: no JSON, or nothing like a page, an event or a failure."""


def read_page(data: bytes, kind: type[T]) -> Page[T]:
    """Decode a page of a list, at once where that can be done, and else item by item.

    Parameters
    ----------
    data
        The body of the answer.
    kind
        What its items are.

    Raises
    ------
    UndecodableError
        When `data` as a whole is no page. A broken item is not an error; it is among the page's broken ones.
    """
    try:
        whole = _page_decoder(kind).decode(data)
    except (ValueError, RecursionError):  # an item that is broken, or has nulls, must not spoil the others
        return _read_items(read_body(data, RawPage), kind)
    return Page(metadata=whole.metadata, items=cast("tuple[T, ...]", whole.items or ()), broken=())


def _read_items(page: RawPage, kind: type[T]) -> Page[T]:
    return page_of(page, [read_item(raw, kind) for raw in page.items or ()])


def page_of(page: RawPage, read: Sequence[T | Broken]) -> Page[T]:
    """Return a page whose items were read by `read_item`, those that are broken apart."""
    broken = tuple(each for each in read if isinstance(each, Broken))
    items = tuple(each for each in read if not isinstance(each, Broken))
    return Page(metadata=page.metadata, items=items, broken=broken)


def read_event(line: bytes) -> WatchEvent:
    """Decode a line of a watch, leaving its object for `read_item`.

    Raises
    ------
    UndecodableError
        When it is not an event.
    """
    return read_body(line, WatchEvent)


def read_body(data: bytes, kind: type[T]) -> T:
    """Decode an answer that is one object.

    Raises
    ------
    UndecodableError
        When it is not of this kind.
    """
    try:
        return cast("T", _decoder(kind).decode(data))
    except (ValueError, RecursionError) as error:
        if kind in (RawPage, WatchEvent):  # what they keep raw could not be kept below
            raise UndecodableError(str(error)) from error
    try:
        return _without_nulls(data, kind)
    except (ValueError, RecursionError) as error:
        raise UndecodableError(str(error)) from error


def read_item(raw: bytes | msgspec.Raw, kind: type[T]) -> T | Broken:
    """Decode one object, of a page or a watch; never raises."""
    try:
        return read_body(bytes(raw), kind)
    except UndecodableError as error:
        return _broken(bytes(raw), str(error))


@cache
def _decoder(kind: type[Part]) -> msgspec.json.Decoder[Part]:
    return msgspec.json.Decoder(kind)


@cache
def _page_decoder(kind: type[Part]) -> msgspec.json.Decoder[WholePage[Part]]:
    return msgspec.json.Decoder(WholePage[kind])  # type: ignore[valid-type]  # the kind is known only now


def _without_nulls(data: bytes, kind: type[T]) -> T:
    """Decode once more, taking every null for something that is not there; slower, and seldom needed."""
    return msgspec.convert(_stripped(msgspec.json.decode(data)), kind)


def _stripped(value: object) -> object:
    if isinstance(value, dict):
        return {key: _stripped(inner) for key, inner in value.items() if inner is not None}
    if isinstance(value, list):
        return [_stripped(inner) for inner in value if inner is not None]
    return value


def _broken(data: bytes, text: str) -> Broken:
    found = dict(_names(data))
    return Broken(
        name=found.get("name", ""),
        namespace=found.get("namespace", ""),
        uid=found.get("uid", ""),
        resource_version=found.get("resourceVersion", ""),
        text=text,
    )


def _names(data: bytes) -> Iterator[tuple[str, str]]:
    """Yield those of an object's metadata that are texts, if it has any."""
    try:
        value = msgspec.json.decode(data)
    except (ValueError, RecursionError):
        return
    metadata = value.get("metadata") if isinstance(value, dict) else None
    if isinstance(metadata, dict):
        yield from ((key, inner) for key, inner in metadata.items() if isinstance(inner, str))
