"""Phases of workloads in a simulated cluster, its rejections, and its reports."""

from __future__ import annotations

from dataclasses import replace
from threading import Thread

import pytest

from seaway.adapters.simulated.backends import SimulatedBackends
from seaway.adapters.simulated.faults import Options
from seaway.application.ports.clock import SystemClock
from seaway.application.ports.logs import NoContainerError
from seaway.domain.deployment import Container, WorkloadPhase
from seaway.domain.errors import RejectedError
from seaway.domain.placement import DeviceSlice
from seaway.testing.clocks import NS_PER_S, VirtualClock
from seaway.testing.plugins import cluster, fleet, mig_gpu, node
from tests.unit.adapters.simulated_fleet import START_DELAY_S, deployment, removal, small, uuid, world

WHOLE = DeviceSlice(uuid(), 81_920, 1_000)


def test_a_copy_starts_runs_and_ends_on_the_clock() -> None:
    """A workload is starting for the delay, runs for the duration of its job, and has succeeded then."""
    alpha = world()
    alpha.send(deployment(expected_duration_s=60))
    assert alpha.phase() is WorkloadPhase.STARTING
    alpha.clock.advance_s(START_DELAY_S - 0.001)
    assert alpha.phase() is WorkloadPhase.STARTING
    alpha.clock.advance_s(0.001)
    assert alpha.phase() is WorkloadPhase.RUNNING
    assert alpha.workloads()["a"].address == "sw-a.alpha.simulated:8080"
    alpha.clock.advance_s(59.999)
    assert alpha.phase() is WorkloadPhase.RUNNING
    alpha.clock.advance_s(0.001)
    assert alpha.phase() is WorkloadPhase.SUCCEEDED


def test_replicas_are_reported_with_pod_container_and_ports() -> None:
    """As in a real cluster, each has its own pod, named after its object, with its devices."""
    alpha = world()
    alpha.send(deployment(places=(0, 1)))
    for replica in alpha.workloads()["a"].replicas:
        assert replica.pod == f"default/sw-a-1-{replica.replica}"
        assert replica.containers == (Container("main", (8080,)),)
        assert replica.holders == ("main",)


def test_a_job_without_an_end_runs_on() -> None:
    """Without an expected duration it never ends by itself."""
    alpha = world()
    alpha.send(deployment())
    alpha.clock.advance_s(10**8)
    assert alpha.phase() is WorkloadPhase.RUNNING


def test_a_clock_set_back_changes_no_delay() -> None:
    """Delays use the monotonic time."""
    alpha = world()
    alpha.send(deployment(expected_duration_s=60))
    alpha.clock.jump(-(10**15))
    alpha.clock.advance_s(START_DELAY_S)
    assert alpha.phase() is WorkloadPhase.RUNNING
    alpha.clock.jump(10**16)
    assert alpha.phase() is WorkloadPhase.RUNNING


@pytest.mark.parametrize(
    ("slices", "cpu_milli", "why"),
    [
        ([DeviceSlice(uuid(), 81_921, 0)], 0, "81920 MiB left, not 81921"),
        ([DeviceSlice(uuid(), 1, 1_001)], 0, "1000 thousandths of its cores left, not 1001"),
        ([DeviceSlice(uuid(), 41_000, 0), DeviceSlice(uuid(), 41_000, 0)], 0, "40920 MiB left, not 41000"),
        ([DeviceSlice(uuid(), 1, 0)] * 11, 0, "has no share left"),
        ([DeviceSlice(uuid(1), 1, 0)], 0, "node node-0 has no device GPU-alpha-node-1-0"),
        ([DeviceSlice(uuid(), 1, 0)], 8_001, "8000 thousandths of a core left, not 8001"),
    ],
)
def test_more_than_there_is_is_refused(slices: list[DeviceSlice], cpu_milli: int, why: str) -> None:
    """No device and no node is allocated beyond its capacity, and the answer names the resource that is short."""
    alpha = world()
    answer = alpha.send(deployment("a", *slices, cpu_milli=cpu_milli))[0]
    assert answer.refused
    assert why in answer.reason
    assert alpha.phase() is WorkloadPhase.GONE
    assert alpha.send(deployment("b", WHOLE))[0].done, "nothing of it is kept"


def test_a_replica_that_does_not_fit_refuses_all() -> None:
    """A deployment is accepted with all its replicas or not at all."""
    alpha = world()
    alpha.send(deployment("a", WHOLE, places=(0,)))
    assert alpha.send(deployment("b", places=(1, 0)))[0].refused
    assert alpha.send(deployment("c", DeviceSlice(uuid(1), 81_920, 1_000), places=(1,)))[0].done


@pytest.mark.parametrize("mend", ["remove", "succeed", "fail", "vanish"])
def test_what_is_over_gives_its_devices_back(mend: str) -> None:
    """Devices are free after a workload is removed, succeeded, failed or vanished, and not before."""
    alpha = world()
    alpha.send(deployment("a", WHOLE, expected_duration_s=10))
    alpha.clock.advance_s(START_DELAY_S)
    assert alpha.send(deployment("b"))[0].refused
    if mend == "remove":
        alpha.send(removal())
    elif mend == "succeed":
        alpha.clock.advance_s(10)
    elif mend == "fail":
        alpha.cluster.fail_copy("a", 1, "no reason")
    else:
        alpha.cluster.vanish("a", 1)
    assert alpha.send(deployment("b", WHOLE, attempt=2))[0].done


