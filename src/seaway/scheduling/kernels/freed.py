"""What fits where something has ended: for queues whose jobs fitted nowhere before."""

from __future__ import annotations

import numpy as np

from seaway.scheduling.kernels.borrow import borrowed
from seaway.scheduling.kernels.compile import compiled
from seaway.scheduling.kernels.fit import node_fits
from seaway.scheduling.state import DemandArrays, FleetArrays, Int64, UInt8


@compiled
def fitting(fleet: FleetArrays, demands: DemandArrays, lines: Int64, nodes: Int64) -> UInt8:
    """Tell which demands fit one of some nodes now, links left out.

    Parameters
    ----------
    lines
        Lines of the demands, shape (X,).
    nodes
        Shape (Y,).

    Returns
    -------
    UInt8
        1 where a demand fits, shape (X,).
    """
    fleet, demands = borrowed(fleet), borrowed(demands)
    found = np.zeros(lines.shape[0], np.uint8)
    for at in range(lines.shape[0]):
        for n in nodes:
            if node_fits(fleet, demands, lines[at], n):
                found[at] = 1
                break
    return found
