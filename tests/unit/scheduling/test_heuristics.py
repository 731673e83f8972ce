"""Kernels of the heuristics against slow references in plain Python."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings

from seaway.domain.cluster import Fleet
from seaway.domain.job import Job
from seaway.scheduling.columns import (
    CLUSTER_CPU,
    CLUSTER_CPU_FREE,
    CLUSTER_GPU_CORE,
    CLUSTER_GPU_CORE_FREE,
    CLUSTER_GPU_MEMORY,
    CLUSTER_GPU_MEMORY_FREE,
    CLUSTER_MEMORY,
    CLUSTER_MEMORY_FREE,
    DEVICE_CORE,
    DEVICE_CORE_FREE,
    DEVICE_MEMORY,
    DEVICE_MEMORY_FREE,
    NODE_CLUSTER,
    NODE_CPU,
    NODE_CPU_FREE,
    NODE_DEVICE_END,
    NODE_DEVICE_FIRST,
    NODE_GPU_CORE,
    NODE_GPU_CORE_FREE,
    NODE_GPU_MEMORY,
    NODE_GPU_MEMORY_FREE,
    NODE_MEMORY,
    NODE_MEMORY_FREE,
    PLAN_NODE,
    SLICE_DEVICE,
)
from seaway.scheduling.engine import decide
from seaway.scheduling.framework import Score
from seaway.scheduling.job_queue import JobQueue
from seaway.scheduling.policies.cluster_level import ClusterLevel, ClusterRule
from seaway.scheduling.policies.registry import Level, PolicyOptions, make_policy
from seaway.scheduling.policies.spread import Spread
from seaway.scheduling.policies.utilization import Utilization
from seaway.scheduling.snapshot.snapshot import Snapshot
from seaway.testing.plugins import cluster, fleet, gpu, job, node
from tests.property.strategies import fleets, jobs
from tests.unit.scheduling.requesting import cycle_for

PPM = 1_000_000
EXAMPLES = settings().max_examples // 4
NODE_PAIRS = (
    (NODE_CPU_FREE, NODE_CPU),
    (NODE_MEMORY_FREE, NODE_MEMORY),
    (NODE_GPU_MEMORY_FREE, NODE_GPU_MEMORY),
    (NODE_GPU_CORE_FREE, NODE_GPU_CORE),
)
CLUSTER_PAIRS = (
    (CLUSTER_CPU_FREE, CLUSTER_CPU),
    (CLUSTER_MEMORY_FREE, CLUSTER_MEMORY),
    (CLUSTER_GPU_MEMORY_FREE, CLUSTER_GPU_MEMORY),
    (CLUSTER_GPU_CORE_FREE, CLUSTER_GPU_CORE),
)


def partly_used(fleet: Fleet, queue: list[Job]) -> Snapshot:
    """Return a snapshot on which some jobs run."""
    snapshot = Snapshot(fleet)
    decide(snapshot, JobQueue(snapshot, queue), make_policy("random", PolicyOptions(plain=True)))
    return snapshot


def asked(job: Job, memory: int, devices: int) -> list[int]:
    """Return the demand of a replica on a node of `devices` devices with `memory` MiB in total."""
    request = job.demand.request.filled()
    each = request.gpu_memory_mib or memory // max(devices, 1) * request.gpu_memory_percent // 100
    return [request.cpu_milli, request.memory_mib, each * request.gpus, request.gpu_milli * request.gpus]


def share(amount: int, total: int) -> int:
    """Return a fraction in parts per million; 0 of a total of 0."""
    return amount * PPM // total if total else 0


def scores(plugin: Score, snapshot: Snapshot, job: Job) -> list[int]:
    """Return the scores of a plugin."""
    return [int(score) for score in plugin.score(cycle_for(snapshot, job))]


@settings(max_examples=EXAMPLES)
@given(fleet=fleets(), queue=jobs())
def test_utilization_matches_free_fractions_with_demand(fleet: Fleet, queue: list[Job]) -> None:
    """A node's score is minus the sum of abs(free - demand)/total over the four resources."""
    snapshot = partly_used(fleet, queue)
    expected = []
    for line in snapshot.arrays.nodes.T.tolist():
        demand = asked(queue[0], line[NODE_GPU_MEMORY], line[NODE_DEVICE_END] - line[NODE_DEVICE_FIRST])
        pairs = zip(NODE_PAIRS, demand, strict=True)
        expected.append(-sum(share(abs(line[free] - ask), line[total]) for (free, total), ask in pairs))
    assert scores(Utilization(), snapshot, queue[0]) == expected


