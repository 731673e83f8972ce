"""Small kernels against the NumPy code that they replace."""

from __future__ import annotations

import numpy as np
import pytest

from seaway.scheduling.columns import DEMAND_GPUS, DEMAND_ROWS, JOB_DEMAND, JOB_REPLICAS, JOB_ROWS
from seaway.scheduling.kernels.decide import plan_size
from seaway.scheduling.kernels.queries import best_of
from seaway.scheduling.policies.pilot.shortlist import score_listed

STEPS, FARTHEST = 1e6, 1e3


@pytest.mark.parametrize("spread", [1e-6, 1.0, 1e4])
def test_listed_nodes_keep_their_scores_and_others_get_zero(spread: float) -> None:
    """The lowest of the list gets 1, others their distance in steps, up to a limit; unlisted nodes get 0."""
    random = np.random.default_rng(3)
    given = (spread * random.normal(size=9)).astype(np.float32)
    nodes, scores = random.permutation(20)[:9], np.zeros(20, np.int64)
    best, total = score_listed(given, nodes, STEPS, FARTHEST, scores)
    wide = given.astype(np.float64)
    steps = np.rint(np.maximum(wide - wide.max(), -FARTHEST) * STEPS).astype(np.int64)
    expected = np.zeros(20, np.int64)
    expected[nodes] = 1 + steps - steps.min()
    np.testing.assert_array_equal(scores, expected)
    assert best == wide.max()
    assert total == pytest.approx(wide.sum())


@pytest.mark.parametrize("wrong", [np.nan, np.inf, -np.inf])
def test_nan_makes_the_sum_not_finite(wrong: float) -> None:
    """Nothing is scored."""
    scores = np.zeros(3, np.int64)
    _, total = score_listed(np.array([1, wrong], np.float32), np.array([2, 0]), STEPS, FARTHEST, scores)
    assert not np.isfinite(total)
    assert not scores.any()


def test_best_is_the_first_feasible_node_with_the_highest_score() -> None:
    """Infeasible nodes never count; without a feasible node there is no best."""
    scores = np.array([9, -5, 3, 3, np.iinfo(np.int64).min])
    assert best_of(scores, np.array([False, True, True, True, True])) == 2
    assert best_of(scores, np.array([False, True, False, False, True])) == 1
    assert best_of(scores, np.array([False, False, False, False, True])) == 4
    assert best_of(scores, np.zeros(5, np.bool_)) == -1


def test_a_plan_has_room_for_every_replica_and_slice() -> None:
    """Replicas add up, and slices are the devices of each."""
    amounts = np.zeros((2, DEMAND_ROWS), np.int64)
    amounts[:, DEMAND_GPUS] = 0, 3
    jobs = np.zeros((3, JOB_ROWS), np.int64)
    jobs[:, JOB_REPLICAS], jobs[:, JOB_DEMAND] = (1, 2, 4), (0, 1, 1)
    assert plan_size(amounts, jobs) == (7, 18)
    assert plan_size(amounts, jobs[:0]) == (0, 0)
