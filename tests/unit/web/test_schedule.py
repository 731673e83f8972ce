"""The time axis of running and planned jobs."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest

from seaway.web.pages.queues.schedule import EDGE, MAX_MARKS, SPANS_S, Axis, bars_of, drawing
from seaway.wire.queues import ScheduledJobOut, ScheduleGroupOut, ScheduleOut

NOW = datetime(2026, 11, 21, 10, 7, tzinfo=UTC)


def at(minutes: float) -> str:
    """Return a time, in minutes from now."""
    return (NOW + timedelta(minutes=minutes)).isoformat()


def job(name: str, start: float, end: float | None, *, planned: bool = False) -> ScheduledJobOut:
    """Make a job; its start and end are minutes from now."""
    return ScheduledJobOut(
        id=name,
        name=name,
        tenant="default",
        queue="default",
        clusters=["a"],
        planned=planned,
        start=at(start),
        end=None if end is None else at(end),
        gpus=1,
    )


def test_bars_are_cut_at_the_edges_and_share_lanes() -> None:
    """A job of before the range starts at its edge, one without an end lasts to the other, and lanes are shared.

    A name has room up to the next bar.
    """
    jobs = [job("a", -600, 15), job("b", -5, None), job("c", 15, 600, planned=True)]
    bars = {bar.job.name: (bar.left, bar.right, bar.lane, bar.kinds) for bar in bars_of(jobs, Axis(NOW, 3600))}
    assert bars == {
        "a": (0, 50, 0, "bar-running"),
        "b": (pytest.approx(100 / 6), 100, 1, "bar-running bar-open"),
        "c": (50, 100, 0, "bar-planned"),
    }


def test_bars_of_a_lane_do_not_overlap() -> None:
    """Whatever the starts and ends, at most one bar of a lane is at each position."""
    jobs = [job(str(number), number * 7 % 40, number * 7 % 40 + 1 + number % 9) for number in range(60)]
    bars = bars_of(jobs, Axis(NOW, 3600))
    for lane in {bar.lane for bar in bars}:
        line = sorted((bar.left, bar.right, bar.room) for bar in bars if bar.lane == lane)
        assert all(end <= start == room for (_, end, room), (start, *_) in pairwise(line))


@pytest.mark.parametrize("span_s", SPANS_S.values())
def test_marks_are_at_round_times(span_s: int) -> None:
    """An axis has 4 to 9 marks within it. Midnight is marked by its date, and no label is cut off at an edge."""
    marks = list(Axis(NOW, span_s).marks())
    assert 4 <= len(marks) <= MAX_MARKS + 1
    assert all(0 <= position <= 100 for position, _ in marks)
    assert all(label.endswith("0") or "-" in label for position, label in marks if label)
    assert all(EDGE < position < 100 - EDGE for position, label in marks if label)
    assert "00:00" not in {label for _, label in marks}


def test_groups_say_how_many_bars_are_left_out() -> None:
    """Bars beyond the limit are counted for the group and in total."""
    group = ScheduleGroupOut(name="a", running=9000, planned=1000, jobs=[job("a", 0, None)])
    drawn = drawing(ScheduleOut(at=at(0), groups=[group, group], unplanned=7), "cluster", "1h")
    assert (drawn["left"], drawn["groups"][0]["left"], drawn["unplanned"]) == (2 * 9999, 9999, 7)
