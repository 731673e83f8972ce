"""Comparison of policies: a what-if query for each, which schedules all live jobs again on a copy of the fleet."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from nicegui import ui

from seaway.client.calls import service
from seaway.domain.errors import SeawayError
from seaway.web.fragment import Fragment
from seaway.web.visit import Visit

if TYPE_CHECKING:
    from seaway.wire.whatif import SumsOut

USUAL = ("seaway", "fgd", "bestfit")
"""Policies that are selected at first, in addition to the active ones."""

MOST = 6
"""Number of policies that are selected at first."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """Result of a what-if query for a policy.

    Attributes
    ----------
    sums
        Figures of the fleet under the policy; None after an error.
    moved
        Jobs that would run elsewhere.
    why
        Error message; empty for none.
    """

    policy: str
    sums: SumsOut | None
    moved: int = 0
    why: str = ""


class Comparison:
    """Panel that compares policies on the present fleet on request."""

    def __init__(self, visit: Visit) -> None:
        self._visit, words = visit, visit.words
        with ui.element("section").classes("panel"):
            with ui.element("div").classes("panel-head"):
                ui.label(words("Effect of each policy on the present fleet")).props(
                    "role=heading aria-level=2"
                ).classes("panel-title")
                with ui.element("div").classes("panel-tools"):
                    self._choice = ui.select({}, label=words("Policies"), multiple=True).props(
                        "outlined dense options-dense use-chips"
                    )
                    self._button = ui.button(words("Compare"), on_click=self._compare).props("unelevated no-caps")
            self._fragment = Fragment("versus", words)
        self._show([], [])

    def offer(self, names: Sequence[str], deciding: Iterable[str]) -> None:
        """Offer policies to compare."""
        chosen = list(dict.fromkeys(each for each in (*sorted(deciding), *USUAL) if each in names))[:MOST]
        self._choice.set_options({each: each for each in names}, value=chosen)

    async def _compare(self) -> None:
        """Query policies one by one, and show each result as it arrives."""
        names: list[str] = list(self._choice.value or [])
        found: list[Outcome] = []
        self._button.disable()
        for at, name in enumerate(names):
            self._show(found, names[at:])
            found.append(await self._ask(name))
        self._show(found, [])
        self._button.enable()

    async def _ask(self, name: str) -> Outcome:
        try:
            answer = await self._visit.ask(service.whatif({"policy": name}))
        except SeawayError as error:
            return Outcome(name, None, why=str(error))
        return Outcome(name, answer.after, len(answer.moved))

    def _show(self, found: Sequence[Outcome], left: Sequence[str]) -> None:
        self._fragment.show(outcomes=list(bars(found)), left=left)


def bars(found: Sequence[Outcome]) -> Iterator[dict[str, object]]:
    """Return outcomes with the lengths of their bars in percent of the longest, and marks for the best."""
    sums = [each.sums for each in found if each.sums]
    most = max((each.placed for each in sums), default=0)
    packed = [each.fragmentation for each in sums if each.fragmentation is not None]
    for each in found:
        fragmentation = each.sums.fragmentation if each.sums else None
        yield {
            "outcome": each,
            "placed_bar": 100 * each.sums.placed / most if each.sums and most else 0,
            "placed_best": bool(each.sums) and bool(most) and each.sums is not None and each.sums.placed == most,
            "fragmentation_bar": 100 * fragmentation / max(packed) if fragmentation and max(packed) else 0,
            "fragmentation_best": fragmentation is not None and fragmentation == min(packed),
        }
