"""History page: use of GPUs and waits of the past, of the fleet and by cluster, tenant or queue."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import datetime
from typing import TYPE_CHECKING
from urllib.parse import quote, urlencode

from nicegui import ui

from seaway.client.calls import fleet, jobs
from seaway.domain.errors import SeawayError
from seaway.domain.usage import UsageBy, UsageSpan
from seaway.web.fragment import Fragment
from seaway.web.latest import Latest
from seaway.web.parts.chart import ChartLine, line_chart
from seaway.web.parts.form import range_toggle, toggle
from seaway.web.visit import Visit
from seaway.web.words import Words

if TYPE_CHECKING:
    from seaway.wire.fleet import UsageHistoryOut, UsageSeriesOut, UsageStepOut
    from seaway.wire.job_out import UnusedGpusList

MAX_SERIES = 8
"""Maximum number of series that a chart tells apart by colour; the others are shown together."""

AGAIN_S = 30.0
"""Interval of queries, in seconds. The history has one sample a minute."""

MAX_UNUSED = 20
"""Maximum number of jobs with unused GPUs."""

FINISHED = "completed,failed,cancelled"
JOB_COLUMNS = "queue,tenant,started,ended,duration,gpu_hours"
"""States and columns of the history of jobs."""


async def build(visit: Visit) -> None:
    """Build the page."""
    await _History(visit).make()


class _History:
    """History page of one visitor."""

    def __init__(self, visit: Visit) -> None:
        self.visit, self.words = visit, visit.words
        query = visit.query
        self._by = UsageBy(query["by"]) if query.get("by") in {*UsageBy} else UsageBy.FLEET
        self._span = UsageSpan(query["span"]) if query.get("span") in {*UsageSpan} else UsageSpan.DAY
        self._looking = Latest(visit)
        self._charts: dict[str, tuple[ui.element, ui.echart]] = {}

    async def make(self) -> None:
        """Draw the page, and follow its data."""
        words = self.words
        by = {"fleet": words("Fleet"), "cluster": words("Cluster"), "tenant": words("Tenant"), "queue": words("Queue")}
        with ui.element("section").classes("panel range-head"):
            toggle(by, self._by.value, words("Grouping"), self._choose_grouping)
            range_toggle(words, self._span, self._choose_span)
        self._empty = ui.label(words("There are no samples of this period yet. Seaway stores one each minute."))
        self._empty.classes("panel fine")
        with ui.element("div").classes("charts"):
            for name, title in self._titles().items():
                with ui.element("section").classes("panel") as panel:
                    ui.html(f"<h2>{title}</h2>", sanitize=False)
                    chart = ui.echart({}, renderer="svg").classes("chart").props(f'role=img aria-label="{title}"')
                self._charts[name] = panel, chart
        self._table = Fragment("history", words)
        unused = Fragment("unused", words)
        unused.element.classes("panel")
        await self._look()

        def receive(found: UnusedGpusList) -> None:
            unused.show_of([found], lambda: {"jobs": found.jobs})

        await self.visit.follow(jobs.unused_gpus(limit=MAX_UNUSED), receive, AGAIN_S)
        self.visit.repeat(AGAIN_S, self._again)

    def _titles(self) -> dict[str, str]:
        words = self.words
        return {
            "gpus": words("GPUs"),
            "measured": words("GPUs in use, as measured"),
            "waiting": words("Waiting tasks"),
            "waits": words("Mean waits of started tasks"),
            "longest": words("Longest waits"),
        }

    async def _choose_grouping(self, event: object) -> None:
        self._by = UsageBy(getattr(event, "value"))  # noqa: B009  # events of the library have no type
        await self._chosen()

    async def _choose_span(self, event: object) -> None:
        self._span = UsageSpan(getattr(event, "value"))  # noqa: B009
        await self._chosen()

    async def _chosen(self) -> None:
        self.visit.keep(by=self._by.value, span=self._span.value)
        await self._look()

    async def _again(self) -> None:
        """Fetch new samples. Ignore errors: the timer retries."""
        with suppress(SeawayError):
            await self._look()

    async def _look(self) -> None:
        turn = self._looking.begin()
        found = await self.visit.ask(fleet.usage_history(self._by.value, self._span.value, limit=MAX_SERIES))
        if turn.counts():
            self._draw(found)

    def _draw(self, found: UsageHistoryOut) -> None:
        words = self.words
        series = [*found.series, *([found.others] if found.others else [])]
        sampled = any(each.steps for each in series)
        self._empty.set_visibility(not sampled)
        ends_ms = _ms(found.since), _ms(found.until)
        lines = fleet_lines(found, words) if self._by is UsageBy.FLEET else lines_by_series(found, words)
        stacked = self._by is not UsageBy.FLEET
        units = {"gpus": "GPU", "measured": "GPU", "waiting": words("tasks")}
        for name, (panel, chart) in self._charts.items():
            drawn = lines.get(name, [])
            panel.set_visibility(sampled and bool(drawn))
            chart.options.clear()
            unit = units.get(name)
            chart.options.update(line_chart(drawn, unit or words("min"), ends_ms, stacked=stacked and unit is not None))
            chart.update()
        rows = list(history_rows(found, words))
        self._table.element.set_visibility(bool(rows) and sampled)
        self._table.show(by=self._by.value, rows=rows)


def fleet_lines(found: UsageHistoryOut, words: Words) -> dict[str, list[ChartLine]]:
    """Return the lines of the fleet, by chart."""
    steps = [step for each in found.series for step in each.steps]
    gpus = [
        ChartLine(words("Total"), "var(--quiet)", _values(steps, "gpu_milli")),
        ChartLine(words("Allocated"), "var(--core)", _values(steps, "gpu_milli_used"), filled=True),
    ]
    if any(each.gpu_milli_measured is not None for each in steps):
        gpus.append(
            ChartLine(words("In use, as measured"), "var(--memory)", _values(steps, "gpu_milli_measured"), filled=True)
        )
    return {
        "gpus": gpus,
        "waiting": [ChartLine(words("Waiting tasks"), "var(--high)", _values(steps, "waiting", 1), filled=True)],
        "waits": [ChartLine(words("Mean wait of started tasks"), "var(--core)", _values(steps, "mean_wait_s", 60))],
        "longest": [ChartLine(words("Longest wait"), "var(--high)", _values(steps, "longest_wait_s", 60), filled=True)],
    }


def lines_by_series(found: UsageHistoryOut, words: Words) -> dict[str, list[ChartLine]]:
    """Return a line for each cluster, tenant or queue, by chart."""
    series = [(each, each.name) for each in found.series]
    if found.others:
        series.append((found.others, words("Others")))

    def lines(field: str, per: float, *, filled: bool = True) -> list[ChartLine]:
        return [
            ChartLine(title, color_of(at), _values(each.steps, field, per), filled=filled)
            for at, (each, title) in enumerate(series)
        ]

    measured = any(step.gpu_milli_measured is not None for each, _ in series for step in each.steps)
    charts = {"gpus": lines("gpu_milli_used", 1000)}
    if measured:
        charts["measured"] = lines("gpu_milli_measured", 1000)
    charts["waits"] = lines("mean_wait_s", 60, filled=False)
    if found.by != UsageBy.CLUSTER:
        charts |= {"waiting": lines("waiting", 1), "longest": lines("longest_wait_s", 60, filled=False)}
    return charts


def color_of(place: int) -> str:
    """Return the colour of a series by its place."""
    return f"var(--series-{min(place, MAX_SERIES)})"


def _values(steps: Sequence[UsageStepOut], field: str, per: float = 1000) -> list[tuple[int, float | None]]:
    values = [(step.at, getattr(step, field)) for step in steps]
    return [(_ms(at), None if value is None else value / per) for at, value in values]


def _ms(at: str) -> int:
    return int(datetime.fromisoformat(at).timestamp() * 1000)


def history_rows(found: UsageHistoryOut, words: Words) -> Iterator[dict[str, object]]:
    """Yield the rows of the table, with the fields of the template."""
    series = [*found.series, *([found.others] if found.others else [])]
    for at, each in enumerate(series):
        rest = each is found.others
        name = words("Others") if rest else each.name or words("Fleet")
        query = {found.by.value: each.name} if each.name else {}
        shown = {"state": FINISHED, "ended_from": found.since, "sort": "-gpu_hours", "columns": JOB_COLUMNS}
        jobs = {**query, **shown}
        yield {
            "name": name,
            "color": color_of(at) if found.by != UsageBy.FLEET else "var(--core)",
            "href": "" if rest or found.by == UsageBy.TENANT else _page(found.by, each.name),
            "jobs": "" if rest else f"/jobs?{urlencode(jobs)}",
            **_figures(each),
        }


def _page(by: UsageBy, name: str) -> str:
    return {UsageBy.CLUSTER: f"/fleet?cluster={quote(name)}", UsageBy.QUEUE: f"/queues?queue={quote(name)}"}.get(by, "")


def _figures(series: UsageSeriesOut) -> dict[str, object]:
    """Return the figures of a series: means over its steps, and the largest and the sum of some."""
    steps = series.steps
    number = len(steps) or 1
    measured = [each.gpu_milli_measured for each in steps if each.gpu_milli_measured is not None]
    started = sum(each.started for each in steps)
    waited_s = sum(each.started * (each.mean_wait_s or 0) for each in steps)
    return {
        "gpu_hours": series.gpu_hours,
        "mean": sum(each.gpu_milli_used for each in steps) / number,
        "most": max((each.gpu_milli_used for each in steps), default=0),
        "measured": sum(measured) / len(measured) if measured else None,
        "waiting": sum(each.waiting for each in steps) / number,
        "started": started,
        "mean_wait_s": waited_s / started if started else None,
        "longest_wait_s": max((each.longest_wait_s for each in steps), default=0),
    }
