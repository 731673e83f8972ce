"""Data locality: transfer time of a job's data to each cluster, and groups of clusters by transfer time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from seaway.domain.job import DataSource
from seaway.domain.reasons import Reason, also, both
from seaway.domain.units import memory_text, rough_time_text
from seaway.scheduling.arrays import Int64, UInt8
from seaway.scheduling.columns import CLUSTER_GATEWAY, JOB_GANG, JOB_SPANS, PLAN_NODE
from seaway.scheduling.gang import place_spanning
from seaway.scheduling.snapshot.links import links_of
from seaway.scheduling.snapshot.snapshot import Snapshot
from seaway.scheduling.statement import Statement

if TYPE_CHECKING:
    from seaway.scheduling.gang import Placer


MIB_BITS = 8 * 2**20
MINUTE_MS = 60_000

UNREACHABLE_MS = 2**62
"""Transfer time to a cluster without a known path, larger than all others."""

MAX_CLUSTERS_NAMED = 3
"""Maximum number of clusters in a message."""


def pull_ms(snapshot: Snapshot, data: DataSource) -> Int64:
    """Return the current transfer time of data to each cluster, ms, shape (C,); `UNREACHABLE_MS` without a known path.

    This is the size divided by the bandwidth that can be reserved from the data's location, on the link and on the
    interfaces at its ends. It is 0 at the location and behind the same gateway. Links that do not respond are not
    used. The times from several places add up.
    """
    parts = [_pull_ms(snapshot, each) for each in data.places]
    if len(parts) == 1:
        return parts[0]
    total = np.zeros(len(snapshot.clusters), np.int64)
    for part in parts:
        total = np.minimum(total + np.minimum(part, UNREACHABLE_MS), UNREACHABLE_MS)
    return total


def _pull_ms(snapshot: Snapshot, data: DataSource) -> Int64:
    links, gateways = links_of(snapshot), snapshot.arrays.clusters[CLUSTER_GATEWAY]
    homes = np.array(
        [data.location in (each.name, each.region, *each.facts.zones, each.gateway) for each in snapshot.clusters],
        np.bool_,
    )
    named = [g for g, gateway in enumerate(snapshot.fleet.gateways) if gateway.name == data.location]
    sources = {*named, *gateways[homes].tolist()} - {-1}
    bits = data.size_mib * MIB_BITS
    soonest = np.full(len(snapshot.clusters), UNREACHABLE_MS, np.int64)
    for source in sources:
        free = links.free_from(source)
        soonest = np.minimum(soonest, np.where(free > 0, bits // (np.maximum(free, 1) * 1000), UNREACHABLE_MS))
    soonest[np.isin(gateways, list(sources)) | homes] = 0
    return soonest


def locality_tiers(pulls: Int64) -> UInt8:
    """Group clusters by transfer time: 1 if a cluster is in a tier, shape (tiers, C), closest first.

    The first tier is below one minute, the next below 2, then 4, and so on, so that small differences do not matter.
    The last tier has the clusters with an unknown time. No tier is empty.

    Examples
    --------
    >>> locality_tiers(np.array([0, 90_000, 59_999, 2**62])).tolist()
    [[1, 0, 1, 0], [0, 1, 0, 0], [0, 0, 0, 1]]
    """
    doublings = np.frexp((pulls // MINUTE_MS).astype(np.float64))[1]
    return np.array([doublings == each for each in np.unique(doublings)], np.uint8)


def data_text(snapshot: Snapshot, data: DataSource, pulls: Int64, clusters: Sequence[str]) -> str:
    """Describe the location of data and its transfer time to some clusters; empty without data.

    Parameters
    ----------
    pulls
        Transfer times, as from `pull_ms`.
    clusters
        Distinct names of clusters, of which the first few are named.

    Examples
    --------
    ``its data is at cluster-1; 200GB take 27 min to cluster-2``
    """
    if not data.places:
        return ""
    times = [(each, int(pulls[snapshot.cluster_index(each)])) for each in clusters[:MAX_CLUSTERS_NAMED]]
    known = [
        Reason("time_to", time=rough_time_text(ms // 1000), place=each) for each, ms in times if 0 < ms < UNREACHABLE_MS
    ]
    lost = [each for each, ms in times if ms >= UNREACHABLE_MS]
    places = both(*dict.fromkeys(each.location for each in data.places))
    size_mib = sum(each.size_mib for each in data.places)
    parts = [Reason("data_takes", size=memory_text(size_mib), times=tuple(known))] if known else []
    parts += [Reason("data_far", places=", ".join(lost))] if lost else []
    return also(Reason("data_at", places=places), *parts)


def place_near_data(placer: Placer, statement: Statement, first: int) -> None:
    """Decide the queue's job number `first`, whose data has a location, and append it to the statement.

    Each replica, or a gang as a whole, is placed in the closest tier of clusters (see `locality_tiers`) in which it
    fits. If this does not place all replicas, the job is decided as without data, so that data never causes a
    rejection.
    """
    pulls = statement.pulls[first] = pull_ms(statement.snapshot, statement.queue.jobs[first].data)
    spans = bool(statement.queue.rows[first, JOB_SPANS])
    around, before = locality_tiers(pulls), statement.checkpoint()
    if len(around) > 1:
        place_spanning(placer, statement, first, around)
        whole = (statement.decisions[before[0] : statement.length, PLAN_NODE] >= 0).all()
        if whole or (spans and statement.queue.rows[first, JOB_GANG]):  # a gang was tried in all tiers together
            return
        statement.rollback(before)
    if spans:
        place_spanning(placer, statement, first)
    else:
        placer.place(statement, first, first + 1)
