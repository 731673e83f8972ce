"""Traffic on interfaces beyond reserved bandwidth, so that each reservation counts once: as reserved or as measured.

Agents do not measure traffic per job. Two facts are known: a figure whose interval ended before a job started contains
none of its traffic, and traffic from before its start is not its own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from seaway.application.network.link_table import NO_NETWORK_SNAPSHOT, NetworkSnapshot
from seaway.domain.network import Gateway, Link

Key = tuple[str, int]
"""Id of a job and number of an attempt."""

Ways = tuple[tuple[str, str, int], ...]
"""Reserved bandwidth of a job: source gateway, target gateway, Mbit/s."""

OUT, IN = "out", "in"

Side = tuple[str, str]
"""A gateway, and one direction of its interface."""


@dataclass(frozen=True, slots=True)
class _Reservation:
    ways: Ways
    running_ns: int | None


class BandwidthLedger:
    """Takes what was promised to jobs out of what was measured.

    Of each direction of an interface it keeps its *ground*: what others carried there, at least, when a job was
    promised some of it last. It counts as others' until less than that is measured.

    Attributes
    ----------
    settling
        Whether the answer may become another although nothing new is measured or promised.
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

    # What is promised.

    def begin(self, key: Key, ways: Ways, running_ns: int | None) -> None:
        """Note what is promised to an attempt that is new here; see `note`.

        If it does not run yet, nothing that was measured before is its own.
        """
        if running_ns is None and key not in self._held:
            self._begun |= _sides(ways)
        self.note(key, ways, running_ns)

    def note(self, key: Key, ways: Ways, running_ns: int | None) -> None:
        """Note between which gateways an attempt's promise is now.

        Parameters
        ----------
        running_ns
            Since when it runs, by the time of day; None if it does not yet.
        """
        before = self._held.pop(key, None)
        self._ended.pop(key, None)
        if ways:
            self._held[key] = _Reservation(ways, before.running_ns if before else running_ns)
            self.settling = True

    def run(self, key: Key, running_ns: int | None) -> None:
        """Note since when an attempt runs."""
        promise = self._held.get(key)
        if promise and promise.running_ns is None:
            self._held[key] = replace(promise, running_ns=running_ns)

    def end(self, key: Key) -> None:
        """Note that nothing is promised to an attempt any more; what it sent may still be in what is measured."""
        promise = self._held.pop(key, None)
        if promise:
            self._ended[key] = promise.ways, None
            self.settling = True

    def forget(self) -> None:
        """Drop all reservations and the traffic before them: jobs that are reported again may have run for long."""
        for known in (self._held, self._ended, self._begun, self._grounds, self._infeasible):
            known.clear()

    def totals(self) -> Counter[Side]:
        """Return what is promised of each direction of interfaces, Mbit/s."""
        return _sums(each.ways for each in self._held.values())

    # What is others'.

    def beyond(self, network_snapshot: NetworkSnapshot, since_ns: Mapping[str, int], now_ns: int) -> NetworkSnapshot:
        """Return gateways and links with what is in use on them and not promised to a job.

        Of what was measured, promises are taken out to jobs that have run for all of the time that the figure is of,
        down to the ground. Others have their promise kept by the engine, and what they may already send counts besides,
        but only as far as that breaks no promise.

        Parameters
        ----------
        since_ns
            From when on what was measured of a gateway is, by the time of day; gateways that are measured.
        now_ns
            The time of day, nanoseconds since 1970.
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
            rest = {each.name: self._rest(each, total, possible, sure) for each in network_snapshot.gateways}
            links = tuple(_used(each, rest[each.source], rest[each.target]) for each in network_snapshot.links)
            self._answer = replace(network_snapshot, gateways=tuple(rest.values()), links=links)
        self._begun.clear()
        return self._answer

    def _forget(self, since_ns: Mapping[str, int], now_ns: int) -> None:
        """Forget what ended before the time that all is measured of where it was promised."""
        ended = {key: (ways, now_ns if at_ns is None else at_ns) for key, (ways, at_ns) in self._ended.items()}
        self._ended = {
            key: (ways, at_ns)
            for key, (ways, at_ns) in ended.items()
            if any(since_ns.get(gateway, now_ns) < at_ns for gateway, _ in _sides(ways))
        }

    def _rest(self, gateway: Gateway, total: Counter[Side], possible: Counter[Side], sure: Counter[Side]) -> Gateway:
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
    """Return a link with what others use of it: what both interfaces have left is what it has left."""
    if not link.bandwidth_mbps:
        return link
    left_mbps = min(source.speed_mbps - source.used_out_mbps, target.speed_mbps - target.used_in_mbps)
    used_mbps = max(0, link.bandwidth_mbps - left_mbps)
    return link if used_mbps == link.used_mbps else replace(link, used_mbps=used_mbps)
