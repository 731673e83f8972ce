"""How a trained policy came to be: what it did after so many episodes of its training."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from nicegui import ui

from seaway.web.visit import Visit
from seaway.web.words import Words

if TYPE_CHECKING:
    from seaway.wire.policies import CurvePointOut, TrainedOut


class Curve:
    """A chart of a training; it is there where a policy file has one."""

    def __init__(self, visit: Visit) -> None:
        self._words, self._shown = visit.words, ""
        self._title = ui.label(visit.words("Training curve")).props("role=heading aria-level=3").classes("curve-title")
        self._none = ui.label(visit.words("Its file says nothing of how it learned.")).classes("fine")
        self._chart = ui.echart({}, renderer="svg").classes("curve").props(f'role=img aria-label="{self._title.text}"')

    def show(self, trained: TrainedOut | None) -> None:
        """Show the training of a policy; nothing for one that was not trained."""
        points = trained.curve if trained else []
        self._title.set_visibility(trained is not None)
        self._none.set_visibility(trained is not None and not points)
        self._chart.set_visibility(bool(points))
        if trained is None or not points or trained.digest == self._shown:
            return
        self._shown = trained.digest
        self._chart.options.clear()
        self._chart.options.update(chart(points, self._words))
        self._chart.update()


def chart(points: Sequence[CurvePointOut], words: Words) -> dict[str, Any]:
    """Return a chart of what was placed, at the left, and of the reward, at the right, over episodes."""
    ink, line = "var(--dim)", "var(--line)"

    def axis(name: str, position: str) -> dict[str, Any]:
        return {
            "type": "value",
            "name": name,
            "position": position,
            "scale": True,
            "nameTextStyle": {"color": ink},
            "axisLabel": {"color": ink},
            "splitLine": {"show": position == "left", "lineStyle": {"color": line}},
        }

    def series(name: str, of: str, at: int, colour: str, kind: str) -> dict[str, Any]:
        return {
            "name": name,
            "type": "line",
            "yAxisIndex": at,
            "showSymbol": len(points) <= 40,
            "data": [[each.episode, getattr(each, of)] for each in points],
            "lineStyle": {"color": colour, "width": 2, "type": kind},
            "itemStyle": {"color": colour},
        }

    placed, reward = words("Jobs placed"), words("Reward")
    return {
        "animation": False,
        "grid": {"left": 64, "right": 64, "top": 44, "bottom": 40},
        "legend": {"textStyle": {"color": ink}, "top": 4},
        "tooltip": {"trigger": "axis"},
        "xAxis": {
            "type": "value",
            "name": words("Episode"),
            "nameLocation": "middle",
            "nameGap": 26,
            "min": "dataMin",
            "max": "dataMax",
            "nameTextStyle": {"color": ink},
            "axisLabel": {"color": ink},
            "splitLine": {"show": False},
        },
        "yAxis": [axis(placed, "left"), axis(reward, "right")],
        "series": [
            series(placed, "placed", 0, "var(--core)", "solid"),
            series(reward, "reward", 1, "var(--memory)", "dashed"),
        ],
    }
