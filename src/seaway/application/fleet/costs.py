"""GPU time and cost of jobs, queues and tenants, from stored attempts and the present prices of clusters.

Nothing is stored: a changed price also changes the cost of the past.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from seaway.application.control.loop import Controller
from seaway.application.ports.store import JobFilter, Store
from seaway.application.records import NS_PER_S, Attempt, HeldUse
from seaway.domain.amounts import GPUS, MODEL_PREFIX, Amounts, held_amounts
from seaway.domain.device import WHOLE_DEVICE_MILLI
from seaway.domain.facts import Facts
from seaway.domain.job import Demand, ResourceRequest
from seaway.domain.job_state import JobState
from seaway.domain.placement import Placement

NS_PER_MS = 1_000_000
MS_PER_H = 3_600_000

SUM_S = 30 * 86_400
"""Length of the time until now that counts in the costs of queues and tenants, seconds."""

CACHE_NS = 60 * NS_PER_S
"""Lifetime of the costs of queues and tenants, nanoseconds. All callers share one computation."""

ALL_STATES = frozenset(JobState)

Lane = tuple[str, str]
"""A queue and a tenant."""


@dataclass(frozen=True, slots=True)
class Rate:
    """Held GPUs, thousandths, with and without a known price, and the price of the first in an hour.

    Attributes
    ----------
    microprice
        Millionths of the currency's unit times thousandths of a GPU.
    """

    priced_milli: int = 0
    unpriced_milli: int = 0
    microprice: int = 0

    def __add__(self, other: Rate) -> Rate:
        """Return the sum."""
        return Rate(
            self.priced_milli + other.priced_milli,
            self.unpriced_milli + other.unpriced_milli,
            self.microprice + other.microprice,
        )

    def __mul__(self, times: int) -> Rate:
        """Return a multiple."""
        return Rate(self.priced_milli * times, self.unpriced_milli * times, self.microprice * times)


@dataclass(frozen=True, slots=True)
class Cost:
    """GPU time and cost so far, and the rate at which they grow.

    Attributes
    ----------
    held
        Rates times milliseconds.
    now
        Rate of the attempts that still hold GPUs.
    """

    held: Rate = field(default_factory=Rate)
    now: Rate = field(default_factory=Rate)

    def __add__(self, other: Cost) -> Cost:
        """Return the sum."""
        return Cost(self.held + other.held, self.now + other.now)

    @property
    def gpu_hours(self) -> float:
        """Held GPUs times hours."""
        return (self.held.priced_milli + self.held.unpriced_milli) / WHOLE_DEVICE_MILLI / MS_PER_H

    @property
    def unpriced_gpu_hours(self) -> float:
        """The part of them with an unknown price."""
        return self.held.unpriced_milli / WHOLE_DEVICE_MILLI / MS_PER_H

    @property
    def micros(self) -> int | None:
        """Cost so far of the GPUs with a known price, millionths of the currency's unit; None if no price is known."""
        return _micros(self.held, MS_PER_H)

    @property
    def micros_per_hour(self) -> int | None:
        """Cost of the GPUs that it holds now with a known price, in an hour; None if no price is known."""
        return _micros(self.now, 1)


NO_COST = Cost()


def _micros(rate: Rate, per: int) -> int | None:
    if rate.unpriced_milli and not rate.priced_milli:
        return None
    return round(rate.microprice / (WHOLE_DEVICE_MILLI * per))


class _Prices:
    """Prices of the clusters at one time."""

    def __init__(self, controller: Controller) -> None:
        with controller.lock:
            fleet = controller.live.fleet
            self._snapshot = fleet.snapshot
            self._clusters = {cluster.name: cluster for cluster in fleet.snapshot.clusters}
            self._own_facts = fleet.own_facts
        self._spot: dict[str, Mapping[str, bool]] = {}
        self._known: dict[tuple[str, str, bool | None], int | None] = {}

    def rate(self, amounts: Amounts, placements: Sequence[Placement]) -> Rate:
        """Return the rate of an attempt. A slice counts as its larger share of cores and memory."""
        total = amounts.get(GPUS, 0)
        if not total:
            return Rate()
        places: defaultdict[tuple[str, bool | None], list[Placement]] = defaultdict(list)
        for each in placements:
            places[each.cluster, self._is_spot(each)].append(each)
        priced, micros = 0, 0
        for (cluster, spot), there in places.items():
            for name, milli in (amounts if len(places) == 1 else self._held(there)).items():
                if name.startswith(MODEL_PREFIX):
                    price = self._price(cluster, name.removeprefix(MODEL_PREFIX), spot)
                    priced += 0 if price is None else milli
                    micros += milli * (price or 0)
        return Rate(priced, max(0, total - priced), micros)

    def _held(self, placements: Iterable[Placement]) -> Amounts:
        return held_amounts(Demand(ResourceRequest()), placements, self._snapshot.device)

    def _is_spot(self, placement: Placement) -> bool | None:
        """Report whether a node is a spot node, where that matters; None for a node that is gone."""
        cluster = self._clusters.get(placement.cluster)
        if cluster is None or not cluster.facts.spot_prices:
            return False
        if cluster.name not in self._spot:
            self._spot[cluster.name] = {node.name: node.spot for node in cluster.nodes}
        return self._spot[cluster.name].get(placement.node)

    def _price(self, cluster: str, model: str, spot: bool | None) -> int | None:
        """Return the price of a model; None if it is unknown, or differs between nodes and the node is gone."""
        key = cluster, model, spot
        if key not in self._known:
            facts = self._facts(cluster)
            normal, cheap = (facts.microprice(model, spot=each) for each in (False, True))
            self._known[key] = cheap if spot else normal if spot is False or normal == cheap else None
        return self._known[key]

    def _facts(self, cluster: str) -> Facts:
        known = self._clusters.get(cluster)
        return known.facts if known else self._own_facts(cluster)


