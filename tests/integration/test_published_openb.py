"""The published runs of the openb trace, replayed in their own orders, have the published results."""

import csv
from functools import cache, partial
from pathlib import Path

import pytest

from seaway.scheduling.policies.registry import PolicyOptions, make_policy
from seaway.simulation.outcome import Outcome
from seaway.simulation.replay import arrivals_until_requested, replay
from seaway.simulation.trace import Trace, TraceFiles, read_trace

pytestmark = [pytest.mark.shared, pytest.mark.slow]

ORDERS = [
    "default_42",
    "default_43",
    "default_44",
    "multigpu20_42",
    "gpushare40_42",
    "gpuspec10_42",
    "cpu050_42",
]
PUBLISHED_NAMES = {"bestfit": "BestFit", "fgd": "FGD", "random": "Random"}

WITHIN = 0.05
"""Allowed difference of a policy to the published run of its order, percent points."""

RANDOM_WITHIN = 0.6
"""Allowed difference of the mean of ten seeds, percent points: the published seed is not known."""


@cache
def trace(shared: Path, order: str) -> Trace:
    """Read the openb trace in the order of a published run."""
    openb = shared / "traces" / "openb"
    variant = order.rpartition("_")[0]
    return read_trace(
        TraceFiles(
            nodes=openb / "openb_node_list_gpu_node.csv",
            jobs=openb / f"openb_pod_list_{variant}.csv",
            node_order=openb / "orders" / f"nodes_{order}.csv",
            job_order=openb / "orders" / f"pods_{order}.csv",
        )
    )


def published(shared: Path, policy: str, order: str) -> dict[str, float]:
    """Return the published allocation of a run by arrived share, percent."""
    variant, _, seed = order.rpartition("_")
    with (shared / "traces" / "openb" / "published.csv").open() as file:
        return {
            row["arrived_pct"]: float(row["gpu_allocated_pct"])
            for row in csv.DictReader(file)
            if (row["trace"], row["policy"], row["seed"]) == (variant, PUBLISHED_NAMES[policy], seed)
        }


def outcome(trace: Trace, policy: str, seed: int = 0) -> Outcome:
    """Replay a trace until 130 % has been requested."""
    make = partial(make_policy, policy, PolicyOptions(seed=seed, mix=trace.mix))
    return replay(trace.fleet, arrivals_until_requested(trace.fleet, trace.jobs, 1.3), make)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("policy", ["bestfit", "fgd"])
def test_a_published_policy_allocates_what_was_published(shared: Path, policy: str, order: str) -> None:
    """Both bestfit and fgd meet each order's published allocation at 100 % and at 130 % arrived."""
    expected = published(shared, policy, order)
    shares = outcome(trace(shared, order), policy).shares
    assert shares.gpu_allocated_pct_at_100 == pytest.approx(expected["100"], abs=WITHIN)
    assert shares.gpu_allocated_pct == pytest.approx(expected["130"], abs=WITHIN)


@pytest.mark.parametrize("order", ORDERS)
def test_random_allocates_on_average_what_was_published(shared: Path, order: str) -> None:
    """The mean of ten seeds of random meets each order's published allocation at 100 % and at 130 %."""
    expected = published(shared, "random", order)
    shares = [outcome(trace(shared, order), "random", seed).shares for seed in range(10)]
    at_100 = [each.gpu_allocated_pct_at_100 or 0.0 for each in shares]
    at_130 = [each.gpu_allocated_pct or 0.0 for each in shares]
    assert sum(at_100) / 10 == pytest.approx(expected["100"], abs=RANDOM_WITHIN)
    assert sum(at_130) / 10 == pytest.approx(expected["130"], abs=RANDOM_WITHIN)
