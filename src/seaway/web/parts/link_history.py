"""What links were like, as lines over time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby, pairwise
from statistics import median
from typing import TYPE_CHECKING, Any

from seaway.web.parts.link_figures import NS_PER_MS, PPM_PER_PERCENT

if TYPE_CHECKING:
    from seaway.wire.fleet import LinkSampleOut

MOST_POINTS = 360
"""Points of a line: more are not seen apart."""

SAMPLE_MS = 60_000
"""How far samples are apart that are written down every minute."""

GAP = 3
"""A line has a gap where its points are so many times farther apart than usual."""


@dataclass(frozen=True, slots=True)
class Point:
    """What a link was like for a while.

    Attributes
    ----------
    at_ms
        When that began, since 1970.
    latency_ms, jitter_ms
        Mean and largest; None where nothing answered.
    capacity_mbps, used_mbps
        None where nobody knew.
    """

    at_ms: int
    latency_ms: float | None
    jitter_ms: float | None
    loss_percent: float
    capacity_mbps: int | None
    used_mbps: int | None


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a chart: its title, its colour, and which attribute of points it shows."""

    title: str
    color: str
    attribute: str
    filled: bool = False


def points_of(samples: Sequence[LinkSampleOut], span_s: float) -> list[Point]:
    """Return the points of lines over a span of time: as many as are seen apart, samples between them taken together.

    Parameters
    ----------
    samples
        Old to new.
    """
    width_ms = max(SAMPLE_MS, int(span_s * 1000 / MOST_POINTS))
    together = groupby(samples, key=lambda each: _at_ms(each) // width_ms)
    return [_point(list(group)) for _, group in together]


def _at_ms(sample: LinkSampleOut) -> int:
    return int(datetime.fromisoformat(sample.at).timestamp() * 1000)


def _point(samples: Sequence[LinkSampleOut]) -> Point:
    answered = [each for each in samples if each.latency_ns is not None]
    known = [each for each in samples if each.bandwidth_mbps]
    latencies = [each.latency_ns or 0 for each in answered]
    return Point(
        _at_ms(samples[0]),
        sum(latencies) / len(latencies) / NS_PER_MS if latencies else None,
        max(each.jitter_ns for each in answered) / NS_PER_MS if answered else None,
        sum(each.loss_ppm for each in samples) / len(samples) / PPM_PER_PERCENT,
        known[-1].bandwidth_mbps if known else None,
        max(each.used_mbps for each in known) if known else None,
    )


def chart(points: Sequence[Point], lines: Sequence[Line], unit: str, ends_ms: tuple[int, int]) -> dict[str, Any]:
    """Return a chart of some lines.

    Parameters
    ----------
    ends_ms
        Where the axis of time begins and ends, since 1970.
    """
    few = len(points) < 40
    return {
        "animation": False,
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
    """Put gaps where nothing was written down for longer than usual."""
    apart_ms = [later - earlier for (earlier, _), (later, _) in pairwise(values)]
    most_ms = GAP * median(apart_ms) if apart_ms else 0
    for at, (at_ms, value) in enumerate(values):
        if at and apart_ms[at - 1] > most_ms:
            yield [at_ms - 1, None]
        yield [at_ms, value]