@settings(max_examples=EXAMPLES)
@given(fleet=fleets(), queue=jobs())
def test_spread_scores_free_resources(fleet: Fleet, queue: list[Job]) -> None:
    """A node's score is its free CPU plus 16 times the mean of its free cores and memory, in thousandths."""
    snapshot = partly_used(fleet, queue)
    expected = []
    for line in snapshot.arrays.nodes.T.tolist():
        cpu, _, memory, core = asked(queue[0], line[NODE_GPU_MEMORY], line[NODE_DEVICE_END] - line[NODE_DEVICE_FIRST])
        memory_left = (line[NODE_GPU_MEMORY_FREE] - memory) * line[NODE_GPU_CORE] // max(line[NODE_GPU_MEMORY], 1)
        gpu_left = (line[NODE_GPU_CORE_FREE] - core + memory_left) // 2
        expected.append(line[NODE_CPU_FREE] - cpu + 16 * gpu_left)
    assert scores(Spread(), snapshot, queue[0]) == expected


@settings(max_examples=EXAMPLES)
@given(fleet=fleets(), queue=jobs())
def test_spread_takes_the_least_used_device(fleet: Fleet, queue: list[Job]) -> None:
    """Devices are ranked by the mean of the fractions of free cores and memory, highest first."""
    snapshot = partly_used(fleet, queue)
    devices = snapshot.arrays.devices.T.tolist()
    for n, line in enumerate(snapshot.arrays.nodes.T.tolist()):
        keys = Spread().device_keys(cycle_for(snapshot, queue[0]), n)
        assert [int(key) for key in keys] == [
            -((d[DEVICE_CORE_FREE] + d[DEVICE_MEMORY_FREE] * d[DEVICE_CORE] // d[DEVICE_MEMORY]) // 2)
            for d in devices[line[NODE_DEVICE_FIRST] : line[NODE_DEVICE_END]]
        ]


@pytest.mark.parametrize("rule", [ClusterRule.FIRST, ClusterRule.FULLEST, ClusterRule.MATCHING, ClusterRule.EMPTIEST])
@settings(max_examples=EXAMPLES)
@given(fleet=fleets(), queue=jobs())
def test_rule_ranks_clusters(rule: ClusterRule, fleet: Fleet, queue: list[Job]) -> None:
    """Nodes score like the ranks of their clusters, and equal clusters keep their order."""
    snapshot = partly_used(fleet, queue)
    snapshot.demands.index(queue[0].demand)

    def figure(c: int) -> int:
        line = snapshot.arrays.clusters[:, c].tolist()
        devices = sum(len(each.devices) for each in fleet.clusters[c].nodes)
        demand = asked(queue[0], line[CLUSTER_GPU_MEMORY], devices)
        pairs = zip(CLUSTER_PAIRS, demand, strict=True)
        free = sum(share(line[free], line[total]) for free, total in CLUSTER_PAIRS)
        mismatch = sum(share(abs(line[free] - ask), line[total]) for (free, total), ask in pairs)
        figures = {ClusterRule.FULLEST: free, ClusterRule.EMPTIEST: -free, ClusterRule.MATCHING: mismatch}
        return figures.get(rule, 0)

    order = sorted(range(len(fleet.clusters)), key=lambda c: (figure(c), c))
    place = {c: at for at, c in enumerate(order)}
    found = scores(ClusterLevel(rule), snapshot, queue[0])
    by_score = sorted(range(len(found)), key=lambda n: (-found[n], n))
    cluster_of = snapshot.arrays.nodes[NODE_CLUSTER].tolist()
    assert by_score == sorted(range(len(found)), key=lambda n: (place[cluster_of[n]], n))


@pytest.mark.parametrize("level", ["node", "cluster"])
def test_random_is_uniform_over_feasible_nodes(level: Level) -> None:
    """Each of three equal nodes gets about a third of 3,000 jobs, besides infeasible nodes."""
    parts = [cluster(node(gpu(memory_mib=mib, share_limit=4_000))) for mib in (90_000, 10, 90_000, 90_000)]
    snapshot = Snapshot(fleet(*parts))
    queue = JobQueue(snapshot, [job(str(number), gpus=1, gpu_memory_mib=20) for number in range(3_000)])
    options = PolicyOptions(level=level, seed=1)
    nodes = decide(snapshot, queue, make_policy("random", options)).decisions[:, PLAN_NODE]
    counts = np.bincount(nodes, minlength=4)
    assert counts[1] == 0
    assert (abs(counts[[0, 2, 3]] - 1_000) < 100).all()


def test_random_is_uniform_over_devices() -> None:
    """Each of three equal devices of a node gets about a third of 3,000 jobs."""
    snapshot = Snapshot(fleet(node(*(gpu(memory_mib=90_000, share_limit=4_000) for _ in range(3)))))
    queue = JobQueue(snapshot, [job(str(number), gpus=1, gpu_memory_mib=20) for number in range(3_000)])
    slices = decide(snapshot, queue, make_policy("random")).slices
    assert (abs(np.bincount(slices[:, SLICE_DEVICE]) - 1_000) < 100).all()
