"""The lists of the fleet: nodes with their cards drawn, cards, and containers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from nicegui import ui

from seaway.client.calls.fleet import FleetFilter
from seaway.web.fragment import Fragment
from seaway.web.parts.fleet_filter import is_meant
from seaway.web.parts.slices import Painter, painter, still, still_slices
from seaway.web.words import Words

if TYPE_CHECKING:
    from seaway.wire.fleet import DeviceOut, NodeOut, SliceHeld, SliceOut


@dataclass(frozen=True, slots=True)
class Shown:
    """What a list shows.

    Attributes
    ----------
    count
        Its entries.
    legend
        What the legend is to explain, by its name in the template.
    """

    count: int
    legend: dict[str, Any]


class NodeList:
    """Nodes, an element for each, so that only those are sent anew in which something has changed."""

    def __init__(self, words: Words) -> None:
        self._words = words
        self._rows: list[Fragment] = []
        self._shown: list[tuple[NodeOut, Painter, FleetFilter]] = []
        self.element = ui.element("div").classes("nodes")

    def show(self, page: Any, wanted: FleetFilter, by: str) -> Shown:  # noqa: ANN401  # a NodePage
        """Show a page of nodes, with their slices in colours that stand for tenants or jobs."""
        nodes = [each.model_copy(update={"devices": still(each.devices)}) for each in page.nodes]
        devices = [device for node in nodes for device in node.devices]
        paint, meant = painter(self._words, by, _slices(devices)), is_meant(wanted)
        self._make(len(nodes))
        for at, node in enumerate(nodes):
            if at >= len(self._shown) or self._shown[at] != (node, paint, wanted):
                self._rows[at].show(node=node, paint=paint, meant=meant)
        self._shown = [(node, paint, wanted) for node in nodes]
        return Shown(len(nodes), _legend(paint, devices))

    def _make(self, count: int) -> None:
        """Have as many elements as there are nodes."""
        while len(self._rows) > count:
            self._rows.pop().element.delete()
        with self.element:
            while len(self._rows) < count:
                self._rows.append(Fragment("fleet_node", self._words))


class CardList:
    """Cards, a line each."""

    def __init__(self, words: Words) -> None:
        self._words = words
        self._table = Fragment("fleet_cards", words)
        self._shown: object = None
        self.element = self._table.element

    def show(self, page: Any, _: FleetFilter, by: str) -> Shown:  # noqa: ANN401  # a DevicePage
        """Show a page of devices."""
        devices = still(page.devices)
        paint = painter(self._words, by, _slices(devices))
        if self._shown != (devices, paint):
            self._shown = devices, paint
            self._table.show(devices=devices, paint=paint)
        return Shown(len(devices), _legend(paint, devices))


class SliceList:
    """Containers and what each holds, a line each."""

    def __init__(self, words: Words) -> None:
        self._words = words
        self._table = Fragment("fleet_slices", words)
        self._shown: object = None
        self.element = self._table.element

    def show(self, page: Any, _: FleetFilter, by: str) -> Shown:  # noqa: ANN401  # a SlicePage
        """Show a page of slices."""
        slices: list[SliceOut] = still_slices(page.slices)
        paint = painter(self._words, by, slices)
        if self._shown != (slices, paint):
            self._shown = slices, paint
            self._table.show(slices=slices, paint=paint, measured=any(each.used for each in slices))
        return Shown(len(slices), _names(paint, slices) | {"closed": False, "measured": False, "free": False})


def _slices(devices: Iterable[DeviceOut]) -> list[SliceHeld]:
    return [held for device in devices for held in device.slices]


def _legend(paint: Painter, devices: Sequence[DeviceOut]) -> dict[str, Any]:
    """Return what the legend of drawn devices explains."""
    return _names(paint, _slices(devices)) | {
        "free": bool(devices),
        "closed": any(each.reason for each in devices),
        "measured": any(each.used for each in devices),
    }


def _names(paint: Painter, slices: Sequence[SliceHeld]) -> dict[str, Any]:
    return {
        "legend": paint.legend(slices),
        "hidden": any(not each.job for each in slices),
        "nobody": any(each.job and not (each.job_id and each.tenant) for each in slices),
    }
