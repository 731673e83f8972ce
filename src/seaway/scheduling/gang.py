"""Placement of jobs over several clusters: gangs, and jobs with bounds on the links between replicas.

A gang is placed in one cluster if it fits, preferably close to its data. Otherwise, unless it must stay in one cluster,
sets of clusters are grown. Each set starts with one cluster, and the cluster closest to the whole set is added until
the gang fits. The set with the lowest latency is chosen, among clusters no farther from the data than necessary.

In a ring, only the links between consecutive clusters count, and the replicas get the order of the ring.

A gang of TPU nodes takes all nodes of one multi-host slice, or nodes outside of such slices.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from seaway.domain.job import DeviceRules
from seaway.scheduling.arrays import Int64, UInt8
from seaway.scheduling.columns import (
    CLUSTER_GATEWAY,
    CLUSTERS_ALLOWED,
    DEMAND_GPU_MEMORY,
    DEMAND_GPUS,
    JOB_DEMAND,
    JOB_GANG,
    NODE_CLUSTER,
    PLAN_DEMAND,
    PLAN_NODE,
    PLAN_RING_TO,
)
from seaway.scheduling.kernels.network import reserve_between_replicas
from seaway.scheduling.ring import MAX_CLUSTERS, best_ring, nearest_to_ring
from seaway.scheduling.snapshot.aggregates import asked_sums, free_gpu_milli, free_sums
from seaway.scheduling.snapshot.links import links_of
from seaway.scheduling.snapshot.rule_masks import FleetCache
from seaway.scheduling.snapshot.snapshot import Snapshot
from seaway.scheduling.statement import Statement


class Placer(Protocol):
    """Placer of runs of jobs, with one decision per replica."""

    @property
    def divides(self) -> bool:
        """True if the replicas of a gang are placed one by one, as in `Profile`."""

    def place(self, statement: Statement, first: int, end: int) -> None:
        """Decide the queue's jobs from `first` up to, but not including, `end` and append them to the statement."""

    def place_replicas(self, statement: Statement, job: int, first: int, end: int) -> None:
        """Decide replicas `first` to `end` - 1 of one job individually, and append them to the statement.

        Unlike `place`, it keeps the replicas of a gang that fit. If `first` is not 0, it keeps the marks of the
        clusters to which the job already reserved bandwidth.
        """


@dataclass(frozen=True, slots=True)
class ClusterNetwork:
    """Links between clusters, tables of shape (C, C).

    Attributes
    ----------
    latency_ns, free_mbps
        Round-trip time (nanoseconds) and free bandwidth (Mbit/s).
    allowed
        Whether two clusters may be in one set.
    """

    latency_ns: Int64
    free_mbps: Int64
    allowed: NDArray[np.bool_]


@dataclass(frozen=True, slots=True, order=True)
class ClusterSet:
    """A set of clusters. Sets are ordered by preference.

    Attributes
    ----------
    latency_ns
        Maximum latency between two members, nanoseconds.
    size
        Number of members.
    rank
        Rank of the cluster from which the set was grown, to break ties.
    members
        Indices of the members, in the order in which they were added.
    """

    latency_ns: int
    size: int
    rank: int
    members: tuple[int, ...]


Grow = Callable[[ClusterNetwork, Int64, int, int, int], Iterator[ClusterSet]]
"""Growth of a set from one cluster, with the parameters of `grow_set`."""


def best_sets(
    between: ClusterNetwork, holds: Int64, replicas: int, seeds: Sequence[int], grow: Grow
) -> Iterator[ClusterSet]:
    """Yield sets of clusters that fit all replicas, best first.

    Parameters
    ----------
    between
        Links between clusters.
    holds
        Number of replicas that fit each cluster, shape (C,).
    replicas
        Number of replicas to place.
    seeds
        Clusters from which sets are grown, preferred first.
    grow
        Growth of a set: `grow_set` or `grow_ring`.
    """
    growing = [grow(between, holds, replicas, seed, rank) for rank, seed in enumerate(seeds)]
    waiting = [found for each in growing if (found := next(each, None))]
    heapq.heapify(waiting)
    while waiting:
        best = heapq.heappop(waiting)
        yield best
        larger = next(growing[best.rank], None)
        if larger:
            heapq.heappush(waiting, larger)


