"""Schedule page: running jobs, planned starts and reservations on a time axis, by cluster or queue."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any

from nicegui import ui

from seaway.client.calls import fleet, tenancy
from seaway.client.calls import queues as queue_calls
from seaway.domain.errors import SeawayError
from seaway.web.fragment import Fragment
from seaway.web.latest import Latest
from seaway.web.pages.queues import reservations
from seaway.web.parts.form import error_line
from seaway.web.parts.slices import colours_of
from seaway.web.visit import Visit
from seaway.wire.reservations import ReservationOut

if TYPE_CHECKING:
    from seaway.wire.fleet import ClusterList
    from seaway.wire.queues import ScheduledJobOut, ScheduleOut
    from seaway.wire.reservations import ReservationList

EVERY_S = 2.0
"""Interval of queries, in seconds."""

MOST = 200
"""Maximum number of bars. More are unreadable, and slow in the browser."""

SPANS_S = {"1h": 3600, "6h": 6 * 3600, "24h": 86_400, "7d": 7 * 86_400}
"""Length of the time axis in seconds, by its name in the address."""

PAST = 0.25
"""Part of the time axis before the present."""

STEPS_S = (600, 1800, 3600, 3 * 3600, 6 * 3600, 12 * 3600, 86_400)
"""Possible distances of marks on the time axis, in seconds."""

MAX_MARKS = 8

EDGE = 5.0
"""Half of the width of a label, in percent."""

COLOURED = ("tenant", "queue")
"""Meanings of colours."""

GROUPINGS = ("cluster", "queue")
FILTERS = ("cluster", "queue", "tenant")


@dataclass(frozen=True, slots=True)
class Axis:
    """Time axis.

    Attributes
    ----------
    now
        Present time.
    span_s
        Length in seconds.
    """

    now: datetime
    span_s: int

    @property
    def first(self) -> datetime:
        """Time at the left edge."""
        return self.now - timedelta(seconds=self.span_s * PAST)

    @property
    def last(self) -> datetime:
        """Time at the right edge."""
        return self.first + timedelta(seconds=self.span_s)

    def span(self, start: str, end: str | None) -> tuple[float, float]:
        """Return the positions of a start and an end; without an end, of the right edge."""
        left = self.percent(datetime.fromisoformat(start))
        return left, max(left, self.percent(datetime.fromisoformat(end)) if end else 100.0)

    def percent(self, at: datetime) -> float:
        """Return the position of a time in percent, 0 to 100; times beyond an edge are at the edge."""
        return min(100.0, max(0.0, 100 * (at - self.first).total_seconds() / self.span_s))

    def marks(self) -> Iterator[tuple[float, str, str]]:
        """Yield the positions of round times, in percent, with the times and forms of their labels.

        The time is empty without room for a label.
        """
        step_s = next((each for each in STEPS_S if self.span_s / each <= MAX_MARKS), STEPS_S[-1])
        first_s = self.first.timestamp()
        at_s = -(-first_s // step_s) * step_s
        while at_s <= first_s + self.span_s:
            at = datetime.fromtimestamp(at_s, UTC)
            position = self.percent(at)
            hidden = not EDGE < position < 100 - EDGE or abs(position - 100 * PAST) < EDGE
            yield position, "" if hidden else at.isoformat(), "day" if step_s >= STEPS_S[-2] else "minute"
            at_s += step_s


@dataclass(frozen=True, slots=True)
class Bar:
    """Bar of a job or a reservation. Positions are percent of the axis.

    Attributes
    ----------
    kinds
        CSS classes.
    lane
        Line in its group, from 0.
    room
        Left edge of the next bar in its lane. The name of a short bar extends up to there.
    """

    what: ScheduledJobOut | ReservationOut
    kinds: str
    left: float
    right: float
    lane: int
    room: float = 100.0

    @property
    def name(self) -> str:
        """Name of the job, with the number of a task, or of the reservation."""
        task = None if isinstance(self.what, ReservationOut) else self.what.task
        return self.what.name if task is None else f"{self.what.name} #{task}"

    @property
    def reserved(self) -> bool:
        """True for a reservation or maintenance."""
        return isinstance(self.what, ReservationOut)

    @property
    def share(self) -> float:
        """Width of the bar in percent of the width up to the next one."""
        return 100 * (self.right - self.left) / (self.room - self.left) if self.room > self.left else 100.0


def bars_of(
    jobs: Iterable[ScheduledJobOut], axis: Axis, above: int = 0, colour: Callable[[ScheduledJobOut], str] = lambda _: ""
) -> list[Bar]:
    """Return the bars of jobs in as few lanes as possible, below `above` other lanes. Bars of a lane do not overlap.

    Parameters
    ----------
    colour
        Returns the CSS class of the colour of a job; empty for none.
    """

    def kinds(job: ScheduledJobOut) -> str:
        classes = (f"bar-{'planned' if job.planned else 'running'}", "" if job.end else "bar-open", colour(job))
        return " ".join(filter(None, classes))

    return _in_lanes([Bar(each, kinds(each), *axis.span(each.start, each.end), above) for each in jobs], above)


def reserved_bars_of(there: Iterable[ReservationOut], axis: Axis) -> list[Bar]:
    """Return the bars of reservations and maintenance, as `bars_of` does for jobs."""

    def kinds(each: ReservationOut) -> str:
        return "bar-maintenance" if each.maintenance else "bar-reserved"

    return _in_lanes([Bar(each, kinds(each), *axis.span(each.starts, each.ends), 0) for each in there], 0)


def _in_lanes(bars: Iterable[Bar], above: int) -> list[Bar]:
    lanes: list[list[Bar]] = []
    for bar in sorted(bars, key=lambda each: each.left):
        at = next((at for at, others in enumerate(lanes) if others[-1].right <= bar.left), len(lanes))
        if at == len(lanes):
            lanes.append([])
        else:
            lanes[at][-1] = replace(lanes[at][-1], room=bar.left)
        lanes[at].append(replace(bar, lane=above + at))
    return [bar for others in lanes for bar in others]


def reserved_by_group(
    there: Iterable[ReservationOut], axis: Axis, by: str, wanted: Mapping[str, str]
) -> Mapping[str, Sequence[ReservationOut]]:
    """Return the reservations on the axis by cluster or queue, the first to begin first.

    The name is empty for a reservation that has no cluster of its own, or is not for a single queue. One for a whole
    tenant, and maintenance, concern all queues.

    Parameters
    ----------
    wanted
        Filters by name; an empty one matches all.
    """
    groups: defaultdict[str, list[ReservationOut]] = defaultdict(list)
    for each in sorted(there, key=lambda each: datetime.fromisoformat(each.starts)):
        begins, ends = (datetime.fromisoformat(time) for time in (each.starts, each.ends))
        matches = all(
            not one or not of or one in of
            for one, of in (
                (wanted["cluster"], each.clusters),
                (wanted["queue"], [each.queue] if each.queue else []),
                (wanted["tenant"], [each.tenant] if each.tenant else []),
            )
        )
        if matches and ends > axis.first and begins < axis.last:
            clusters = [wanted["cluster"]] if wanted["cluster"] and each.clusters else each.clusters or [""]
            for name in clusters if by == "cluster" else [each.queue]:
                groups[name].append(each)
    return groups


@dataclass(frozen=True, slots=True)
class Look:
    """Choices of a visitor.

    Attributes
    ----------
    by, span, of
        Grouping, time axis, and meaning of colours.
    wanted
        Filters, as in `reserved_by_group`.
    lost
        States of the clusters that do not answer, by name.
    """

    by: str
    span: str
    wanted: Mapping[str, str]
    of: str = "tenant"
    lost: Mapping[str, str] = field(default_factory=dict)

    @property
    def rows(self) -> Mapping[str, str]:
        """States of the clusters that have a row because they do not answer."""
        if self.by != "cluster" or self.wanted["queue"] or self.wanted["tenant"]:
            return {}
        return {name: state for name, state in self.lost.items() if self.wanted["cluster"] in {"", name}}


def drawing(schedule: ScheduleOut, there: Iterable[ReservationOut], look: Look) -> dict[str, Any]:
    """Return the variables of the template."""
    by, span, wanted, of = look.by, look.span, look.wanted, look.of
    colours = colours_of(getattr(job, of) for group in schedule.groups for job in group.jobs)

    def colour(job: ScheduledJobOut) -> str:
        return f"c{colours[getattr(job, of)]}"

    axis = Axis(datetime.fromisoformat(schedule.at), SPANS_S[span])
    reserved, known = reserved_by_group(there, axis, by, wanted), {group.name: group for group in schedule.groups}
    groups = []
    for name in sorted({*reserved, *known, *look.rows}, key=lambda name: (not name, name)):
        group, above = known.get(name), reserved_bars_of(reserved.get(name, ())[:MOST], axis)
        running, planned, jobs = (group.running, group.planned, group.jobs) if group else (0, 0, [])
        bars = above + bars_of(
            jobs, axis, 1 + max((bar.lane for bar in above), default=-1), lambda job: f"c{colours[getattr(job, of)]}"
        )
        groups.append(
            {
                "name": name,
                "state": look.lost.get(name, "") if by == "cluster" else "",
                "running": running,
                "planned": planned,
                "left": running + planned + len(reserved.get(name, ())) - len(bars),
                "bars": bars,
                "lanes": 1 + max((bar.lane for bar in bars), default=0),
            }
        )
    return {
        "groups": groups,
        "by": by,
        "owners": sorted(colours.items()),
        "marks": list(axis.marks()),
        "now": 100 * PAST,
        "left": sum(each["left"] for each in groups),
        "unplanned": schedule.unplanned,
    }


async def build(visit: Visit) -> None:
    """Build the page."""
    page = _Schedule(visit)
    await page.make()
    await page.look()
    await reservations.build(visit)


class _Schedule:
    """Schedule page of one visitor."""

    def __init__(self, visit: Visit) -> None:
        self._visit, self._words, query = visit, visit.words, visit.query
        self._wanted = {name: query.get(name, "") for name in FILTERS}
        self._by = _known(query.get("by", ""), GROUPINGS)
        self._span = _known(query.get("range", ""), tuple(SPANS_S))
        self._of = _known(query.get("colour", ""), COLOURED[::-1] if visit.who.tenant else COLOURED)
        self._lost: dict[str, str] = {}
        self._latest = Latest(visit)
        self._schedule: ScheduleOut | None = None
        self._reservations: ReservationList | None = None

    async def make(self) -> None:
        """Draw the filters and an empty axis."""
        visit, words = self._visit, self._words
        queues, clusters = await asyncio.gather(visit.ask(queue_calls.queues()), visit.ask(fleet.clusters()))
        with ui.element("section").classes("panel"):
            with ui.element("div").classes("looks").props(f'role=search aria-label="{words("Filters")}"'):
                self._toggle(
                    "by", words("Group by"), {"cluster": words("Per cluster"), "queue": words("Per queue")}, self._by
                )
                owners = {"tenant": words("Tenant colours"), "queue": words("Queue colours")}
                self._toggle("colour", words("Colour by"), owners, self._of)
                spans = {"1h": words("1 hour"), "6h": words("6 hours"), "24h": words("24 hours"), "7d": words("7 days")}
                self._toggle("range", words("Range of time"), spans, self._span)
                self._select("cluster", words("Cluster"), [each.name for each in clusters.clusters])
                self._select("queue", words("Queue"), [each.name for each in queues.queues])
                if not visit.who.tenant:
                    tenants = (await visit.ask(tenancy.tenants())).tenants
                    self._select("tenant", words("Tenant"), [each.name for each in tenants])
            self._wrong = error_line()
            self._drawn = Fragment("schedule", words)
        await visit.follow(tenancy.reservations(), self._on_reservations, reservations.EVERY_S)
        await visit.follow(fleet.clusters(), self._on_clusters, reservations.EVERY_S)

    def _toggle(self, name: str, label: str, options: dict[str, str], value: str) -> None:
        toggle = ui.toggle(options, value=value, on_change=lambda event: self._choose(name, event.value))
        toggle.props(f'no-caps unelevated dense padding="4px 12px" aria-label="{label}"')

    def _select(self, name: str, label: str, options: list[str]) -> None:
        there = self._wanted[name]
        listed = options if not there or there in options else [*options, there]
        select = ui.select(listed, label=label, value=there or None, clearable=True, with_input=len(listed) > 8)
        select.on_value_change(lambda event: self._choose(name, event.value or ""))
        select.props("outlined dense options-dense")

    async def _choose(self, name: str, value: str) -> None:
        """Apply a choice, and store it in the address."""
        if name == "by":
            self._by = value
        elif name == "range":
            self._span = value
        elif name == "colour":
            self._of = value
        else:
            self._wanted[name] = value
        self._visit.keep(by=self._by, range=self._span, colour=self._of, **self._wanted)
        await self.look()

    async def look(self) -> None:
        """Follow the schedule for the current choices."""
        turn, self._schedule = self._latest.begin(), None
        by, span = self._by, self._span
        within_s = int(SPANS_S[span] * (1 - PAST))
        call = queue_calls.schedule(by, **self._wanted, within_s=within_s, limit=MOST)

        def received(schedule: ScheduleOut) -> None:
            self._schedule = schedule
            self._draw()

        self._wrong.set_visibility(False)
        try:
            with self._drawn.element:
                await turn.follow(call, received, EVERY_S)
        except SeawayError as error:
            self._drawn.put("")
            self._wrong.set_text(str(error))
            self._wrong.set_visibility(True)

    def _on_reservations(self, value: ReservationList) -> None:
        self._reservations = value
        self._draw()

    def _on_clusters(self, value: ClusterList) -> None:
        self._lost = {each.name: each.state for each in value.clusters if each.state != "up"}
        self._draw()

    def _draw(self) -> None:
        """Draw the schedule and the reservations for the current choices, if both are known."""
        schedule, there = self._schedule, self._reservations
        if schedule is not None and there is not None:
            look = Look(self._by, self._span, {**self._wanted}, self._of, self._lost)
            choices = (look.by, look.span, look.of, *look.wanted.values(), *sorted(look.lost.items()))
            self._drawn.show_of([schedule, there], partial(drawing, schedule, there.reservations, look), *choices)


def _known(value: str, values: Sequence[str]) -> str:
    """Return a value of an address, or the default if it is unknown."""
    return value if value in values else values[0]
