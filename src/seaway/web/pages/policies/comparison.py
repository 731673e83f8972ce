"""Comparison of policies by the present jobs, or by a replay of past ones."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from nicegui import ui

from seaway.client.calls import service
from seaway.domain.errors import SeawayError
from seaway.web import words as figures
from seaway.web.fragment import Fragment
from seaway.web.visit import Visit
from seaway.web.words import Words

if TYPE_CHECKING:
    from seaway.wire.whatif import SumsOut, TraceSideOut

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
        Number of jobs that would run elsewhere.
    why
        Error message; empty for none.
    replay
        Replay of past jobs with the policy; None for the present fleet.
    """

    policy: str
    sums: SumsOut | None
    moved: int = 0
    why: str = ""
    replay: TraceSideOut | None = None


class Comparison:
    """Panel that compares policies on the current fleet on request."""

    def __init__(self, visit: Visit) -> None:
        self._visit, words = visit, visit.words
        with ui.element("section").classes("panel"):
            with ui.element("div").classes("panel-head"):
                ui.label(words("Effect of each policy")).props("role=heading aria-level=2").classes("panel-title")
                with ui.element("div").classes("panel-tools"):
                    jobs = {
                        "": words("Present jobs"),
                        "1d": words("Jobs of the last day"),
                        "7d": words("Jobs of the last week"),
                    }
                    self._last = ui.select(jobs, label=words("Compared by"), value="")
                    self._last.props("outlined dense options-dense")
                    self._choice = ui.select({}, label=words("Policies"), multiple=True).props(
                        "outlined dense options-dense use-chips"
                    )
                    self._button = ui.button(words("Compare"), on_click=self._compare).props("unelevated no-caps")
            self._progress = ui.label().classes("fine").props("role=status")
            self._fragment = Fragment("versus", words)
        self._show([], [])

    def offer(self, names: Sequence[str], deciding: Iterable[str]) -> None:
        """Set the policies to compare."""
        chosen = list(dict.fromkeys(each for each in (*sorted(deciding), *USUAL) if each in names))[:MOST]
        self._choice.set_options({each: each for each in names}, value=chosen)

    async def _compare(self) -> None:
        """Query policies one by one, and show each result as it arrives."""
        names, last = list[str](self._choice.value or []), str(self._last.value or "")
        found: list[Outcome] = []
        self._button.disable()
        for at, name in enumerate(names):
            self._show(found, names[at:], last)
            found += await self._ask(name, last, first=not at)
        self._show(found, [], last)
        self._button.enable()

    async def _ask(self, name: str, last: str, *, first: bool) -> list[Outcome]:
        """Return the outcome of a policy, after that of the present policies of the queues in the first replay."""
        try:
            call = service.whatif({"policy": name, **({"last": last} if last else {})})
            answer = await self._visit.ask_when_compiled(call, self._progress.set_text)
        except SeawayError as error:
            return [Outcome(name, None, why=str(error))]
        finally:
            self._progress.set_text("")
        if not answer.trace:
            return [Outcome(name, answer.after, len(answer.moved))]
        present = Outcome(self._visit.words("as the queues are set"), None, replay=answer.trace.before)
        return [*([present] if first else []), Outcome(name, None, replay=answer.trace.after)]

    def _show(self, found: Sequence[Outcome], left: Sequence[str], last: str = "") -> None:
        replays = list(replay_bars(found))
        verdict = verdict_of(found, self._visit.words) if last and not left else ""
        self._fragment.show(
            outcomes=[] if last else list(bars(found)), replays=replays if last else [], left=left, verdict=verdict
        )


def bars(found: Sequence[Outcome]) -> Iterator[dict[str, object]]:
    """Yield outcomes with the lengths of their bars in percent of the longest, and marks for the best."""
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


def replay_bars(found: Sequence[Outcome]) -> Iterator[dict[str, object]]:
    """Yield replays with the length of the bar of their mean wait in percent of the longest, and marks for the best."""
    waits = [each.replay.queue_wait_mean_s for each in found if each.replay]
    known = [each for each in waits if each is not None]
    for each in found:
        wait = each.replay.queue_wait_mean_s if each.replay else None
        yield {
            "outcome": each,
            "bar": 100 * wait / max(known) if wait and max(known) else 0,
            "best": wait is not None and wait == min(known),
        }


def verdict_of(found: Sequence[Outcome], words: Words) -> str:
    """Describe the policy that would have been best: most jobs started, then the shortest mean wait; empty without one.

    The first outcome is that of the present policies.
    """
    replayed = [
        (each.policy, each.replay) for each in found if each.replay and each.replay.queue_wait_mean_s is not None
    ]
    if len(replayed) < 2:
        return ""
    (_, present), *others = replayed
    best, replay = min(others, key=lambda each: (-each[1].placed, each[1].queue_wait_mean_s))
    waits = [figures.span(each.queue_wait_mean_s or 0, words.locale) for each in (replay, present)]
    better = (replay.placed, -(replay.queue_wait_mean_s or 0)) > (present.placed, -(present.queue_wait_mean_s or 0))
    if not better:
        return words("None of these policies would have been better: the mean wait was {before}.", before=waits[1])
    return words(
        "{policy} would have been best: a mean wait of {after} instead of {before}.",
        policy=best,
        after=waits[0],
        before=waits[1],
    )
