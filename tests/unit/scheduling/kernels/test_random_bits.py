"""Random bits without a state."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from seaway.scheduling.columns import PLAN_NODE
from seaway.scheduling.engine import decide
from seaway.scheduling.job_queue import JobQueue
from seaway.scheduling.kernels.compile import mixed
from seaway.scheduling.policies.registry import PolicyOptions, make_policy
from seaway.scheduling.snapshot.snapshot import Snapshot
from seaway.testing.plugins import cluster, fleet, gpu, job, node

MASK = 2**64 - 1


def split_mix(bits: int) -> int:
    """Advance SplitMix64 one step, in whole numbers of Python."""
    bits = (bits + 0x9E3779B97F4A7C15) & MASK
    bits = ((bits ^ (bits >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    bits = ((bits ^ (bits >> 27)) * 0x94D049BB133111EB) & MASK
    return bits ^ (bits >> 31)


def chi_squared(numbers: list[int], cells: int) -> float:
    """Return the deviation of numbers from an even distribution over cells."""
    counts = np.bincount(np.array(numbers) % cells, minlength=cells)
    expected = len(numbers) / cells
    return float(((counts - expected) ** 2 / expected).sum())


@pytest.mark.parametrize("numbers", [(0, 0, 0), (1, 2, 3), (2**40, 7, 2**62), (5, 0, 2**31)])
def test_bits_are_those_of_the_published_mixer(numbers: tuple[int, int, int]) -> None:
    """Each number is mixed in by one step of SplitMix64; the result is the highest 63 bits."""
    seed, first, second = numbers
    assert mixed(seed, first, second) == split_mix(split_mix(seed ^ first) ^ second) >> 1
    assert 0 <= mixed(seed, first, second) < 2**63


@pytest.mark.parametrize("cells", [2, 10, 64, 97])
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_neighbours_spread_evenly(axis: int, cells: int) -> None:
    """For each of the three numbers, consecutive values give an even distribution over cells."""
    calls = np.zeros((10_000, 3), np.int64)
    calls[:, axis] = np.arange(10_000)
    numbers = [mixed(*(int(number) for number in call)) for call in calls]
    bound = cells - 1 + 6 * (2 * (cells - 1)) ** 0.5
    assert chi_squared(numbers, cells) < bound
    assert len(set(numbers)) == len(numbers)


def test_neighbours_are_independent() -> None:
    """Half of the bits of consecutive numbers differ."""
    numbers = [mixed(3, number, 0) for number in range(2_000)]
    differing = [bin(one ^ other).count("1") for one, other in pairwise(numbers)]
    assert sum(differing) / len(differing) == pytest.approx(63 / 2, abs=0.5)


@pytest.mark.parametrize("cuts", [(50,), (1, 2, 3, 49, 50), tuple(range(1, 51))])
@pytest.mark.parametrize("level", ["node", "cluster"])
def test_draws_are_the_same_in_any_batch(level: str, cuts: tuple[int, ...]) -> None:
    """The same seed gives the same plan for a queue that is planned at once, in parts or job by job."""
    parts = [cluster(*(node(gpu(share_limit=99)) for _ in range(3))) for _ in range(2)]
    policy = make_policy("random", PolicyOptions(level="node" if level == "node" else "cluster", seed=4))
    jobs = [job(str(number), gpus=1, gpu_memory_mib=1, replicas=1 + number % 2) for number in range(50)]
    whole, cut = Snapshot(fleet(*parts)), Snapshot(fleet(*parts))
    expected = decide(whole, JobQueue(whole, jobs), policy).decisions[:, PLAN_NODE]
    queue = JobQueue(cut, jobs)
    ends = pairwise((0, *cuts))
    found = [decide(cut, queue.part(first, end), policy).decisions[:, PLAN_NODE] for first, end in ends]
    np.testing.assert_array_equal(np.concatenate(found), expected)