def grow_set(between: ClusterNetwork, holds: Int64, replicas: int, seed: int, rank: int) -> Iterator[ClusterSet]:
    """Grow a set from one cluster, and yield it at each size that fits all replicas.

    The next member is the cluster with the smallest maximum latency to the set; among equals the one with the most
    bandwidth to the set, then the first.
    """
    members, longest = [seed], 0
    latency, mbps = between.latency_ns[seed].copy(), between.free_mbps[seed].copy()
    may_join = (holds > 0) & between.allowed[seed]
    may_join[seed] = False
    while True:
        if holds[members].sum() >= replicas:
            yield ClusterSet(longest, len(members), rank, tuple(members))
        candidates = np.flatnonzero(may_join)
        if not candidates.size:
            return
        joins = int(candidates[np.lexsort((-mbps[candidates], latency[candidates]))[0]])
        longest = max(longest, int(latency[joins]))
        members.append(joins)
        latency = np.maximum(latency, between.latency_ns[joins])
        mbps = np.minimum(mbps, between.free_mbps[joins])
        may_join &= between.allowed[joins]
        may_join[joins] = False


def grow_ring(between: ClusterNetwork, holds: Int64, replicas: int, seed: int, rank: int) -> Iterator[ClusterSet]:
    """Grow a ring from one cluster, and yield it at each size that fits all replicas.

    The next member is the cluster whose insertion makes the maximum latency of the ring the lowest.
    """
    members = [seed]
    while True:
        ring = best_ring(between.latency_ns, between.allowed, members)
        if ring and len(members) > 1 and holds[members].sum() >= replicas:
            links = between.latency_ns[list(ring), [*ring[1:], ring[0]]]
            yield ClusterSet(int(links.max()), len(members), rank, ring)
        candidates = np.setdiff1d(np.flatnonzero(holds > 0), members)
        if not candidates.size or len(members) == MAX_CLUSTERS:
            return
        members.append(nearest_to_ring(between.latency_ns, between.allowed, ring or members, candidates))


def place_spanning(placer: Placer, statement: Statement, first: int, tiers: UInt8 | None = None) -> None:
    """Decide the queue's job number `first`, whose replicas may spread over clusters, and append it to the statement.

    A gang is placed as a whole or not. The replicas of other jobs are placed one after the other, each in a cluster
    whose links to the earlier ones meet the job's bounds.

    Parameters
    ----------
    tiers
        Groups of clusters, shape (tiers, C), preferred first; None for no preference.
    """
    gate = statement.snapshot.arrays.clusters_open[CLUSTERS_ALLOWED]
    before, begin, k = gate.copy(), statement.length, statement.queue.rows[first, JOB_DEMAND]
    try:
        trial = GangTrial(placer, statement, first, tiers)
        stays = trial.job.single_cluster or trial.job.ring
        if trial.job.demand.devices.slice_nodes > 1 and trial.place_in_slice():
            return
        if not statement.queue.rows[first, JOB_GANG] or trial.job.replicas == 1:
            trial.place_individually()
        elif not (trial.place_divided() if placer.divides and not stays else place_gang(trial)):
            statement.mark_unplaced(first)
    finally:
        gate[:] = before
        statement.queue.rows[first, JOB_DEMAND] = statement.decisions[begin : statement.length, PLAN_DEMAND] = k


