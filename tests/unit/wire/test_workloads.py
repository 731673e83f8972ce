"""Anything that is seen of a job in a cluster, as the API shows it."""

from __future__ import annotations

from seaway.domain.deployment import Container, Endpoint, Reach, ReplicaStatus, Workload, WorkloadPhase
from seaway.domain.placement import DeviceSlice
from seaway.wire.job_out import ObservedWorkload, copy_fields


def test_a_copy_says_where_it_answers_and_what_runs_it() -> None:
    """The address, and of each replica its pod with its containers, their ports and the devices that they hold."""
    slices = tuple(DeviceSlice(uuid, 1000, 100) for uuid in ("GPU-1", "GPU-2", "GPU-3"))
    containers = (Container("main", (8080, 9090)), Container("logs"))
    holders = ("main", "main", "")
    replica = ReplicaStatus(0, WorkloadPhase.RUNNING, "n1", slices, "", 0, 0, "seaway/sw-a-0", holders, containers)
    outside = (Endpoint("192.0.2.7:30080", 80, Reach.NODES, "so"), Endpoint("192.0.2.7:30090", 90, Reach.NODES))
    endpoints = (*outside, Endpoint("sw.seaway.svc:80", 80, Reach.CLUSTER))
    copy = Workload("01k9zj5q8e0ab", 1, "alpha", WorkloadPhase.RUNNING, (replica,), endpoints=endpoints)
    shown = ObservedWorkload.model_validate(copy_fields(copy, range(1)))
    assert (shown.cluster, shown.phase, shown.address) == ("alpha", "running", "192.0.2.7:30080,30090")
    first = shown.endpoints[0]
    assert (first.cluster, first.reach, first.message) == ("alpha", "nodes", "so")
    assert [each.pod for each in shown.replicas] == ["seaway/sw-a-0"]
    assert [(each.name, each.ports, each.devices) for each in shown.replicas[0].containers] == [
        ("main", [8080, 9090], ["GPU-1", "GPU-2"]),
        ("logs", [], []),
    ]
