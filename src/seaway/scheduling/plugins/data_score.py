"""Data score: of the clusters that will do, the one that has pulled a job's data soonest."""

from __future__ import annotations

import numpy as np

from seaway.domain.job import DataPlace
from seaway.scheduling.columns import CLUSTER_GATEWAY, NODE_CLUSTER
from seaway.scheduling.framework import Cycle, Scores
from seaway.scheduling.links import free_bandwidth
from seaway.scheduling.nearness import FULL, UNKNOWN, nearness
from seaway.scheduling.snapshot import Snapshot

MIB_BITS = 8 * 2**20


class DataScore:
    """Scores the nodes of a cluster alike, 0-100, by the time in which a job's data would be there.

    That is its size over what can still be promised from where it is, on the link and on the interfaces at its ends.
    It is scaled between the clusters in which the replica fits, the soonest being 100; where the data is already, no
    time is needed; where it cannot come over any known link, the score is 0. It only ever pulls: no cluster is refused
    for its data. A job that names no data scores 100 everywhere.
    """

    name = "DataScore"

    def score(self, cycle: Cycle) -> Scores:
        """Score every node, shape (N,), 0-100."""
        snapshot, data = cycle.snapshot, cycle.job.data
        cluster_of = snapshot.arrays.nodes[NODE_CLUSTER]
        if not data.location:
            return np.full(len(cluster_of), FULL, np.int64)
        among = np.zeros(len(snapshot.clusters), np.bool_)
        among[cluster_of[cycle.feasible]] = True
        scores: Scores = nearness(pull_ms(snapshot, data), among)[cluster_of]
        return scores


def pull_ms(snapshot: Snapshot, data: DataPlace) -> Scores:
    """Return how long it takes until data is in each cluster, ms, shape (C,); `UNKNOWN` where nobody knows."""
    homes = [data.location in (each.name, each.region, each.gateway) for each in snapshot.clusters]
    doors = [gateway.name == data.location for gateway in snapshot.fleet.gateways]
    targets = snapshot.arrays.clusters[CLUSTER_GATEWAY]
    sources = {*np.flatnonzero(doors).tolist(), *targets[homes].tolist()} - {-1}
    bits = data.size_mib * MIB_BITS
    soonest = np.full(len(snapshot.clusters), UNKNOWN, np.int64)
    for source in sources:
        free = np.where(targets >= 0, free_bandwidth(snapshot.arrays, source, targets), 0)
        soonest = np.minimum(soonest, np.where(free > 0, bits // (np.maximum(free, 1) * 1000), UNKNOWN))
    soonest[np.isin(targets, list(sources)) | np.array(homes, np.bool_)] = 0
    return soonest
