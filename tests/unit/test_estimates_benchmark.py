"""The benchmark of expected starts compares them with real ones."""

from __future__ import annotations

import pytest

from benchmarks.queues.estimates import PROCESSORS, Case, Line, Replay
from seaway.domain.queues import Backfill, Order


def replayed(durations: str) -> Replay:
    """Replay jobs of the whole fleet that arrive one after the other."""
    lines = [Line(at, 100, PROCESSORS, "u1") for at in range(3)]
    replay = Replay(Case(Order.FIFO, Backfill.EASY, durations), lines, 0)
    replay.run()
    return replay


def test_starts_are_as_expected_if_durations_are_exact() -> None:
    """No job starts earlier or later than first expected, except for the time of a round."""
    replay = replayed("exact")
    assert replay.errors_s() == pytest.approx([0, 0], abs=5)
    assert replay.wait_mean_s() == pytest.approx(100, abs=5)
    assert sum(replay.plane.overview.start_errors().counts) == 2


def test_jobs_with_time_limits_start_earlier_than_expected() -> None:
    """The job behind two others is off by the sum of what they do not use of their limits."""
    first_s, second_s = replayed("limits").errors_s()
    assert second_s < first_s < -5


def test_starts_behind_jobs_without_a_duration_are_unknown() -> None:
    """Learned durations need a run that has ended."""
    assert replayed("learned").unknown == 2