class Costs:
    """Costs of jobs, queues and tenants. Thread-safe."""

    def __init__(self, controller: Controller, store: Store) -> None:
        self._controller, self._store = controller, store
        self._cached: tuple[int, Mapping[Lane, Cost]] | None = None

    def of_jobs(self, job_ids: Sequence[str]) -> dict[str, Cost]:
        """Return the cost of each job until now; of an array, that of its tasks. Unknown jobs cost nothing.

        Parameters
        ----------
        job_ids
            IDs of at most `MAX_ROWS` jobs.
        """
        found = dict.fromkeys(job_ids, Cost())
        ids = tuple(found)
        prices, now_ns = _Prices(self._controller), self._now_ns()
        wanted = JobFilter(ids=ids, array=None, states=ALL_STATES)
        for use in self._store.held_uses(wanted) if ids else ():
            found[use.job_id] += _cost(prices, use, 0, now_ns)
        return found

    def of_attempts(self, attempts: Iterable[Attempt]) -> list[Cost]:
        """Return the cost of each attempt until now."""
        prices, now_ns = _Prices(self._controller), self._now_ns()
        uses = (HeldUse("", "", "", each.amounts, each.placements, each.created_ns, each.ended_ns) for each in attempts)
        return [_cost(prices, use, 0, now_ns) for use in uses]

    def ranked(self, wanted: JobFilter) -> list[str]:
        """Return the IDs of all jobs of a filter by cost, those with equal cost from new to old, unknown costs last."""
        prices, now_ns = _Prices(self._controller), self._now_ns()
        found: defaultdict[str, Rate] = defaultdict(Rate)
        for use in self._store.held_uses(wanted):
            found[use.job_id] += _cost(prices, use, 0, now_ns).held
        micros = {job_id: _micros(rate, MS_PER_H) for job_id, rate in sorted(found.items(), reverse=True)}
        known = [job_id for job_id, cost in micros.items() if cost is not None]
        known.sort(key=lambda job_id: micros[job_id] or 0, reverse=wanted.descending)
        return [*known, *(job_id for job_id, cost in micros.items() if cost is None)]

    def by_lane(self) -> Mapping[Lane, Cost]:
        """Return the cost by queue and tenant in the last 30 days."""
        asked_ns = self._controller.live.clock.monotonic_ns()
        if self._cached is None or asked_ns - self._cached[0] >= CACHE_NS:
            prices, now_ns = _Prices(self._controller), self._now_ns()
            since_ns = max(1, now_ns - SUM_S * NS_PER_S)
            found: defaultdict[Lane, Cost] = defaultdict(Cost)
            wanted = JobFilter(array=None, states=ALL_STATES)
            for use in self._store.held_uses(wanted, since_ns, tasks=False):
                found[use.queue, use.tenant] += _cost(prices, use, since_ns, now_ns)
            self._cached = asked_ns, dict(found)
        return self._cached[1]

    def _now_ns(self) -> int:
        return self._controller.live.clock.now_ns()


def _cost(prices: _Prices, use: HeldUse, since_ns: int, now_ns: int) -> Cost:
    """Return the cost of a use after a time."""
    rate = prices.rate(use.amounts, use.placements)
    end_ns = now_ns if use.ended_ns is None else use.ended_ns
    lasted_ms = max(0, end_ns - max(use.created_ns, since_ns)) // NS_PER_MS
    return Cost(rate * lasted_ms, rate if use.ended_ns is None else Rate())
