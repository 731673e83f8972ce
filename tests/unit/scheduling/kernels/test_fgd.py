"""Fragmentation gradient descent against the published algorithm, on fleets in the form of its trace."""

from __future__ import annotations

import pytest
from hypothesis import given

from seaway.domain.job import Job
from seaway.scheduling.columns import (
    DEVICE_CORE_FREE,
    NODE_CPU_FREE,
    NODE_DEVICE_END,
    NODE_DEVICE_FIRST,
    SLICE_DEVICE,
)
from seaway.scheduling.engine import decide
from seaway.scheduling.job_queue import JobQueue
from seaway.scheduling.policies.fgd import Fgd
from seaway.scheduling.policies.job_mix import typical_jobs
from seaway.scheduling.policies.registry import PolicyOptions, make_policy
from seaway.scheduling.snapshot.snapshot import Snapshot
from seaway.testing.plugins import fleet, gpu, job, node
from tests.unit.scheduling.kernels import fgd_twin
from tests.unit.scheduling.kernels.fgd_twin import Demand, Machine
from tests.unit.scheduling.kernels.trace_form import Shape, fleet_of, trace_job, trace_jobs, trace_nodes
from tests.unit.scheduling.requesting import cycle_for


def machine(snapshot: Snapshot, n: int) -> Machine:
    """Convert a node of a snapshot."""
    arrays = snapshot.arrays
    first, end = arrays.nodes[[NODE_DEVICE_FIRST, NODE_DEVICE_END], n]
    free = tuple(int(each) for each in arrays.devices[DEVICE_CORE_FREE, first:end])
    model = snapshot.devices[first].model if free else ""
    return Machine(int(arrays.nodes[NODE_CPU_FREE, n]), free, model)


def partly_used(nodes: list[Shape], running: list[Job]) -> Snapshot:
    """Return a fleet on which some jobs run, placed at random."""
    snapshot = Snapshot(fleet_of(nodes))
    decide(snapshot, JobQueue(snapshot, running), make_policy("random", PolicyOptions(seed=len(running))))
    return snapshot


@given(nodes=trace_nodes(), mix=trace_jobs(1, 20), running=trace_jobs(0, 8), asked=trace_jobs(1, 1))
def test_scores_equal_the_published_algorithm(
    nodes: list[Shape], mix: list[Job], running: list[Job], asked: list[Job]
) -> None:
    """A node scores trunc(100 sigmoid(gain / 1000)) on its best devices, and -1 where the job does not fit."""
    snapshot, request = partly_used(nodes, running), Demand.of(asked[0])
    typical = fgd_twin.typical(mix)
    for n, score in enumerate(Fgd(mix).score(cycle_for(snapshot, asked[0]))):
        node = machine(snapshot, n)
        if not node.fits(request):
            assert score == -1
            continue
        exact = fgd_twin.gain(node, request, fgd_twin.best_devices(node, request, typical), typical)
        assert score == int(exact) or (fgd_twin.near_whole(exact) and score in {round(exact), round(exact) - 1})


@given(nodes=trace_nodes(), mix=trace_jobs(1, 20), running=trace_jobs(0, 8), asked=trace_jobs(1, 1))
def test_nodes_and_devices_equal_the_published_algorithm(
    nodes: list[Shape], mix: list[Job], running: list[Job], asked: list[Job]
) -> None:
    """The result is the first of the best nodes with the first of its best devices, or its lowest idle devices."""
    snapshot, request = partly_used(nodes, running), Demand.of(asked[0])
    typical = fgd_twin.typical(mix)
    fitting = {n: node for n in range(len(nodes)) if (node := machine(snapshot, n)).fits(request)}
    plan = decide(snapshot, JobQueue(snapshot, asked), make_policy("fgd", PolicyOptions(mix=mix)))
    assert bool(fitting) == bool(plan.placed[0])
    choices = {n: fgd_twin.best_devices(node, request, typical) for n, node in fitting.items()}
    each_alone = [[d] for d in range(4)] if request.gpus == 1 else []
    exact = {n: fgd_twin.gain(node, request, choices[n], typical) for n, node in fitting.items()}
    alone = [fgd_twin.gain(node, request, d, typical) for node in fitting.values() for d in each_alone]
    if not fitting or any(fgd_twin.near_whole(score) for score in [*exact.values(), *alone]):
        return  # rounding decides
    best = max(fitting, key=lambda n: (int(exact[n]), -n))
    first = int(snapshot.arrays.nodes[NODE_DEVICE_FIRST, best])
    assert plan.slices[:, SLICE_DEVICE].tolist() == [first + d for d in choices[best]]
    assert next(plan.placements()).node == f"node-{best}"


@pytest.mark.parametrize("milli", [100, 500, 900])
def test_best_device_of_different_sizes_counts(milli: int) -> None:
    """A node scores by its best device, even after one with an equal free fraction."""
    mix = [job("slice", gpus=1, gpu_memory_mib=9_000, gpu_milli=100, replicas=9), job("whole", gpus=1)]
    asked = job("asked", gpus=1, gpu_memory_mib=17_000, gpu_milli=milli)
    snapshot = Snapshot(fleet(node(gpu(memory_mib=20_000), gpu(), gpu(memory_mib=40_000))))
    cycle = cycle_for(snapshot, asked)
    assert Fgd(mix).score(cycle)[0] == max(-Fgd(mix).device_keys(cycle, 0))


@given(mix=trace_jobs(0, 60))
def test_typical_jobs_equal_the_published_algorithm(mix: list[Job]) -> None:
    """The most frequent kinds of job, larger ones first among equals, until 95 % are covered."""
    found = typical_jobs(mix)
    total = sum(each.count for each in found)
    expected = fgd_twin.typical(mix)
    assert [Demand.of(Job("", each.demand)) for each in found] == [asked for asked, _ in expected]
    assert [each.count / total for each in found] == pytest.approx([share for _, share in expected])


def test_typical_jobs_ignore_node_memory() -> None:
    """Jobs that differ only in memory of the node are of one kind; each replica counts."""
    small, large = trace_job(memory_mib=1), trace_job(memory_mib=2, replicas=3)
    assert [each.count for each in typical_jobs([small, large])] == [4]


def test_feasible_nodes_score_equally_without_a_mix() -> None:
    """Without expected jobs there is no fragmentation."""
    snapshot = Snapshot(fleet_of([(4_000, 2, "A"), (4_000, 1, "A"), (4_000, 0, "")]))
    first, second, unfit = Fgd([]).score(cycle_for(snapshot, trace_job()))
    assert first == second > unfit == -1
