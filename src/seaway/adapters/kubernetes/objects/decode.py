"""Decoding of objects. An invalid object does not affect the others of its page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Generic, TypeVar, cast

import msgspec

from seaway.adapters.kubernetes.objects.core import Part


class Failure(Part, frozen=True):
    """``Status`` of Kubernetes with the reason of a failed call or watch."""

    reason: str = ""
    message: str = ""
    code: int = 0


class PageMeta(Part, frozen=True):
    """Version of a list, and the token of its next page."""

    resource_version: str = ""
    next_page: str = msgspec.field(default="", name="continue")
    """Value for ``continue``; empty on the last page."""


class RawPage(Part, frozen=True):
    """A page of a list with undecoded items."""

    metadata: PageMeta = PageMeta()
    items: list[msgspec.Raw] | None = None


T = TypeVar("T", bound=Part)


class WholePage(Part, Generic[T], frozen=True):
    """A page of a list in which all items are valid."""

    metadata: PageMeta = PageMeta()
    items: tuple[T, ...] | None = None


class WatchEvent(Part, frozen=True):
    """Change of an object; `type` is ``ADDED``, ``MODIFIED``, ``DELETED``, ``BOOKMARK`` or ``ERROR``.

    The object of a bookmark is an `Item`, that of an error a `Failure`.
    """

    type: str = ""
    object: msgspec.Raw = msgspec.Raw(b"{}")


@dataclass(frozen=True, slots=True)
class Broken:
    """Object that cannot be decoded.

    Attributes
    ----------
    name, namespace, uid, resource_version
        Its metadata; empty if unreadable.
    text
        The error.
    """

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    text: str = ""


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    """A page of a list with its decoded and its broken items."""

    metadata: PageMeta
    items: tuple[T, ...]
    broken: tuple[Broken, ...]


class UndecodableError(ValueError):
    """Error for an invalid Kubernetes response: no JSON, or neither a page, an event nor a failure."""


def read_page(data: bytes, kind: type[T]) -> Page[T]:
    """Decode a page of a list as a whole or, if this fails, item by item.

    Parameters
    ----------
    data
        Body of the answer.
    kind
        Type of the items.

    Raises
    ------
    UndecodableError
        When `data` is not a page. Broken items raise no error; they are in a separate field of the page.
    """
    try:
        whole = _page_decoder(kind).decode(data)
    except (ValueError, RecursionError):  # a broken item, or one with nulls, must not affect the others
        return _read_items(read_body(data, RawPage), kind)
    return Page(metadata=whole.metadata, items=cast("tuple[T, ...]", whole.items or ()), broken=())


def _read_items(page: RawPage, kind: type[T]) -> Page[T]:
    return page_of(page, [read_item(raw, kind) for raw in page.items or ()])


def page_of(page: RawPage, read: Sequence[T | Broken]) -> Page[T]:
    """Return a page from the results of `read_item`, with the broken items separated."""
    broken = tuple(each for each in read if isinstance(each, Broken))
    items = tuple(each for each in read if not isinstance(each, Broken))
    return Page(metadata=page.metadata, items=items, broken=broken)


def read_event(line: bytes) -> WatchEvent:
    """Decode a line of a watch, but not its object; `read_item` decodes the object.

    Raises
    ------
    UndecodableError
        When it is not an event.
    """
    return read_body(line, WatchEvent)


def read_body(data: bytes, kind: type[T]) -> T:
    """Decode an answer with one object.

    Raises
    ------
    UndecodableError
        When the answer has another form.
    """
    try:
        return cast("T", _decoder(kind).decode(data))
    except (ValueError, RecursionError) as error:
        if kind in (RawPage, WatchEvent):  # the fallback below does not support raw fields
            raise UndecodableError(str(error)) from error
    try:
        return _without_nulls(data, kind)
    except (ValueError, RecursionError) as error:
        raise UndecodableError(str(error)) from error


def read_item(raw: bytes | msgspec.Raw, kind: type[T]) -> T | Broken:
    """Decode one object of a page or a watch; never raise an error."""
    try:
        return read_body(bytes(raw), kind)
    except UndecodableError as error:
        return _broken(bytes(raw), str(error))


@cache
def _decoder(kind: type[Part]) -> msgspec.json.Decoder[Part]:
    return msgspec.json.Decoder(kind)


@cache
def _page_decoder(kind: type[Part]) -> msgspec.json.Decoder[WholePage[Part]]:
    return msgspec.json.Decoder(WholePage[kind])  # type: ignore[valid-type]  # the kind is dynamic


def _without_nulls(data: bytes, kind: type[T]) -> T:
    """Decode data, and treat every null as a missing field. This is slower than the normal way, and rarely needed."""
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
    """Yield the metadata fields of an object that are texts."""
    try:
        value = msgspec.json.decode(data)
    except (ValueError, RecursionError):
        return
    metadata = value.get("metadata") if isinstance(value, dict) else None
    if isinstance(metadata, dict):
        yield from ((key, inner) for key, inner in metadata.items() if isinstance(inner, str))
