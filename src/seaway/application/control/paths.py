"""Path selection between gateways, by the network bounds of jobs."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Protocol

from seaway.application.control.pending import is_fresh
from seaway.application.control.state import ControlState
from seaway.application.network.paths import Choice, PathRequest, SteerablePair, choose
from seaway.domain.errors import RejectedError, UnknownError
from seaway.domain.job import OTHER_COPY
from seaway.domain.network import Ends, NetworkNeed
from seaway.scheduling.cycle.jobs import Entry
from seaway.scheduling.engine import decide
from seaway.scheduling.job_queue import JobQueue
from seaway.scheduling.profile import Profile

log = logging.getLogger(__name__)

LOOK_S = 1.0
"""Seconds between two checks."""

MAX_LOOKED_AT = 2_000
"""Maximum number of waiting jobs that a check reads."""

MAX_TRIED = 4
"""Maximum number of jobs per check that are tried with another path."""

MAX_WAITING_JOBS = 50
"""Maximum number of waiting jobs that count for one pair of gateways, the first in order."""


class PathController(Protocol):
    """Interface to the gateways whose traffic can be steered."""

    def crossings(self) -> Sequence[SteerablePair]:
        """Return the pairs of gateways whose traffic can be steered."""

    def choose(self, source: str, target: str, path: str, why: str) -> None:
        """Select the path of the traffic between two gateways."""

    def fail_over(self) -> None:
        """Select another gateway for each cluster whose gateway does not answer while another one does."""


@dataclass(frozen=True, slots=True)
class _Seen:
    """Clusters behind each gateway, and the waiting jobs that were tried, in order."""

    behind: defaultdict[str, set[str]]
    tried: Sequence[Entry]


class Steering:
    """Selection of paths for running and waiting jobs.

    A selected path stays for `path_hold_down_s`, unless it is dead. A waiting job counts only if it fits on a copy of
    the fleet without its network bounds.

    Parameters
    ----------
    live
        The control-plane state.
    policy
        Returns the policy of a queue by its name; None while it is being compiled.

    Attributes
    ----------
    path_controller
        Controller of the paths; None if paths cannot be changed.
    """

    def __init__(self, live: ControlState, policy: Callable[[str], Profile | None]) -> None:
        self._state = live
        self._policy = policy
        self._looked_ns: int | None = None
        self._chosen_ns: dict[Ends, int] = {}
        self.path_controller: PathController | None = None

    def due(self) -> bool:
        """Report whether a check is due."""
        now_ns = self._state.clock.monotonic_ns()
        if self.path_controller is None or (self._looked_ns is not None and now_ns - self._looked_ns < LOOK_S * 1e9):
            return False
        self._looked_ns = now_ns
        return True

    def crossings(self) -> Sequence[SteerablePair]:
        """Return the pairs of gateways whose traffic can be steered."""
        return self.path_controller.crossings() if self.path_controller else ()

    def fail_over(self) -> None:
        """Replace gateways of clusters that do not answer."""
        if self.path_controller:
            self.path_controller.fail_over()

    def steer(self, choices: Sequence[tuple[SteerablePair, Choice]]) -> None:
        """Apply the selected paths. A concurrently changed pair is checked again later."""
        for crossing, choice in choices:
            if self.path_controller:
                try:
                    self.path_controller.choose(crossing.source, crossing.target, choice.path, choice.why)
                except (RejectedError, UnknownError) as error:
                    log.info("traffic from %s to %s is not steered: %s", crossing.source, crossing.target, error)

    def choices(self, crossings: Sequence[SteerablePair]) -> list[tuple[SteerablePair, Choice]]:
        """Return the pairs whose path has to change, with the new path. The caller holds the lock of the loop."""
        if not crossings:
            return []
        free = [each for each in crossings if each.is_dead or not self._held(each)]
        seen = self._look()
        made = [(each, choice) for each in free if (choice := self._chosen(each, seen)).path != each.current]
        for each, _ in made:
            self._chosen_ns[each.source, each.target] = self._state.clock.monotonic_ns()
        return made

    def _look(self) -> _Seen:
        fleet = self._state.fleet
        behind: defaultdict[str, set[str]] = defaultdict(set)
        for live in fleet.clusters.values():
            if live.cluster:
                behind[fleet.gateway_of(live.cluster)].add(live.name)
        nodes_evaluated = islice(self._state.waiting.entries(), MAX_LOOKED_AT)
        jobs = self._state.jobs
        tried = [each for each in nodes_evaluated if not is_fresh(jobs[each.id]) and _bounded(each)]
        return _Seen(behind, sorted(tried, key=lambda entry: entry.order))

    def _chosen(self, crossing: SteerablePair, seen: _Seen) -> Choice:
        """Select a path for a pair. Skip up to `MAX_TRIED` jobs that do not fit with any path."""
        here, there = seen.behind[crossing.source], seen.behind[crossing.target]
        running = [*self._running(crossing.source, here, there)]
        entries = _jobs_needing(seen.tried, crossing.source, here, there)
        for _ in range(MAX_TRIED):
            cluster_options = [PathRequest(entry.id, need) for entry, need in entries]
            choice = choose(crossing.paths, crossing.current, running, cluster_options)
            decisive = next((each for each in entries if each[0].id == choice.job_id), None)
            if decisive is None or self._fits_without_quality(decisive[0], there):
                return choice
            entries.remove(decisive)
        return choose(crossing.paths, crossing.current, running, ())

    def _held(self, crossing: SteerablePair) -> bool:
        chosen_ns = self._chosen_ns.get((crossing.source, crossing.target))
        hold_ns = int(self._state.settings.path_hold_down_s * 1e9)
        return chosen_ns is not None and self._state.clock.monotonic_ns() - chosen_ns < hold_ns

    def _running(self, source: str, here: set[str], there: set[str]) -> Iterator[NetworkNeed]:
        """Yield the network bounds of running jobs for a pair: between users and clusters, and between clusters."""
        for cluster in there:
            for key in self._state.by_cluster[cluster]:
                attempt = self._state.attempts[key]
                demand, between = attempt.spec.demand, attempt.spec.between_replicas
                if demand.network.any and demand.gateway == source:
                    yield demand.network
                if between.any and not here.isdisjoint(attempt.clusters):
                    yield between

    def _fits_without_quality(self, entry: Entry, there: set[str]) -> bool:
        """Report whether a job fits in these clusters without its bounds on link quality; a gang, in any cluster."""
        policy = self._policy(entry.queue)
        if policy is None:
            return False
        job, copy = entry.job, self._state.fleet.snapshot.copy()
        nodes = job.demand.nodes
        if not job.between_replicas.any:
            nodes = replace(nodes, clusters=frozenset(there & nodes.clusters if nodes.clusters else there))
        demand = replace(job.demand, network=_bandwidth_only(job.demand.network), nodes=nodes)
        job = replace(job, demand=demand, between_replicas=_bandwidth_only(job.between_replicas))
        try:
            queue = JobQueue(copy, [job])
        except RejectedError:  # its gateway is gone
            return False
        return bool(decide(copy, queue, policy, overdue={0}, dry_run=True).jobs_placed[0])


def _bounded(entry: Entry) -> bool:
    return entry.job.demand.network.any or entry.job.between_replicas.any


def _jobs_needing(
    tried: Sequence[Entry], source: str, here: set[str], there: set[str]
) -> list[tuple[Entry, NetworkNeed]]:
    """Return the first waiting jobs that need the link of a pair, with their bounds."""
    found = []
    for entry in tried:
        demand, between = entry.job.demand, entry.job.between_replicas
        if demand.network.any and demand.gateway == source and _allowed(entry, there):
            found.append((entry, demand.network))
        elif between.any and _allowed(entry, there) and _allowed(entry, here):
            found.append((entry, between))
    return found[:MAX_WAITING_JOBS]


def _allowed(entry: Entry, clusters: set[str]) -> bool:
    allowed = entry.job.demand.nodes.clusters
    avoided = {cluster for cluster, node in entry.job.demand.nodes.avoid if node in ("", OTHER_COPY)}
    return bool((clusters & allowed if allowed else clusters) - avoided)


def _bandwidth_only(need: NetworkNeed) -> NetworkNeed:
    """Return only the bandwidth of the bounds, which is equal on all paths."""
    return NetworkNeed(min_bandwidth_mbps=need.min_bandwidth_mbps)
