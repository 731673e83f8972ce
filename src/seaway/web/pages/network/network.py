"""Network page: gateways and links as graph, matrix and table, and the agents that measure them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode

from nicegui import ui

from seaway.client.calls import fleet, network
from seaway.domain.units import loss_bound_percent
from seaway.web.fragment import Fragment, written
from seaway.web.latest import Latest, Turn
from seaway.web.link_figures import FIGURES, NONE, Scale, loss_text, milliseconds, percent, rate, scale_of
from seaway.web.parts.link_graph import MAX_DRAWN, MAX_OF_ONE, NO_PLACES, NO_STATES, graph, is_dead, scale_for
from seaway.web.parts.link_map import places_of
from seaway.web.visit import Visit
from seaway.web.words import Words

if TYPE_CHECKING:
    from nicegui.events import GenericEventArguments

    from seaway.wire.fleet import ClusterList, ClusterOut, GatewayOut
    from seaway.wire.links import KnownLinkOut, LinkList, LinkMatrix
    from seaway.wire.network_views import AgentList


WRITTEN = 20
"""Maximum number of gateways for which cells have figures and links. Larger matrices have only colours."""

Wanted = Callable[["GatewayOut"], bool]
"""Function that reports whether the filters select a gateway's links."""


@dataclass(frozen=True, slots=True)
class Cell:
    """Cell of a matrix for a link.

    Attributes
    ----------
    look
        CSS classes of its colour and state; empty if there is no link.
    text
        Figure without the unit.
    """

    look: str
    text: str
    source: str
    target: str
    state: str


@dataclass(frozen=True, slots=True)
class Row:
    """Row of a gateway, with its links to all other gateways or the links in the other direction."""

    name: str
    outward: bool
    cells: list[Cell]


@dataclass(frozen=True, slots=True)
class Rows:
    """Matrix of links.

    Attributes
    ----------
    both
        True if each selected gateway has two rows, one for each direction.
    """

    scale: Scale
    columns: list[str]
    rows: list[Row]
    both: bool

    @property
    def written(self) -> bool:
        """True if the cells have room for figures."""
        return len(self.columns) <= WRITTEN


def rows_of(matrix: LinkMatrix, wanted: Wanted, words: Words) -> Rows:
    """Return the rows of the selected gateways, and the colours of their figures."""
    figure = FIGURES[matrix.figure]
    names = [each.name for each in matrix.gateways]
    chosen = [at for at, each in enumerate(matrix.gateways) if wanted(each)]
    both = len(chosen) < len(names)
    ways = [(at, outward) for at in chosen for outward in ((True, False) if both else (True,))]
    pairs = [[(at, to) if outward else (to, at) for to in range(len(names))] for at, outward in ways]
    known = [value for row in pairs for near, far in row if (value := matrix.values[near][far]) is not None]
    scale = scale_of(figure, known)
    cells = [[_cell(matrix, names, near, far, scale, words) for near, far in row] for row in pairs]
    rows = [Row(names[at], outward, row) for (at, outward), row in zip(ways, cells, strict=True)]
    return Rows(scale, names, rows, both)


@dataclass(frozen=True, slots=True)
class Drawn:
    """Rendered matrix with its colours."""

    scale: Scale
    html: str


_DRAWN: dict[tuple[object, ...], tuple[LinkMatrix, Drawn]] = {}
"""Latest rendered matrices by figure, filters and language."""

MAX_CACHED = 32


def drawn(
    matrix: LinkMatrix, chosen: tuple[str, ...], wanted: Wanted, words: Words, lost: Mapping[str, str] = NO_STATES
) -> Drawn:
    """Return a rendered matrix.

    All visitors with the same answer and filters share it, because 9,900 cells take a while to render.

    Parameters
    ----------
    chosen
        Filters that `wanted` applies.
    lost
        States of the clusters behind gateways that do not answer, by gateway.
    """
    key = matrix.figure, chosen, words.language, *sorted(lost.items())
    known = _DRAWN.pop(key, None)
    if known is None or known[0] is not matrix:
        figure, rows = FIGURES[matrix.figure], rows_of(matrix, wanted, words)
        caption = words("{figure} of links, in {unit}", figure=words(figure.title), unit=figure.unit)
        known = (
            matrix,
            Drawn(rows.scale, written("link_matrix", words, matrix=rows, unit=figure.unit, caption=caption, lost=lost)),
        )
    _DRAWN[key] = known
    while len(_DRAWN) > MAX_CACHED:
        del _DRAWN[next(iter(_DRAWN))]
    return known[1]


