"""Gangs that have to stay in one cluster."""

from __future__ import annotations

import pytest

from seaway.domain.errors import RejectedError
from seaway.scheduling.engine import decide
from seaway.scheduling.job_queue import JobQueue
from seaway.scheduling.policies.registry import make_profile
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
