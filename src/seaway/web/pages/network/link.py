"""Link page: current measurements, bandwidth reservations, paths and history."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from nicegui import ui

from seaway.client.calls import fleet, network
from seaway.domain.errors import RejectedError, SeawayError, UnknownError
from seaway.web.fragment import Fragment
from seaway.web.link_figures import NONE, NS_PER_MS, PPM_PER_PERCENT, loss_text, milliseconds, percent, rate
from seaway.web.pages.network.network import EVERY_S, link_page
from seaway.web.parts.chart import Line, chart
from seaway.web.parts.link_graph import is_dead
from seaway.web.visit import Visit
from seaway.web.words import Words

if TYPE_CHECKING:
    from seaway.wire.fleet import GatewayOut, LinkStepOut
    from seaway.wire.links import KnownLinkOut, LinkList
    from seaway.wire.network_views import GatewayConfigOut


MAX_POINTS = 360
"""Maximum number of points in a line. More points are indistinguishable."""

SAMPLE_S = 60
"""Interval of stored samples, in seconds."""


@dataclass(frozen=True, slots=True)
class Point:
    """Measurements of a link in a time step.

    Attributes
    ----------
    at_ms
        Start of the step in milliseconds since 1970.
    latency_ms, jitter_ms
        Mean latency and maximum jitter; None if no probe was answered.
    capacity_mbps, used_mbps
        Bandwidth; None if unknown.
    """

    at_ms: int
    latency_ms: float | None
    jitter_ms: float | None
    loss_percent: float
    capacity_mbps: float | None
    used_mbps: int | None


def step_s(span_s: float) -> int:
    """Return the length of a step for a time span: at most `MAX_POINTS` steps, and none shorter than a sample."""
    return max(SAMPLE_S, int(span_s / MAX_POINTS))


def points_of(steps: Sequence[LinkStepOut]) -> list[Point]:
    """Return the points of lines: mean latency, loss and bandwidth of each step, and maximum jitter and use."""
    return [_point(each) for each in steps]


def _point(step: LinkStepOut) -> Point:
    return Point(
        int(datetime.fromisoformat(step.at).timestamp() * 1000),
        step.latency_ns.mean / NS_PER_MS if step.latency_ns else None,
        step.jitter_ns.max / NS_PER_MS if step.jitter_ns else None,
        step.loss_ppm.mean / PPM_PER_PERCENT,
        step.bandwidth_mbps.mean if step.bandwidth_mbps else None,
        step.used_mbps.max if step.used_mbps else None,
    )


SPANS_S = {"1h": 3600, "6h": 6 * 3600, "24h": 24 * 3600, "7d": 7 * 24 * 3600}
"""Time spans of a link's history."""

AGAIN_S = 30.0
"""Interval of queries for history, in seconds. The history has one sample a minute."""

PATHS_EVERY_S = 5.0


@dataclass(slots=True)
class _Seen:
    """Latest state of a link and of its opposite direction."""

    source: GatewayOut
    target: GatewayOut
    link: KnownLinkOut | None = None
    opposite: KnownLinkOut | None = None


@dataclass(slots=True)
class _History:
    """Charts of a link with their data."""

    visit: Visit
    ends: tuple[str, str]
    span: str
    charts: list[tuple[ui.echart, list[Line], str]]
    empty: ui.label
    steps: list[LinkStepOut] = field(default_factory=list)

    async def choose(self, span: str) -> None:
        """Show another time span."""
        self.span = span
        self.visit.keep(range=span)
        self.steps.clear()
        await self.load()

    async def load(self) -> None:
        """Fetch new samples, and draw all charts."""
        now, span_s = datetime.now(UTC), SPANS_S[self.span]
        first, span = (now - timedelta(seconds=span_s)).isoformat(), self.span
        since = self.steps[-1].at if self.steps else first  # the last step may have been incomplete
        found = await self.visit.ask(fleet.link_steps(*self.ends, since=since, step_s=step_s(span_s)))
        if span != self.span:  # the user chose another span, whose query is running
            return
        self.steps[:] = [each for each in self.steps if first[:19] <= each.at < since] + found.steps
        points = points_of(self.steps)
        end_ms = int(now.timestamp() * 1000)
        for element, lines, unit in self.charts:
            element.options.clear()
            element.options.update(chart(points, lines, unit, (end_ms - span_s * 1000, end_ms)))
            element.update()
        self.empty.set_visibility(not points)

    async def again(self) -> None:
        """Fetch new samples. Ignore errors: the followed calls report them, and the timer retries."""
        with suppress(SeawayError):
            await self.load()


async def build(visit: Visit) -> None:
    """Build the page."""
    words = visit.words
    source, target = visit.part("source"), visit.part("target")
    seen = await _found(visit, source, target)
    above = (source, f"/network?{urlencode({'gateway': source})}")
    visit.locate((words("Network"), "/network"), above, name=f"{source} → {target}")
    with ui.element("section").classes("panel"):
        head = Fragment("link_head", words)
    with ui.element("div").classes("halves"):
        now, band = Fragment("link_figures", words), Fragment("link_bandwidth", words)

    def draw() -> None:
        link = seen.link
        assert link is not None, "it was there when the page was made"
        age = None if link.age_s is None else words("{n} s ago", n=round(link.age_s))
        head.show(source=seen.source, target=seen.target, link=link, dead=is_dead(link), age=age,
                  back=link_page(target, source))  # fmt: skip
        now.show(link=link, round=link.raw, figures=_figures(link, seen.opposite, words))
        band.show(link=link, **_bandwidth(link, words))

    def callback(value: LinkList) -> None:
        seen.link = value.links[0] if value.links else seen.link
        draw()

    def on_opposite(value: LinkList) -> None:
        seen.opposite = value.links[0] if value.links else None
        draw()

    await visit.follow(fleet.links(source=source, target=target), callback, EVERY_S)
    await visit.follow(fleet.links(source=target, target=source), on_opposite, EVERY_S)
    await _paths(visit, seen)
    await _history(visit, source, target)


