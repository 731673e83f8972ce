"""Verdicts: which bounds of running jobs their links break now."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import permutations

import numpy as np

from seaway.application.control.live import Live
from seaway.application.control.reserve import Reservations
from seaway.application.records import Attempt
from seaway.domain.amounts import rate_text
from seaway.domain.bounds import misses, way
from seaway.domain.network import Ends, Link, NetworkNeed
from seaway.probing.figures import Figures
from seaway.scheduling.links import free_bandwidth
from seaway.scheduling.snapshot import Snapshot

MOST_KNOWN = 100_000
"""Verdicts that are remembered from look to look; beyond that all are forgotten."""

LONG_AGO_NS = -(2**62)
"""When a link was seen to be bad whose latest round was not."""


@dataclass(frozen=True, slots=True)
class Breach:
    """What is broken of a job's network.

    Attributes
    ----------
    text
        Which links, and by which figures.
    clusters
        Those to which the user's link is broken.
    seen_ns
        Since when it is known that it still is, by the monotonic clock: when the latest round came that breaks a bound
        by itself, and now where nothing tells of rounds.
    """

    text: str
    clusters: frozenset[str]
    seen_ns: int


@dataclass(frozen=True, slots=True)
class _Bad:
    """What one link breaks."""

    text: str
    seen_ns: int


class Verdicts:
    """Judges the links of what runs, each once in a look however many jobs go by it.

    Parameters
    ----------
    live
        The loop's memory.
    reservations
        What is kept for jobs that wait: that takes nothing from those that run.
    """

    def __init__(self, live: Live, reservations: Reservations) -> None:
        self._live = live
        self._reservations = reservations
        self._now_ns = 0
        self._snapshot: Snapshot | None = None
        self._list: list[Link] = []
        self._links: dict[Ends, Link] = {}
        self._doors: dict[str, str] = {}
        self._over_mbps: dict[Ends, int] = {}
        self._rounds: dict[Ends, tuple[int, int]] = {}
        self._bad: dict[tuple[Ends, NetworkNeed], _Bad] = {}
        self._good: dict[Ends, set[NetworkNeed]] = {}
        self._known = 0

    def renew(self) -> set[Ends] | None:
        """Begin a look; return the links that may break other bounds than at the last one, None for any."""
        snapshot, before = self._live.fleet.snapshot, self._snapshot
        self._now_ns, self._snapshot = self._live.clock.monotonic_ns(), snapshot
        self._bad.clear()
        changed: set[Ends] = set()
        if snapshot is not before or snapshot.links is not self._list:
            self._list, old = snapshot.links, self._links
            self._links = links = {(link.source, link.target): link for link in snapshot.links}
            changed = {ends for ends in old.keys() | links.keys() if _differ(old.get(ends), links.get(ends))}
        promised, self._over_mbps = self._over_mbps, self._overdrawn(snapshot)
        changed |= {ends for ends, _ in promised.items() ^ self._over_mbps.items()}
        for ends in changed:
            self._known -= len(self._good.pop(ends, ()))
        if snapshot is before:
            return changed
        self._doors = {cluster.name: cluster.gateway for cluster in snapshot.clusters}
        self._rounds = {ends: known for ends, known in self._rounds.items() if ends in self._links}
        return None

    def ways(self, attempt: Attempt) -> frozenset[Ends]:
        """Return the links that an attempt's bounds are about."""
        return frozenset((*self._from_user(attempt).values(), *self._between(attempt)))

    def breach(self, attempt: Attempt) -> Breach | None:
        """Return what is broken of an attempt's network; None when all that was measured keeps its bounds."""
        need = attempt.spec.demand.network
        broken = {cluster: bad for cluster, ends in self._from_user(attempt).items() if (bad := self._of(need, ends))}
        between = [bad for ends in self._between(attempt) if (bad := self._of(attempt.spec.between_replicas, ends))]
        found = [*broken.values(), *between]
        if not found:
            return None
        text = "; ".join(dict.fromkeys(each.text for each in found))
        return Breach(text, frozenset(broken), max(each.seen_ns for each in found))

    def _from_user(self, attempt: Attempt) -> dict[str, Ends]:
        user = attempt.spec.demand.gateway
        if not attempt.spec.demand.network.any:
            return {}
        doors = ((cluster, self._doors.get(cluster, "")) for cluster in attempt.clusters)
        return {cluster: (user, door) for cluster, door in doors if door != user}

    def _between(self, attempt: Attempt) -> Iterator[Ends]:
        if attempt.spec.between_replicas.any and len(attempt.clusters) > 1:
            yield from permutations(sorted({self._doors.get(each, "") for each in attempt.clusters} - {""}), 2)

    def _of(self, need: NetworkNeed, ends: Ends) -> _Bad | None:
        """Say what a link breaks; None for nothing, or when nobody measures it."""
        good = self._good.setdefault(ends, set())
        if need in good:
            return None
        found = self._bad.get((ends, need))
        if found is None and (link := self._links.get(ends)) is not None:
            found = self._judged(need, link)
        if found:
            self._bad[ends, need] = found
            return found
        if self._known >= MOST_KNOWN:
            self._good, self._known = {ends: (good := set())}, 0
        good.add(need)
        self._known += 1
        return None

    def _judged(self, need: NetworkNeed, link: Link) -> _Bad | None:
        ends = link.source, link.target
        counts = bool(need.min_bandwidth_mbps and link.bandwidth_mbps)
        over_mbps = self._over_mbps.get(ends, 0) if counts else 0
        said, full = misses(need, link, running=True), counts and link.free_mbps < need.min_bandwidth_mbps
        if over_mbps and not full:
            said += (f"{rate_text(over_mbps)} more is promised than it has",)
        if not said:
            return None
        return _Bad(way(*ends, said), self._now_ns if full or over_mbps else self._seen_ns(need, link))

    def _seen_ns(self, need: NetworkNeed, link: Link) -> int:
        """Return when the latest round came if it breaks the same bounds by itself, else long ago."""
        ends = link.source, link.target
        latest = self._live.book.latest(ends)
        if latest is None:
            return self._now_ns
        at_ns, seen = latest
        lately = _lately(link, seen)
        if lately is None or not misses(need, lately, running=True):
            return LONG_AGO_NS
        known = self._rounds.get(ends)
        if known is None or known[0] != at_ns:
            known = self._rounds[ends] = at_ns, self._now_ns
        return known[1]

    def _overdrawn(self, snapshot: Snapshot) -> dict[Ends, int]:
        """Return by how much more is promised to what runs, on links and interfaces, than they have, Mbit/s."""
        over_mbps = _overdrawn(snapshot)
        if over_mbps and self._reservations.bookings():
            copy = snapshot.copy()
            self._reservations.lift_from(copy)
            over_mbps = _overdrawn(copy)
        return over_mbps


def _differ(one: Link | None, other: Link | None) -> bool:
    return one is not other and one != other


def _lately(link: Link, seen: Figures) -> Link | None:
    """Return the better of what decisions go by and the latest round said; None where that one answered again."""
    if link.latency_ns is None:
        return link if seen.latency_ns is None else None
    latency_ns = link.latency_ns if seen.latency_ns is None else min(link.latency_ns, seen.latency_ns)
    jitter_ns, loss_ppm = min(link.jitter_ns, seen.jitter_ns), min(link.loss_ppm, seen.loss_ppm)
    return replace(link, latency_ns=latency_ns, jitter_ns=jitter_ns, loss_ppm=loss_ppm)


def _overdrawn(snapshot: Snapshot) -> dict[Ends, int]:
    names = [gateway.name for gateway in snapshot.fleet.gateways]
    every = np.arange(len(names))
    free = free_bandwidth(snapshot.arrays, every[:, None], every[None, :])
    return {(names[s], names[t]): -int(free[s, t]) for s, t in np.argwhere(free < 0).tolist()}
