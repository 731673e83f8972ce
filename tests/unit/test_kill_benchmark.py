"""Checks of `script/bench kill`."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from benchmarks.kill.harness import displacements, kills_while_reserved
from seaway.application.records import Event

PREEMPTED, STARTED, ENDED = "preempted", "scheduled", "completed"


def events(*steps: tuple[int, str, str, str]) -> Iterable[Event]:
    """Return events from times, jobs, new states, and winners."""
    for at_ns, job_id, state, winner in steps:
        reason = f"preempted by job {winner} of higher priority" if winner else ""
        yield Event(at_ns, "state", reason, "scheduler", job_id=job_id, state=state)


TWICE = [(1, "a", PREEMPTED, "w"), (1, "b", PREEMPTED, "w"), (2, "c", PREEMPTED, "w")]
AGAIN = [(1, "a", PREEMPTED, "w"), (2, "w", STARTED, ""), (3, "w", PREEMPTED, "x"), (4, "b", PREEMPTED, "w")]
TAKEN = [(1, "a", PREEMPTED, "w"), (2, "shared", STARTED, ""), (3, "shared", PREEMPTED, "w")]
OTHER = [(1, "a", PREEMPTED, "w"), (2, "other", STARTED, ""), (3, "c", PREEMPTED, "w")]
LATE = [(1, "w", ENDED, ""), (2, "a", PREEMPTED, "w")]


@pytest.mark.parametrize(
    ("steps", "count", "again", "found"),
    [
        (TWICE, 3, 0, ["c was displaced for w, which already had a place"]),
        (AGAIN, 3, 0, []),
        (TAKEN, 2, 1, []),
        (OTHER, 2, 0, ["c was displaced for w, which already had a place"]),
        (LATE, 1, 0, ["a was displaced for w, which had ended"]),
    ],
)
def test_jobs_are_displaced_once_for_a_job_that_waits(
    steps: list[tuple[int, str, str, str]], count: int, again: int, found: list[str]
) -> None:
    """All victims of a decision have one time. A second one needs a start of the winner or its rivals in between."""
    assert displacements(events(*steps), {"shared"}) == (count, again, found)


@pytest.mark.parametrize(("steps", "count"), [(TWICE, 2), (AGAIN, 3), (OTHER, 3), (LATE, 1)])
def test_kills_count_between_a_decision_and_the_next_state_of_its_winner(
    steps: list[tuple[int, str, str, str]], count: int
) -> None:
    """One kill follows each time of the events and one precedes them; a start of another job ends no reservation."""
    times = sorted({at_ns for at_ns, *_ in steps})
    assert kills_while_reserved([*events(*steps), *events((9, "w", STARTED, ""))], [0, *times]) == count
