"""What fits where by the engine's own rules of fit, remembered from decision to decision."""

from __future__ import annotations

from seaway.scheduling.framework import Mask
from seaway.scheduling.kernels.among import FitParams, nodes_that_fit
from seaway.scheduling.kernels.rows import FEWEST_ROWS, MOST_ROWS, resized, row_cache
from seaway.scheduling.snapshot import Snapshot

MEMORY_BYTES = 4 * 2**20
"""Memory for it: 430 kinds of request on 1,200 nodes."""


class Fits:
    """Knows which nodes of a snapshot can take what was asked for lately.

    Parameters
    ----------
    snapshot
        The fleet; for it and no other this is good, until nodes join it or demands are forgotten.
    """

    def __init__(self, snapshot: Snapshot) -> None:
        nodes = len(snapshot.nodes)
        rows = min(MOST_ROWS, max(FEWEST_ROWS, MEMORY_BYTES // (8 * max(nodes, 1))))
        self._params = FitParams(row_cache(nodes, len(snapshot.demands), rows))

    def nodes(self, snapshot: Snapshot, line: int) -> Mask:
        """Tell which nodes can take one replica of demand `line` now, links included, shape (N,)."""
        return nodes_that_fit(self.params(snapshot), snapshot.arrays, snapshot.demands.arrays, line)

    def params(self, snapshot: Snapshot) -> FitParams:
        """Return what fitted before, with room for all demands of the snapshot; for kernels."""
        self._params = resized(self._params, len(snapshot.demands.arrays.amounts))
        return self._params


def fits_of(snapshot: Snapshot) -> Fits:
    """Return what is known of a snapshot."""
    known: Fits | None = snapshot.placers.get(Fits)
    if known is None:
        known = snapshot.placers[Fits] = Fits(snapshot)
    return known
