"""Jobs whose replicas may spread over clusters: gangs, and jobs with bounds on the links between.

A gang goes into one cluster if any holds it. Otherwise, unless it has to stay together, sets of
clusters are grown, each from one cluster, always adding the one that is nearest to all that are in
the set, until the gang fits; the set with the smallest latency wins.
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
from seaway.scheduling.state import Int64
from seaway.scheduling.statement import Statement

if TYPE_CHECKING:
    from seaway.scheduling.engine import Placer


def place_spanning(placer: Placer, statement: Statement, first: int) -> None:
    """Decide the queue's job number `first`, whose replicas may spread, and append to the statement.

    A gang is placed as a whole or not at all. Of another job the replicas are placed one after the
    other, each where the links to all before it keep the job's bounds.
    """
    gate = statement.snapshot.arrays.clusters_open[CLUSTERS_GATE]
    before = gate.copy()
    try:
        trial = Trial(placer, statement, first)
        if not statement.queue.lines[first, JOB_GANG]:
            trial.place_apart()
        elif not place_gang(trial):
            statement.refuse(first)
    finally:
        gate[:] = before


class Trial:
    """One job that is tried in one set of clusters after another.

    Parameters
    ----------
    placer, statement, job
        As in `place_spanning`. Clusters that are shut when the trial begins stay shut.
    """

    def __init__(self, placer: Placer, statement: Statement, job: int) -> None:
        self._placer = placer
        self._statement = statement
        self._number = job
        self.job = statement.queue.jobs[job]
        self.snapshot = statement.snapshot
        self._gate = self.snapshot.arrays.clusters_open[CLUSTERS_GATE]
        self._open = self._gate.copy()

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

    def first_choice(self) -> int:
        """Return the cluster that the policy would choose for the first replica; -1 for none."""
        self._gate[:] = self._open
        before = self._statement.checkpoint()
        self._placer.place_replicas(self._statement, self._number, 0, 1)
        n = int(self._nodes_since(before[0])[0])
        self._statement.rollback(before)
        return int(self.snapshot.arrays.nodes[NODE_CLUSTER, n]) if n >= 0 else -1

    def place_apart(self) -> None:
        """Place the replicas one by one, each in a cluster with good links to all before it."""
        links, homes = links_of(self.snapshot), set[int]()
        for replica in range(self.job.replicas):
            c = self._place_apart(replica)
            if c >= 0 and c not in homes:
                homes.add(c)
                kept = links.keeping(self.job.between_replicas)[c]
                self._open &= kept  # bandwidth is asked for when it is promised
            self._gate[:] = self._open

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
    home = trial.first_choice()
    if home < 0:
        return False
    at_most = trial.at_most()
    most_free_first = np.argsort(-free_gpu_milli(trial.snapshot), kind="stable")
    order = [home, *(int(c) for c in most_free_first if c != home)]
    holds = np.zeros(len(order), np.int64)
    for enough in (True, False):  # clusters that cannot hold all are asked only when none can
        for c in order:
            if (at_most[c] >= replicas) == enough and at_most[c] > 0:
                holds[c] = trial.count_within([c], replicas)
                if holds[c] == replicas:
                    return True
    if trial.job.together or holds.sum() < replicas:
        return False
    sets = best_sets(between_clusters(trial), holds, replicas, [c for c in order if holds[c]])
    return any(trial.holds_all(chosen.members) for chosen in sets)


def between_clusters(trial: Trial) -> Between:
    """Return what lies between clusters, and which of them the job's bounds allow together."""
    links, need = links_of(trial.snapshot), trial.job.between_replicas
    clusters = len(trial.snapshot.clusters)
    allowed = links.meeting(need) if need.any else np.ones((clusters, clusters), np.bool_)
    return Between(links.latency_ns(), links.free_mbps(), allowed)
