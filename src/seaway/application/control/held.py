"""What is held where: every cluster that matters, who holds something there, and how much that is.

Everything here is asked for under the controller's lock.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from seaway.application.control.claims import Place
from seaway.application.control.fleet import LiveCluster
from seaway.application.control.live import Live
from seaway.application.records import Attempt
from seaway.application.stray_views import held_by_strays
from seaway.application.views import Amount, ClusterState
from seaway.domain.deployment import Occupant, deployment_name
from seaway.domain.node import Node


@dataclass(frozen=True, slots=True)
class Own:
    """What of a cluster is its own: a device that nodes of several clusters list is with one of them.

    Attributes
    ----------
    nodes
        Its nodes, with the devices that are theirs alone.
    elsewhere
        Devices that its nodes list, and nodes of other clusters have.
    guests
        What pods of other clusters hold of its devices, by their nodes that list them, too: a share each, with the
        node that has the device, and under a name that says whence it is.
    """

    nodes: tuple[Node, ...]
    elsewhere: frozenset[str] = frozenset()
    guests: tuple[Occupant, ...] = ()


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


def own(live: Live, cluster: LiveCluster) -> Own:
    """Return what of a cluster is its own."""
    nodes, name = cluster.cluster.nodes if cluster.cluster else (), cluster.name
    lacking: set[str] = set()
    elsewhere: set[str] = set()
    listed: defaultdict[Place, dict[str, str]] = defaultdict(dict)
    for uuid, owner, other in live.fleet.doubles():
        if other[0] == name:
            lacking.add(other[1])
        if owner[0] != other[0] == name:
            elsewhere.add(uuid)
        elif name == owner[0] != other[0]:
            listed[other][uuid] = owner[1]
    if lacking:
        nodes = tuple(live.fleet.with_its_own(name, node) if node.name in lacking else node for node in nodes)
    return Own(nodes, frozenset(elsewhere), tuple(_guests(live, listed)))


def doubled(live: Live) -> Counter[str]:
    """Count the nodes of each cluster that list devices which other nodes have."""
    return Counter(cluster for cluster, _ in {other for _, _, other in live.fleet.doubles()})


def _guests(live: Live, listed: Mapping[Place, Mapping[str, str]]) -> Iterator[Occupant]:
    """Yield what is held of some devices on nodes that list them and do not have them.

    Parameters
    ----------
    listed
        By such a node: the devices, and which node has each.
    """
    for (name, node), homes in listed.items():
        for pod in live.fleet.clusters[name].occupied.on(node):
            containers = pod.containers or ("",) * len(pod.slices)
            for taken, container in zip(pod.slices, containers, strict=False):
                if home := homes.get(taken.uuid):
                    yield Occupant(f"{pod.name} ({name})", home, (taken,), containers=(container,), pods=0)
    for name in dict.fromkeys(name for name, _ in listed):
        for attempt in holders(live, live.fleet.clusters[name]):
            copy = deployment_name(attempt.job_id, attempt.number)
            for placement in attempt.placements:
                homes = listed.get((placement.cluster, placement.node), {})
                replica = f"{copy}-{placement.replica} ({name})"
                for taken in placement.slices:
                    if home := homes.get(taken.uuid):
                        yield Occupant(replica, home, (taken,), pods=0)


def sum_up(cluster: LiveCluster, attempts: Sequence[Attempt], mine: Own) -> Sums:
    """Sum up what of a cluster is its own, and what these attempts and others' pods hold of it."""
    nodes = mine.nodes
    devices = [device for node in nodes for device in node.devices]
    held = [(attempt, each) for attempt in attempts for each in attempt.placements if each.cluster == cluster.name]
    requests = [attempt.spec.demand.request for attempt, _ in held]
    slices = [taken for _, each in held for taken in each.slices]
    others = list(cluster.occupied)
    slices += [taken for each in others for taken in each.slices]
    slices = [taken for taken in slices if taken.uuid not in mine.elsewhere]
    slices += [taken for each in mine.guests for taken in each.slices]
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
