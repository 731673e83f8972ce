"""Figures of a link from a round of probes, and rates from the counters of interfaces."""

from __future__ import annotations

import math
from dataclasses import dataclass

from seaway.domain.network import PPM


@dataclass(frozen=True, slots=True)
class Round:
    """Result of one round of probes to one target.

    Attributes
    ----------
    sent
        Number of sent probes.
    rtts_ns
        Round-trip time of each answered probe, nanoseconds, in the order of sending.
    discarded
        Answers with an impossible time, for example after a clock change; they count neither as sent nor as answered.
    """

    sent: int
    rtts_ns: tuple[int, ...]
    discarded: int = 0


@dataclass(frozen=True, slots=True)
class Figures:
    """Figures of a link from a round.

    Attributes
    ----------
    latency_ns
        Mean round-trip time, nanoseconds; None without answers.
    jitter_ns
        Largest deviation from the mean, nanoseconds; 0 without answers.
    loss_ppm
        Share of probes without an answer, parts per million.
    """

    latency_ns: int | None
    jitter_ns: int
    loss_ppm: int


def figures(measured: Round) -> Figures:
    """Work out latency, jitter and loss of a round that sent something.

    Raises
    ------
    ValueError
        When nothing was sent, or more was answered than sent.
    """
    rtts, sent = measured.rtts_ns, measured.sent
    if sent < 1 or len(rtts) > sent:
        raise ValueError(f"{len(rtts)} answers to {sent} probes")
    loss_ppm = (sent - len(rtts)) * PPM // sent
    if not rtts:
        return Figures(None, 0, loss_ppm)
    mean = round(sum(rtts) / len(rtts))
    return Figures(mean, max(max(rtts) - mean, mean - min(rtts)), loss_ppm)


NS_PER_S = 1_000_000_000
BITS = 8
PER_MBIT = 1_000_000
UNKNOWN_MBPS = 2**32 - 1
"""Value of -1 read as an unsigned 32-bit number."""


@dataclass(frozen=True, slots=True)
class Counters:
    """Counters of an interface since its creation.

    Attributes
    ----------
    at_ns
        Time of the reading on a monotonic clock, nanoseconds.
    received_bytes, transmitted_bytes
        In and out.
    """

    at_ns: int
    received_bytes: int
    transmitted_bytes: int


@dataclass(frozen=True, slots=True)
class Rates:
    """Traffic of an interface, Mbit/s, never below 0."""

    in_mbps: float
    out_mbps: float


def rates(before: Counters, now: Counters, longest_ns: int) -> Rates | None:
    """Return the mean rates between two readings; None if they are unknown.

    They are unknown if no time is between the readings, or more than `longest_ns`, after which a mean is not current;
    and if a counter fell, because the interface was re-created or 32 bits overflowed. The other counter may have
    started again too and already exceed its old value.
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
    """Return the speed of an interface, Mbit/s, from its driver; None if unknown.

    Drivers of virtual interfaces, or of interfaces that are down, report nothing, 0 or -1.
    """
    if bytes_per_s is None or not math.isfinite(bytes_per_s):
        return None
    mbps = int(min(bytes_per_s / PER_MBIT, UNKNOWN_MBPS) * BITS)  # eight times 1e308 is infinite
    return mbps if 0 < mbps < UNKNOWN_MBPS else None
