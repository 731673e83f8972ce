"""Lists of the fleet page: nodes with their cards, cards, and containers."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from nicegui import ui

from seaway.client.calls.fleet import FleetFilter
from seaway.web.fragment import Fragment, once, written
from seaway.web.pages.fleet.filter import is_meant
from seaway.web.parts.slices import Painter, painter, still, still_slices
from seaway.web.words import Words

if TYPE_CHECKING:
    from seaway.wire.fleet import AllocatedSlice, DeviceOut, NodeOut, SliceOut

MAX_NODES = 500
"""Size of the cache of rendered nodes."""

_nodes: OrderedDict[tuple[object, ...], tuple[NodeOut, Mapping[str, int], str]] = OrderedDict()
"""Rendered nodes by the options of their view."""


@dataclass(frozen=True, slots=True)
class Shown:
    """Summary of a list in view.

    Attributes
    ----------
    count
        Number of entries.
    legend
        Variables of the legend's template.
    """

    count: int
    legend: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Drawn:
    """Rendered page of a list.

    Attributes
    ----------
    pieces
        Parts of its HTML.
    """

    pieces: Sequence[str]
    shown: Shown


class NodeList:
    """List of nodes. Each has an element of its own, so that the server sends only changed nodes."""

    def __init__(self, words: Words) -> None:
        self._words = words
        self._rows: list[Fragment] = []
        self.element = ui.element("div").classes("nodes")

    def show(self, page: Any, wanted: FleetFilter, by: str) -> Shown:  # noqa: ANN401  # a NodePage
        """Show a page of nodes, with slices in colours of tenants or jobs."""
        words, choices = self._words, (by, tuple(wanted.items()))
        of = ("nodes", words.language, choices)
        drawn = once(of, [page], lambda: _draw_nodes(page.nodes, wanted, by, words))
        while len(self._rows) > len(drawn.pieces):
            self._rows.pop().element.delete()
        with self.element:
            while len(self._rows) < len(drawn.pieces):
                self._rows.append(Fragment("fleet_node", words))
        for row, piece in zip(self._rows, drawn.pieces, strict=True):
            row.put(piece)
        return drawn.shown


class CardList:
    """Table of cards."""

    def __init__(self, words: Words) -> None:
        self._words = words
        self._table = Fragment("fleet_cards", words)
        self.element = self._table.element

    def show(self, page: Any, _: FleetFilter, by: str) -> Shown:  # noqa: ANN401  # a DevicePage
        """Show a page of devices."""
        words = self._words
        drawn = once(("cards", words.language, by), [page], lambda: _draw_cards(still(page.devices), by, words))
        self._table.put(drawn.pieces[0])
        return drawn.shown


class SliceList:
    """Table of containers with their allocations."""

    def __init__(self, words: Words) -> None:
        self._words = words
        self._table = Fragment("fleet_slices", words)
        self.element = self._table.element

    def show(self, page: Any, _: FleetFilter, by: str) -> Shown:  # noqa: ANN401  # a SlicePage
        """Show a page of slices."""
        words = self._words
        drawn = once(("slices", words.language, by), [page], lambda: _draw_slices(still_slices(page.slices), by, words))
        self._table.put(drawn.pieces[0])
        return drawn.shown


def _draw_nodes(shown_nodes: Sequence[NodeOut], wanted: FleetFilter, by: str, words: Words) -> Drawn:
    nodes = [each.model_copy(update={"devices": still(each.devices)}) for each in shown_nodes]
    devices = [device for node in nodes for device in node.devices]
    paint = painter(words, by, _slices(devices))
    return Drawn([_node(each, wanted, paint) for each in nodes], Shown(len(nodes), _legend(paint, devices)))


def _node(node: NodeOut, wanted: FleetFilter, paint: Painter) -> str:
    """Render a node; most nodes have not changed and come from the cache."""
    key = (node.cluster, node.name, paint.by, tuple(wanted.items()), paint.words.language)
    known = _nodes.pop(key, None)
    if known is None or known[:2] != (node, paint.colours):
        html = written("fleet_node", paint.words, node=node, paint=paint, meant=is_meant(wanted))
        known = node, paint.colours, html
    _nodes[key] = known
    while len(_nodes) > MAX_NODES:
        _nodes.popitem(last=False)
    return known[2]


def _draw_cards(devices: Sequence[DeviceOut], by: str, words: Words) -> Drawn:
    paint = painter(words, by, _slices(devices))
    html = written("fleet_cards", words, devices=devices, paint=paint)
    return Drawn([html], Shown(len(devices), _legend(paint, devices)))


def _draw_slices(slices: Sequence[SliceOut], by: str, words: Words) -> Drawn:
    paint = painter(words, by, slices)
    html = written("fleet_slices", words, slices=slices, paint=paint, measured=any(each.used for each in slices))
    return Drawn(
        [html], Shown(len(slices), _names(paint, slices) | {"closed": False, "measured": False, "free": False})
    )


def _slices(devices: Iterable[DeviceOut]) -> list[AllocatedSlice]:
    return [held for device in devices for held in device.slices]


def _legend(paint: Painter, devices: Sequence[DeviceOut]) -> dict[str, Any]:
    return _names(paint, _slices(devices)) | {
        "free": bool(devices),
        "closed": any(each.reason for each in devices),
        "measured": any(each.used for each in devices),
    }


def _names(paint: Painter, slices: Sequence[AllocatedSlice]) -> dict[str, Any]:
    return {
        "legend": paint.legend(slices),
        "hidden": any(not each.job for each in slices),
        "nobody": any(each.job and not (each.job_id and each.tenant) for each in slices),
    }
