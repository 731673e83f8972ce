"""What is held where: every cluster that matters, who holds something there, and how much that is.

Everything here is asked for under the controller's lock.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from seaway.application.control.fleet import LiveCluster
from seaway.application.control.live import Live
from seaway.application.records import Attempt
from seaway.application.stray_views import held_by_strays
from seaway.application.views import Amount, ClusterState


@dataclass(frozen=True, slots=True)
class Sums:
    """A cluster's amounts, and what of them is held.

    Attributes
    ----------
    jobs
        Jobs that hold something; strays are none.
    """

    nodes: int
    gpus: int
    cpu_milli: Amount
    memory_mib: Amount
    gpu_milli: Amount
    gpu_memory_mib: Amount
    jobs: int


def away(live: Live) -> list[str]:
    """Return the names of clusters that hold something and are not of the fleet, or not known yet to be."""
    return sorted(name for name, held in live.by_cluster.items() if held and name not in live.fleet.clusters)


def everyone(live: Live) -> list[LiveCluster]:
    """Return every cluster, and after them those that are gone while something is held there."""
    now_ns = live.clock.monotonic_ns()
    state = ClusterState.GONE if live.fleet.met else ClusterState.STALE
    gone = [LiveCluster(name, live.left_ns.get(name, now_ns), state=state) for name in away(live)]
    return [*live.fleet.clusters.values(), *gone]


def holders(live: Live, cluster: LiveCluster) -> list[Attempt]:
    """Return who holds something in a cluster: attempts, and strays."""
    return [*(live.attempts[key] for key in live.by_cluster[cluster.name]), *held_by_strays(cluster)]


def sum_up(cluster: LiveCluster, attempts: Sequence[Attempt]) -> Sums:
    """Sum up what a cluster told of itself, and what these attempts and others' pods hold there."""
    nodes = cluster.cluster.nodes if cluster.cluster else ()
    devices = [device for node in nodes for device in node.devices]
    held = [(attempt, each) for attempt in attempts for each in attempt.placements if each.cluster == cluster.name]
    requests = [attempt.spec.demand.request for attempt, _ in held]
    slices = [taken for _, each in held for taken in each.slices]
    others = list(cluster.occupied)
    slices += [taken for each in others for taken in each.slices]
    cpu_milli = sum(request.cpu_milli for request in requests) + sum(each.cpu_milli for each in others)
    memory_mib = sum(request.memory_mib for request in requests) + sum(each.memory_mib for each in others)
    return Sums(
        nodes=len(nodes),
        gpus=len(devices),
        cpu_milli=Amount(sum(n.cpu_milli for n in nodes), cpu_milli),
        memory_mib=Amount(sum(n.memory_mib for n in nodes), memory_mib),
        gpu_milli=Amount(sum(d.core_milli for d in devices), sum(taken.core_milli for taken in slices)),
        gpu_memory_mib=Amount(sum(d.memory_mib for d in devices), sum(taken.memory_mib for taken in slices)),
        jobs=len({attempt.job_id for attempt in attempts if attempt.policy}),
    )
