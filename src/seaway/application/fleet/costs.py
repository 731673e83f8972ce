"""GPU time and cost of jobs, queues and tenants, from stored attempts and the present prices of clusters.

No cost is stored: a changed price also changes the cost of the past.
"""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from seaway.application.control.loop import Controller
from seaway.application.ports.store import JobFilter, JobSort, Store
from seaway.application.records import NS_PER_S, HeldUse
from seaway.domain import job_spec as ids
from seaway.domain.amounts import GPUS, MODEL_PREFIX, Amounts, held_amounts
from seaway.domain.attempt import Attempt
from seaway.domain.device import WHOLE_DEVICE_MILLI
from seaway.domain.facts import Facts
from seaway.domain.job import Demand, ResourceRequest
from seaway.domain.job_record import JobRecord
from seaway.domain.placement import Placement
from seaway.scheduling.arrays import Int64

NS_PER_MS = 1_000_000
MS_PER_H = 3_600_000

SUM_S = 30 * 86_400
"""Length of the time until now that counts in the costs of queues and tenants, seconds."""

CACHE_NS = 60 * NS_PER_S
"""Lifetime of the costs of queues and tenants, nanoseconds. All callers share one computation."""

FRESH_NS = NS_PER_S
"""Time for which the uses that are not settled are not read again, nanoseconds."""

Held = Sequence[tuple[Attempt, JobRecord]]
"""Attempts that have not ended, with their jobs."""

SETTLED_NS = 60 * NS_PER_S
"""Time after the end of an attempt until it counts as stored, nanoseconds. Later ones are read each time."""

MAX_CHANGED = 2_000
"""Maximum number of jobs whose totals are not in the arrays by which jobs are sorted."""

UNKNOWN = np.iinfo(np.int64).max
"""Sort key of an unknown cost, which is last."""

Key = tuple[int, int]
"""Numbers of a job and of its attempt."""

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
        self._spot: dict[str, Mapping[str, bool] | None] = {}
        self._known: dict[tuple[str, str, bool | None], int | None] = {}

    def agree(self, earlier: _Prices) -> bool:
        """Report whether all prices that earlier ones returned are the same now."""
        return (
            self._clusters.keys() == earlier._clusters.keys()
            and all(self._spot_nodes(cluster) == nodes for cluster, nodes in earlier._spot.items())
            and all(self._price(*key) == price for key, price in earlier._known.items())
        )

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
        nodes = self._spot_nodes(placement.cluster)
        return False if nodes is None else nodes.get(placement.node)

    def _spot_nodes(self, name: str) -> Mapping[str, bool] | None:
        """Return whether each node of a cluster is a spot node; None where that does not matter."""
        if name not in self._spot:
            cluster = self._clusters.get(name)
            matters = cluster is not None and cluster.facts.spot_prices
            self._spot[name] = {node.name: node.spot for node in cluster.nodes} if cluster and matters else None
        return self._spot[name]

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