def _cell(  # a link, and the inputs of its look
    matrix: LinkMatrix, names: Sequence[str], near: int, far: int, scale: Scale, words: Words
) -> Cell:
    value, state = matrix.values[near][far], matrix.states[near][far]
    if state is None:
        return Cell("", "", names[near], names[far], "")
    if state == "unknown":
        look, text = "unknown", "?"
    elif value is None:
        nothing_answers = scale.figure.name in ("latency", "jitter")
        look, text = ("dead", words("dead")) if nothing_answers else ("unknown", NONE)
    else:
        bound_ppm = matrix.bounds[near][far] if matrix.bounds else None
        small = f"<{loss_bound_percent(bound_ppm)}" if bound_ppm else ""
        look, text = f"h{scale.step(value)}", small or scale.figure.number(value)
    return Cell(f"{look} stale" if state == "stale" else look, text, names[near], names[far], words(state))


EVERY_S = 3.0
"""Interval of queries for links, in seconds. Probe rounds run every ten seconds."""

AGENTS_EVERY_S = 3.0

ROWS = 20
"""Number of links in the table at first, and the step by which it grows."""

MAX_ROWS = 1000
"""Maximum number of links in an answer of the API."""

VIEWS = ("table", "matrix", "graph", "map")

POINT = """event => {
  const cell = event.target.closest("td"), head = cell?.parentElement.cells[0];
  if (!cell?.textContent || cell.firstElementChild) return;
  const other = cell.closest("table").tHead.rows[0].cells[cell.cellIndex].textContent;
  const ends = "inward" in head.dataset ? [other, head.dataset.name] : [head.dataset.name, other];
  if (event.type === "click") location.assign("/network/" + ends.map(encodeURIComponent).join("/"));
  const unit = /\\d/.test(cell.textContent) ? ` ${cell.closest("table").dataset.unit}` : "";
  if (event.type !== "click") cell.title = `${ends[0]} → ${ends[1]}: ${cell.textContent}${unit}`;
}"""
"""JavaScript that adds a tooltip and a link to cells without room for them."""


@dataclass(slots=True)
class _Looked:
    """View and filters of the page, as in its address."""

    view: str = VIEWS[0]
    figure: str = "latency"
    gateway: str = ""
    cluster: str = ""
    site: str = ""
    rows: int = ROWS

    @property
    def chosen(self) -> dict[str, str]:
        """Filters by name."""
        return {"gateway": self.gateway, "cluster": self.cluster, "site": self.site}

    def wants(self, end: GatewayOut) -> bool:
        """Report whether the filters select a gateway."""
        return (
            self.gateway in {"", end.name}
            and (not self.cluster or self.cluster in end.clusters)
            and self.site in {"", end.site}
        )


