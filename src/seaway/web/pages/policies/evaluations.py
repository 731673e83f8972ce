"""Stored results of `seaway evaluate`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from nicegui import ui

from seaway.client.calls import policies
from seaway.domain.errors import RejectedError
from seaway.web.fragment import Fragment
from seaway.web.parts.cordon import on_act
from seaway.web.parts.form import FileForm, confirm, notify
from seaway.web.visit import Visit
from seaway.web.words import Words

if TYPE_CHECKING:
    from seaway.wire.evaluations import EstimateOut, EvaluationDetail, EvaluationList, EvaluationOut, PolicyResultOut
    from seaway.wire.policies import CurvePointOut, TrainedOut


SLOW_REFRESH_S = 3.0

FIGURES = ("right", "ratio", "fragmentation", "gpu_load_variance", "gpu_memory_pct", "p99_us")
"""Columns of the table, in addition to placed jobs, which have bars."""


class EvaluationPanel:
    """Panel with the stored evaluations, and one evaluation as bars and a table."""

    def __init__(self, visit: Visit) -> None:
        self._visit = visit
        self._stored: list[EvaluationOut] = []
        self._shown: EvaluationDetail | None = None
        with ui.element("section").classes("panel"):
            self._fragment = Fragment("evaluations", visit.words)
        on_act(self._fragment, self._act)

    async def begin(self) -> None:
        """Follow the stored evaluations, and show the evaluation in the address."""
        await self._visit.follow(policies.evaluations(), self._received, SLOW_REFRESH_S)

    async def _received(self, value: EvaluationList) -> None:
        self._stored = value.evaluations
        names = [each.name for each in self._stored]
        wanted = self._shown.name if self._shown else self._visit.query.get("evaluation", "")
        await self._look(wanted if wanted in names else next(iter(names), ""))

    async def _look(self, name: str) -> None:
        self._shown = None
        if name:
            found = await self._visit.ask(policies.evaluation(name))
            self._shown = found
        self._fragment.show(
            stored=self._stored,
            shown=self._shown,
            lines=list(line_rows(self._shown.lines)) if self._shown else [],
            figures=FIGURES,
            may=self._visit.may("operator"),
        )

    async def _act(self, act: str, name: str) -> None:
        words = self._visit.words
        if act == "look":
            self._visit.keep(evaluation=name)
            await self._look(name)
        elif act == "keep":
            title, named = words("Store an evaluation"), words("Name")
            largest = self._visit.who.max_body_bytes
            FileForm(words, title, ".json,.csv", words("Store"), self._keep, largest, named)
        elif act == "drop":
            text = words("Only the stored copy is removed; your file stays.")
            title = words("Remove evaluation {name}?", name=name)
            confirm(words, title, text, words("Remove"), lambda: self._drop(name))

    async def _keep(self, name: str, file: str, content: bytes) -> None:
        if not name:
            raise RejectedError(self._visit.words("It needs a name."), where="name")
        call = policies.put_evaluation(name, content, csv=file.lower().endswith(".csv"))
        retained = await self._visit.ask(call)
        self._shown = retained
        self._visit.keep(evaluation=name)
        notify(self._visit.words("{name} is stored", name=name))
        await self._received(await self._visit.ask(policies.evaluations()))

    async def _drop(self, name: str) -> None:
        await self._visit.ask(policies.delete_evaluation(name))
        notify(self._visit.words("{name} is removed", name=name))
        self._shown = None
        self._visit.keep(evaluation=None)
        await self._received(await self._visit.ask(policies.evaluations()))


def line_rows(lines: list[PolicyResultOut]) -> Iterator[dict[str, object]]:
    """Yield policies with bars of placed jobs in percent: mean and 95 % confidence interval.

    Policies with fewer instances than the first one come last, because means over different instances are not
    comparable.
    """
    placed = [each.figures["placed"] for each in lines if "placed" in each.figures]
    most = max((each.mean + (each.ci95 or 0) for each in placed), default=0) or 1
    for at, each in enumerate(lines, 1):
        figure = each.figures.get("placed")
        yield {"at": at, "line": each, "placed": figure, "bar": _bar(figure, most) if figure else None}


def _bar(figure: EstimateOut, most: float) -> dict[str, float]:
    near = figure.ci95 or 0
    low, high = max(0.0, figure.mean - near), min(most, figure.mean + near)
    return {"share": 100 * figure.mean / most, "low": 100 * low / most, "width": 100 * (high - low) / most}


class Curve:
    """Chart of a policy's training, which is visible if the policy's file has a learning curve."""

    def __init__(self, visit: Visit) -> None:
        self._words, self._shown = visit.words, ""
        self._title = ui.label(visit.words("Training curve")).props("role=heading aria-level=3").classes("curve-title")
        self._none = ui.label(visit.words("Its file has no learning curve.")).classes("fine")
        self._chart = ui.echart({}, renderer="svg").classes("curve").props(f'role=img aria-label="{self._title.text}"')

    def show(self, trained: TrainedOut | None) -> None:
        """Show the training of a policy; hide the chart for a policy without training."""
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
    """Return a chart over episodes, with placed jobs on the left axis and reward on the right."""
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
