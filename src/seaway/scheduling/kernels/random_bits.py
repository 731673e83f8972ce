"""Stateless random bits: a number for every decision, node and device.

A number depends only on its purpose. The same seed therefore gives the same plan, whether a queue is decided together
or job by job, and independent of the number of evaluated nodes.
"""

from __future__ import annotations

import numpy as np

from seaway.scheduling.kernels.compile import compiled


@compiled
def mixed(seed: int, first: int, second: int) -> int:
    """Mix three numbers into 63 random bits.

    References
    ----------
    Steele, Lea, Flood: Fast splittable pseudorandom number generators. OOPSLA 2014,
    doi:10.1145/2660193.2660195 (the finaliser of SplitMix64, applied after each number).
    """
    bits = np.uint64(seed)
    for number in (np.uint64(first), np.uint64(second)):  # of one type, whatever integers they came as
        bits = (bits ^ number) + np.uint64(0x9E3779B97F4A7C15)
        bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        bits ^= bits >> np.uint64(31)
    return int(np.int64(bits >> np.uint64(1)))
