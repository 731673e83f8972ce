"""From what an interface counted, twice, to what passes through it; and what speeds mean that drivers tell.

References
----------
Linux, ``Documentation/networking/statistics.rst``: counters grow until the interface is re-created, some drivers' only
up to 32 bits. ``ethtool.h``, ``SPEED_UNKNOWN``: -1, all 32 bits of it. node-exporter's netclass collector multiplies
what the kernel says by 125,000, unknown or not.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

NS_PER_S = 1_000_000_000
BITS = 8
PER_MBIT = 1_000_000
UNKNOWN_MBPS = 2**32 - 1
"""What -1 becomes where 32 bits are read without their sign."""


@dataclass(frozen=True, slots=True)
class Counters:
    """What an interface has carried since it was made.

    Attributes
    ----------
    at_ns
        When this was read, on a clock that never goes back, nanoseconds.
    received_bytes, transmitted_bytes
        In and out.
    """

    at_ns: int
    received_bytes: int
    transmitted_bytes: int


@dataclass(frozen=True, slots=True)
class Rates:
    """What passes through an interface, Mbit/s, never below 0."""

    in_mbps: float
    out_mbps: float


def rates(before: Counters, now: Counters, longest_ns: int) -> Rates | None:
    """Return what passed between two readings, on average; None when they do not say.

    They do not when no time lies between them, or more than `longest_ns`, for which a mean says little of now; nor
    when a counter fell: the interface was re-created, or 32 bits were full. Which of them it was, and how much passed,
    nobody knows, and the other counter may have started again too and be beyond where it was.
    """
    elapsed_ns = now.at_ns - before.at_ns
    received = now.received_bytes - before.received_bytes
    transmitted = now.transmitted_bytes - before.transmitted_bytes
    if not 0 < elapsed_ns <= longest_ns or min(received, transmitted) < 0:
        return None
    per_byte = BITS * NS_PER_S / elapsed_ns / PER_MBIT
    return Rates(received * per_byte, transmitted * per_byte)


def is_plausible(seen: Rates) -> bool:
    """Tell whether an interface could carry so much: finite figures, not below 0, less than any unknown speed."""
    return all(0 <= mbps < UNKNOWN_MBPS for mbps in (seen.in_mbps, seen.out_mbps))


def speed_mbps(bytes_per_s: float | None) -> int | None:
    """Return what an interface can carry, Mbit/s, by what its driver says; None where that is nothing.

    Drivers of interfaces that are no piece of hardware, or that are down, say nothing, 0 or -1.
    """
    if bytes_per_s is None or not math.isfinite(bytes_per_s):
        return None
    mbps = int(min(bytes_per_s / PER_MBIT, UNKNOWN_MBPS) * BITS)  # eight times 1e308 is infinite
    return mbps if 0 < mbps < UNKNOWN_MBPS else None