@dataclass(frozen=True, slots=True)
class _Use:
    """Rate of an attempt, and how long it lasted."""

    job: int
    lane: Lane
    rate: Rate
    created_ns: int
    ended_ns: int | None

    def cost(self, since_ns: int, now_ns: int) -> Cost:
        """Return its cost after a time."""
        return Cost(self.held(since_ns, now_ns), self.rate if self.ended_ns is None else Rate())

    def held(self, since_ns: int, now_ns: int) -> Rate:
        """Return its rate times the milliseconds after a time."""
        end_ns = now_ns if self.ended_ns is None else self.ended_ns
        return self.rate * (max(0, end_ns - max(self.created_ns, since_ns)) // NS_PER_MS)


@dataclass(frozen=True, slots=True)
class _Values:
    """Values by which jobs are sorted, shape (J,), by job number; -1 for an unknown one."""

    jobs: Int64
    values: Int64

    @classmethod
    def of(cls, totals: Mapping[int, Rate], sort: JobSort) -> _Values:
        """Return the values of jobs with rates times milliseconds: their cost, or their GPU time."""
        value = _gpu_time if sort is JobSort.GPU_HOURS else _known_micros
        jobs = np.fromiter(totals, np.int64, len(totals))
        values = np.fromiter(map(value, totals.values()), np.int64, len(totals))
        order = np.argsort(jobs)
        return cls(jobs[order], values[order])

    def put(self, numbers: Int64, into: Int64) -> None:
        """Replace the values of those of the jobs that are known."""
        if self.jobs.size:
            at = np.minimum(np.searchsorted(self.jobs, numbers), self.jobs.size - 1)
            into[:] = np.where(self.jobs[at] == numbers, self.values[at], into)


class _Ended:
    """Uses of ended attempts, which do not change: each is read and priced once. Not thread-safe.

    All are read again when prices change, and when the database has others: it removes old ones, and after an outage
    stores some late. Uses of other attempts are those of the control loop, and from the database only while it reloads.

    Parameters
    ----------
    held
        Returns the attempts that have not ended; None while the control loop reloads its state.
    """

    def __init__(self, store: Store, held: Callable[[], Held | None]) -> None:
        self._store, self._held = store, held
        self._running: dict[Key, tuple[Attempt, JobRecord, _Use]] = {}
        self._recent: dict[Key, _Use] = {}
        self._prices: _Prices | None = None
        self._until_ns, self._read_ns = 0, -FRESH_NS
        self._fresh: list[_Use] = []
        self.uses: list[_Use] = []
        self.totals: dict[int, Rate] = {}
        """Rates times milliseconds by job."""
        self.changed: set[int] = set()
        """Jobs whose totals are newer than `values`."""
        self._values: dict[JobSort, _Values] = {}

    def refresh(self, prices: _Prices, now_ns: int) -> list[_Use]:
        """Read those that ended since the last call; return the uses that are not settled, at most `FRESH_NS` old."""
        settled_ns, fresh, recent = now_ns - SETTLED_NS, list[_Use](), dict[Key, _Use]()
        same = self._prices is not None and prices.agree(self._prices)
        if same and 0 <= now_ns - self._read_ns < FRESH_NS:
            return self._fresh
        if not same or self._store.count_ended(self._until_ns) != len(self.uses):
            self._prices, self._until_ns, self.uses, self.totals = prices, 0, [], {}
            self._values, self._running, self._recent = {}, {}, {}
        assert self._prices is not None
        held_now = self._held()
        self._running = {} if held_now is None else self._priced_now(self._prices, held_now)
        for held in self._store.held_uses(self._until_ns, ended=held_now is not None):
            if held.attempt in self._running:  # the control loop does not know yet that it ended
                continue
            use = self._recent.get(held.attempt) or _priced(self._prices, held)
            if use.ended_ns is None:
                fresh.append(use)
            elif use.ended_ns >= settled_ns:
                recent[held.attempt] = use
            else:
                self.uses.append(use)
                self.totals[use.job] = self.totals.get(use.job, Rate()) + use.held(0, now_ns)
                self.changed.add(use.job)
        if not self._values or len(self.changed) > MAX_CHANGED:
            self._values, self.changed = {}, set()
        fresh += [*recent.values(), *(use for *_, use in self._running.values())]
        self._recent = recent
        self._until_ns, self._read_ns, self._fresh = max(self._until_ns, settled_ns), now_ns, fresh
        return fresh

    def _priced_now(self, prices: _Prices, held: Held) -> dict[Key, tuple[Attempt, JobRecord, _Use]]:
        """Return the uses of attempts that have not ended. Each is priced again only when its record changes."""
        found = {}
        for attempt, job in held:
            key = ids.decode(attempt.job_id) or 0, attempt.number
            known = self._running.get(key)
            if known is None or known[0] is not attempt or known[1] is not job:
                owner, lane = job.array or job.id, (job.spec.queue, job.spec.tenant)
                use = HeldUse(owner, *lane, attempt.amounts, attempt.placements, attempt.created_ns)
                known = attempt, job, _priced(prices, use)
            found[key] = known
        return found

    def values(self, sort: JobSort) -> _Values:
        """Return the values of all jobs with uses that are settled, except for those of `changed`."""
        if sort not in self._values:
            self._values[sort] = _Values.of(self.totals, sort)
        return self._values[sort]


class Costs:
    """Costs of jobs, groups of jobs, queues and tenants. Thread-safe."""

    def __init__(self, controller: Controller, store: Store) -> None:
        self._controller, self._store = controller, store
        self._cached: tuple[int, Mapping[Lane, Cost]] | None = None
        self._ended, self._lock = _Ended(store, self._held), threading.Lock()

    def of_jobs(self, job_ids: Sequence[str]) -> dict[str, Cost]:
        """Return the cost of each job until now; of an array, that of its tasks. Unknown jobs cost nothing.

        Parameters
        ----------
        job_ids
            IDs of at most `MAX_ROWS` jobs.
        """
        found = dict.fromkeys(job_ids, Cost())
        prices, now_ns = _Prices(self._controller), self._now_ns()
        for use in self._store.held_uses(job_ids=tuple(found)) if found else ():
            for each in {use.job_id, use.task} & found.keys():
                found[each] += _priced(prices, use).cost(0, now_ns)
        return found

    def of_attempts(self, attempts: Iterable[Attempt]) -> list[Cost]:
        """Return the cost of each attempt until now."""
        prices, now_ns = _Prices(self._controller), self._now_ns()
        uses = (
            HeldUse(each.job_id, "", "", each.amounts, each.placements, each.created_ns, each.ended_ns)
            for each in attempts
        )
        return [_priced(prices, use).cost(0, now_ns) for use in uses]

    def ranked(self, wanted: JobFilter, limit: int) -> list[str]:
        """Return IDs of jobs by cost or GPU time, those with equal values from new to old, unknown costs last."""
        sort = wanted.sort or JobSort.COST
        numbers = np.sort(np.array(self._store.job_numbers(wanted), np.int64))[::-1]
        values = np.zeros_like(numbers)
        with self._lock:
            now_ns = self._now_ns()
            fresh = self._ended.refresh(_Prices(self._controller), now_ns)
            changed = {job: self._ended.totals[job] for job in self._ended.changed}
            for use in fresh:
                held, before = use.held(0, now_ns), changed.get(use.job) or self._ended.totals.get(use.job)
                changed[use.job] = before + held if before else held
            self._ended.values(sort).put(numbers, values)
        _Values.of(changed, sort).put(numbers, values)
        keys = np.where(values < 0, UNKNOWN, -values if wanted.descending else values)
        order = np.argsort(keys, kind="stable")[wanted.offset : wanted.offset + limit]
        return list(map(ids.encode, numbers[order].tolist()))

    def by_lane(self) -> Mapping[Lane, Cost]:
        """Return the cost by queue and tenant in the last 30 days."""
        asked_ns = self._controller.live.clock.monotonic_ns()
        with self._lock:
            if self._cached is None or asked_ns - self._cached[0] >= CACHE_NS:
                prices, now_ns = _Prices(self._controller), self._now_ns()
                since_ns = now_ns - SUM_S * NS_PER_S
                found: defaultdict[Lane, Cost] = defaultdict(Cost)
                times: defaultdict[tuple[Lane, Rate], int] = defaultdict(int)
                for use in self._ended.refresh(prices, now_ns):
                    found[use.lane] += use.cost(since_ns, now_ns)
                for use in self._ended.uses:
                    if use.ended_ns and use.ended_ns > since_ns:
                        times[use.lane, use.rate] += (use.ended_ns - max(use.created_ns, since_ns)) // NS_PER_MS
                for (lane, rate), lasted_ms in times.items():
                    found[lane] += Cost(rate * lasted_ms)
                self._cached = asked_ns, dict(found)
            return self._cached[1]

    def by_group(self, groups: Mapping[int, str]) -> dict[str, Cost]:
        """Return the cost of jobs in the last 30 days by group.

        Parameters
        ----------
        groups
            Group of each job, by the number of its ID. Other jobs do not count.
        """
        found: defaultdict[str, Cost] = defaultdict(Cost)
        times: defaultdict[tuple[str, Rate], int] = defaultdict(int)
        with self._lock:
            prices, now_ns = _Prices(self._controller), self._now_ns()
            since_ns = now_ns - SUM_S * NS_PER_S
            for use in self._ended.refresh(prices, now_ns):
                if (name := groups.get(use.job)) is not None:
                    found[name] += use.cost(since_ns, now_ns)
            for use in self._ended.uses:
                if use.ended_ns and use.ended_ns > since_ns and (name := groups.get(use.job)) is not None:
                    times[name, use.rate] += (use.ended_ns - max(use.created_ns, since_ns)) // NS_PER_MS
        for (name, rate), lasted_ms in times.items():
            found[name] += Cost(rate * lasted_ms)
        return found

    def _held(self) -> Held | None:
        with self._controller.lock:
            if not self._controller.loaded or self._controller.half_read:
                return None
            live = self._controller.live
            attempts = list(live.attempts.items())  # and no more, since the loop waits for the lock
        found = ((attempt, live.jobs.get(job_id)) for (job_id, _), attempt in attempts)
        return [(attempt, job) for attempt, job in found if job]

    def _now_ns(self) -> int:
        return self._controller.live.clock.now_ns()


def _priced(prices: _Prices, held: HeldUse) -> _Use:
    rate = prices.rate(held.amounts, held.placements)
    lane = held.queue, held.tenant
    return _Use(ids.decode(held.job_id) or 0, lane, rate, held.created_ns, held.ended_ns)


def _gpu_time(held: Rate) -> int:
    """Return the sum of GPUs times their durations, thousandths times milliseconds."""
    return held.priced_milli + held.unpriced_milli


def _known_micros(held: Rate) -> int:
    """Return the cost, millionths of the currency's unit; -1 if no price is known."""
    micros = _micros(held, MS_PER_H)
    return -1 if micros is None else micros
