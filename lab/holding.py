"""Calculation of loss and release times of packets on a lab's links, independent of the emulator.

Times are nanoseconds on any monotonic clock.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from heapq import heappop, heappush
from random import Random

from lab.conditions import Conditions
from seaway.domain.network import PPM, Ends

BACKLOG_NS = 100_000_000
"""Maximum backlog of a link with a rate limit, as transmission time: 100 ms, as the buffer of a port."""

STORED = 2048
"""Number of recent hold times stored per link."""


@dataclass(slots=True)
class Counts:
    """Counters of a link's packets since its creation.

    Attributes
    ----------
    packets, octets
        All arrivals, including lost ones.
    lost
        Dropped at random, by `Conditions.loss_ppm`.
    overflowed
        Dropped because of a full backlog.
    released
        Sent on.
    held_ns
        Sum of the times from arrival to release, of released packets.
    late_ns, latest_ns
        Sum and maximum of the delays of releases behind schedule.
    """

    packets: int = 0
    octets: int = 0
    lost: int = 0
    overflowed: int = 0
    released: int = 0
    held_ns: int = 0
    late_ns: int = 0
    latest_ns: int = 0


@dataclass(slots=True)
class HeldLink:
    """One direction of a link.

    Attributes
    ----------
    conditions
        Present conditions; packets that are already held keep theirs.
    holds
        Arrival and hold time of the latest released packets.
    """

    conditions: Conditions = field(default_factory=Conditions)
    counts: Counts = field(default_factory=Counts)
    holds: deque[tuple[int, int]] = field(default_factory=lambda: deque(maxlen=STORED))
    _free_ns: int = 0
    _last_ns: int = 0

    def take(self, came_ns: int, octets: int, random: Random) -> int | None:
        """Return the release time of a packet; None if it is lost. Packets of a link stay in order."""
        how, counts = self.conditions, self.counts
        counts.packets += 1
        counts.octets += octets
        if how.loss_ppm and random.random() * PPM < how.loss_ppm:
            counts.lost += 1
            return None
        leaves_ns = came_ns
        if how.rate_mbps:
            starts_ns = max(came_ns, self._free_ns)
            if starts_ns - came_ns > BACKLOG_NS:
                counts.overflowed += 1
                return None
            self._free_ns = leaves_ns = starts_ns + octets * 8_000 // how.rate_mbps
        due_ns = leaves_ns + how.delay_ns
        if how.jitter_ns:
            due_ns += round(random.uniform(-how.jitter_ns, how.jitter_ns))
        self._last_ns = due_ns = max(due_ns, self._last_ns)
        return due_ns

    def release(self, came_ns: int, due_ns: int, now_ns: int) -> None:
        """Count a released packet."""
        counts, late_ns = self.counts, now_ns - due_ns
        counts.released += 1
        counts.held_ns += now_ns - came_ns
        counts.late_ns += late_ns
        counts.latest_ns = max(counts.latest_ns, late_ns)
        self.holds.append((came_ns, now_ns - came_ns))

    def change(self, conditions: Conditions) -> None:
        """Change the conditions from the next packet on, regardless of packets in transit."""
        self.conditions, self._free_ns, self._last_ns = conditions, 0, 0


@dataclass(frozen=True, slots=True)
class LinkReading:
    """State of one direction of a link.

    Attributes
    ----------
    counts
        Its counters; hold times are 0 if the emulator does not measure them.
    """

    ends: Ends
    conditions: Conditions
    counts: Counts


@dataclass(frozen=True, slots=True)
class Readings:
    """State of an emulator.

    Attributes
    ----------
    missed
        Packets of all links that were lost because the emulator did not keep up.
    """

    links: tuple[LinkReading, ...]
    missed: int = 0


class Holding:
    """All links of a lab with their held packets.

    Parameters
    ----------
    random
        Source of loss and jitter.
    """

    def __init__(self, random: Random) -> None:
        self.links: dict[Ends, HeldLink] = {}
        self._random = random
        self._held: list[tuple[int, int, int, HeldLink]] = []

    def link(self, ends: Ends) -> HeldLink:
        """Return a link; a new one has no delay or loss."""
        found = self.links.get(ends)
        if found is None:
            found = self.links[ends] = HeldLink()
        return found

    def take(self, packet: int, ends: Ends, came_ns: int, octets: int) -> bool:
        """Hold a packet; False if it is lost.

        Parameters
        ----------
        packet
            Its number, which increases.
        """
        link = self.link(ends)
        due_ns = link.take(came_ns, octets, self._random)
        if due_ns is None:
            return False
        heappush(self._held, (due_ns, packet, came_ns, link))
        return True

    def next_ns(self) -> int | None:
        """Return the next release time; None without held packets."""
        return self._held[0][0] if self._held else None

    def due(self, now_ns: int) -> Iterable[int]:
        """Yield the numbers of all packets that are due, and count them as released."""
        held = self._held
        while held and held[0][0] <= now_ns:
            due_ns, packet, came_ns, link = heappop(held)
            link.release(came_ns, due_ns, now_ns)
            yield packet
