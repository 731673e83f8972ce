from __future__ import annotations

import pytest

from seaway.bootstrap.demo import run_demo
from seaway.domain.lifecycle import JobState
from seaway.simulation.demo import demo_fleet


@pytest.mark.slow
def test_a_demo_ends_and_can_be_repeated() -> None:
    """Every job of a demo ends well, some had to wait, and the same seed gives the same result."""
    told: list[tuple[int, int]] = []
    first, second = (run_demo(demo_fleet(), 60, lambda done, count: told.append((done, count)), 5) for _ in range(2))
    assert {job.state for job in first.jobs} == {JobState.COMPLETED}
    assert len(first.jobs) == 60
    assert told[-1] == (60, 60)
    assert 0 < first.busiest <= 1
    assert first.lasted_s > 60
    assert first.placed is not None
    assert first.events >= 6 * 60
    assert [job.id for job in first.jobs] == [job.id for job in second.jobs]
    assert [job.nodes for job in first.jobs] == [job.nodes for job in second.jobs]
    assert (first.lasted_s, first.busiest, first.events) == (second.lasted_s, second.busiest, second.events)
