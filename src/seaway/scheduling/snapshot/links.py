"""Tables of the network between clusters."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from seaway.domain.network import Link, NetworkNeed
from seaway.scheduling.arrays import FleetArrays, Int64
from seaway.scheduling.columns import CLUSTER_GATEWAY, GATEWAY_IN, GATEWAY_OUT
from seaway.scheduling.snapshot.encode import link_meets
from seaway.scheduling.snapshot.snapshot import Snapshot

Index = int | np.int64 | Int64
"""Index of one gateway, or indices of several."""

UNKNOWN_NS = 2**62
"""Latency of links that are not measured or do not respond, larger than all others."""

NO_LINK_MBPS = 2**40
"""Bandwidth between clusters that need no link, larger than that of any link."""


class ClusterLinks:
    """Symmetric table of links between the clusters of a snapshot.

    If both directions are measured, the worse one counts. No link is needed between clusters behind one gateway.

    Parameters
    ----------
    snapshot
        Snapshot. Its links are read now, its free bandwidth on each call.
    """

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._links = list(snapshot.links)
        gateways = {gateway.name: g for g, gateway in enumerate(snapshot.fleet.gateways)}
        self._ends = (
            np.array([gateways[link.source] for link in self._links], np.intp),
            np.array([gateways[link.target] for link in self._links], np.intp),
        )
        self._answers = np.array([link.reachable for link in self._links], np.bool_)
        self._size = len(gateways) + 1
        self._at = snapshot.arrays.clusters[CLUSTER_GATEWAY]  # -1 is the last row: no gateway, no link
        self._latency_ns = self._latency()
        self._within_bounds: dict[NetworkNeed, NDArray[np.bool_]] = {}

    def latency_ns(self) -> Int64:
        """Return round-trip times, shape (C, C); `UNKNOWN_NS` if a link is unknown or does not respond."""
        return self._latency_ns

    def free_mbps(self, *, one_way: bool = False) -> Int64:
        """Return the bandwidth that can be reserved, Mbit/s, shape (C, C); 0 if a link is unknown.

        This is the minimum over the link and the interfaces at its ends, in the worse direction. With `one_way`, it is
        that from the first to the second cluster, or of the reverse direction if only that is measured.
        """
        free = self._table(NO_LINK_MBPS, free_bandwidth(self._snapshot.arrays, *self._ends))
        less = np.where(free == NO_LINK_MBPS, free.T, free) if one_way else np.minimum(free, free.T)
        less[less == NO_LINK_MBPS] = 0
        return self._of_clusters(less, NO_LINK_MBPS)

    def free_from(self, source: int) -> Int64:
        """Return the bandwidth that can be reserved from a gateway to each cluster, Mbit/s, shape (C,).

        It is 0 if a link is unknown or does not respond.
        """
        free = np.where(self._at >= 0, free_bandwidth(self._snapshot.arrays, source, self._at), 0)
        unreachable = self._ends[1][(self._ends[0] == source) & ~self._answers]
        free[np.isin(self._at, unreachable)] = 0
        return free

    def satisfying(self, need: NetworkNeed, *, one_way: bool = False) -> NDArray[np.bool_]:
        """Return the pairs of clusters whose link meets `need`, shape (C, C). Unknown links do not.

        With `one_way`, only the bandwidth from the first to the second cluster counts.
        """
        return self.within_bounds(need) & (self.free_mbps(one_way=one_way) >= need.min_bandwidth_mbps)

    def within_bounds(self, need: NetworkNeed) -> NDArray[np.bool_]:
        """Return the pairs of clusters whose link meets the bounds of `need` except bandwidth, shape (C, C)."""
        if need not in self._within_bounds:
            verdicts = self._table(1, np.array([link_meets(need, link) for link in self._links], np.int64))
            met = self._of_clusters(np.minimum(verdicts, verdicts.T), 1) == 1
            self._within_bounds[need] = met & (self._latency_ns < UNKNOWN_NS)
        return self._within_bounds[need]

    def is_overcommitted(self, gateways: Int64) -> bool:
        """Report whether reservations exceed the capacity of an interface of some gateways, or of a link between them.

        Parameters
        ----------
        gateways
            Indices of the gateways, shape (X,).
        """
        arrays = self._snapshot.arrays
        between = np.isin(self._ends[0], gateways) & np.isin(self._ends[1], gateways)
        links = arrays.bandwidth[self._ends[0][between], self._ends[1][between]]
        return bool((links < 0).any() or (arrays.gateways[:, gateways] < 0).any())

    def _latency(self) -> Int64:
        table = self._table(-1, np.array([latency_ns(link) for link in self._links], np.int64))
        worse = np.maximum(table, table.T)
        worse[worse < 0] = UNKNOWN_NS
        return self._of_clusters(worse, 0)

    def _table(self, unknown: int, figures: Int64) -> Int64:
        """Return a table of a value of the links between gateways, with an extra row for clusters without one."""
        table = np.full((self._size, self._size), unknown, np.int64)
        table[self._ends] = figures
        return table

    def _of_clusters(self, table: Int64, same: int) -> Int64:
        """Return a table for clusters from a table for gateways. `same` is the value for pairs that need no link."""
        found = table[np.ix_(self._at, self._at)]
        one = (self._at[:, None] == self._at[None, :]) & (self._at >= 0)[None, :]
        found[one | np.eye(len(self._at), dtype=np.bool_)] = same
        return found


def free_bandwidth(arrays: FleetArrays, source: Index, target: Index) -> Int64:
    """Return the bandwidth that can be reserved between gateways, on the link and on both interfaces, Mbit/s.

    Parameters
    ----------
    source, target
        Indices of gateways, with shapes that can be broadcast. There is no limit from a gateway to itself.
    """
    gateways = arrays.gateways
    shared = np.minimum(gateways[GATEWAY_OUT, source], gateways[GATEWAY_IN, target])
    free: Int64 = np.where(np.equal(source, target), NO_LINK_MBPS, np.minimum(arrays.bandwidth[source, target], shared))
    return free


def latency_ns(link: Link) -> int:
    """Return the round-trip time of a link; `UNKNOWN_NS` if it does not respond."""
    return UNKNOWN_NS if link.latency_ns is None else link.latency_ns


def links_of(snapshot: Snapshot) -> ClusterLinks:
    """Return the links of a snapshot, which are cached until new measurements arrive."""
    known: tuple[list[Link], Any] | None = snapshot.placers.get(ClusterLinks)
    if known is None or known[0] is not snapshot.links:
        known = snapshot.placers[ClusterLinks] = (snapshot.links, ClusterLinks(snapshot))
    links: ClusterLinks = known[1]
    return links
