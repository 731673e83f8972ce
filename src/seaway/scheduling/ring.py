"""Rings: the order of the clusters of a job whose replicas each send to the next one.

Only the links between consecutive clusters carry traffic, each in one direction. All replicas of a cluster are
consecutive, so a ring enters and leaves each cluster once.

References
----------
P. Patarasuk and X. Yuan, "Bandwidth optimal all-reduce algorithms for clusters of workstations", Journal of Parallel
and Distributed Computing 69 (2009), 117-124, doi:10.1016/j.jpdc.2008.09.002: all-reduce on a logical ring.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import permutations

import numpy as np
from numpy.typing import NDArray

from seaway.scheduling.arrays import Int64

MAX_CLUSTERS = 8
"""Maximum number of clusters in a ring. All their orders are compared."""

NO_LINK_NS = 2**40
"""Latency of a link that may not be used, longer than that of any ring."""


def best_ring(latency_ns: Int64, allowed: NDArray[np.bool_], members: Sequence[int]) -> tuple[int, ...] | None:
    """Return clusters in the order of their best ring, which starts with the first member.

    The best ring has the lowest maximum latency, then the lowest sum, then the first order.

    Parameters
    ----------
    latency_ns, allowed
        Round-trip time of each link (nanoseconds), and whether a ring may use it from the first to the second cluster,
        shape (C, C).
    members
        Indices of at most `MAX_CLUSTERS` clusters.

    Returns
    -------
    tuple of int or None
        None if every ring needs a link that may not be used.
    """
    at = np.asarray(members)
    costs = np.where(allowed, np.minimum(latency_ns, NO_LINK_NS - 1), NO_LINK_NS)[np.ix_(at, at)]
    orders = _orders(len(members))
    links = costs[orders, np.roll(orders, -1, axis=1)] if len(members) > 1 else np.zeros((1, 1), np.int64)
    best = int(np.lexsort((links.sum(axis=1), links.max(axis=1)))[0])
    return None if links[best].max() >= NO_LINK_NS else tuple(int(each) for each in at[orders[best]])


def nearest_to_ring(latency_ns: Int64, allowed: NDArray[np.bool_], ring: Sequence[int], candidates: Int64) -> int:
    """Return the candidate whose insertion into a ring makes its maximum latency the lowest, then the sum.

    Parameters
    ----------
    ring
        Indices of its clusters, in its order.
    candidates
        Indices of at least one other cluster.
    """
    costs = np.where(allowed, np.minimum(latency_ns, NO_LINK_NS - 1), NO_LINK_NS)
    near, far = np.asarray(ring), np.roll(ring, -1)
    to, back = costs[near][:, candidates], costs[:, far][candidates].T
    longest, total = np.maximum(to, back), to + back
    best = longest.min(axis=0)
    least = np.where(longest == best, total, 4 * NO_LINK_NS).min(axis=0)
    return int(candidates[np.lexsort((least, best))[0]])


@lru_cache(maxsize=MAX_CLUSTERS)
def _orders(members: int) -> NDArray[np.intp]:
    """Return all orders of a ring that start with the first member, shape (orders, members)."""
    return np.array([(0, *rest) for rest in permutations(range(1, members))], np.intp)
