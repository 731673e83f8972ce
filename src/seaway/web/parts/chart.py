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
    """Return a chart of attributes of points; see `line_chart`."""
    drawn = [
        ChartLine(
            each.title, each.color, [(at.at_ms, getattr(at, each.attribute)) for at in points], filled=each.filled
        )
        for each in lines
    ]
    return line_chart(drawn, unit, ends_ms)


@dataclass(frozen=True, slots=True)
class ChartLine:
    """Line of a chart.

    Attributes
    ----------
    color
        Colour, such as a variable of the style sheets.
    values
        Time in milliseconds since 1970, and value; None if unknown.
    """

    title: str
    color: str
    values: Sequence[tuple[int, float | None]]
    filled: bool = False


BOTH_TIMES = """pointer => {
    const at = new Date(pointer.value);
    return `${at.toLocaleString("sv")} · ${at.toISOString().slice(0, 19).replace("T", " ")} UTC`;
}"""
"""JavaScript that writes a time of the axis, which is local, with UTC."""


def line_chart(
    lines: Sequence[ChartLine], unit: str, ends_ms: tuple[int, int], *, stacked: bool = False
) -> dict[str, Any]:
    """Return a line chart.

    Parameters
    ----------
    unit
        Unit at the end of the axis and after the values of the tooltip; empty for none.
    ends_ms
        Start and end of the time axis in milliseconds since 1970.
    stacked
        Whether the lines are stacked. They then need values at the same times.
    """
    few = all(len(line.values) < 40 for line in lines)
    after = f" {unit}" if unit else ""
    return {
        "animation": False,
        "grid": {"left": 56, "right": 14, "top": 30 if len(lines) > 1 or unit else 14, "bottom": 26},
        "legend": {
            "show": len(lines) > 1,
            "type": "scroll",
            "top": 0,
            "left": 56,
            "right": 10,
            "textStyle": {"color": "var(--ink)"},
            "pageTextStyle": {"color": "var(--ink)"},
            "pageIconColor": "var(--core)",
        },
        "tooltip": {
            "trigger": "axis",
            "confine": True,
            "backgroundColor": "var(--paper)",
            "borderColor": "var(--line)",
            "textStyle": {"color": "var(--ink)"},
            ":valueFormatter": f"value => value == null ? '–' : Number(value.toPrecision(4)) + '{after}'",
        },
        "xAxis": {
            "type": "time",
            "min": ends_ms[0],
            "max": ends_ms[1],
            "axisLine": {"lineStyle": {"color": "var(--line)"}},
            "axisLabel": {"color": "var(--dim)", "hideOverlap": True},
            "axisPointer": {"label": {":formatter": BOTH_TIMES}},
        },
        "yAxis": {
            "type": "value",
            "name": unit,
            "nameGap": 12,
            "nameTextStyle": {"color": "var(--dim)", "align": "right", "padding": [0, 6, 0, 0]},
            "min": 0,
            "axisLabel": {"color": "var(--dim)"},
            "splitLine": {"lineStyle": {"color": "var(--line)"}},
        },
        "series": [
            {
                "type": "line",
                "name": line.title,
                "data": list(_broken(line.values)),
                "showSymbol": few,
                "symbolSize": 5,
                "lineStyle": {"color": line.color, "width": 2},
                "itemStyle": {"color": line.color},
                **({"stack": "all"} if stacked else {}),
                **({"areaStyle": {"color": line.color, "opacity": 0.5 if stacked else 0.18}} if line.filled else {}),
            }
            for line in lines
        ],
    }


def _broken(values: Sequence[tuple[int, float | None]]) -> Iterator[list[float | None]]:
    """Insert gaps where values are missing."""
    apart_ms = [later - earlier for (earlier, _), (later, _) in pairwise(values)]
    most_ms = GAP * median(apart_ms) if apart_ms else 0
    for at, (at_ms, value) in enumerate(values):
        if at and apart_ms[at - 1] > most_ms:
            yield [at_ms - 1, None]
        yield [at_ms, value]
