"""Steering: has traffic between gateways take the paths that jobs need, before jobs are placed by them."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Protocol

from seaway.application.control.live import Live
from seaway.application.control.waiting import Entry
from seaway.application.network.paths import Choice, Measured, Wish, choose
from seaway.domain.errors import RejectedError, UnknownError
from seaway.domain.lifecycle import JobState
from seaway.domain.network import NetworkNeed

log = logging.getLogger(__name__)

LOOK_S = 1.0
"""Pause between two looks at what jobs need."""

MOST_LOOKED_AT = 2_000
"""Jobs that wait and are looked through for those that need a path."""

MOST_WISHES = 50
"""Jobs that wait and are heeded for one pair of gateways, the first in order."""


@dataclass(frozen=True, slots=True)
class Crossing:
    """Two gateways between which traffic can be steered.

    Attributes
    ----------
    current
        The path that is taken now.
    paths
        All paths, liked best first.
    """

    source: str
    target: str
    current: str
    paths: tuple[Measured, ...]

    @property
    def silent(self) -> bool:
        """Whether nothing comes back along the path that is taken, and something does along another."""
        now = next((path for path in self.paths if path.name == self.current), None)
        return (now is None or not now.answers) and any(path.answers for path in self.paths)


class PathDesk(Protocol):
    """Knows where traffic can be steered, and has it steered."""

    def crossings(self) -> Sequence[Crossing]:
        """Return the pairs of gateways whose traffic can be steered now."""

    def choose(self, source: str, target: str, path: str, why: str) -> None:
        """Have traffic take a path from now on."""


class Steering:
    """Chooses paths by what runs and by what waits.

    A path that was chosen stays for `path_hold_s`, unless nothing answers along it any more.

    Parameters
    ----------
    live
        The loop's memory.

    Attributes
    ----------
    desk
        Steers; None where nobody does.
    """

    def __init__(self, live: Live) -> None:
        self._live = live
        self._looked_ns: int | None = None
        self._chosen_ns: dict[tuple[str, str], int] = {}
        self.desk: PathDesk | None = None

    def due(self) -> bool:
        """Tell whether it is time to look, and there is anything to steer."""
        now_ns = self._live.clock.monotonic_ns()
        if self.desk is None or (self._looked_ns is not None and now_ns - self._looked_ns < LOOK_S * 1e9):
            return False
        self._looked_ns = now_ns
        return True

    def crossings(self) -> Sequence[Crossing]:
        """Return the pairs of gateways whose traffic can be steered now."""
        return self.desk.crossings() if self.desk else ()

    def steer(self, choices: Sequence[tuple[Crossing, Choice]]) -> None:
        """Have traffic take the paths that were chosen; a pair that changed meanwhile is looked at again later."""
        for crossing, choice in choices:
            if self.desk:
                try:
                    self.desk.choose(crossing.source, crossing.target, choice.path, choice.why)
                except (RejectedError, UnknownError) as error:
                    log.info("traffic from %s to %s is not steered: %s", crossing.source, crossing.target, error)

    def choices(self, crossings: Sequence[Crossing]) -> list[tuple[Crossing, Choice]]:
        """Return which paths are to be taken instead of others; to be called under the loop's lock."""
        free = [each for each in crossings if each.silent or not self._held(each)]
        made = []
        for each in free:
            choice = choose(each.paths, each.current, [*self._running(each)], self._waiting(each))
            if choice.path != each.current:
                self._chosen_ns[each.source, each.target] = self._live.clock.monotonic_ns()
                made.append((each, choice))
        return made

    def _held(self, crossing: Crossing) -> bool:
        chosen_ns = self._chosen_ns.get((crossing.source, crossing.target))
        hold_ns = int(self._live.settings.path_hold_s * 1e9)
        return chosen_ns is not None and self._live.clock.monotonic_ns() - chosen_ns < hold_ns

    def _running(self, crossing: Crossing) -> Iterator[NetworkNeed]:
        """Find what running jobs need of a pair, between users and clusters and between clusters."""
        there = self._behind(crossing.target)
        here = self._behind(crossing.source)
        for cluster in there:
            for key in self._live.by_cluster[cluster]:
                attempt = self._live.attempts[key]
                demand, between = attempt.spec.demand, attempt.spec.between_replicas
                if demand.network.any and demand.gateway == crossing.source:
                    yield demand.network
                if between.any and not here.isdisjoint(attempt.clusters):
                    yield between

    def _waiting(self, crossing: Crossing) -> list[Wish]:
        """Find what the first of those who wait need of the pair between them and clusters that they may go to."""
        there = self._behind(crossing.target)
        looked_at = islice(self._live.waiting.entries(), MOST_LOOKED_AT)
        mine = [entry for entry in looked_at if _needs(entry, crossing.source, there)]
        mine.sort(key=lambda entry: entry.order)
        return [Wish(entry.record.id, entry.job.demand.network) for entry in mine[:MOST_WISHES]]

    def _behind(self, gateway: str) -> set[str]:
        fleet = self._live.fleet
        return {
            live.name for live in fleet.clusters.values() if live.cluster and fleet.gateway_of(live.cluster) == gateway
        }


def _needs(entry: Entry, source: str, clusters: set[str]) -> bool:
    """Tell whether a job, after it was tried, needs something of the way from its gateway to one of some clusters."""
    demand = entry.job.demand
    if not demand.network.any or demand.gateway != source or entry.record.state is not JobState.QUEUED:
        return False
    allowed = demand.nodes.clusters
    avoided = {cluster for cluster, node in demand.nodes.avoid if not node}
    return bool((clusters & allowed if allowed else clusters) - avoided)
