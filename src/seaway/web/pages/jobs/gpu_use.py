"""Measured use of the GPUs of a job: a chart, and a table by node."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from nicegui import ui

from seaway.domain.units import ranges
from seaway.web.fragment import Fragment
from seaway.web.parts.chart import Line, chart
from seaway.web.parts.form import range_toggle

if TYPE_CHECKING:
    from seaway.domain.usage import UsageSpan
    from seaway.web.words import Words
    from seaway.wire.job_out import GpuUseOut, SliceUseOut, UseSampleOut

MAX_SLICES = 512
"""Maximum number of slices in the table of measured use."""

MAX_NODES = 16
"""Maximum number of nodes in the table."""

BYTES_PER_MIB = 1 << 20

SPAN_MS = 600_000
"""Minimum length of the time axis of measured use, in milliseconds."""

USE_S = 5.0
"""Interval of queries for the measured use of GPUs in the last hour, in seconds."""

PAST_USE_S = 60.0
"""Interval of queries for that of a longer time, in seconds."""


@dataclass(frozen=True, slots=True)
class Share:
    """Used share of what a job has reserved, percent; None if not measured."""

    at_ms: int
    cores: float | None
    memory: float | None


def shares_of(samples: Sequence[UseSampleOut]) -> list[Share]:
    """Return the points of a chart of measured use."""

    def percent(part: int | None, whole: int) -> float | None:
        return None if part is None or not whole else round(100 * part / whole, 1)

    return [
        Share(
            int(datetime.fromisoformat(each.at).timestamp() * 1000),
            percent(each.core_milli, each.core_milli_reserved),
            percent(each.memory_mib, each.memory_mib_reserved),
        )
        for each in samples
    ]


@dataclass(frozen=True, slots=True)
class NodeUse:
    """Measured use of the slices of a job on a node, with the reserved amounts.

    Attributes
    ----------
    replicas
        Numbers of the replicas, with ranges.
    core_milli, memory_mib
        Used amounts; None if they are not measured on all devices.
    """

    cluster: str
    node: str
    replicas: str
    uuids: tuple[str, ...]
    core_milli: int | None
    core_milli_reserved: int
    memory_mib: float | None
    memory_mib_reserved: int


def uses_of(slices: Sequence[SliceUseOut]) -> list[NodeUse]:
    """Return the sums of slices by node, in the order of the first slice of each."""
    nodes: dict[tuple[str, str], list[SliceUseOut]] = {}
    for each in slices:
        nodes.setdefault((each.cluster, each.node), []).append(each)

    def total(parts: Sequence[float | None]) -> float | None:
        known = [each for each in parts if each is not None]
        return sum(known) if len(known) == len(parts) else None

    found = []
    for (cluster, node), there in nodes.items():
        cores = total([each.used.core_milli if each.used else None for each in there])
        memory = total([each.used.memory_bytes if each.used else None for each in there])
        found.append(
            NodeUse(
                cluster,
                node,
                ranges(sorted({each.replica for each in there})),
                tuple(each.uuid for each in there),
                None if cores is None else int(cores),
                sum(each.core_milli for each in there),
                None if memory is None else memory / BYTES_PER_MIB,
                sum(each.memory_mib for each in there),
            )
        )
    return found


class Use:
    """Chart of the measured use of a job's GPUs, with a table by node; hidden without a measurement."""

    def __init__(self, words: Words, span: UsageSpan, choose: Callable[[Any], Awaitable[None]]) -> None:
        self._lines = [
            Line(words("GPU cores"), "var(--core)", "cores", filled=True),
            Line(words("GPU memory"), "var(--memory)", "memory"),
        ]
        with ui.element("section").classes("job-use") as self._section:
            title = words("GPU use")
            with ui.element("div").classes("range-head"):
                ui.html(f"<h2>{title}</h2>", sanitize=False)
                range_toggle(words, span, choose)
            ui.label(words("Measured by exporters, in percent of what the job has reserved.")).classes("dim")
            self._place = ui.element("div").props(f'role=img aria-label="{title}"')
            self._table = Fragment("job_use", words)
        self._chart: ui.echart | None = None
        self._section.set_visibility(False)

    def show(self, use: GpuUseOut) -> None:
        """Show the use."""
        shares = shares_of(use.samples)
        if shares:
            self._section.set_visibility(True)
        if self._chart is None:
            if not shares:
                return
            with self._place:  # loads the library of charts, which most jobs do not need
                self._chart = ui.echart({}, renderer="svg").classes("job-use-chart")
        self._chart.options.clear()
        end_ms = shares[-1].at_ms if shares else int(datetime.now(UTC).timestamp() * 1000)
        begin_ms = min([end_ms - SPAN_MS, *(each.at_ms for each in shares[:1])])
        self._chart.options.update(chart(shares, self._lines, "%", (begin_ms, end_ms)))
        self._chart.update()
        nodes = uses_of(use.slices)
        shown = sum(len(each.uuids) for each in nodes[:MAX_NODES])
        self._table.show(nodes=nodes[:MAX_NODES], more=use.total - shown)