@dataclass(slots=True)
class _Page:
    """Network page of one visitor."""

    visit: Visit
    looked: _Looked
    ends: dict[str, GatewayOut]
    shown: ui.element
    latest: Latest
    clusters: Sequence[ClusterOut] = ()

    @property
    def lost(self) -> dict[str, str]:
        """States of the clusters behind gateways of which none answers, by gateway."""
        known = {each.name: each.state for each in self.clusters}
        states = {
            name: {known.get(each, "up") for each in end.clusters} for name, end in self.ends.items() if end.clusters
        }
        return {name: min(each) for name, each in states.items() if "up" not in each}

    def keep(self) -> None:
        """Write view and filters into the address."""
        plain = asdict(_Looked())
        self.visit.keep(
            **{name: str(value) if value != plain[name] else None for name, value in asdict(self.looked).items()}
        )

    async def look(self) -> None:
        """Show the current view, and follow its data."""
        self.keep()
        turn = self.latest.begin()
        self.shown.clear()
        with self.shown:
            match self.looked.view:
                case "matrix":
                    await self._matrix(turn)
                case "graph" | "map":
                    await self._graph(turn)
                case _:
                    await self._table(turn)

    async def _graph(self, turn: Turn) -> None:
        looked, words = self.looked, self.visit.words
        hint, legend = ui.label().classes("fine"), Fragment("link_legend", words)
        said = words("Graph of links; the table has the same in words")
        chart = ui.echart({}, renderer="svg").classes("links-graph")
        chart.props(f'role=img aria-label="{said}"')
        chart.on("componentClick", self._clicked, ["dataType", "name", "data"])
        most = MAX_OF_ONE if looked.gateway else MAX_DRAWN

        def callback(value: LinkList) -> None:
            scale = scale_for(value.links, FIGURES[looked.figure])
            names = {name for each in value.links for name in (each.source, each.target)}
            on_map = looked.view == "map"
            places = places_of(names, self.ends, self.clusters) if on_map else NO_PLACES
            options = graph(value.links, self.ends, scale, "" if on_map else looked.gateway, words, self.lost, places)
            if options != chart.options:
                chart.options.clear()
                chart.options.update(options)
                chart.update()
            legend.show(classes=scale.classes(), nodes=True)
            unplaced = words("No cluster of these gateways has coordinates: set its location.") if on_map else ""
            below = words("North is up. Gateways without coordinates are below.") if on_map else ""
            hint.set_text(" ".join(filter(None, (_hint(value, words), below if places else unplaced))))

        call = network.worst_links(looked.figure, **looked.chosen, limit=most)
        await turn.follow(call, callback, EVERY_S)

    async def _matrix(self, turn: Turn) -> None:
        looked, words = self.looked, self.visit.words
        legend, cells = Fragment("link_legend", words), Fragment("link_matrix", words)
        for event in ("click", "mouseover"):
            cells.element.on(event, js_handler=POINT)

        def callback(value: LinkMatrix) -> None:
            self.ends = {each.name: each for each in value.gateways}
            shown = drawn(value, tuple(looked.chosen.values()), looked.wants, words, self.lost)
            cells.put(shown.html)
            legend.show(classes=shown.scale.classes(), nodes=False)

        await turn.follow(network.link_matrix(looked.figure), callback, EVERY_S)

    async def _table(self, turn: Turn) -> None:
        looked, words, figure = self.looked, self.visit.words, FIGURES[self.looked.figure]
        table = Fragment("links", words)
        more = ui.button(words("Show more"), on_click=self._more).props("flat no-caps")

        def callback(value: LinkList) -> None:
            said = words("{n} of {total}, the worst first by: {figure}", n=len(value.links), total=value.total,
                         figure=words(figure.title))  # fmt: skip
            table.show(links=[_row(each, words) for each in value.links], said=said, lost=self.lost)
            more.set_visibility(len(value.links) < min(value.total, MAX_ROWS))

        call = network.worst_links(looked.figure, **looked.chosen, limit=looked.rows)
        await turn.follow(call, callback, EVERY_S)

    async def _more(self) -> None:
        self.looked.rows = min(MAX_ROWS, self.looked.rows + ROWS)
        await self.look()

    def _clicked(self, event: GenericEventArguments) -> None:
        """Open the page of a link, or show the links of a gateway. The library's own event for points omits links."""
        match event.args:
            case {"dataType": "edge", "data": {"source": str(source), "target": str(target)}}:
                ui.navigate.to(link_page(source, target))
            case {"dataType": "node", "name": str(name)}:
                ui.navigate.to(
                    f"/network?{urlencode({'view': self.looked.view, 'gateway': name, 'figure': self.looked.figure})}"
                )


async def build(visit: Visit) -> None:
    """Build the page."""
    words = visit.words
    gateways = (await visit.ask(fleet.gateways())).gateways
    looked = nodes_evaluated(visit.query)
    with ui.element("section").classes("panel looks-panel"):
        bar = ui.element("div").classes("looks")
        shown = ui.element("div").classes("looked")
    page = _Page(visit, looked, {each.name: each for each in gateways}, shown, Latest(visit))
    with bar:
        _bar(page, words)

    def know(value: ClusterList) -> None:
        page.clusters = value.clusters

    await visit.follow(fleet.clusters(), know, EVERY_S)
    await page.look()
    if visit.may("operator"):
        agents = Fragment("agents", words)

        def callback(value: AgentList) -> None:
            agents.show(**_agents(value, words))

        await visit.follow(network.agents(), callback, AGENTS_EVERY_S)