async def _found(visit: Visit, source: str, target: str) -> _Seen:
    """Find a link.

    Raises
    ------
    UnknownError
        When it does not exist.
    """
    none = UnknownError(visit.words("Link from {source} to {target} not found.", source=source, target=target))
    ends = {each.name: each for each in (await visit.ask(fleet.gateways())).gateways}
    try:
        found = await visit.ask(fleet.links(source=source, target=target))
    except RejectedError:
        raise none from None
    if not found.links:
        raise none
    return _Seen(ends[source], ends[target], found.links[0])


def _figures(link: KnownLinkOut, opposite: KnownLinkOut | None, words: Words) -> list[dict[str, str]]:
    rows = (
        (words("Latency"), "latency_ns", milliseconds),
        (words("Jitter"), "jitter_ns", milliseconds),
        (words("Loss"), "loss_ppm", percent),
    )

    def written(of: Any, name: str, write: Any) -> str:  # noqa: ANN401  # a link, a round or smoothed figures
        if of is None or (of.latency_ns is None and name == "jitter_ns"):
            return NONE
        if name == "loss_ppm" and of is not link.raw:
            return loss_text(of.loss_ppm, (opposite if of is opposite else link).loss_bound_ppm)
        return str(write(getattr(of, name)))

    return [
        {
            "title": title,
            "raw": written(link.raw, name, write),
            "smoothed": written(link.smoothed, name, write),
            "decided": written(link, name, write),
            "opposite": written(opposite, name, write),
        }
        for title, name, write in rows
    ]


def _bandwidth(link: KnownLinkOut, words: Words) -> dict[str, Any]:
    """Return the used, reserved and free parts of a link's bandwidth."""
    total = link.bandwidth_mbps or 0
    if not total or link.free_mbps is None:
        return {"total": "", "free": "", "parts": [], "carried": ""}
    promised = min(link.reserved_mbps, total - link.free_mbps)
    parts = (
        ("used", words("Other traffic"), max(0, total - link.free_mbps - promised)),
        ("promised", words("Reserved for jobs"), promised),
        ("free", words("Available to jobs"), link.free_mbps),
    )
    return {
        "total": rate(total),
        "free": rate(link.free_mbps),
        "carried": rate(link.traffic_mbps),
        "parts": [
            {"kind": kind, "title": title, "text": rate(mbps), "share": 100 * mbps / total}
            for kind, title, mbps in parts
        ],
    }


async def _paths(visit: Visit, seen: _Seen) -> None:
    """Show the network's paths for a link and mark the active one; show nothing without a network controller."""
    source, target = seen.source.name, seen.target.name
    table = Fragment("link_paths", visit.words)

    def callback(value: GatewayConfigOut) -> None:
        pair = next((each for each in value.network.paths if (each["from"], each["to"]) == (source, target)), None)
        table.element.set_visibility(pair is not None)
        if pair is not None:
            measured = seen.link.path if seen.link else ""
            paths = [
                {
                    "name": each["name"],
                    "segments": each["segments"],
                    "weight": each.get("weight", 1),
                    "wanted": value.active.get(target) == each["name"],
                    "written": value.applied.get(target) == each["name"],
                    "measured": measured == each["name"],
                }
                for each in pair["paths"]
            ]
            table.show(paths=paths, share=pair.get("load_balance", False))

    try:
        await visit.follow(network.gateway(source), callback, PATHS_EVERY_S)
    except UnknownError:
        table.element.delete()


async def _history(visit: Visit, source: str, target: str) -> None:
    words = visit.words
    asked = visit.query.get("range", "")
    span = asked if asked in SPANS_S else next(iter(SPANS_S))
    spans = {"1h": words("1 hour"), "6h": words("6 hours"), "24h": words("24 hours"), "7d": words("7 days")}
    with ui.element("section").classes("panel"):
        with ui.element("div").classes("range-head"):
            ui.html(f"<h2>{words('History')}</h2>", sanitize=False)
            toggle = ui.toggle(spans, value=span, on_change=lambda event: history.choose(event.value))
            toggle.props(f'no-caps unelevated dense padding="4px 12px" aria-label="{words("Range of time")}"')
        empty = ui.label(words("There are no measurements of this link in this period."))
        empty.classes("fine")
    drawn = (
        (words("Latency"), "ms", [Line(words("Latency"), "var(--core)", "latency_ms")]),
        (words("Jitter"), "ms", [Line(words("Jitter"), "var(--memory)", "jitter_ms")]),
        (words("Loss"), "%", [Line(words("Loss"), "var(--high)", "loss_percent", filled=True)]),
        (
            words("Bandwidth"),
            "Mbit/s",
            [
                Line(words("Capacity"), "var(--quiet)", "capacity_mbps"),
                Line(words("In use"), "var(--core)", "used_mbps", filled=True),
            ],
        ),
    )
    charts: list[tuple[ui.echart, list[Line], str]] = []
    with ui.element("div").classes("charts"):
        for title, unit, lines in drawn:
            with ui.element("section").classes("panel"):
                ui.html(f"<h2>{title} <span class='dim'>{unit}</span></h2>", sanitize=False)
                element = ui.echart({}, renderer="svg").classes("chart")
                element.props(f'role=img aria-label="{title}"')
                charts.append((element, lines, unit))
    history: _History = _History(visit, (source, target), span, charts, empty)
    await history.load()
    visit.repeat(AGAIN_S, history.again)
