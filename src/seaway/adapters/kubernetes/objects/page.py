"""What servers answer: pages of lists, lines of watches, failures; and what could not be decoded of it.

References
----------
Kubernetes documentation, "API Concepts": pages and watches.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

import msgspec

from seaway.adapters.kubernetes.objects.part import Part


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