def nodes_evaluated(query: dict[str, str]) -> _Looked:
    """Read view and filters from the parameters of an address; ignore invalid ones."""
    looked = _Looked(gateway=query.get("gateway", ""), cluster=query.get("cluster", ""), site=query.get("site", ""))
    looked.view = query["view"] if query.get("view") in VIEWS else looked.view
    looked.figure = query["figure"] if query.get("figure") in FIGURES else looked.figure
    rows = query.get("rows", "")
    looked.rows = min(MAX_ROWS, max(ROWS, int(rows))) if rows.isascii() and rows.isdigit() and len(rows) < 5 else ROWS
    return looked


def link_page(source: str, target: str) -> str:
    """Return the address of a link's page."""
    return f"/network/{quote(source, safe='')}/{quote(target, safe='')}"


def _bar(page: _Page, words: Words) -> None:
    looked, ends = page.looked, page.ends.values()

    async def choose(name: str, value: str | None) -> None:
        setattr(looked, name, value or "")
        looked.rows = ROWS
        await page.look()

    titles = {"table": words("Table"), "matrix": words("Matrix"), "graph": words("Graph"), "map": words("Map")}
    with ui.tabs().props(f'dense no-caps aria-label="{words("View of links")}"') as tabs:
        for name, title in titles.items():
            ui.tab(name, title)
    tabs.set_value(looked.view)
    tabs.on_value_change(lambda event: choose("view", event.value))
    figures = {each.name: words(each.title) for each in FIGURES.values()}
    ui.select(
        figures, value=looked.figure, label=words("Coloured by"), on_change=lambda event: choose("figure", event.value)
    ).props("outlined dense options-dense")
    known = {
        "gateway": (words("Gateway"), sorted(page.ends)),
        "cluster": (words("Cluster"), sorted({cluster for end in ends for cluster in end.clusters})),
        "site": (words("User site"), sorted({end.site for end in ends if end.site})),
    }
    for name, (label, options) in known.items():
        asked = getattr(looked, name)
        there = asked in options
        select = ui.select(
            options,
            value=asked if there else None,
            label=label,
            clearable=True,
            with_input=True,
            on_change=lambda event, name=name: choose(name, event.value),
        ).props("outlined dense options-dense")
        if asked and not there:
            setattr(looked, name, "")
            select.props["error"] = True
            select.props["error-message"] = words("{name} not found.", name=asked)


def _hint(value: LinkList, words: Words) -> str:
    """Describe the links that the graph does not show."""
    if len(value.links) == value.total:
        return words("{n:link}. Click on a gateway to see its links alone, on a link for its figures.", n=value.total)
    return words("The {n} worst of {total} links. Choose a gateway to see all of its links, or look at the matrix.",
                 n=len(value.links), total=value.total)  # fmt: skip


def _row(link: KnownLinkOut, words: Words) -> dict[str, Any]:
    dead = is_dead(link)
    return {
        "source": link.source,
        "target": link.target,
        "href": link_page(link.source, link.target),
        "state": link.state,
        "dead": dead,
        "latency": milliseconds(link.latency_ns),
        "usual": _usual(link),
        "jitter": NONE if dead else milliseconds(link.jitter_ns),
        "loss": loss_text(link.loss_ppm, link.loss_bound_ppm),
        "bandwidth": rate(link.bandwidth_mbps or None),
        "traffic": rate(link.traffic_mbps),
        "free": rate(link.free_mbps),
        "path": link.path or NONE,
        "age": NONE if link.age_s is None else words("{n} s ago", n=round(link.age_s)),
    }


def _usual(link: KnownLinkOut) -> dict[str, str]:
    """Return the usual figures as text, empty where the present one is the same or unknown."""
    written = {
        "latency": (milliseconds(link.latency_ns), milliseconds(link.usual_latency_ns)),
        "jitter": (milliseconds(link.jitter_ns), milliseconds(link.usual_jitter_ns)),
        "loss": (percent(link.loss_ppm), percent(link.usual_loss_ppm)),
        "traffic": (rate(link.traffic_mbps), rate(link.usual_traffic_mbps)),
    }
    return {name: "" if NONE in pair or len({*pair}) == 1 else pair[1] for name, pair in written.items()}


def _agents(value: AgentList, words: Words) -> dict[str, Any]:
    """Return the agents for their table, agents that do not report first."""
    agents = sorted(value.agents, key=lambda each: (each.state == "reporting", each.gateway))
    well = sum(each.state == "reporting" for each in agents)
    return {"agents": agents, "said": words("{n} of {total} report", n=well, total=len(agents)) if agents else ""}
