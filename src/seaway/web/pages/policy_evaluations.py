"""What `seaway evaluate` found of policies, where somebody keeps it here."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from nicegui import ui

from seaway.client.calls import policies
from seaway.domain.errors import RejectedError
from seaway.web.fragment import Fragment
from seaway.web.parts.acting import on_act
from seaway.web.parts.file_form import FileForm
from seaway.web.parts.form import confirm, tell
from seaway.web.visit import Visit

if TYPE_CHECKING:
    from seaway.wire.evaluations import EstimateOut, EvaluationDetail, EvaluationList, EvaluationOut, LineOut

SELDOM_S = 3.0

FIGURES = ("right", "ratio", "fragmentation", "gpu_load_variance", "gpu_memory_pct", "p99_us")
"""What is shown besides jobs placed, which have bars."""


class EvaluationPanel:
    """A panel with the evaluations that are kept, and one of them as bars and a table."""

    def __init__(self, visit: Visit) -> None:
        self._visit = visit
        self._kept: list[EvaluationOut] = []
        self._shown: EvaluationDetail | None = None
        with ui.element("section").classes("panel"):
            self._fragment = Fragment("evaluations", visit.words)
        on_act(self._fragment, self._act)

    async def begin(self) -> None:
        """Look at what is kept from now on, and at the one that the address names."""
        await self._visit.follow(policies.evaluations(), self._heard, SELDOM_S)

    async def _heard(self, value: EvaluationList) -> None:
        self._kept = value.evaluations
        names = [each.name for each in self._kept]
        wanted = self._shown.name if self._shown else self._visit.query.get("evaluation", "")
        await self._look(wanted if wanted in names else next(iter(names), ""))

    async def _look(self, name: str) -> None:
        self._shown = None
        if name:
            found = await self._visit.ask(policies.evaluation(name))
            self._shown = found
        self._fragment.show(
            kept=self._kept,
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
            title, named = words("Keep an evaluation"), words("What it is called")
            largest = self._visit.who.largest_body
            FileForm(words, title, ".json,.csv", words("Keep it"), self._keep, largest, named)
        elif act == "drop":
            text = words("Only what is kept here goes; its file is yours.")
            title = words("Remove evaluation {name}?", name=name)
            confirm(words, title, text, words("Remove"), lambda: self._drop(name))

    async def _keep(self, name: str, file: str, content: bytes) -> None:
        if not name:
            raise RejectedError(self._visit.words("It needs a name."), where="name")
        call = policies.keep_evaluation(name, content, csv=file.lower().endswith(".csv"))
        kept = await self._visit.ask(call)
        self._shown = kept
        self._visit.keep(evaluation=name)
        tell(self._visit.words("{name} is kept", name=name))
        await self._heard(await self._visit.ask(policies.evaluations()))

    async def _drop(self, name: str) -> None:
        await self._visit.ask(policies.delete_evaluation(name))
        tell(self._visit.words("{name} is removed", name=name))
        self._shown = None
        self._visit.keep(evaluation=None)
        await self._heard(await self._visit.ask(policies.evaluations()))


def line_rows(lines: list[LineOut]) -> Iterator[dict[str, object]]:
    """List policies with bars of jobs placed, percent: how long, and from where to where it may really be.

    Policies with figures of fewer instances than the first come after: means over other instances do not compare.
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
