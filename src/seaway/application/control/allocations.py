"""Allocations by cluster: the relevant clusters, the attempts, and the amounts.

All functions require the lock of the controller. The properties of the result of `own` are computed on first access,
possibly later.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import cached_property

from seaway.application.control.attempt_totals import Held, held_by
from seaway.application.control.device_claims import DuplicateDevices
from seaway.application.control.fleet import LiveCluster
from seaway.application.control.state import ControlState
from seaway.application.views import Amount, ClusterState
from seaway.domain.amounts import share_of_device_milli
from seaway.domain.attempt import Attempt
from seaway.domain.cluster import totals_of
from seaway.domain.deployment import FINISHED_PHASES, ReplicaStatus, UnmanagedPod, Workload, deployment_name
from seaway.domain.device import WHOLE_DEVICE_MILLI
from seaway.domain.job import Demand, ResourceRequest
from seaway.domain.job_spec import JobSpec
from seaway.domain.job_state import AttemptState
from seaway.domain.node import Node
from seaway.domain.placement import DeviceSlice, Placement


def held_by_orphans(live: LiveCluster) -> list[Attempt]:
    """Return the allocations of orphaned workloads in a cluster, as attempts without policy and tenant."""
    there = unfinished(orphan.copy for orphan in live.orphans.values())
    return [_attempt(copy, replica) for copy in there for replica in copy.replicas]


def unfinished(workloads: Iterable[Workload]) -> Iterator[Workload]:
    """Yield the workloads that have not ended, and therefore have allocations."""
    return (copy for copy in workloads if copy.phase not in FINISHED_PHASES)


def _attempt(copy: Workload, replica: ReplicaStatus) -> Attempt:
    demand = Demand(ResourceRequest(replica.cpu_milli, replica.memory_mib))
    return Attempt(
        job_id=copy.job_id,
        number=copy.attempt,
        state=AttemptState.RUNNING,
        spec=JobSpec(copy.name, demand, tenant=""),
        policy="",
        placements=(Placement(copy.name, replica.replica, copy.cluster, replica.node, replica.slices),),
        created_ns=0,
        expires_ns=0,
    )


@dataclass(frozen=True, slots=True)
class _Lists:
    """Nodes of another cluster that list devices owned by nodes elsewhere.

    Attributes
    ----------
    cluster
        Name of that cluster.
    homes
        Listed devices with the owning node of each, by listing node.
    pods
        Unmanaged pods on the listing nodes.
    attempts
        Attempts with allocations in that cluster.
    """

    cluster: str
    homes: Mapping[str, Mapping[str, str]]
    pods: Sequence[UnmanagedPod]
    attempts: Sequence[Attempt]

    def guests(self) -> Iterator[UnmanagedPod]:
        """Yield the allocations of these devices in that cluster."""
        for pod in sorted(self.pods, key=lambda pod: pod.node):
            containers = pod.containers or ("",) * len(pod.slices)
            for taken, container in zip(pod.slices, containers, strict=False):
                if home := self.homes[pod.node].get(taken.uuid):
                    yield UnmanagedPod(f"{pod.name} ({self.cluster})", home, (taken,), containers=(container,), pods=0)
        for attempt in self.attempts:
            copy = deployment_name(attempt.job_id, attempt.number)
            for placement in attempt.holding:
                if placement.cluster != self.cluster or placement.node not in self.homes:
                    continue
                replica = f"{copy}-{placement.replica} ({self.cluster})"
                for taken in placement.slices:
                    if home := self.homes[placement.node].get(taken.uuid):
                        yield UnmanagedPod(replica, home, (taken,), pods=0)


@dataclass(frozen=True)  # without slots, which `cached_property` does not support
class Own:
    """Own share of a cluster: a device that nodes of several clusters list belongs to one of them.

    Attributes
    ----------
    reported
        Nodes of the cluster with all devices that they list.
    duplicates
        Devices of these nodes that other nodes list too.
    others
        Nodes of other clusters that list devices of this cluster too.
    """

    reported: tuple[Node, ...]
    duplicates: DuplicateDevices
    others: Sequence[_Lists] = ()

    @property
    def elsewhere(self) -> Set[str]:
        """Devices that nodes of this cluster list and nodes of other clusters own."""
        return self.duplicates.elsewhere

    @cached_property
    def nodes(self) -> tuple[Node, ...]:
        """Nodes of the cluster with only the devices that they own."""
        if not (lacking := self.duplicates.lacking):
            return self.reported
        return tuple(_without(node, lacking[node.name]) if node.name in lacking else node for node in self.reported)

    @cached_property
    def guests(self) -> tuple[UnmanagedPod, ...]:
        """Allocations of the cluster's devices by pods of other clusters whose nodes list them too.

        Each is one slice on the node that owns the device, with a name that includes the other cluster.
        """
        return tuple(guest for each in self.others for guest in each.guests())


@dataclass(frozen=True, slots=True)
class Sums:
    """Amounts of a cluster, total and allocated.

    Attributes
    ----------
    gpus_used_milli
        GPUs in use, thousandths. A slice counts as the larger share of cores and memory.
    jobs
        Number of jobs with allocations, without orphans.
    """

    nodes: int
    gpus: int
    gpus_used_milli: int
    cpu_milli: Amount
    memory_mib: Amount
    gpu_milli: Amount
    gpu_memory_mib: Amount
    jobs: int


def away(live: ControlState) -> list[str]:
    """Return the clusters with attempts that are not in the fleet, or not yet known to be in it."""
    return sorted(name for name, held in live.by_cluster.items() if held and name not in live.fleet.clusters)


def everyone(live: ControlState) -> list[LiveCluster]:
    """Return all clusters, followed by removed clusters that still have attempts."""
    now_ns = live.clock.monotonic_ns()
    state = ClusterState.GONE if live.fleet.met else ClusterState.STALE
    reported_ns = live.last_reports.reported_ns
    gone = [
        LiveCluster(name, live.left_ns.get(name, now_ns), reported_ns=reported_ns(name), state=state)
        for name in away(live)
    ]
    return [*live.fleet.clusters.values(), *gone]


def holders(live: ControlState, cluster: LiveCluster) -> list[Attempt]:
    """Return the attempts and orphans of a cluster."""
    return [*(live.attempts[key] for key in live.by_cluster[cluster.name]), *held_by_orphans(cluster)]


def own(live: ControlState, cluster: LiveCluster) -> Own:
    """Return the own share of a cluster."""
    nodes = cluster.cluster.nodes if cluster.cluster else ()
    duplicates = live.fleet.duplicates().get(cluster.name)
    return Own(nodes, duplicates, tuple(_others(live, duplicates))) if duplicates else Own(nodes, DuplicateDevices())


def duplicated(live: ControlState) -> dict[str, int]:
    """Count the nodes of each cluster that list devices of other nodes."""
    return {name: len(each.lacking) for name, each in live.fleet.duplicates().items() if each.lacking}


def _others(live: ControlState, duplicates: DuplicateDevices) -> Iterator[_Lists]:
    """Yield, by cluster, the nodes of other clusters that list devices of this one, and the pods there."""
    homes: defaultdict[str, dict[str, Mapping[str, str]]] = defaultdict(dict)
    for (name, node), devices in duplicates.listed.items():
        homes[name][node] = devices
    for name, nodes in sorted(homes.items()):
        other = live.fleet.clusters[name]
        yield _Lists(name, nodes, [pod for node in nodes for pod in other.occupied.on(node)], holders(live, other))


def _shares_milli(slices: Sequence[DeviceSlice], nodes: Iterable[Node]) -> Iterator[int]:
    """Yield the share of its device that each slice of an unmanaged pod has, thousandths; `nodes` have the pods."""
    devices = {device.uuid: device for node in nodes for device in node.devices}
    return (share_of_device_milli(taken, devices.get(taken.uuid)) for taken in slices)


def _without(node: Node, devices: Set[str]) -> Node:
    return replace(node, devices=tuple(each for each in node.devices if each.uuid not in devices))


def held(live: ControlState, cluster: LiveCluster, mine: Own) -> Held:
    """Return the allocations of attempts and orphans in the own share of a cluster."""
    if mine.elsewhere:
        return held_by(holders(live, cluster), cluster.name, mine.elsewhere)
    holdings = live.holdings.get(cluster.name)
    known = holdings.held() if holdings else Held()
    orphans = held_by(held_by_orphans(cluster), cluster.name)
    return Held(
        known.cpu_milli + orphans.cpu_milli,
        known.memory_mib + orphans.memory_mib,
        known.gpus_milli + orphans.gpus_milli,
        known.gpu_milli + orphans.gpu_milli,
        known.gpu_memory_mib + orphans.gpu_memory_mib,
        known.jobs,
    )


def amounts_of_cluster(cluster: LiveCluster, by_jobs: Held, mine: Own) -> Sums:
    """Return the amounts of the own share of a cluster, allocated to jobs, orphans and unmanaged pods.

    Parameters
    ----------
    by_jobs
        Allocations of attempts and orphans.
    """
    pods = list(cluster.occupied)
    slices = [taken for each in pods for taken in each.slices if taken.uuid not in mine.elsewhere]
    slices += [taken for each in mine.guests for taken in each.slices]
    totals = cluster.cluster.totals if cluster.cluster and mine.nodes is mine.reported else totals_of(mine.nodes)
    cpu_milli = by_jobs.cpu_milli + sum(each.cpu_milli for each in pods)
    memory_mib = by_jobs.memory_mib + sum(each.memory_mib for each in pods)
    gpu_milli = by_jobs.gpu_milli + sum(taken.core_milli for taken in slices)
    gpu_memory_mib = by_jobs.gpu_memory_mib + sum(taken.memory_mib for taken in slices)
    at = {each.node for each in (*pods, *mine.guests) if each.slices}
    shares_milli = _shares_milli(slices, (node for node in mine.nodes if node.name in at)) if at else ()
    gpus_milli = by_jobs.gpus_milli + sum(shares_milli)
    return Sums(
        nodes=totals.nodes,
        gpus=totals.gpus,
        gpus_used_milli=min(gpus_milli, totals.gpus * WHOLE_DEVICE_MILLI),
        cpu_milli=Amount(totals.cpu_milli, cpu_milli),
        memory_mib=Amount(totals.memory_mib, memory_mib),
        gpu_milli=Amount(totals.gpu_milli, gpu_milli),
        gpu_memory_mib=Amount(totals.gpu_memory_mib, gpu_memory_mib),
        jobs=by_jobs.jobs,
    )
