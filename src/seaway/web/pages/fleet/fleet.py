"""Fleet page: clusters, nodes, cards and their allocations, with filters for fleets of 10,000 nodes."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from nicegui import ui

from seaway.client.calls import fleet
from seaway.client.calls.fleet import FleetFilter
from seaway.domain.errors import RejectedError, SeawayError
from seaway.web.fragment import Fragment, once, written
from seaway.web.latest import Latest
from seaway.web.pages.fleet.filter import FIELDS, FleetBar, is_meant, wanted_of
from seaway.web.pages.fleet.heatmap import HeatMap
from seaway.web.parts.cordon import Closing, on_act
from seaway.web.parts.facts import ClusterFacts
from seaway.web.parts.slices import JOB, TENANT, Painter, painter, slices_without_seconds, without_seconds
from seaway.web.visit import Visit
from seaway.web.words import Words

if TYPE_CHECKING:
    from seaway.wire.fleet import AllocatedSlice, DeviceOut, NodeOut, SliceOut


MAX_NODES = 500
"""Maximum number of rendered nodes in the cache."""

_nodes: OrderedDict[tuple[object, ...], tuple[NodeOut, Mapping[str, int], str]] = OrderedDict()
"""Cache of rendered nodes, by the options of their view."""


@dataclass(frozen=True, slots=True)
class Shown:
    """Summary of the visible list.

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


class MapList:
    """Heat map of all nodes."""

    def __init__(self, words: Words) -> None:
        self.map = HeatMap(words)
        self.element = self.map.element

    def show(self, page: Any, _: FleetFilter, __: str) -> Shown:  # noqa: ANN401  # a FleetMap
        """Show all nodes."""
        none: dict[str, Any] = dict.fromkeys(("hidden", "unmanaged", "free", "closed", "measured"), False)
        return Shown(self.map.show(page), none | {"legend": ()})


class NodeList:
    """List of nodes. Each node has its own element, so that the server sends only changed nodes."""

    def __init__(self, words: Words) -> None:
        self._words = words
        self._rows: list[Fragment] = []
        self.element = ui.element("div").classes("nodes")

    def show(self, page: Any, wanted: FleetFilter, by: str) -> Shown:  # noqa: ANN401  # a NodePage
        """Show a page of nodes, with slices in the colours of tenants or jobs."""
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
        drawn = once(
            ("cards", words.language, by), [page], lambda: _draw_cards(without_seconds(page.devices), by, words)
        )
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
        drawn = once(
            ("slices", words.language, by), [page], lambda: _draw_slices(slices_without_seconds(page.slices), by, words)
        )
        self._table.put(drawn.pieces[0])
        return drawn.shown


def _draw_nodes(shown_nodes: Sequence[NodeOut], wanted: FleetFilter, by: str, words: Words) -> Drawn:
    nodes = [each.model_copy(update={"devices": without_seconds(each.devices)}) for each in shown_nodes]
    devices = [device for node in nodes for device in node.devices]
    paint = painter(words, by, _slices(devices))
    return Drawn([_node(each, wanted, paint) for each in nodes], Shown(len(nodes), _legend(paint, devices)))


def _node(node: NodeOut, wanted: FleetFilter, paint: Painter) -> str:
    """Render a node. Most nodes are unchanged and come from the cache."""
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
        "closed": any(each.message for each in devices),
        "measured": any(each.used for each in devices),
    }


def _names(paint: Painter, slices: Sequence[AllocatedSlice]) -> dict[str, Any]:
    return {
        "legend": paint.legend(slices),
        "hidden": any(not each.job for each in slices),
        "unmanaged": any(each.job and not (each.job_id and each.tenant) for each in slices),
    }


if TYPE_CHECKING:
    from seaway.client.call import Call
    from seaway.wire.fleet import ClusterList, ClusterOut, DevicePage, FleetMap, NodePage, SlicePage

    FleetPageOut = NodePage | DevicePage | SlicePage | FleetMap

MAP, NODES, CARDS, SLICES = "map", "nodes", "cards", "slices"
SIZES = {MAP: 0, NODES: 12, CARDS: 50, SLICES: 50}
"""Number of entries on a page of each view; the map has one page."""

MAP_EVERY_S = 5.0
"""Interval between queries for the map in seconds, because answers for large fleets are large."""


def _trouble(cluster: ClusterOut) -> tuple[bool, bool]:
    """Return the order of a cluster in the strip: those that do not answer first, then cordoned ones."""
    return cluster.state == "up", cluster.cordon is None


def _filters(wanted: FleetFilter) -> bool:
    return any(value or value is False for value in wanted.values())


async def build(visit: Visit) -> None:
    """Build the page."""
    page = _FleetPage(visit)
    await page.begin()