def test_instances_may_not_overlap() -> None:
    """A device in MIG mode is split as its profiles allow, without overlap."""
    clock = VirtualClock()
    cut = SimulatedBackends(fleet(cluster(node(mig_gpu()), name="alpha")), clock, Options(waits=False)).clusters()[0]

    def instance(profile: str, start: int) -> DeviceSlice:
        return DeviceSlice(uuid(), 20_096, 430, profile, start)

    assert cut.send([deployment("a", instance("3g.20gb", 4))])[0].done
    assert "another instance" in cut.send([deployment("b", instance("3g.20gb", 4))])[0].reason
    assert "has no '3g.20gb' at 1" in cut.send([deployment("c", instance("3g.20gb", 1))])[0].reason
    assert cut.send([deployment("d", instance("3g.20gb", 0))])[0].done
    cut.send([removal("a")])
    assert cut.send([deployment("e", instance("3g.20gb", 4))])[0].done


def test_what_was_removed_long_ago_does_not_return() -> None:
    """Future events of removed workloads are dropped, and a new attempt has its own."""
    alpha = world()
    for attempt in range(1, 3_000):
        alpha.send(deployment(attempt=attempt, expected_duration_s=10**6), removal(attempt=attempt))
    alpha.send(deployment(expected_duration_s=10))
    alpha.clock.advance_s(START_DELAY_S + 10)
    assert alpha.phase() is WorkloadPhase.SUCCEEDED
    assert len(alpha.workloads()) == 1


def test_a_deployment_for_elsewhere_is_refused() -> None:
    """A deployment for another cluster, or without replicas, is an error."""
    beta = SimulatedBackends(fleet(cluster(node(), name="beta")), VirtualClock(), Options(waits=False)).clusters()[0]
    assert "for cluster alpha" in beta.send([deployment()])[0].reason
    assert beta.send([removal()])[0].refused
    placed = deployment()
    assert "no replica" in world().send(replace(placed, placements=()))[0].reason
    assert "twice" in world().send(replace(placed, placements=placed.placements * 2))[0].reason


def test_objects_pin_node_and_devices() -> None:
    """Each replica becomes a Job that names its node and devices, and the amounts of each."""
    placed = deployment("a", DeviceSlice(uuid(), 8_192, 105), places=(0, 1))
    first, second = world().cluster.manifests(placed)
    assert (first["metadata"]["name"], second["metadata"]["name"]) == ("sw-a-1-0", "sw-a-1-1")
    assert first["metadata"]["labels"] == {
        "seaway.io/job": "a",
        "seaway.io/attempt": "1",
        "seaway.io/tenant": "default",
    }
    template = first["spec"]["template"]
    assert template["metadata"]["annotations"] == {"nvidia.com/use-gpuuuid": uuid()}
    assert template["spec"]["nodeName"] == "node-0"
    assert ("image" in template["spec"]["containers"][0]) == bool(placed.spec.run.image)
    assert template["spec"]["containers"][0]["resources"]["limits"] == {
        "cpu": "1000m",
        "memory": "1024Mi",
        "nvidia.com/gpu": "1",
        "nvidia.com/gpumem": "8192",
        "nvidia.com/gpucores": "11",
    }


def test_lines_tell_how_far_a_replica_is() -> None:
    """Lines are generated from the running time of a replica, reproducibly, and only the last are returned."""
    alpha = world()
    alpha.send(deployment(expected_duration_s=100))
    assert len(list(alpha.cluster.logs("sw-a-1", 0, 100))) == 1
    alpha.clock.advance_s(START_DELAY_S + 51)
    lines = list(alpha.cluster.logs("sw-a-1", 0, 100))
    assert lines == list(alpha.cluster.logs("sw-a-1", 0, 100))
    assert lines[0].endswith("replica 0 of 'train' started (simulated)")
    assert lines[1] == "2026-01-01T00:00:02Z started registry/train:1"
    assert lines[-1].endswith("progress 50 %")
    assert list(alpha.cluster.logs("sw-a-1", 0, 1)) == lines[-1:]
    assert list(alpha.cluster.logs("sw-a-1", 0, 100, since_ns=alpha.clock.now_ns() - 51 * NS_PER_S)) == lines[1:]
    alpha.clock.advance_s(60)
    assert list(alpha.cluster.logs("sw-a-1", 0, 1)) == ["2026-01-01T00:01:42Z finished"]


def test_lines_of_what_is_not_there_are_rejected() -> None:
    """An invalid name, or a missing workload or replica, is an error of the caller."""
    alpha = world()
    alpha.send(deployment())
    for copy, replica in (("a", 0), ("sw-a-x", 0), ("sw-b-1", 0), ("sw-a-1", 1)):
        with pytest.raises(RejectedError):
            alpha.cluster.logs(copy, replica, 1)
    with pytest.raises(NoContainerError):
        alpha.cluster.logs("sw-a-1", 0, 1, "side")


def test_a_waiting_user_is_woken() -> None:
    """On a real clock, a call that waits for changes returns on a command, a due event, or the end."""
    backends = SimulatedBackends(small(), SystemClock(), Options(start_delay_s=0.01))
    alpha = backends.clusters()[0]
    cursor = alpha.changes("", 0).cursor
    phases: list[WorkloadPhase] = []

    def watch(cursor: str) -> None:
        while not phases or phases[-1] is not WorkloadPhase.SUCCEEDED:
            reported = alpha.changes(cursor, 60)
            cursor = reported.cursor
            phases.extend(copy.phase for copy in reported.workloads)
        alpha.changes(cursor, 60)

    watcher = Thread(target=watch, args=(cursor,))
    watcher.start()
    alpha.send([deployment(expected_duration_s=0)])
    while WorkloadPhase.SUCCEEDED not in phases:
        alpha.changes("", 0)
    backends.close()
    watcher.join(30)
    assert not watcher.is_alive()


def test_options_are_checked() -> None:
    """A negative time is rejected."""
    with pytest.raises(RejectedError, match="start_delay_s: is -1"):
        Options(start_delay_s=-1)
