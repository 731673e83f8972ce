"""Sets of clusters that lie near each other: where a gang goes that no single cluster holds."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from seaway.scheduling.state import Int64


@dataclass(frozen=True, slots=True)
class Between:
    """What lies between clusters, tables of shape (C, C).

    Attributes
    ----------
    latency_ns, free_mbps
        Round-trip time and bandwidth.
    allowed
        Whether two clusters may be in one set.
    """

    latency_ns: Int64
    free_mbps: Int64
    allowed: NDArray[np.bool_]


@dataclass(frozen=True, slots=True, order=True)
class ClusterSet:
    """Some clusters, ordered as sets are preferred.

    Attributes
    ----------
    latency_ns
        The longest latency between any two.
    size
        How many there are.
    rank
        Place of the cluster from which the set was grown, for ties.
    members
        Their indices, in the order in which they joined.
    """

    latency_ns: int
    size: int
    rank: int
    members: tuple[int, ...]


def best_sets(between: Between, holds: Int64, replicas: int, seeds: Sequence[int]) -> Iterator[ClusterSet]:
    """Yield sets that together hold all replicas, best first.

    Parameters
    ----------
    between
        The network.
    holds
        How many replicas each cluster holds by itself, shape (C,).
    replicas
        How many there are to place.
    seeds
        The clusters from which to grow a set, the first preferred among equals.
    """
    growing = [grown(between, holds, replicas, seed, rank) for rank, seed in enumerate(seeds)]
    waiting = [found for each in growing if (found := next(each, None))]
    heapq.heapify(waiting)
    while waiting:
        best = heapq.heappop(waiting)
        yield best
        larger = next(growing[best.rank], None)
        if larger:
            heapq.heappush(waiting, larger)


def grown(between: Between, holds: Int64, replicas: int, seed: int, rank: int) -> Iterator[ClusterSet]:
    """Grow a set from one cluster and yield it from when it holds all replicas.

    The cluster that joins is the one with the smallest worst latency to all that are in the set;
    among equals the one with most bandwidth to them, then the first.
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
