"""The current fleet: inventories reported by clusters, and allocations."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from itertools import permutations

import numpy as np

from seaway.application.control.bandwidth import IN, OUT, BandwidthLedger, Ways
from seaway.application.control.device_claims import Claims, DuplicateDevices
from seaway.application.control.unmanaged_pods import Occupied
from seaway.application.network.link_table import NO_NETWORK_SNAPSHOT, NetworkSnapshot
from seaway.application.network.views import Asked, Side
from seaway.application.records import Cordon
from seaway.application.views import ClusterState
from seaway.domain.attempt import Attempt
from seaway.domain.cluster import Cluster, Fleet
from seaway.domain.deployment import FINISHED_PHASES, UnmanagedPod, Workload, deployment_name
from seaway.domain.errors import RejectedError
from seaway.domain.facts import NO_FACTS, Facts
from seaway.domain.job import Demand, Job, ResourceRequest
from seaway.domain.network import Ends, Gateway, Link
from seaway.domain.node import Node
from seaway.domain.placement import Placement, ring_links
from seaway.scheduling.allocations import Allocation, allocate
from seaway.scheduling.columns import CLUSTERS_ALLOWED, PLAN_DEMAND, PLAN_REPLICA
from seaway.scheduling.cycle.fork import FleetCopy
from seaway.scheduling.snapshot.links import free_bandwidth
from seaway.scheduling.snapshot.snapshot import Snapshot
from seaway.scheduling.snapshot.update import put_gateways, put_links, put_node, remove_node

log = logging.getLogger(__name__)

Key = tuple[str, int]
"""Job ID and attempt number."""

NOT_MEASURED: Mapping[str, int] = {}
"""Default without measured gateways."""

MIN_DEMANDS = 2048
"""Number of demands that a snapshot may contain beyond twice the allocated ones."""


NO_ENDS: Mapping[tuple[str, str], int] = {}
"""No cordon has a known end."""


@dataclass(slots=True)
class Orphan:
    """Workload of an unknown job, with one allocation per replica."""

    copy: Workload
    bookings: list[Allocation]


@dataclass(slots=True)
class LiveCluster:
    """State of a cluster.

    Attributes
    ----------
    cluster
        Latest inventory, with the facts that operators set; None before the first response.
    reported_facts
        Facts that the cluster reports.
    state
        State of the connection.
    last_seen_ns
        Monotonic time of the last complete response, from which grace periods count.
    reported_ns
        Wall-clock time of the last complete response; None if it never responded.
    answered
        Whether it has responded since the start of the process.
    unreachable_reason
        Reason why the last request failed; empty if it succeeded.
    reported_unreachable
        Whether a warning about missing responses was logged.
    orphans
        Orphaned workloads by name.
    occupied
        Use by unmanaged pods.
    """

    name: str
    last_seen_ns: int
    cluster: Cluster | None = None
    reported_ns: int | None = None
    answered: bool = False
    reported_facts: Facts = NO_FACTS
    state: ClusterState = ClusterState.STALE
    unreachable_reason: str = ""
    reported_unreachable: bool = False
    orphans: dict[str, Orphan] = field(default_factory=dict)
    occupied: Occupied = field(init=False)

    def __post_init__(self) -> None:
        """Initialize without unmanaged pods."""
        self.occupied = Occupied(self.name)


class LiveFleet:
    """Snapshot of the fleet, updated with inventories and with the allocations of attempts.

    Attributes
    ----------
    snapshot
        Snapshot for the engine.
    clusters
        Clusters by name, in the order that decides ties.
    version
        Counter of changes after which more jobs may fit.
    make
        Counter of changes of the inventory, independent of allocations.
    met
        Whether the list of clusters was ever available.
    """

    def __init__(self) -> None:
        self.snapshot = Snapshot(Fleet(()))
        self.clusters: dict[str, LiveCluster] = {}
        self.version = 0
        self.make = 0
        self.met = False
        self._claims = Claims()
        self._cordons: dict[tuple[str, str], Cordon] = {}
        self._own_facts: dict[str, Facts] = {}
        self._gateways: tuple[Gateway, ...] = ()
        self._links: tuple[Link, ...] = ()
        self._reported: tuple[Link, ...] = ()
        self._network_snapshot = NO_NETWORK_SNAPSHOT
        self._reserved_bandwidth = BandwidthLedger()
        self._held: dict[Key, tuple[Attempt, Job, Allocation]] = {}
        self._unreported: set[tuple[str, str]] = set()
        self._unlisted: set[str] = set()
        self._most_demands = MIN_DEMANDS

    # Clusters, gateways and links.

    def fork(self, ends_ns: Mapping[tuple[str, str], int] = NO_ENDS) -> FleetCopy:
        """Return a copy for decisions that are not done.

        Parameters
        ----------
        ends_ns
            Known ends of cordons by cluster and node, nanoseconds since 1970.
        """
        snapshot = self.snapshot.copy()
        snapshot.unshare_demands()  # others continue to write into their own
        cordoned = {place: (at_ns, self._uncordoned(*place)) for place, at_ns in ends_ns.items()}
        return FleetCopy(snapshot, self.version, self._held.copy(), self.up(), self.awaits_reports(), cordoned)

    def up(self) -> frozenset[str]:
        """Return the names of the clusters that answer."""
        return frozenset(name for name, each in self.clusters.items() if each.state is ClusterState.UP)

    def awaits_reports(self) -> bool:
        """Report whether a cluster has not reported since the start, and is not lost."""
        return any(not each.answered and each.state is ClusterState.STALE for each in self.clusters.values())

    def gpu_models(self) -> frozenset[str] | None:
        """Return the models of all GPUs; None before all clusters have reported."""
        clusters = [each.cluster for each in self.clusters.values()]
        if None in clusters:
            return None
        return frozenset(device.model for each in clusters if each for node in each.nodes for device in node.devices)

    def know(self, names: Iterable[str], now_ns: int) -> None:
        """Set the list of clusters, and remove the state of clusters that left."""
        before = self.clusters
        self.met = True
        self.make += 1
        self.clusters = {name: before.get(name) or LiveCluster(name, now_ns) for name in names}
        left = [live.cluster for name, live in before.items() if live.cluster and name not in self.clusters]
        for cluster in left:
            self._claims.take(cluster.name, cluster, None)
        if left:
            self.rebuild()

    def connect(
        self,
        gateways: Sequence[Gateway],
        links: Sequence[Link],
        network_snapshot: NetworkSnapshot = NO_NETWORK_SNAPSHOT,
        since_ns: Mapping[str, int] = NOT_MEASURED,
        now_ns: int = 0,
    ) -> None:
        """Update gateways and links, as reported and as measured.

        A failed update leaves the previous state.

        Parameters
        ----------
        since_ns, now_ns
            See `BandwidthLedger.beyond`.
        """
        beyond = self._reserved_bandwidth.beyond(network_snapshot, since_ns, now_ns)
        before = self._gateways, self._links, self._reported, self._network_snapshot
        self._gateways, self._links = (*beyond.gateways, *gateways), (*links, *beyond.links)
        self._reported, self._network_snapshot = tuple(links), network_snapshot
        try:
            self._reconnect(*before[:2], before[3])
        except Exception:
            self._gateways, self._links, self._reported, self._network_snapshot = before
            raise

    def _reconnect(self, gateways: Sequence[Gateway], links: Sequence[Link], network_snapshot: NetworkSnapshot) -> None:
        """Write the differences from these gateways and links into the snapshot."""
        same = [(each.name, each.address) for each in self._gateways] == [
            (each.name, each.address) for each in gateways
        ]
        if not same or network_snapshot.gateways_by_cluster != self._network_snapshot.gateways_by_cluster:
            self.make += 1
            self.rebuild()
        elif (gateways, links) != (self._gateways, self._links):
            put_gateways(self.snapshot, self._gateways)
            put_links(self.snapshot, self._with_known_ends(self._links))
            self.make += any(
                one.speed_mbps != other.speed_mbps for one, other in zip(gateways, self._gateways, strict=True)
            )
            self.version += 1

    def tell(self, *clusters: Cluster) -> None:
        """Apply inventories of clusters; ignore inconsistent ones.

        If several nodes list a device, only its owner offers it; see `Claims`. One call with several new clusters costs
        as much as one new cluster, since the snapshot is created once for all.
        """
        changed: list[tuple[Cluster | None, Cluster]] = []
        for reported in clusters:
            self.make += 1
            live = self.clusters[reported.name]
            before, live.reported_facts = live.cluster, reported.facts
            cluster = replace(reported, facts=self.own_facts(reported.name).over(reported.facts))
            moved = self._know_now(cluster.name, cluster)
            if before is None or moved or _character(before) != _character(cluster):
                changed.append((before, cluster))
                continue
            try:
                self._follow(before, cluster)
            except RejectedError:
                changed.append((before, cluster))
        if changed:
            self._replace_clusters(changed)

    def _know_now(self, name: str, cluster: Cluster | None) -> bool:
        """Apply the inventory of a cluster; report whether devices moved from one node to another."""
        live = self.clusters[name]
        before, live.cluster = live.cluster, cluster
        return self._claims.take(name, before, cluster)

    def _replace_clusters(self, reported: Sequence[tuple[Cluster | None, Cluster]]) -> None:
        """Create the snapshot again with new inventories. If that fails, apply them one by one."""
        try:
            self.rebuild()
        except RejectedError as error:
            for before, cluster in reported:
                self._know_now(cluster.name, before)
            if len(reported) > 1:
                for before, cluster in reported:
                    self._know_now(cluster.name, cluster)
                    self._replace_clusters([(before, cluster)])
                return
            log.error("%s reports an invalid inventory: %s; the previous one stays", reported[0][1].name, error)
            self.rebuild()

    def _follow(self, before: Cluster, cluster: Cluster) -> None:
        old = {node.name: node for node in before.nodes}
        for node in cluster.nodes:
            if old.pop(node.name, None) != node:
                self._put(cluster.name, node)
        for name in old:
            remove_node(self.snapshot, cluster.name, name)
        self.version += 1
        if any((cluster.name, node.name) in self._unreported for node in cluster.nodes) or any(
            uuid in self.snapshot.device_index for uuid in self._unlisted
        ):
            self.rebuild()

    def set_state(self, name: str, state: ClusterState) -> None:
        """Set the state of a cluster; a cluster that is not up gets no new work."""
        live = self.clusters[name]
        live.state = state
        self._gate(live)
        self.version += 1

    def cordon(self, cordons: Iterable[Cordon]) -> None:
        """Apply the cordons of clusters and nodes."""
        before = self._cordons
        self._cordons = {(each.cluster, each.node): each for each in cordons}
        for cluster, node in before.keys() ^ self._cordons.keys():
            live = self.clusters.get(cluster)
            if live is None or live.cluster is None:
                continue
            self._gate(live)
            for each in live.cluster.nodes:
                if each.name == node:
                    self._put(cluster, each)
        self.version += 1

    def set_facts(self, facts: Mapping[str, Facts]) -> None:
        """Set the facts that operators set, by cluster. They precede those that clusters report."""
        before, self._own_facts = self._own_facts, dict(facts)
        changed = {name for name in {*before, *facts} if before.get(name) != facts.get(name)}
        known = [live for name, live in self.clusters.items() if name in changed and live.cluster]
        self.tell(*(replace(live.cluster, facts=live.reported_facts) for live in known if live.cluster))

    def put_facts(self, cluster: str, facts: Facts) -> None:
        """Set the facts of one cluster; see `set_facts`."""
        self.set_facts({**self._own_facts, cluster: facts})

    def own_facts(self, cluster: str) -> Facts:
        """Return the facts of a cluster that operators set."""
        return self._own_facts.get(cluster, NO_FACTS)

    def cordon_of(self, cluster: str, node: str = "") -> Cordon | None:
        """Return the cordon of a cluster or node."""
        return self._cordons.get((cluster, node))

    def cordons(self) -> Iterable[Cordon]:
        """Return all cordons."""
        return self._cordons.values()

    def duplicates(self) -> Mapping[str, DuplicateDevices]:
        """Return the devices that several nodes list, by cluster; see `Claims`."""
        return self._claims.duplicates()

    def gateway_of(self, cluster: Cluster) -> str:
        """Return the gateway of a cluster; empty if unknown."""
        admission = self._network_snapshot.gateways_by_cluster.get(cluster.name, cluster.gateway)
        return admission if any(gateway.name == admission for gateway in self._gateways) else ""

    def sides(self) -> dict[str, Side]:
        """Return the endpoint behind each gateway: its clusters, or its user site if it has no clusters."""
        behind: dict[str, list[str]] = {gateway.name: [] for gateway in self._gateways}
        for name, admission in self._network_snapshot.gateways_by_cluster.items():
            behind[admission].append(name)
        for live in self.clusters.values():
            if (
                live.cluster
                and live.name not in self._network_snapshot.gateways_by_cluster
                and (admission := self.gateway_of(live.cluster))
            ):
                behind[admission].append(live.name)
        standby = self._network_snapshot.standby
        for name, cluster in standby.items():
            behind[name].append(cluster)
        return {
            each.name: Side(
                each.address,
                ",".join(behind[each.name]),
                self._site(each.name, behind[each.name]),
                standby=each.name in standby,
            )
            for each in self._gateways
        }

    def _site(self, gateway: str, clusters: Sequence[str]) -> str:
        return "" if clusters else self._network_snapshot.sites.get(gateway) or gateway

    @property
    def gateways(self) -> tuple[Gateway, ...]:
        """The gateways."""
        return self._gateways

    @property
    def links(self) -> tuple[Link, ...]:
        """The links with their latest measurements."""
        return self._links

    @property
    def surveyed(self) -> frozenset[str]:
        """Names of the gateways with measuring agents."""
        return frozenset(each.name for each in self._network_snapshot.gateways)

    @property
    def reported_links(self) -> tuple[Link, ...]:
        """Links that clusters report and no agent measures."""
        return self._reported

    def fleet(self) -> Fleet:
        """Return all inventories, with nodes in the engine's form."""
        reported = [live.cluster for live in self.clusters.values() if live.cluster]
        clusters = tuple(
            replace(
                cluster,
                gateway=self.gateway_of(cluster),
                nodes=tuple(self._offered(cluster.name, node) for node in cluster.nodes),
            )
            for cluster in reported
        )
        return Fleet(clusters, self._gateways, self._with_known_ends(self._links))

    @property
    def settling(self) -> bool:
        """True if `connect` is needed again without new measurements.

        This is the case while the owner of some traffic is unknown.
        """
        return self._reserved_bandwidth.settling

    def rooms(self, wanted: Asked | None = None) -> dict[tuple[str, str], tuple[int, int]]:
        """Return the reserved bandwidth of each link, at its busier end, and the free bandwidth, in Mbit/s.

        Parameters
        ----------
        wanted
            Filter of the links by source and target; None for all.
        """
        gateways, totals = self.snapshot.fleet.gateways, self._reserved_bandwidth.totals()
        at = np.arange(len(gateways))
        free = np.maximum(free_bandwidth(self.snapshot.arrays, at[:, None], at[None, :]), 0).tolist()
        place = {each.name: g for g, each in enumerate(gateways)}
        return {
            (each.source, each.target): (
                max(totals[each.source, OUT], totals[each.target, IN]),
                free[place[each.source]][place[each.target]],
            )
            for each in self.snapshot.links
            if wanted is None or wanted(each.source, each.target)
        }

    # Allocations.

    def hold(self, attempt: Attempt, job: Job, booking: Allocation | None = None) -> None:
        """Add the allocation of an attempt: `booking` from the engine, or else one from its placements."""
        if booking is None:
            booking = allocate(self.snapshot, job, attempt.placements)
            self._note_unreported(attempt.placements)
        for cluster in attempt.clusters:
            self.drop_orphan(cluster, deployment_name(attempt.job_id, attempt.number))
        key = attempt.job_id, attempt.number
        self._held[key] = (attempt, job, booking)
        self._reserved_bandwidth.begin(key, self._ways(attempt, job), attempt.running_ns)

    def resize(self, attempt: Attempt, job: Job, booking: Allocation | None = None) -> None:
        """Set the allocation of an attempt with other replicas than before.

        Parameters
        ----------
        booking
            Allocation of the new replicas by the engine, which is released.
        """
        key = attempt.job_id, attempt.number
        before = self._held[key]
        for each in filter(None, (before[2], booking)):
            each.release(self.snapshot)
        self._held[key] = (attempt, job, allocate(self.snapshot, job, attempt.placements))
        self._note_unreported(attempt.placements)
        self._reserved_bandwidth.note(key, self._ways(attempt, job), attempt.running_ns)
        self.version += int(not {*before[0].placements} <= {*attempt.placements})

    def run(self, key: Key, running_ns: int | None) -> None:
        """Set the wall-clock start of a running attempt; ignore an attempt without allocation."""
        held = self._held.get(key)
        if held and held[0].running_ns != running_ns:
            self._held[key] = (replace(held[0], running_ns=running_ns), *held[1:])
            self._reserved_bandwidth.run(key, running_ns)

    def release_allocation(self, key: Key) -> None:
        """Release the allocation of an attempt, if any."""
        held = self._held.pop(key, None)
        if held:
            held[2].release(self.snapshot)
            self._reserved_bandwidth.end(key)
            self.version += 1

    def retain_clusters(self, key: Key, clusters: Set[str]) -> None:
        """Release the allocation of an attempt outside the given clusters."""
        attempt, job, booking = self._held[key]
        retained = tuple(each for each in attempt.placements if each.cluster in clusters)
        if len(retained) == len(attempt.placements):
            return
        replicas = [each.replica for each in retained]
        booking.release(self.snapshot, np.flatnonzero(~np.isin(booking.decisions[:, PLAN_REPLICA], replicas)))
        attempt = replace(attempt, placements=retained)
        self._held[key] = (attempt, job, booking)
        self._reserved_bandwidth.note(key, self._ways(attempt, job), attempt.running_ns)
        self.version += 1

    def put_orphan(self, copy: Workload) -> None:
        """Add or update the allocation of an orphaned workload."""
        orphans = self.clusters[copy.cluster].orphans
        if copy.name not in orphans or orphans[copy.name].copy != copy:
            self.drop_orphan(copy.cluster, copy.name)
            orphans[copy.name] = Orphan(copy, self._allocate_orphan(copy))

    def drop_orphan(self, cluster: str, name: str) -> None:
        """Release the allocation of an orphaned workload, if any."""
        live = self.clusters.get(cluster)
        orphan = live.orphans.pop(name, None) if live else None
        if orphan:
            for booking in orphan.bookings:
                booking.release(self.snapshot)
            self.version += 1

    def keep_orphans(self, cluster: str, names: Set[str]) -> None:
        """Drop all orphans of a cluster that are not in `names`."""
        for name in self.clusters[cluster].orphans.keys() - names:
            self.drop_orphan(cluster, name)

    def occupy(self, cluster: str, unmanaged_pods: Iterable[UnmanagedPod], *, complete: bool) -> None:
        """Apply unmanaged pods of a cluster; `complete` marks a complete list."""
        changed = self.clusters[cluster].occupied.take(unmanaged_pods, self.snapshot, complete=complete)
        self._note_unknown(cluster, changed)
        self.version += bool(changed)

    def empty(self) -> None:
        """Release all allocations of attempts, including those without a stored attempt."""
        self._reserved_bandwidth.forget()
        self._held.clear()
        self.rebuild()

    def booking(self, key: Key) -> Allocation | None:
        """Return the allocation of an attempt."""
        held = self._held.get(key)
        return held[2] if held else None

    def forget_demands(self, others: Iterable[Allocation]) -> None:
        """Remove unallocated demands from the snapshot once they are the majority.

        Waiting jobs get a new row at their next try.

        Parameters
        ----------
        others
            Allocations besides those of attempts and orphans.
        """
        if len(self.snapshot.demands) < self._most_demands:
            return
        orphans = [orphan for live in self.clusters.values() for orphan in live.orphans.values()]
        booked = [*others, *(booking for _, _, booking in self._held.values())]
        booked += [booking for orphan in orphans for booking in orphan.bookings]
        lines = {line for booking in booked for line in booking.decisions[:, PLAN_DEMAND].tolist()}
        self.snapshot.retain_demands(lines)
        self._most_demands = 2 * len(lines) + MIN_DEMANDS

    def rebuild(self) -> None:
        """Create the snapshot again from inventories and allocations."""
        self.snapshot = Snapshot(self.fleet())
        self._unreported.clear()
        self._unlisted.clear()
        for live in self.clusters.values():
            self._gate(live)
        for key, (attempt, job, _) in self._held.items():
            self._held[key] = (attempt, job, allocate(self.snapshot, job, attempt.placements))
            self._note_unreported(attempt.placements)
            self._reserved_bandwidth.note(key, self._ways(attempt, job), attempt.running_ns)
        for live in self.clusters.values():
            for orphan in live.orphans.values():
                orphan.bookings = self._allocate_orphan(orphan.copy)
            live.occupied.allocate_again(self.snapshot)
            self._note_unknown(live.name, live.occupied.nodes)
        self.version += 1

    def _ways(self, attempt: Attempt, job: Job) -> Ways:
        """Return the bandwidth reservations of an attempt in the form of the link table: source, target, Mbit/s."""
        if not (job.demand.network.min_bandwidth_mbps or job.between_replicas.min_bandwidth_mbps):
            return ()
        behind = {each.name: each.gateway for each in self.snapshot.clusters}
        clusters = dict.fromkeys(each.cluster for each in attempt.holding)
        gateways_by_cluster = [admission for each in clusters if (admission := behind.get(each, ""))]
        known = any(each.name == job.demand.gateway for each in self._gateways)
        ways = [
            (job.demand.gateway, admission, job.demand.network.min_bandwidth_mbps)
            for admission in gateways_by_cluster
            if known
        ]
        pairs: Iterable[Ends] = permutations(dict.fromkeys(gateways_by_cluster), 2)
        if job.ring:
            links = ring_links(attempt.holding, job.replicas)
            ends = ((behind.get(here, ""), behind.get(there, "")) for here, there in links)
            pairs = [each for each in ends if "" not in each]
        ways += [(*each, job.between_replicas.min_bandwidth_mbps) for each in pairs]
        return tuple((source, target, mbps) for source, target, mbps in ways if source != target and mbps)

    def _allocate_orphan(self, copy: Workload) -> list[Allocation]:
        booked = []
        for each in copy.replicas if copy.phase not in FINISHED_PHASES else ():
            demand = Demand(ResourceRequest(each.cpu_milli, each.memory_mib))
            place = (Placement(copy.name, each.replica, copy.cluster, each.node, each.slices),)
            booked.append(allocate(self.snapshot, Job(copy.name, demand), place))
            self._note_unreported(place)
        return booked

    def _note_unreported(self, placements: Iterable[Placement]) -> None:
        """Record allocated nodes and devices that no cluster reports.

        They are allocated when a cluster reports them.
        """
        for placement in placements:
            self._note_unknown(placement.cluster, (placement.node,))
            self._unlisted |= {each.uuid for each in placement.slices if each.uuid not in self.snapshot.device_index}

    def _note_unknown(self, cluster: str, nodes: Iterable[str]) -> None:
        self._unreported |= {(cluster, node) for node in nodes if (cluster, node) not in self.snapshot.node_index}

    def _put(self, cluster: str, node: Node) -> None:
        put_node(self.snapshot, cluster, self._offered(cluster, node))

    def _offered(self, cluster: str, node: Node) -> Node:
        node = self._claims.offered(cluster, node)
        return replace(node, ready=False) if (cluster, node.name) in self._cordons else node

    def _uncordoned(self, cluster: str, name: str) -> Node | None:
        live = self.clusters.get(cluster)
        nodes = live.cluster.nodes if name and live and live.cluster else ()
        return next((self._claims.offered(cluster, each) for each in nodes if each.name == name), None)

    def _gate(self, live: LiveCluster) -> None:
        if live.cluster is None:
            return
        usable = live.state is ClusterState.UP and (live.name, "") not in self._cordons
        self.snapshot.arrays.clusters_open[CLUSTERS_ALLOWED, self.snapshot.cluster_index(live.name)] = int(usable)

    def _with_known_ends(self, links: Iterable[Link]) -> tuple[Link, ...]:
        known = {gateway.name for gateway in self._gateways}
        return tuple(link for link in links if link.source in known and link.target in known)


def _character(cluster: Cluster) -> Cluster:
    return replace(cluster, nodes=())
