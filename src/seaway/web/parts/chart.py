"""Line charts of values over time, for `ui.echart`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median
from typing import Any, Protocol

GAP = 3
"""Maximum distance between points of a line, as a multiple of the median distance. A larger distance is a gap."""


class At(Protocol):
    """Values at a time, as attributes."""

    @property
    def at_ms(self) -> int:
        """Time in milliseconds since 1970."""


@dataclass(frozen=True, slots=True)
class Line:
    """Line of a chart: title, colour, and attribute of its points."""

    title: str
    color: str
    attribute: str
    filled: bool = False


def chart(points: Sequence[At], lines: Sequence[Line], unit: str, ends_ms: tuple[int, int]) -> dict[str, Any]:
    """Return a line chart.

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
