"""Which packets of a lab's links are lost, and when the others go on: arithmetic, for whoever holds them.

Times are nanoseconds on any one clock that never goes back.
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
"""What a link with a rate keeps waiting at most, as the time to send it: 100 ms, as a port's buffer."""

KEPT = 2048
"""Hold times that are kept of each link, the latest."""


@dataclass(slots=True)
class Counts:
    """What came of a link's packets since it was made.

    Attributes
    ----------
    packets, octets
        All that came, those that were lost too.
    lost
        Dropped by chance, as `Conditions.loss_ppm` has it.
    overflowed
        Dropped as too many waited for the rate.
    released
        Sent on.
    held_ns
        Sum of the times from coming to going on, of those sent on.
    late_ns, latest_ns
        By how much they went on later than they should have: the sum, and the largest.
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
        As they are now; packets that are already held keep theirs.
    holds
        The latest packets that went on: when each came, and how long it was held.
    """

    conditions: Conditions = field(default_factory=Conditions)
    counts: Counts = field(default_factory=Counts)
    holds: deque[tuple[int, int]] = field(default_factory=lambda: deque(maxlen=KEPT))
    _free_ns: int = 0
    _last_ns: int = 0

    def take(self, came_ns: int, octets: int, random: Random) -> int | None:
        """Return when a packet goes on; None when it is lost. Packets of a link keep their order."""
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
        """Count a packet that goes on."""
        counts, late_ns = self.counts, now_ns - due_ns
        counts.released += 1
        counts.held_ns += now_ns - came_ns
        counts.late_ns += late_ns
        counts.latest_ns = max(counts.latest_ns, late_ns)
        self.holds.append((came_ns, now_ns - came_ns))

    def change(self, conditions: Conditions) -> None:
        """Have other conditions from the next packet on, whatever is on its way."""
        self.conditions, self._free_ns, self._last_ns = conditions, 0, 0


@dataclass(frozen=True, slots=True)
class LinkReading:
    """What an emulator says of one direction of a link.

    Attributes
    ----------
    counts
        Hold times are 0 where the emulator does not measure them.
    """

    ends: Ends
    conditions: Conditions
    counts: Counts


@dataclass(frozen=True, slots=True)
class Readings:
    """What an emulator says.

    Attributes
    ----------
    missed
        Packets of any link that were lost as the emulator did not keep up.
    """

    links: tuple[LinkReading, ...]
    missed: int = 0


class Holding:
    """All links of a lab and the packets that they hold.

    Parameters
    ----------
    random
        Decides who is lost, and the jitter.
    """

    def __init__(self, random: Random) -> None:
        self.links: dict[Ends, HeldLink] = {}
        self._random = random
        self._held: list[tuple[int, int, int, HeldLink]] = []

    def link(self, ends: Ends) -> HeldLink:
        """Return a link, re-created without delay or loss when there was none."""
        found = self.links.get(ends)
        if found is None:
            found = self.links[ends] = HeldLink()
        return found

    def take(self, packet: int, ends: Ends, came_ns: int, octets: int) -> bool:
        """Hold a packet; False when it is lost.

        Parameters
        ----------
        packet
            Its number; a later one has a larger one.
        """
        link = self.link(ends)
        due_ns = link.take(came_ns, octets, self._random)
        if due_ns is None:
            return False
        heappush(self._held, (due_ns, packet, came_ns, link))
        return True

    def next_ns(self) -> int | None:
        """Return when the next packet goes on; None when none is held."""
        return self._held[0][0] if self._held else None

    def due(self, now_ns: int) -> Iterable[int]:
        """Give the numbers of all packets whose time has come, and count them as sent on."""
        held = self._held
        while held and held[0][0] <= now_ns:
            due_ns, packet, came_ns, link = heappop(held)
            link.release(came_ns, due_ns, now_ns)
            yield packet