class _FleetPage:
    """Fleet page of one visitor.

    Attributes
    ----------
    given
        Filters, view and position in the list, as in the page's address.
    """

    def __init__(self, visit: Visit) -> None:
        self.visit = visit
        self.given = {name: value for name, value in visit.query.items() if name in (*FIELDS, "view", "by", "after")}
        self._before: list[str] = []
        self._clusters: list[ClusterOut] = []
        self._latest = Latest(visit)

    @property
    def view(self) -> str:
        """Name of the visible view. The default is the map, or the nodes that match filters."""
        chosen = self.given.get("view")
        if chosen in SIZES:
            return chosen
        return NODES if any(self.given.get(each) for each in FIELDS) else MAP

    @property
    def by(self) -> str:
        """Meaning of colours: tenants, or jobs if the user sees only one tenant."""
        chosen = self.given.get("by")
        return chosen if chosen in (TENANT, JOB) else JOB if self.visit.who.tenant else TENANT

    async def begin(self) -> None:
        """Draw all parts, and follow their data."""
        words = self.visit.words
        self._strip = Fragment("fleet_strip", words)
        on_act(self._strip, self._choose)
        self._closing = Closing(self.visit)
        self._facts = ClusterFacts(self.visit)
        models = (await self.visit.ask(fleet.models())).models
        self._bar = FleetBar(words, self.given, [each.model for each in models], self.change)
        self._found = Fragment("fleet_found", words)
        self._tabs = Fragment("fleet_tabs", words)
        on_act(self._tabs, self._tab)
        self._none = Fragment("fleet_none", words)
        on_act(self._none, lambda *_: self._clear())
        with ui.element("div").classes("listing"):
            self._lists: dict[str, MapList | NodeList | CardList | SliceList] = {
                MAP: MapList(words),
                NODES: NodeList(words),
                CARDS: CardList(words),
                SLICES: SliceList(words),
            }
        self._pager = Fragment("fleet_pager", words)
        on_act(self._pager, self._turn)
        await self.visit.follow(fleet.clusters(), self._on_clusters)
        await self._look()

    async def change(self, **given: str) -> None:
        """Change filters, and start at the first page."""
        self._before = []
        await self._go(self.visit.keep, **{"after": "", **given})

    async def _turn_to(self, **given: str) -> None:
        """Change the view in a new entry of the browser's history."""
        await self._go(self.visit.turn, **given)

    async def _go(self, address: Callable[..., None], **given: str) -> None:
        self.given = {name: value for name, value in (self.given | given).items() if value}
        address(**{name: self.given.get(name) for name in (*FIELDS, "view", "by", "after")})
        self._draw_clusters()
        await self._look()

    async def _look(self) -> None:
        """Follow the list with the current filters instead of the previous one."""
        turn = self._latest.begin()
        self._bar.accept(self.given)
        try:
            wanted = wanted_of(self.given)
            every = {"interval_s": MAP_EVERY_S} if self.view == MAP else {}
            await turn.follow(self._call(wanted), lambda page: self._received(page, wanted), **every)
        except RejectedError as error:
            if error.where == "after":  # outdated position in the address: restart the list
                await self.change()
            else:
                self._bar.refuse(error)
        except SeawayError as error:
            for show_error in self.visit.error_listeners:
                show_error(error)

    def _call(self, wanted: FleetFilter) -> Call[Any]:
        after, limit = self.given.get("after", ""), SIZES[self.view]
        match self.view:
            case "map":
                return fleet.fleet_map(**wanted)
            case "cards":
                return fleet.devices(limit=limit, after=after, **wanted).first
            case "slices":
                return fleet.slices(limit=limit, after=after, **wanted).first
            case _:
                return fleet.nodes(limit=limit, after=after, **wanted).first

    def _on_clusters(self, value: ClusterList) -> None:
        self._clusters = sorted(value.clusters, key=_trouble)
        self._bar.know([each.name for each in value.clusters])
        heat = self._lists[MAP]
        assert isinstance(heat, MapList)
        heat.map.know({each.name: each.state for each in value.clusters})
        self._draw_clusters()

    def _draw_clusters(self) -> None:
        chosen = self.given.get("cluster", "")
        self._strip.show_of([self._clusters], lambda: {"clusters": self._clusters, "chosen": chosen}, chosen)
        of = next((each for each in self._clusters if each.name == chosen), None)
        if of:
            self._closing.show(chosen, "", of.cordon, self.visit.words.coded(of), of.jobs)
        else:
            self._closing.show(chosen, "", None, "", there=False)
        self._facts.show(of)

    def _received(self, page: FleetPageOut, wanted: FleetFilter) -> None:
        shown = self._lists[self.view].show(page, wanted, self.by)
        for name, each in self._lists.items():
            each.element.set_visibility(name == self.view and bool(shown.count))
        self._tabs.show(view=self.view, by=self.by)
        self._found.element.set_visibility(bool(shown.count or _filters(wanted)))
        self._found.show_of([page], lambda: {"found": page.found, "most": 8, **shown.legend}, self.by)
        self._none.element.set_visibility(not shown.count)
        if not shown.count:
            self._none.show(clusters=self._clusters, filtered=_filters(wanted), view=self.view)
        following = getattr(page, "next", None)
        self._pager.element.set_visibility(bool(following or self.given.get("after")))
        first = getattr(page, "first", 0)
        total = {NODES: page.found.nodes, CARDS: page.found.devices}.get(self.view, 0) if page.found else 0
        back = bool(self.given.get("after"))
        self._pager.show(
            first=first, shown=shown.count, total=total, next=following, back=back, before=bool(self._before)
        )

    async def _choose(self, _: str, cluster: str) -> None:
        """Select one cluster, or all clusters again."""
        self._before = []
        await self._turn_to(after="", cluster="" if cluster == self.given.get("cluster") else cluster)

    async def _tab(self, act: str, name: str) -> None:
        """Change the visible list or the meaning of colours."""
        if act == "view":
            self._before = []
            await self._turn_to(after="", view=name)
        else:
            await self._turn_to(by=name)

    async def _turn(self, act: str, name: str) -> None:
        if act == "back":
            await self._turn_to(after=self._before.pop() if self._before else "")
        elif name == self.given.get("after"):
            return  # a double click counts once
        elif name:
            self._before.append(self.given.get("after", ""))
            await self._turn_to(after=name)
        else:
            await self.change()

    async def _clear(self) -> None:
        await self.change(**dict.fromkeys(FIELDS, ""))
