"""Fleet page: clusters, nodes, cards and their allocations, with filters for fleets of 10,000 nodes."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from nicegui import ui

from seaway.client.calls import fleet
from seaway.client.calls.fleet import FleetFilter
from seaway.domain.errors import RejectedError, SeawayError
from seaway.web.fragment import Fragment
from seaway.web.latest import Latest
from seaway.web.pages.fleet.filter import FIELDS, FleetBar, wanted_of
from seaway.web.pages.fleet.lists import CardList, NodeList, SliceList
from seaway.web.parts.actions import on_act
from seaway.web.parts.cordon import Closing
from seaway.web.parts.slices import JOB, TENANT
from seaway.web.visit import Visit

if TYPE_CHECKING:
    from seaway.client.call import Call
    from seaway.wire.fleet import ClusterList, ClusterOut, DevicePage, NodePage, SlicePage

    FleetPageOut = NodePage | DevicePage | SlicePage

NODES, CARDS, SLICES = "nodes", "cards", "slices"
SIZES = {NODES: 12, CARDS: 50, SLICES: 50}
"""Entries on a page of each list."""


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
        """Name of the list in view."""
        return self.given.get("view", NODES) if self.given.get("view") in SIZES else NODES

    @property
    def by(self) -> str:
        """Meaning of colours: tenants, or jobs if the user sees only one tenant's."""
        chosen = self.given.get("by")
        return chosen if chosen in (TENANT, JOB) else JOB if self.visit.who.tenant else TENANT

    async def begin(self) -> None:
        """Draw all parts, and follow their data."""
        words = self.visit.words
        self._strip = Fragment("fleet_strip", words)
        on_act(self._strip, self._choose)
        self._closing = Closing(self.visit)
        models = (await self.visit.ask(fleet.models())).models
        self._bar = FleetBar(words, self.given, [each.model for each in models], self.change)
        self._found = Fragment("fleet_found", words)
        self._tabs = Fragment("fleet_tabs", words)
        on_act(self._tabs, self._tab)
        self._none = Fragment("fleet_none", words)
        on_act(self._none, lambda *_: self._clear())
        with ui.element("div").classes("listing"):
            self._lists: dict[str, NodeList | CardList | SliceList] = {
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
        """Follow the list of the present filters instead of the previous one."""
        turn = self._latest.begin()
        self._bar.accept(self.given)
        try:
            wanted = wanted_of(self.given)
            await turn.follow(self._call(wanted), lambda page: self._received(page, wanted))
        except RejectedError as error:
            if error.where == "after":  # position of an outdated address: the list starts over
                await self.change()
            else:
                self._bar.refuse(error)
        except SeawayError as error:
            for show_error in self.visit.error_listeners:
                show_error(error)

    def _call(self, wanted: FleetFilter) -> Call[Any]:
        after, limit = self.given.get("after", ""), SIZES[self.view]
        match self.view:
            case "cards":
                return fleet.devices(limit=limit, after=after, **wanted).first
            case "slices":
                return fleet.slices(limit=limit, after=after, **wanted).first
            case _:
                return fleet.nodes(limit=limit, after=after, **wanted).first

    def _on_clusters(self, value: ClusterList) -> None:
        self._clusters = value.clusters
        self._bar.know([each.name for each in value.clusters])
        self._draw_clusters()

    def _draw_clusters(self) -> None:
        chosen = self.given.get("cluster", "")
        self._strip.show_of([self._clusters], lambda: {"clusters": self._clusters, "chosen": chosen}, chosen)
        of = next((each for each in self._clusters if each.name == chosen), None)
        self._closing.show(chosen, "", of.cordon if of else None, of.silence if of else "", there=of is not None)

    def _received(self, page: FleetPageOut, wanted: FleetFilter) -> None:
        shown = self._lists[self.view].show(page, wanted, self.by)
        for name, each in self._lists.items():
            each.element.set_visibility(name == self.view and bool(shown.count))
        self._tabs.show(view=self.view, by=self.by)
        self._found.element.set_visibility(bool(shown.count or any(wanted.values())))
        self._found.show_of([page], lambda: {"found": page.found, "most": 8, **shown.legend}, self.by)
        self._none.element.set_visibility(not shown.count)
        if not shown.count:
            filtered = (
                any(value for name, value in wanted.items() if name != "ready") or wanted.get("ready") is not None
            )
            self._none.show(clusters=self._clusters, filtered=filtered, view=self.view)
        self._pager.element.set_visibility(bool(page.next or self.given.get("after")))
        first = getattr(page, "first", 0)
        total = {NODES: page.found.nodes, CARDS: page.found.devices}.get(self.view, 0) if page.found else 0
        self._pager.show(
            first=first, shown=shown.count, total=total, next=page.next, back=bool(self.given.get("after")),
            before=bool(self._before),
        )  # fmt: skip

    async def _choose(self, _: str, cluster: str) -> None:
        """Select one cluster, or all clusters again."""
        self._before = []
        await self._turn_to(after="", cluster="" if cluster == self.given.get("cluster") else cluster)

    async def _tab(self, act: str, name: str) -> None:
        """Change the list in view or the meaning of colours."""
        if act == "view":
            self._before = []
            await self._turn_to(after="", view="" if name == NODES else name)
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
