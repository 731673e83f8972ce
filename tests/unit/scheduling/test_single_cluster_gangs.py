"""Gangs that have to stay in one cluster, or in one TPU slice."""

from __future__ import annotations

from typing import Any

import pytest

from seaway.domain.errors import RejectedError
from seaway.domain.job import DeviceRules
from seaway.domain.node import Node
from seaway.scheduling.engine import decide
from seaway.scheduling.explain import explain, summary
from seaway.scheduling.job_queue import JobQueue
from seaway.scheduling.policies.registry import make_profile
from seaway.scheduling.shortage import room, shortage
from seaway.testing.plugins import cluster, gpu, job, node
from tests.unit.scheduling.requesting import snapshot_of


def placed(replicas: int, *, single_cluster: bool) -> set[str]:
    """Return the clusters of a gang, of one with two devices and one with three."""
    two, three = (cluster(node(*(gpu() for _ in range(count)))) for count in (2, 3))
    snapshot = snapshot_of(two, three)
    asked = job(gpus=1, replicas=replicas, gang=True, single_cluster=single_cluster)
    plan = decide(snapshot, JobQueue(snapshot, [asked]), make_profile("bestfit"))
    assert plan.placed.sum() in (0, replicas)
    return {each.cluster for each in plan.placements()}


def test_single_cluster_gang_is_never_split() -> None:
    """It waits when no single cluster holds it, even when all together would."""
    assert placed(3, single_cluster=True) == placed(3, single_cluster=False) == {"cluster-1"}
    assert placed(4, single_cluster=False) == {"cluster-0", "cluster-1"}
    assert placed(4, single_cluster=True) == set()


def test_other_jobs_ignore_single_cluster() -> None:
    """Replicas of other jobs are placed one by one."""
    with pytest.raises(RejectedError, match="are a gang"):
        job(replicas=2, single_cluster=True)


def tpu(tpu_slice: str = "", nodes: int = 1) -> Node:
    """Create a TPU node, of a slice of several nodes if it has a name."""
    model = f"TPU v5e {'2x4' if nodes == 2 else '2x2'}"
    return node(gpu(model=model, vendor="TPU", tpu_slice=tpu_slice, slice_nodes=nodes))


@pytest.mark.parametrize("policy", ["bestfit", "balanced"])
def test_tpu_gang_takes_one_whole_slice(policy: str) -> None:
    """A slice with a missing node is left out, and jobs that take no whole slice get none of its nodes."""
    first = cluster(tpu("lacks", 2), tpu("whole", 2), tpu("whole", 2), node(gpu()))
    snapshot = snapshot_of(first, cluster(tpu("whole", 2), tpu("whole", 2)), cluster(tpu(), tpu()))
    names = [[(each.name, one.name) for one in each.nodes] for each in snapshot.fleet.clusters]
    profile, rules = make_profile(policy), DeviceRules(vendors=frozenset({"TPU"}))
    whole: dict[str, Any] = {"gpus": 1, "gpu_milli": 1000}
    pair = job(**whole, replicas=2, gang=True, vendors=rules.vendors)

    def nodes(**figures: Any) -> list[tuple[str, str]]:  # noqa: ANN401  # fields of a job
        queue = JobQueue(snapshot, [job(**whole, **figures)])
        return sorted((each.cluster, each.node) for each in decide(snapshot, queue, profile).placements())

    three = job(**whole, replicas=3, gang=True, vendors=rules.vendors)
    said = summary(explain(snapshot, three, profile))
    assert "5 nodes: TPU slice that needs a gang with one replica per node: TPU v5e 2x4 (2 nodes)" in said
    mine = frozenset({snapshot.fleet.clusters[0].nodes[1].devices[0].uuid})
    assert nodes(replicas=3, gang=True, vendors=rules.vendors) == []
    assert nodes(replicas=2, gang=True, vendors=rules.vendors, use_uuids=mine) == []
    assert room(snapshot, pair, profile) == 2
    found = [nodes(replicas=2, gang=True, vendors=rules.vendors) for _ in range(4)]
    assert sorted(found[:2]) == [names[0][1:3], names[1]]
    assert found[2:] == [names[2], []]
    assert room(snapshot, pair, profile) == 0
    assert shortage(snapshot, pair, profile) == "all 2 nodes of one TPU slice are needed, and no such slice is free now"
    assert nodes(replicas=6) == names[0][3:]
