from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from importlib.util import find_spec
from itertools import combinations, product
from pathlib import Path
from typing import Any

import pytest

from seaway.domain.cluster import Fleet
from seaway.domain.errors import InvariantError, RejectedError
from seaway.domain.job import Job
from seaway.domain.network import Link
from seaway.domain.node import Node
from seaway.domain.placement import Placement
from seaway.learning.instances.instance import Instance, read_instances
from seaway.learning.packing.packing import Assignment, PackingState, Progress, replayed
from seaway.learning.packing.search import Search, best_packing
from seaway.testing.plugins import cluster, fleet, gpu, job, node

pytestmark = pytest.mark.skipif(find_spec("ortools") is None, reason="needs seaway[learn]")

SHARED = Path(__file__).resolve().parents[5] / "shared"


def small(**figures: Any) -> Job:  # noqa: ANN401  # what `job` takes
    """Return a job with a slice of a device of 10 GB."""
    defaults = {"gpus": 1, "gpu_memory_mib": 1_000, "gpu_milli": 100}
    return job("job", **{**defaults, **figures})


def ten_gb(devices: int = 1, cpu_milli: int = 64_000) -> Node:
    """Make a node whose devices have 10 GB each."""
    return node(*(gpu(memory_mib=10_000) for _ in range(devices)), cpu_milli=cpu_milli)


def named(jobs: Sequence[Job], place: Fleet) -> Instance:
    """Make an instance of jobs with names of their own."""
    return Instance("small", place, tuple(replace(each, name=f"job-{at}") for at, each in enumerate(jobs)))


def test_all_known_fits_more_than_one_by_one() -> None:
    """Two large jobs that come first are left out where six small ones fit in their place, and no more can."""
    jobs = [small(gpu_memory_mib=9_000), small(gpu_memory_mib=9_000)]
    jobs += [small(gpu_memory_mib=3_300) for _ in range(6)]
    packing = best_packing(named(jobs, fleet(ten_gb(2))), seconds=1)
    assert {each.job for each in packing.placed} == {f"job-{at}" for at in range(2, 8)}
    assert packing.proven


def test_small_instances_are_proven() -> None:
    """As many are in as in the best of all possible packings, counted one by one, and that is proven."""
    place = fleet(ten_gb(2, cpu_milli=9_000), ten_gb(1, cpu_milli=6_000))
    figures = [(6, 7, 1), (5, 2, 2), (4, 4, 1), (7, 1, 3), (3, 6, 4), (4, 5, 1), (6, 3, 5)]
    jobs = [
        small(gpu_memory_mib=1_000 * memory, gpu_milli=100 * cores, cpu_milli=1_000 * cpu, gpus=1 + (at % 4 == 1))
        for at, (memory, cores, cpu) in enumerate(figures)
    ]
    packing = best_packing(named(jobs, place), seconds=2)
    assert packing.proven
    assert packing.count == by_hand(jobs)


