"""The fluid problem on fleets with solutions by hand."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings

from seaway.domain.job import Job
from seaway.scheduling.columns import CLUSTER_GPU_CORE, CLUSTER_GPU_CORE_FREE
from seaway.scheduling.engine import decide
from seaway.scheduling.job_queue import JobQueue
from seaway.scheduling.policies.job_mix import typical_jobs
from seaway.scheduling.policies.registry import PolicyOptions, make_policy
from seaway.scheduling.snapshot.snapshot import Snapshot
from seaway.simulation.bound import FluidProblem, FluidSolution, fluid_problem, solve_fluid
from seaway.testing.plugins import fleet, gpu, job, node
from tests.unit.scheduling.kernels.trace_form import Shape, fleet_of, trace_job, trace_jobs, trace_nodes


def solved(nodes: list[Shape], *jobs: Job, scale: float = 1.0) -> tuple[FluidProblem, FluidSolution]:
    """Solve the problem of a fleet in the form of the published trace."""
    problem = fluid_problem(Snapshot(fleet_of(nodes)), typical_jobs(jobs, share=1.0), scale)
    return problem, solve_fluid(problem)


def value(nodes: list[Shape], *jobs: Job, scale: float = 1.0) -> float:
    """Return the milli in use at the optimum."""
    return solved(nodes, *jobs, scale=scale)[1].value


@pytest.mark.parametrize(
    ("nodes", "jobs", "milli"),
    [
        ([(9_000, 2, "A")], [trace_job(milli=600, replicas=3)], 1_200),
        ([(9_000, 2, "A")], [trace_job(milli=600, replicas=2), trace_job(milli=400, replicas=2)], 2_000),
        ([(9_000, 1, "A")], [trace_job(milli=600), trace_job(milli=500), trace_job(milli=300)], 950),
        ([(3_000, 1, "A")], [trace_job(cpu=2_000, milli=500, replicas=2)], 750),
        ([(9_000, 1, "A")] * 2, [trace_job(milli=1_000, gpus=2)], 0),
        ([(9_000, 3, "A")], [trace_job(milli=1_000, gpus=2, replicas=9)], 3_000),
        ([(9_000, 1, "A"), (9_000, 1, "B")], [trace_job(milli=700, replicas=9, models={"B"})], 700),
        ([(9_000, 2, "A")], [trace_job(milli=0, gpus=0)], 0),
        ([(9_000, 0, "")], [trace_job()], 0),
        ([(9_000, 2, "A")], [], 0),
    ],
    ids=[
        "one large piece a device",
        "pieces that fill devices",
        "fractions of two patterns",
        "cut by CPU",
        "no node with two devices",
        "shares of a job of two devices",
        "bound to a model",
        "no GPU asked for",
        "no GPU there",
        "no job",
    ],
)
def test_value_equals_the_solution_by_hand(nodes: list[Shape], jobs: list[Job], milli: float) -> None:
    """The optimum is the milli that divisible jobs could use, on devices by whole patterns."""
    assert value(nodes, *jobs) == pytest.approx(milli)


def test_counts_are_scaled() -> None:
    """A mix represents as many jobs as its scale."""
    assert value([(9_000, 4, "A")], trace_job(milli=1_000), scale=2.5) == pytest.approx(2_500)


def test_memory_demand_does_not_loosen_the_bound() -> None:
    """The value counts cores, for any memory demand."""
    snapshot = Snapshot(fleet(node(gpu(memory_mib=1_000))))
    kinds = typical_jobs([job(gpus=1, gpu_milli=100, gpu_memory_mib=900, replicas=20)], share=1.0)
    assert solve_fluid(fluid_problem(snapshot, kinds)).value == pytest.approx(1_000)


def test_prices_add_up_to_the_value() -> None:
    """The marginal prices of jobs, CPU and devices add up to the value, and none is below 0."""
    jobs = [trace_job(cpu=2_000, milli=500, replicas=3), trace_job(milli=400, replicas=4), trace_job(milli=1_000)]
    problem, found = solved([(6_000, 2, "A"), (2_000, 1, "B")], *jobs)
    cpu = problem.group_nodes * problem.group_cpu
    devices = problem.group_nodes * problem.group_devices
    priced = found.job_price @ problem.count + found.cpu_price @ cpu + found.device_price @ devices
    assert priced == pytest.approx(found.value)
    assert np.concatenate([found.job_price, found.cpu_price, found.device_price]).min() >= -1e-9


@pytest.mark.parametrize("name", ["bestfit", "fgd", "seaway", "random"])
@settings(max_examples=settings().max_examples // 2)
@given(nodes=trace_nodes(), jobs=trace_jobs(1, 25))
def test_no_policy_beats_the_bound(name: str, nodes: list[Shape], jobs: list[Job]) -> None:
    """On fleets in the form of the trace no policy uses more GPU milli than the optimum."""
    snapshot = Snapshot(fleet_of(nodes))
    decide(snapshot, JobQueue(snapshot, jobs), make_policy(name, PolicyOptions(mix=jobs)))
    clusters = snapshot.arrays.clusters
    used = int((clusters[CLUSTER_GPU_CORE] - clusters[CLUSTER_GPU_CORE_FREE]).sum())
    assert used <= value(nodes, *jobs) + 1e-6
