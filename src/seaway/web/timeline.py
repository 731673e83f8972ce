"""What a job has been through, as steps with how long each took."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from seaway.domain.lifecycle import JobState

if TYPE_CHECKING:
    from seaway.wire.events import EventOut

LEAST_PERCENT = 1.5
"""How wide a step is drawn at the least, of all of them."""


@dataclass(frozen=True, slots=True)
class Step:
    """A job in one state.

    Attributes
    ----------
    at
        Since when, RFC 3339.
    reason, actor
        Why, and who did it.
    lasted_s
        How long; None for a state that a job stays in for good.
    percent
        How wide it is drawn, of all steps.
    now
        Whether the job is in it.
    """

    state: str
    at: str
    reason: str
    actor: str
    attempt: int
    lasted_s: float | None
    percent: float
    now: bool


def steps(events: Sequence[EventOut], now: datetime | None = None) -> list[Step]:
    """Return the steps of a job, oldest first.

    Parameters
    ----------
    events
        What happened to it, in order.
    now
        When the last step is looked at; None for this moment.
    """
    turns = [each for each in events if each.kind == "state" and each.state]
    moments = [datetime.fromisoformat(each.at) for each in turns]
    ends = [*moments, now or datetime.now(UTC)][1:]
    lasted = [max((end - start).total_seconds(), 0.0) for start, end in zip(moments, ends, strict=True)]
    if turns and JobState(turns[-1].state).final:
        lasted[-1] = 0.0
    total = sum(lasted) or 1.0
    widths = [max(100 * each / total, LEAST_PERCENT) for each in lasted]
    last = len(turns) - 1
    return [
        Step(
            turn.state,
            turn.at,
            turn.reason,
            turn.actor,
            turn.attempt,
            None if at == last and JobState(turn.state).final else lasted[at],
            100 * widths[at] / sum(widths),
            at == last,
        )
        for at, turn in enumerate(turns)
    ]
