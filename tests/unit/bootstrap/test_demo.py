from __future__ import annotations

import pytest

from seaway.bootstrap.demo import run_demo
from seaway.domain.job_state import JobState
from seaway.simulation.demo import demo_fleet
from seaway.testing.plugins import fleet, gpu, node


@pytest.mark.slow
def test_a_demo_ends_and_can_be_repeated() -> None:
    """Every job of a demo succeeds, some had to wait, and the same seed gives the same result."""
    reported: list[tuple[int, int]] = []
    first, second = (
        run_demo(demo_fleet(), 60, lambda done, count: reported.append((done, count)), 5) for _ in range(2)
    )
    assert {job.state for job in first.jobs} == {JobState.COMPLETED}
    assert len(first.jobs) == 60
    assert first.refused == {}
    assert reported[-1] == (60, 60)
    assert 0 < first.busiest <= 1
    assert first.lasted_s > 60
    assert first.placed is not None
    assert first.events >= 6 * 60
    assert [job.id for job in first.jobs] == [job.id for job in second.jobs]
    assert [job.nodes for job in first.jobs] == [job.nodes for job in second.jobs]
    assert (first.lasted_s, first.busiest, first.events) == (second.lasted_s, second.busiest, second.events)


@pytest.mark.slow
def test_a_demo_ends_on_a_fleet_that_cannot_hold_every_job() -> None:
    """Admission rejects jobs that never fit, with a reason; all others run to completion."""
    small = [gpu(model="NVIDIA T4", memory_mib=15_360)] * 4
    result = run_demo(fleet(node(*small), node(*small)), 30, lambda *_: None)
    assert {job.state for job in result.jobs} == {JobState.COMPLETED}
    assert result.jobs
    assert result.refused
    assert len(result.jobs) + len(result.refused) == 30
    reasons = ("no cluster can run this job, even when idle", "no GPU is of the model")
    assert all(any(each in reason for each in reasons) for reason in result.refused.values())


def test_a_demo_without_a_job_that_fits_ends_at_once() -> None:
    """On a fleet that can hold none of them every job is turned away, and that is the result."""
    result = run_demo(fleet(node(cpu_milli=1)), 5, lambda *_: None)
    assert (len(result.refused), list(result.jobs), result.busiest, result.lasted_s) == (5, [], 0, 0)