class GangTrial:
    """Trials of one job in one set of clusters after another.

    Parameters
    ----------
    placer, statement, job, tiers
        As in `place_spanning`. Clusters that are closed at the start stay closed.
    """

    def __init__(self, placer: Placer, statement: Statement, job: int, tiers: UInt8 | None = None) -> None:
        self._placer = placer
        self._statement = statement
        self._number = job
        self.job = statement.queue.jobs[job]
        self.snapshot = statement.snapshot
        self._gate = self.snapshot.arrays.clusters_open[CLUSTERS_ALLOWED]
        self._open = self._gate.copy()
        self._tiers = np.ones((1, len(self._gate)), np.uint8) if tiers is None else tiers

    def count_within(self, clusters: Sequence[int], replicas: int) -> int:
        """Place the first `replicas` replicas in some clusters; roll back unless all fit.

        Returns
        -------
        int
            Number of replicas that fitted. If the network has too little bandwidth between them, all can fit and still
            be rolled back.
        """
        self._gate[:] = 0
        self._gate[list(clusters)] = self._open[list(clusters)]
        before = self._statement.checkpoint()
        self._placer.place_replicas(self._statement, self._number, 0, replicas)
        fitted = int((self._nodes_since(before[0]) >= 0).sum())
        if fitted < replicas or (len(clusters) > 1 and not self._connect(before[0])):
            self._statement.rollback(before)
        return fitted

    def place_all(self, clusters: Sequence[int]) -> bool:
        """Place the whole job in some clusters. Return whether it was placed."""
        before = self._statement.length
        self.count_within(clusters, self.job.replicas)
        return self._statement.length > before

    def cluster_order(self) -> list[int]:
        """Return the clusters of all tiers in which a replica fits, in the order of trials.

        In each tier, this is the cluster that the policy chooses for the first replica, then the others by free GPU
        capacity.
        """
        most_free_first = np.argsort(-free_gpu_milli(self.snapshot), kind="stable")
        order: list[int] = []
        for ring in self._tiers:
            home = self._first_choice(ring)
            if home >= 0:
                order += [home, *(int(c) for c in most_free_first if ring[c] and c != home)]
        return order

    def cumulative_tiers(self) -> UInt8:
        """Return the clusters of the first tier, of the first two, and so on, shape (tiers, C)."""
        return np.cumsum(self._tiers, axis=0, dtype=np.uint8)

    def _first_choice(self, tier: UInt8) -> int:
        """Return the cluster of a tier that the policy chooses for the first replica; -1 for none."""
        n = self._first_node(tier)
        return int(self.snapshot.arrays.nodes[NODE_CLUSTER, n]) if n >= 0 else -1

    def _first_node(self, tier: UInt8) -> int:
        """Return the node of a tier that the policy chooses for the first replica; -1 for none."""
        self._gate[:] = self._open & tier
        before = self._statement.checkpoint()
        self._placer.place_replicas(self._statement, self._number, 0, 1)
        n = int(self._nodes_since(before[0])[0])
        self._statement.rollback(before)
        return n

    def place_individually(self) -> None:
        """Place the replicas one by one, each in a cluster whose links to the earlier ones meet the job's bounds."""
        need, homes = self.job.between_replicas, set[int]()
        for replica in range(self.job.replicas):
            c = self._place_nearest(replica)
            if need.any and c >= 0 and c not in homes:
                homes.add(c)
                self._open &= links_of(self.snapshot).within_bounds(need)[c]  # bandwidth is checked when it is reserved

    def place_in_slice(self) -> bool:
        """Place a gang on all nodes of one multi-host TPU slice. Return whether it was placed.

        The policy chooses the first of the slices of a tier. If none is free, devices of such slices are excluded.
        """
        rules = self.job.demand.devices
        free = {
            key: {*nodes.values()}
            for key, nodes in tpu_slices(self.snapshot).items()
            if len(nodes) == rules.slice_nodes and (not rules.use_uuids or rules.use_uuids.issuperset(nodes.values()))
        }
        for tier in self._tiers:
            left = dict(free)
            while left:
                self.use(replace(rules, use_uuids=frozenset[str]().union(*left.values())))
                n = self._first_node(tier)
                key = next((each for each in left if n in tpu_slices(self.snapshot)[each]), None)
                if key is None:
                    break
                self.use(replace(rules, use_uuids=frozenset(left.pop(key))))
                if self.place_all([key[0]]):
                    return True
        self.use(replace(rules, slice_nodes=1))
        return False

    def use(self, rules: DeviceRules) -> None:
        """Use other rules for devices in the next trials."""
        k = self.snapshot.demands.index(replace(self.job.demand, devices=rules))
        self._statement.queue.rows[self._number, JOB_DEMAND] = k

    def place_divided(self) -> bool:
        """Place all replicas individually; roll back unless all fit. Return whether the job was placed."""
        before = self._statement.checkpoint()
        self.place_individually()
        whole = bool((self._nodes_since(before[0]) >= 0).all())
        if not whole:
            self._statement.rollback(before)
        return whole

    def _place_nearest(self, replica: int) -> int:
        """Place one replica in the first tier in which it fits. Return its cluster, -1 for none."""
        for ring in self._tiers[:-1]:
            before = self._statement.checkpoint()
            self._gate[:] = self._open & ring
            if (c := self._place_one(replica)) >= 0:
                return c
            self._statement.rollback(before)
        self._gate[:] = self._open & self._tiers[-1]
        return self._place_one(replica)

    def _place_one(self, replica: int) -> int:
        """Place one replica in a cluster with enough bandwidth to the others. Return its cluster, -1 for none."""
        while True:
            before = self._statement.checkpoint()
            self._placer.place_replicas(self._statement, self._number, replica, replica + 1)
            n = int(self._nodes_since(before[0])[0])
            if n < 0:
                return -1
            c = int(self.snapshot.arrays.nodes[NODE_CLUSTER, n])
            if self._reserve_bandwidth(before[0], before[0] - replica):
                return c
            self._statement.rollback(before)
            self._gate[c] = 0

    def _connect(self, row: int) -> bool:
        """Order the job's replicas if they are a ring, and reserve their bandwidth. Return whether that is possible."""
        return (not self.job.ring or self._close_ring(row)) and self._reserve_bandwidth(row)

    def _close_ring(self, row: int) -> bool:
        """Give the job's replicas, from `row` on, the order of the best ring. Return whether there is one.

        The ring starts in the cluster with the most replicas.
        """
        decisions, arrays, end = self._statement.decisions, self.snapshot.arrays, self._statement.length
        clusters = arrays.nodes[NODE_CLUSTER, self._nodes_since(row)]
        used, counts = np.unique(clusters, return_counts=True)
        between, first = between_clusters(self), int(counts.argmax())
        ring = best_ring(between.latency_ns, between.allowed, [*used[first:], *used[:first]])
        if ring is None:
            return False
        order = np.argsort([ring.index(c) for c in clusters], kind="stable")
        self._statement.reorder(row, order)
        gateways = arrays.clusters[CLUSTER_GATEWAY, clusters[order]]
        following = np.roll(gateways, -1)
        decisions[row:end, PLAN_RING_TO] = np.where(following >= 0, following + 1, -1)
        return True

    def _reserve_bandwidth(self, row: int, first: int | None = None) -> bool:
        """Reserve bandwidth between the job's replicas. Return whether the network has enough.

        Parameters
        ----------
        row
            First row of replicas without reservation.
        first
            First row of the job; None if it is `row`.
        """
        mbps, end = self.job.between_replicas.min_bandwidth_mbps, self._statement.length
        if not mbps:
            return True
        arrays, nodes = self.snapshot.arrays, self._nodes_since(row if first is None else first)
        reserve_between_replicas(arrays, self._statement.decisions, row, end, mbps)
        gateways = np.unique(arrays.clusters[CLUSTER_GATEWAY, arrays.nodes[NODE_CLUSTER, nodes[nodes >= 0]]])
        gateways = gateways[gateways >= 0]
        return len(gateways) < 2 or not links_of(self.snapshot).is_overcommitted(gateways)

    def upper_bounds(self) -> Int64:
        """Return the number of replicas that would fit each cluster if it were one large node, shape (C,).

        Only amounts that do not depend on the device are counted: CPU, memory, and device memory given in MiB.
        """
        k = int(self._statement.queue.rows[self._number, JOB_DEMAND])
        amounts = self.snapshot.demands.arrays.amounts[k]
        certain = 3 if amounts[DEMAND_GPUS] and amounts[DEMAND_GPU_MEMORY] else 2
        asked, free = asked_sums(self.snapshot, k)[:certain], free_sums(self.snapshot)[:certain]
        counts = np.where(asked > 0, np.maximum(free, 0) // np.maximum(asked, 1), self.job.replicas).min(axis=0)
        return np.where(self._open != 0, counts, 0)

    def _nodes_since(self, row: int) -> Int64:
        return self._statement.decisions[row : self._statement.length, PLAN_NODE]


def _find_tpu_slices(snapshot: Snapshot) -> dict[tuple[int, str, str], dict[int, str]]:
    found: dict[tuple[int, str, str], dict[int, str]] = defaultdict(dict)
    for n in snapshot.node_index.values():
        for device in snapshot.nodes[n].devices:
            if device.slice_nodes > 1:
                found[int(snapshot.arrays.nodes[NODE_CLUSTER, n]), device.tpu_slice, device.model][n] = device.uuid
    return dict(found)


tpu_slices = FleetCache(_find_tpu_slices)
"""Multi-host TPU slices by cluster, name and model: the UUID of the device of each node."""


def place_gang(trial: GangTrial) -> bool:
    """Place a whole gang, in one cluster if possible or required. Return whether it was placed."""
    replicas = trial.job.replicas
    order = trial.cluster_order()
    if not order:
        return False
    at_most = trial.upper_bounds()
    holds = np.zeros(len(at_most), np.int64)
    for enough in (True, False):  # clusters that cannot fit all replicas are tried last
        for c in order:
            if (at_most[c] >= replicas) == enough and at_most[c] > 0:
                holds[c] = trial.count_within([c], replicas)
                if holds[c] == replicas:
                    return True
    if trial.job.single_cluster or holds.sum() < replicas:
        return False
    between, seeds = between_clusters(trial), [c for c in order if holds[c]]
    grow = grow_ring if trial.job.ring else grow_set
    return any(
        trial.place_all(chosen.members)
        for circle in trial.cumulative_tiers()
        for chosen in best_sets(between, holds * circle, replicas, [c for c in seeds if circle[c]], grow)
    )


def between_clusters(trial: GangTrial) -> ClusterNetwork:
    """Return the links between clusters, and the pairs that meet the job's bounds."""
    links, need = links_of(trial.snapshot), trial.job.between_replicas
    clusters = len(trial.snapshot.clusters)
    everywhere = np.ones((clusters, clusters), np.bool_)
    allowed = links.satisfying(need, one_way=trial.job.ring) if need.any else everywhere
    return ClusterNetwork(links.latency_ns(), links.free_mbps(), allowed)
