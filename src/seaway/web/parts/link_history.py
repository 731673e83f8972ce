"""Charts of a link's history."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from statistics import median
from typing import TYPE_CHECKING, Any

from seaway.web.link_figures import NS_PER_MS, PPM_PER_PERCENT

if TYPE_CHECKING:
    from seaway.wire.fleet import LinkStepOut

MAX_POINTS = 360
"""Limit of points in a line; more are indistinguishable."""

SAMPLE_S = 60
"""Interval of stored samples."""

GAP = 3
"""Multiple of the median distance between points from which a line has a gap."""


@dataclass(frozen=True, slots=True)
class Point:
    """Figures of a link for a step of time.

    Attributes
    ----------
    at_ms
        Start of the step in milliseconds since 1970.
    latency_ms, jitter_ms
        Mean and maximum; None if no probe was answered.
    capacity_mbps, used_mbps
        None if unknown.
    """

    at_ms: int
    latency_ms: float | None
    jitter_ms: float | None
    loss_percent: float
    capacity_mbps: float | None
    used_mbps: int | None


@dataclass(frozen=True, slots=True)
class Line:
    """Line of a chart: title, colour, and attribute of its points."""

    title: str
    color: str
    attribute: str
    filled: bool = False


def step_s(span_s: float) -> int:
    """Return the length of a step for a span of time: at most `MAX_POINTS` steps, none shorter than a sample."""
    return max(SAMPLE_S, int(span_s / MAX_POINTS))


def points_of(steps: Sequence[LinkStepOut]) -> list[Point]:
    """Return the points of lines: mean latency, loss and bandwidth of each step, and maximum jitter and use."""
    return [_point(each) for each in steps]


def _point(step: LinkStepOut) -> Point:
    return Point(
        int(datetime.fromisoformat(step.at).timestamp() * 1000),
        step.latency_ns.mean / NS_PER_MS if step.latency_ns else None,
        step.jitter_ns.most / NS_PER_MS if step.jitter_ns else None,
        step.loss_ppm.mean / PPM_PER_PERCENT,
        step.bandwidth_mbps.mean if step.bandwidth_mbps else None,
        step.used_mbps.most if step.used_mbps else None,
    )


def chart(points: Sequence[Point], lines: Sequence[Line], unit: str, ends_ms: tuple[int, int]) -> dict[str, Any]:
    """Return a chart of lines.

    Parameters
    ----------
    ends_ms
        Start and end of the time axis in milliseconds since 1970.
    """
    few = len(points) < 40
    return {
        "animation": False,
        "useUTC": True,
        "grid": {"left": 56, "right": 14, "top": 30 if len(lines) > 1 else 14, "bottom": 26},
        "legend": {"show": len(lines) > 1, "top": 0, "right": 10, "textStyle": {"color": "var(--ink)"}},
        "tooltip": {
            "trigger": "axis",
            "backgroundColor": "var(--paper)",
            "borderColor": "var(--line)",
            "textStyle": {"color": "var(--ink)"},
            ":valueFormatter": f"value => value == null ? '–' : Number(value.toPrecision(4)) + ' {unit}'",
        },
        "xAxis": {
            "type": "time",
            "min": ends_ms[0],
            "max": ends_ms[1],
            "axisLine": {"lineStyle": {"color": "var(--line)"}},
            "axisLabel": {"color": "var(--dim)", "hideOverlap": True},
        },
        "yAxis": {
            "type": "value",
            "min": 0,
            "axisLabel": {"color": "var(--dim)"},
            "splitLine": {"lineStyle": {"color": "var(--line)"}},
        },
        "series": [
            {
                "type": "line",
                "name": line.title,
                "data": list(_broken([(each.at_ms, getattr(each, line.attribute)) for each in points])),
                "showSymbol": few,
                "symbolSize": 5,
                "lineStyle": {"color": line.color, "width": 2},
                "itemStyle": {"color": line.color},
                **({"areaStyle": {"color": line.color, "opacity": 0.18}} if line.filled else {}),
            }
            for line in lines
        ],
    }


def _broken(values: Sequence[tuple[int, float | None]]) -> Iterator[list[float | None]]:
    """Insert gaps where samples are missing."""
    apart_ms = [later - earlier for (earlier, _), (later, _) in pairwise(values)]
    most_ms = GAP * median(apart_ms) if apart_ms else 0
    for at, (at_ms, value) in enumerate(values):
        if at and apart_ms[at - 1] > most_ms:
            yield [at_ms - 1, None]
        yield [at_ms, value]
