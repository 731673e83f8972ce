"""Jobs whose replicas may spread over clusters: gangs, and jobs with bounds on the links between.

A gang goes into one cluster if any holds it, of those into one as near to its data as may be. Otherwise,
unless it has to stay together, sets of clusters are grown, each from one cluster, always adding the one that is
nearest to all that are in the set, until the gang fits; the set with the smallest latency wins, of clusters no
farther from its data than needed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from seaway.scheduling.aggregates import asked_sums, free_gpu_milli, free_sums
from seaway.scheduling.cluster_sets import Between, best_sets
from seaway.scheduling.columns import (
    CLUSTER_GATEWAY,
    CLUSTERS_GATE,
    DEMAND_GPU_MEMORY,
    DEMAND_GPUS,
    JOB_DEMAND,
    JOB_GANG,
    NODE_CLUSTER,
    PLAN_NODE,
)
from seaway.scheduling.kernels.network import book_between
from seaway.scheduling.links import links_of
from seaway.scheduling.state import Int64, UInt8
from seaway.scheduling.statement import Statement

if TYPE_CHECKING:
    from seaway.scheduling.engine import Placer


def place_spanning(placer: Placer, statement: Statement, first: int, rings: UInt8 | None = None) -> None:
    """Decide the queue's job number `first`, whose replicas may spread, and append to the statement.

    A gang is placed as a whole or not at all. Of another job the replicas are placed one after the
    other, each where the links to all before it keep the job's bounds.

    Parameters
    ----------
    rings
        Groups of clusters, shape (rings, C), of which earlier ones are preferred; None for all alike.
    """
    gate = statement.snapshot.arrays.clusters_open[CLUSTERS_GATE]
    before = gate.copy()
    try:
        trial = Trial(placer, statement, first, rings)
        if not statement.queue.lines[first, JOB_GANG] or trial.job.replicas == 1:
            trial.place_apart()
        elif not place_gang(trial):
            statement.refuse(first)
    finally:
        gate[:] = before


class Trial:
    """One job that is tried in one set of clusters after another.

    Parameters
    ----------
    placer, statement, job, rings
        As in `place_spanning`. Clusters that are shut when the trial begins stay shut.
    """

    def __init__(self, placer: Placer, statement: Statement, job: int, rings: UInt8 | None = None) -> None:
        self._placer = placer
        self._statement = statement
        self._number = job
        self.job = statement.queue.jobs[job]
        self.snapshot = statement.snapshot
        self._gate = self.snapshot.arrays.clusters_open[CLUSTERS_GATE]
        self._open = self._gate.copy()
        self._rings = np.ones((1, len(self._gate)), np.uint8) if rings is None else rings

    def count_within(self, clusters: Sequence[int], replicas: int) -> int:
        """Place the first `replicas` replicas in some clusters; take all back unless all fit.

        Returns
        -------
        int
            How many fitted. All may, and yet nothing is placed, where the network cannot carry what they exchange.
        """
        self._gate[:] = 0
        self._gate[list(clusters)] = self._open[list(clusters)]
        before = self._statement.checkpoint()
        self._placer.place_replicas(self._statement, self._number, 0, replicas)
        fitted = int((self._nodes_since(before[0]) >= 0).sum())
        if fitted < replicas or (len(clusters) > 1 and not self._promised(before[0])):
            self._statement.rollback(before)
        return fitted

    def holds_all(self, clusters: Sequence[int]) -> bool:
        """Place the whole job in some clusters; return whether it is placed."""
        before = self._statement.length
        self.count_within(clusters, self.job.replicas)
        return self._statement.length > before

    def order(self) -> list[int]:
        """Return the clusters of all rings that have room for a replica, in the order in which they are to be tried.

        In each ring that is the one that the policy would choose for the first replica, then those with most GPU free.
        """
        most_free_first = np.argsort(-free_gpu_milli(self.snapshot), kind="stable")
        order: list[int] = []
        for ring in self._rings:
            home = self._first_choice(ring)
            if home >= 0:
                order += [home, *(int(c) for c in most_free_first if ring[c] and c != home)]
        return order

    def circles(self) -> UInt8:
        """Return the clusters of the first ring, of the first two, and so on, shape (rings, C)."""
        return np.cumsum(self._rings, axis=0, dtype=np.uint8)

    def _first_choice(self, ring: UInt8) -> int:
        """Return the cluster of a ring that the policy would choose for the first replica; -1 for none."""
        self._gate[:] = self._open & ring
        before = self._statement.checkpoint()
        self._placer.place_replicas(self._statement, self._number, 0, 1)
        n = int(self._nodes_since(before[0])[0])
        self._statement.rollback(before)
        return int(self.snapshot.arrays.nodes[NODE_CLUSTER, n]) if n >= 0 else -1

    def place_apart(self) -> None:
        """Place the replicas one by one, each in a cluster with good links to all before it."""
        need, homes = self.job.between_replicas, set[int]()
        for replica in range(self.job.replicas):
            c = self._place_nearest(replica)
            if need.any and c >= 0 and c not in homes:
                homes.add(c)
                self._open &= links_of(self.snapshot).keeping(need)[c]  # bandwidth is asked for when it is promised

    def _place_nearest(self, replica: int) -> int:
        """Place one replica in the first ring that has room for it; return its cluster, -1 for none."""
        for ring in self._rings[:-1]:
            before = self._statement.checkpoint()
            self._gate[:] = self._open & ring
            if (c := self._place_apart(replica)) >= 0:
                return c
            self._statement.rollback(before)
        self._gate[:] = self._open & self._rings[-1]
        return self._place_apart(replica)

    def _place_apart(self, replica: int) -> int:
        """Place one replica where the network carries what it exchanges; return its cluster, -1 for none."""
        while True:
            before = self._statement.checkpoint()
            self._placer.place_replicas(self._statement, self._number, replica, replica + 1)
            n = int(self._nodes_since(before[0])[0])
            if n < 0:
                return -1
            c = int(self.snapshot.arrays.nodes[NODE_CLUSTER, n])
            if self._promised(before[0], before[0] - replica):
                return c
            self._statement.rollback(before)
            self._gate[c] = 0

    def _promised(self, row: int, first: int | None = None) -> bool:
        """Promise what replicas of the job exchange across clusters; tell whether the network carries it.

        Parameters
        ----------
        row
            The first line of replicas that are not booked yet.
        first
            The job's first line; None when it is `row`.
        """
        mbps, end = self.job.between_replicas.min_bandwidth_mbps, self._statement.length
        if not mbps:
            return True
        arrays, nodes = self.snapshot.arrays, self._nodes_since(row if first is None else first)
        book_between(arrays, self._statement.lines, row, end, mbps)
        gateways = np.unique(arrays.clusters[CLUSTER_GATEWAY, arrays.nodes[NODE_CLUSTER, nodes[nodes >= 0]]])
        gateways = gateways[gateways >= 0]
        return len(gateways) < 2 or not links_of(self.snapshot).overdrawn(gateways)

    def at_most(self) -> Int64:
        """Count the replicas that each cluster could hold if it were one large node, shape (C,).

        Only figures that a replica takes for certain are counted.
        """
        k = int(self._statement.queue.lines[self._number, JOB_DEMAND])
        amounts = self.snapshot.demands.arrays.amounts[k]
        certain = 3 if amounts[DEMAND_GPUS] and amounts[DEMAND_GPU_MEMORY] else 2
        asked, free = asked_sums(self.snapshot, k)[:certain], free_sums(self.snapshot)[:certain]
        counts = np.where(asked > 0, np.maximum(free, 0) // np.maximum(asked, 1), self.job.replicas).min(axis=0)
        return np.where(self._open != 0, counts, 0)

    def _nodes_since(self, row: int) -> Int64:
        return self._statement.lines[row : self._statement.length, PLAN_NODE]


def place_gang(trial: Trial) -> bool:
    """Place a whole gang, in one cluster if possible or if it has to be; return whether it was placed."""
    replicas = trial.job.replicas
    order = trial.order()
    if not order:
        return False
    at_most = trial.at_most()
    holds = np.zeros(len(at_most), np.int64)
    for enough in (True, False):  # clusters that cannot hold all are asked only when none can
        for c in order:
            if (at_most[c] >= replicas) == enough and at_most[c] > 0:
                holds[c] = trial.count_within([c], replicas)
                if holds[c] == replicas:
                    return True
    if trial.job.together or holds.sum() < replicas:
        return False
    between, seeds = between_clusters(trial), [c for c in order if holds[c]]
    return any(
        trial.holds_all(chosen.members)
        for circle in trial.circles()
        for chosen in best_sets(between, holds * circle, replicas, [c for c in seeds if circle[c]])
    )


def between_clusters(trial: Trial) -> Between:
    """Return what lies between clusters, and which of them the job's bounds allow together."""
    links, need = links_of(trial.snapshot), trial.job.between_replicas
    clusters = len(trial.snapshot.clusters)
    allowed = links.meeting(need) if need.any else np.ones((clusters, clusters), np.bool_)
    return Between(links.latency_ns(), links.free_mbps(), allowed)
