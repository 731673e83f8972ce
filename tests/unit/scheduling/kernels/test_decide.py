"""Devices of one replica."""

from __future__ import annotations

import pytest

from seaway.scheduling.engine import decide
from seaway.scheduling.job_queue import JobQueue
from seaway.scheduling.policies.registry import PolicyOptions, make_policy
from seaway.scheduling.snapshot.snapshot import Snapshot
from seaway.testing.plugins import fleet, gpu, job, mig_gpu, node


@pytest.mark.parametrize("plain", [False, True], ids=["compiled", "plain"])
@pytest.mark.parametrize("name", ["bestfit", "spread", "random", "greedy"])
def test_instances_of_a_replica_share_a_device_while_it_fits(name: str, plain: bool) -> None:
    """Devices are ranked before the first is taken, so that one in MIG mode is used until it is full."""
    snapshot = Snapshot(fleet(node(mig_gpu(), mig_gpu(), mig_gpu())))
    jobs = [job("trio", gpus=4, gpu_memory_mib=9_000, gpu_milli=100)]
    plan = decide(snapshot, JobQueue(snapshot, jobs), make_policy(name, PolicyOptions(plain=plain)))
    [placement] = plan.placements()
    devices = [slice_.uuid for slice_ in placement.slices]
    assert devices[0] == devices[1] == devices[2] != devices[3]


@pytest.mark.parametrize("plain", [False, True], ids=["compiled", "plain"])
def test_replica_gets_different_devices_without_mig(plain: bool) -> None:
    """Several devices outside MIG mode are different ones."""
    snapshot = Snapshot(fleet(node(gpu(), gpu(), gpu())))
    jobs = [job("pair", gpus=2, gpu_memory_mib=1_000), job("trio", gpus=3, gpu_memory_mib=1_000)]
    plan = decide(snapshot, JobQueue(snapshot, jobs), make_policy("spread", PolicyOptions(plain=plain)))
    assert [len({slice_.uuid for slice_ in each.slices}) for each in plan.placements()] == [2, 3]
