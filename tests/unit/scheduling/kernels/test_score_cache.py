"""Cached scores between decisions."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from seaway.domain.job import Job
from seaway.scheduling.columns import PLAN_NODE
from seaway.scheduling.engine import decide
from seaway.scheduling.job_queue import JobQueue
from seaway.scheduling.kernels import score_cache as rows
from seaway.scheduling.plan import Plan
from seaway.scheduling.policies.registry import PolicyOptions, make_policy
from seaway.scheduling.snapshot import encode
from seaway.scheduling.snapshot.snapshot import Snapshot
from tests.unit.scheduling.kernels.trace_form import fleet_of, trace_job

KINDS = [
    trace_job(cpu=cpu, milli=milli, gpus=gpus)
    for cpu in (100, 200)
    for milli, gpus in ((100, 1), (190, 1), (300, 1), (500, 1), (1_000, 1), (1_000, 2), (0, 0))
]
FLEET = fleet_of([(16_000, 4, "A"), (4_000, 2, "A"), (8_000, 3, "A"), (2_000, 0, "")] * 30)


def jobs(count: int) -> list[Job]:
    """Create a queue of jobs of many kinds, in no order."""
    order = np.random.default_rng(5).integers(len(KINDS), size=count)
    return [KINDS[kind] for kind in order]


def churned(name: str) -> Iterator[Plan]:
    """Plan parts of a queue, and release some placements in between."""
    snapshot = Snapshot(FLEET)
    policy = make_policy(name, PolicyOptions(mix=KINDS))
    queue = JobQueue(snapshot, jobs(600))
    for first in range(0, 600, 40):
        plan = decide(snapshot, queue.part(first, first + 40), policy)
        yield plan
        snapshot.release(plan.decisions.copy(), plan.slices, np.arange(0, len(plan.decisions), 3))


@pytest.mark.parametrize("name", ["fgd", "seaway"])
@pytest.mark.parametrize("slots", [1, 3])
def test_small_cache_decides_like_a_large_cache(name: str, slots: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cache that evicts rows all the time decides like one with a row for every demand."""
    expected = [plan.decisions[:, PLAN_NODE] for plan in churned(name)]
    monkeypatch.setattr(rows, "MAX_ROWS", slots)
    np.testing.assert_equal([plan.decisions[:, PLAN_NODE] for plan in churned(name)], expected)


@pytest.mark.parametrize("name", ["fgd", "seaway"])
@pytest.mark.parametrize("length", [1, 2, 7, 64])
def test_overrun_log_decides_the_same(name: str, length: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A row that is older than the log is computed again."""
    expected = [plan.decisions[:, PLAN_NODE] for plan in churned(name)]
    monkeypatch.setattr(encode, "LOG_LENGTH", length)
    np.testing.assert_equal([plan.decisions[:, PLAN_NODE] for plan in churned(name)], expected)


@pytest.mark.parametrize("name", ["fgd", "seaway"])
def test_later_demands_get_rows(name: str) -> None:
    """A cache grows with the demands of a snapshot."""
    snapshot, policy = Snapshot(FLEET), make_policy(name, PolicyOptions(mix=KINDS[:1]))
    for milli in range(10, 500, 10):
        late = JobQueue(snapshot, [trace_job(milli=milli)])
        twin = snapshot.copy()
        plan = decide(snapshot, late, policy)
        expected = decide(twin, late, make_policy(name, PolicyOptions(mix=KINDS[:1])))
        np.testing.assert_array_equal(plan.decisions, expected.decisions)
