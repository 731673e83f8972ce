"""Interface traffic beyond reserved bandwidth, so that each reservation counts once: as reserved or as measured.

Agents do not measure traffic per job. Two facts are known. A measurement whose interval ended before a job started
contains no traffic of the job. Traffic from before the start of a job belongs to others.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from seaway.application.network.link_table import NO_NETWORK_SNAPSHOT, NetworkSnapshot
from seaway.domain.network import Gateway, Link

Key = tuple[str, int]
"""Job ID and attempt number."""

Ways = tuple[tuple[str, str, int], ...]
"""Reserved bandwidth of a job: source gateway, target gateway, Mbit/s."""

OUT, IN = "out", "in"

Side = tuple[str, str]
"""A gateway and a direction of its interface."""


@dataclass(frozen=True, slots=True)
class _Reservation:
    ways: Ways
    running_ns: int | None


class BandwidthLedger:
    """Separation of reserved bandwidth from measured traffic.

    For each direction of an interface, it stores the *ground*: the minimum of other traffic at the time of the latest
    reservation. The ground counts as other traffic until a measurement is lower.

    Attributes
    ----------
    settling
        Whether the result can change without a new measurement or reservation.
    """

    def __init__(self) -> None:
        self.settling = False
        self._held: dict[Key, _Reservation] = {}
        self._ended: dict[Key, tuple[Ways, int | None]] = {}
        self._begun: set[Side] = set()
        self._grounds: dict[Side, int] = {}
        self._infeasible: dict[Side, int] = {}
        self._last: tuple[NetworkSnapshot, object] | None = None
        self._answer = NO_NETWORK_SNAPSHOT

    # Reservations.

    def begin(self, key: Key, ways: Ways, running_ns: int | None) -> None:
        """Add the reservation of a new attempt; see `note`.

        If the attempt is not running yet, all earlier traffic belongs to others.
        """
        if running_ns is None and key not in self._held:
            self._begun |= _sides(ways)
        self.note(key, ways, running_ns)

    def note(self, key: Key, ways: Ways, running_ns: int | None) -> None:
        """Set the reservation of an attempt.

        Parameters
        ----------
        running_ns
            Wall-clock start of the attempt; None if it is not running yet.
        """
        before = self._held.pop(key, None)
        self._ended.pop(key, None)
        if ways:
            self._held[key] = _Reservation(ways, before.running_ns if before else running_ns)
            self.settling = True

    def run(self, key: Key, running_ns: int | None) -> None:
        """Set the wall-clock start of a running attempt."""
        promise = self._held.get(key)
        if promise and promise.running_ns is None:
            self._held[key] = replace(promise, running_ns=running_ns)

    def end(self, key: Key) -> None:
        """Remove the reservation of an attempt. Later measurements may still contain its traffic."""
        promise = self._held.pop(key, None)
        if promise:
            self._ended[key] = promise.ways, None
            self.settling = True

    def forget(self) -> None:
        """Drop all reservations and grounds. Jobs that are reported again may have been running for long."""
        for known in (self._held, self._ended, self._begun, self._grounds, self._infeasible):
            known.clear()

    def totals(self) -> Counter[Side]:
        """Return the reserved bandwidth of each direction of interfaces, in Mbit/s."""
        return _sums(each.ways for each in self._held.values())

    # Other traffic.

    def beyond(self, network_snapshot: NetworkSnapshot, since_ns: Mapping[str, int], now_ns: int) -> NetworkSnapshot:
        """Return gateways and links with their use beyond reservations.

        The reservation of a job is subtracted from a measurement if the job ran for the whole interval. The result is
        never below the ground. The engine counts the reservations of other jobs in full. Their traffic counts as
        measured too, but only as far as all reservations still fit.

        Parameters
        ----------
        since_ns
            Wall-clock start of the interval of the measurement, by gateway.
        now_ns
            Wall-clock time, nanoseconds since 1970.
        """
        if not network_snapshot.gateways:
            return network_snapshot
        self._forget(since_ns, now_ns)
        total = _sums(each.ways for each in self._held.values())
        possible = total + _sums(ways for ways, _ in self._ended.values())
        sure: Counter[Side] = Counter()
        for each in self._held.values():
            for side, mbps in _parts(each.ways):
                if each.running_ns is not None and each.running_ns <= since_ns.get(side[0], now_ns):
                    sure[side] += mbps
        self.settling = sure != possible
        state = (total, possible, sure, frozenset(self._begun))
        if self._last is None or self._last[0] is not network_snapshot or self._last[1] != state:
            self._last = network_snapshot, state
            rest = {each.name: self._unreserved(each, total, possible, sure) for each in network_snapshot.gateways}
            links = tuple(_used(each, rest[each.source], rest[each.target]) for each in network_snapshot.links)
            self._answer = replace(network_snapshot, gateways=tuple(rest.values()), links=links)
        self._begun.clear()
        return self._answer

    def _forget(self, since_ns: Mapping[str, int], now_ns: int) -> None:
        """Remove ended reservations that no current measurement contains."""
        ended = {key: (ways, now_ns if at_ns is None else at_ns) for key, (ways, at_ns) in self._ended.items()}
        self._ended = {
            key: (ways, at_ns)
            for key, (ways, at_ns) in ended.items()
            if any(since_ns.get(gateway, now_ns) < at_ns for gateway, _ in _sides(ways))
        }

    def _unreserved(
        self, gateway: Gateway, total: Counter[Side], possible: Counter[Side], sure: Counter[Side]
    ) -> Gateway:
        others = []
        for side, measured in (
            ((gateway.name, IN), gateway.used_in_mbps),
            ((gateway.name, OUT), gateway.used_out_mbps),
        ):
            if side in self._begun:
                self._grounds[side] = self._infeasible.get(side, 0)
            if not gateway.speed_mbps:
                others.append(measured)
                continue
            ground = self._grounds[side] = min(self._grounds.get(side, 0), measured)
            least = self._infeasible[side] = max(ground, measured - possible[side])
            room = max(least, gateway.speed_mbps - total[side])
            others.append(min(max(ground, measured - sure[side]), room))
        return replace(gateway, used_in_mbps=others[0], used_out_mbps=others[1])


def _parts(ways: Ways) -> list[tuple[Side, int]]:
    return [part for source, target, mbps in ways for part in (((source, OUT), mbps), ((target, IN), mbps))]


def _sides(ways: Ways) -> set[Side]:
    return {side for side, _ in _parts(ways)}


def _sums(all_ways: Iterable[Ways]) -> Counter[Side]:
    sums: Counter[Side] = Counter()
    for ways in all_ways:
        for side, mbps in _parts(ways):
            sums[side] += mbps
    return sums


def _used(link: Link, source: Gateway, target: Gateway) -> Link:
    """Return a link whose use leaves as much bandwidth as the fuller of its interfaces has."""
    if not link.bandwidth_mbps:
        return link
    left_mbps = min(source.speed_mbps - source.used_out_mbps, target.speed_mbps - target.used_in_mbps)
    used_mbps = max(0, link.bandwidth_mbps - left_mbps)
    return link if used_mbps == link.used_mbps else replace(link, used_mbps=used_mbps)