def by_hand(jobs: Sequence[Job]) -> int:
    """Try every way to put jobs on the two devices of a node of 9 cores and the one of another of 6."""
    best = 0
    for where in product((None, (0,), (1,), (2,), (0, 1)), repeat=len(jobs)):
        memory, cores, cpu = [10_000] * 3, [1_000] * 3, [9_000, 6_000]
        for each, devices in zip(jobs, where, strict=True):
            request = each.demand.request
            if devices is None:
                continue
            if len(devices) != request.gpus:
                break
            cpu[devices[0] // 2] -= request.cpu_milli
            for d in devices:
                memory[d] -= request.gpu_memory_mib
                cores[d] -= request.gpu_milli
        else:
            if min(*memory, *cores, *cpu) >= 0:
                best = max(best, sum(devices is not None for devices in where))
    return best


def test_bandwidth_is_shared() -> None:
    """Of jobs that each take 400 of a link's 1,000 Mbit/s two are in, though the cluster has room for more."""
    place = fleet(
        cluster(ten_gb(4), gateway="gw-1"),
        links=[Link("user", "gw-1", 1_000_000, bandwidth_mbps=1_000)],
    )
    jobs = [small(gateway="user", min_bandwidth_mbps=400) for _ in range(5)]
    packing = best_packing(named(jobs, place), seconds=1)
    assert (packing.count, packing.bound) == (2, 2)


def test_a_job_has_each_device_once() -> None:
    """Jobs of two devices never have two slices of one: of three devices one stays empty."""
    jobs = [small(gpus=2, gpu_memory_mib=6_000) for _ in range(2)]
    packing = best_packing(named(jobs, fleet(ten_gb(3))), seconds=1)
    assert (packing.count, packing.proven) == (1, True)
    (placed,) = packing.placed
    assert len({each.uuid for each in placed.slices}) == 2


def test_jobs_without_cores_go_first() -> None:
    """A device without free cores accepts no other job; jobs without cores are placed there before."""
    jobs = [small(gpu_milli=600), small(gpu_milli=400), small(gpu_milli=0)]
    packing = best_packing(named(jobs, fleet(ten_gb())), seconds=1)
    assert packing.count == 3
    assert packing.placed[0].job == "job-2"


def test_problems_that_are_not_additive_are_searched() -> None:
    """Jobs that want a device for themselves are packed too."""
    jobs = [small(exclusive=True), *(small(gpu_memory_mib=5_000) for _ in range(3))]
    packing = best_packing(named(jobs, fleet(ten_gb(2))), seconds=1)
    assert packing.count >= 3


def test_same_seed_same_packing() -> None:
    """With one worker, the same seed gives the same packing."""
    jobs = [small(gpu_memory_mib=1_000 + 370 * at % 5_000, gpu_milli=100 + 130 * at % 700) for at in range(20)]
    problem = named(jobs, fleet(ten_gb(2), ten_gb(1)))
    assert best_packing(problem, 1, seed=3) == best_packing(problem, 1, seed=3)


def test_effort_is_counted_in_tries() -> None:
    """Twice the effort is twice as many tries, however long they take."""
    jobs = [small(gpu_memory_mib=1_000 + 370 * at % 5_000, gpu_milli=100 + 130 * at % 700) for at in range(40)]
    problem = named(jobs, fleet(ten_gb(2), ten_gb(1)))

    def tries(effort_s: float) -> int:
        state = Counted(problem)
        Search(state, seed=0).run(effort_s, len(jobs) + 1, lambda _: None)
        return state.tries

    assert tries(0.2) == tries(0.2)
    assert tries(0.4) == pytest.approx(2 * tries(0.2), rel=0.1)


class Counted(PackingState):
    """State that counts calls of `add`."""

    tries = 0

    def add(self, order: Sequence[int]) -> list[int]:
        """Count, and pack."""
        self.tries += 1
        return super().add(order)


def test_reported_on_the_way() -> None:
    """The listener gets the increasing number of jobs, and the end."""
    jobs = [small(gpu_memory_mib=1_000 + 370 * at % 5_000, gpu_milli=100 + 130 * at % 700) for at in range(20)]
    steps: list[Progress] = []
    packing = best_packing(named(jobs, fleet(ten_gb(2), ten_gb(1))), 1, listener=steps.append)
    assert [step.count for step in steps] == sorted(step.count for step in steps)
    assert steps[-1] == Progress(packing.count, packing.bound, 1.0)


def test_assignments_that_do_not_fit_are_rejected() -> None:
    """The engine rejects a second job on an allocated device."""
    jobs = [small(gpu_memory_mib=6_000), small(gpu_memory_mib=6_000)]
    with pytest.raises(InvariantError, match="job-1"):
        replayed(named(jobs, fleet(ten_gb())), {0: Assignment(0, (0,)), 1: Assignment(0, (0,))}, bound=2)


def test_jobs_of_several_replicas_are_rejected() -> None:
    """The error names the job with several replicas."""
    with pytest.raises(RejectedError, match="job-0"):
        best_packing(named([job(replicas=2)], fleet(node())), seconds=1)


@pytest.mark.shared
@pytest.mark.slow
def test_benchmark_is_packed_well() -> None:
    """Of 220 jobs that request more than the capacity, 195 are placed soon, and no device or node is over capacity."""
    (instance,) = read_instances([SHARED / "benchmarks" / "placement-16x4-seed3"])
    packing = best_packing(instance, seconds=2)
    assert 195 <= packing.count <= packing.bound <= 203
    assert not over_capacity(instance, packing.placed)


def over_capacity(instance: Instance, placed: Sequence[Placement]) -> list[str]:
    """Return nodes and devices over capacity, computed without the engine."""
    asked = {each.name: each.demand.request for each in instance.jobs}
    assert len({each.job for each in placed}) == len(placed)
    cpu, memory = defaultdict[str, int](int), defaultdict[str, int](int)
    device_memory, cores = defaultdict[str, int](int), defaultdict[str, int](int)
    for each in placed:
        cpu[each.node] += asked[each.job].cpu_milli
        memory[each.node] += asked[each.job].memory_mib
        assert len(each.slices) == asked[each.job].gpus
        assert all(first.uuid != second.uuid for first, second in combinations(each.slices, 2))
        for held in each.slices:
            device_memory[held.uuid] += asked[each.job].gpu_memory_mib
            cores[held.uuid] += asked[each.job].gpu_milli
    over = [n.name for _, n in instance.fleet.nodes if cpu[n.name] > n.cpu_milli or memory[n.name] > n.memory_mib]
    return over + [
        d.uuid for d in instance.fleet.devices if device_memory[d.uuid] > d.memory_mib or cores[d.uuid] > d.core_milli
    ]
