"""Allocations and waiting jobs of queues, computed from the live state on demand."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from seaway.application.control.loop import Controller
from seaway.application.fleet.costs import NO_COST, Cost, Lane
from seaway.domain.amounts import GPUS, JOBS, Amounts, add, in_quotas
from seaway.domain.attempt import Attempt
from seaway.domain.job_record import JobRecord
from seaway.domain.job_state import JobState
from seaway.domain.queues import children_of, path_of, subtree_guarantee
from seaway.domain.tenancy import DEFAULT, Quota

NO_COSTS: Mapping[Lane, Cost] = {}

LAST = (math.inf,)
"""Sort key of jobs that cannot be tried now, such as those in a pause."""

CACHE_NS = 1_000_000_000
"""Lifetime of cached sums, nanoseconds. All callers share one computation."""


@dataclass(slots=True)
class QueueUsage:
    """Allocations and waiting jobs of a tenant in a queue.

    Attributes
    ----------
    waiting, running
        Number of tasks that wait, and of those that have a placement. A job that is no array is one task.
    waiting_jobs, running_jobs
        Number of jobs that wait or run. An array is one job.
    holding
        Number of tasks with an allocation.
    longest_wait_s
        Longest wait, seconds since the submit or since the job last ran; 0 if no job waits.
    gpu_milli, gpu_memory_mib, cpu_milli, memory_mib
        Allocated amounts. `gpu_milli` counts reserved cores.
    amounts
        Allocated amounts as queues guarantee and limit them.
    """

    queue: str
    tenant: str
    waiting: int = 0
    running: int = 0
    waiting_jobs: int = 0
    running_jobs: int = 0
    holding: int = 0
    longest_wait_s: float = 0.0
    gpu_milli: int = 0
    gpu_memory_mib: int = 0
    cpu_milli: int = 0
    memory_mib: int = 0
    amounts: dict[str, int] = field(default_factory=dict)


@dataclass(slots=True)
class QueueTotals:
    """Jobs and amounts of a queue with its descendants.

    Attributes
    ----------
    waiting, running, waiting_jobs, running_jobs
        As in `QueueUsage`.
    guarantee
        Guaranteed amounts. For resources that the queue does not name, the sum over its children.
    limit
        Limit of the queue itself.
    used
        Allocated amounts. GPUs of models count under the names that the guarantee and limit have for them.
    cost
        GPU time and cost of the last 30 days.
    """

    queue: str
    guarantee: Amounts
    limit: Amounts
    waiting: int = 0
    running: int = 0
    waiting_jobs: int = 0
    running_jobs: int = 0
    used: dict[str, int] = field(default_factory=dict)
    cost: Cost = NO_COST

    @property
    def borrowed(self) -> Amounts:
        """Amounts beyond the guarantee."""
        beyond = {name: amount - self.guarantee.get(name, 0) for name, amount in self.used.items()}
        return {name: amount for name, amount in beyond.items() if amount > 0}


@dataclass(frozen=True, slots=True)
class Place:
    """Position of a waiting job.

    Attributes
    ----------
    position
        Position among the jobs of its tenant in its queue, from 1; 0 for an array, whose next tasks are not stored yet.
    starts_ns
        Expected start by the wall clock; None if it is unknown.
    """

    position: int
    job: JobRecord
    starts_ns: int | None = None


@dataclass(slots=True)
class TenantTotals:
    """Jobs and amounts of a tenant in a pool, with its quota.

    Attributes
    ----------
    waiting, running, waiting_jobs, running_jobs
        As in `QueueUsage`.
    used
        Allocated amounts, and the number of jobs.
    cost
        GPU time and cost of the last 30 days.
    """

    tenant: str
    pool: str
    quota: Quota
    waiting: int = 0
    running: int = 0
    waiting_jobs: int = 0
    running_jobs: int = 0
    used: dict[str, int] = field(default_factory=dict)
    cost: Cost = NO_COST


class QueueViews:
    """Views of queues."""

    def __init__(self, controller: Controller) -> None:
        self._controller = controller
        self._cached: tuple[int, list[QueueUsage]] = (-CACHE_NS, [])

    def uses(self) -> list[QueueUsage]:
        """Return the allocations and waiting jobs, by queue and tenant, without empty ones."""
        asked_ns = self._controller.live.clock.monotonic_ns()
        if asked_ns - self._cached[0] >= CACHE_NS:
            self._cached = (asked_ns, self._summed_up())
        return self._cached[1]

    def totals(self, tenant: str = "", costs: Mapping[Lane, Cost] = NO_COSTS) -> list[QueueTotals]:
        """Return the sums of all queues with their descendants, by name.

        Parameters
        ----------
        tenant
            Tenant whose queues are returned, with those of all tenants, and whose costs count; empty for all. Jobs of
            all tenants count, since they take the room of its jobs.
        costs
            Costs of queues and tenants.
        """
        queues = self._controller.names.queues.copy()
        children = children_of(queues.values())
        found = {
            name: QueueTotals(name, subtree_guarantee(name, queues, children), queue.limit)
            for name, queue in sorted(queues.items())
        }
        for use in self.uses():
            for each in path_of(use.queue, queues):
                sums = found[each.name]
                _count(sums, use)
                add(sums.used, use.amounts)
        for (queue, owner), cost in costs.items():
            if queue in queues and tenant in {"", owner}:
                for each in path_of(queue, queues):
                    found[each.name].cost += cost
        for sums in found.values():
            sums.used = in_quotas(sums.used, {*sums.guarantee, *sums.limit})
        return [sums for name, sums in found.items() if not tenant or queues[name].tenant in {"", tenant}]

    def tenants(self, costs: Mapping[Lane, Cost] = NO_COSTS) -> list[TenantTotals]:
        """Return the sums of all tenants in each pool, by name, without pools without a quota, jobs and costs.

        A queue that was removed counts in the default pool.
        """
        names = self._controller.names
        found = {
            (tenant.name, pool): TenantTotals(tenant.name, pool, quota)
            for tenant in list(names.tenants.values())
            for pool, quota in tenant.quotas.items()
        }
        for use in self.uses():
            queue = names.queues.get(use.queue)
            key = use.tenant, queue.pool if queue else DEFAULT
            sums = found.setdefault(key, TenantTotals(*key, Quota()))
            _count(sums, use)
            add(sums.used, use.amounts | ({JOBS: use.holding} if use.holding else {}))
        for (name, owner), cost in costs.items():
            queue = names.queues.get(name)
            key = owner, queue.pool if queue else DEFAULT
            found.setdefault(key, TenantTotals(*key, Quota())).cost += cost
        for sums in found.values():
            sums.used = in_quotas(sums.used, {*sums.quota.guarantee, *sums.quota.limit, *sums.quota.user_limit})
        return [found[key] for key in sorted(found)]

    def held_gpus(self, job_ids: Collection[str]) -> dict[str, int]:
        """Return the GPUs that jobs hold now, thousandths, by ID. Arrays hold those of their tasks."""
        with self._controller.lock:
            live = self._controller.live
            attempts = list(live.attempts.values())
        found: defaultdict[str, int] = defaultdict(int)
        for attempt in attempts if job_ids else ():
            job = live.jobs.get(attempt.job_id)
            for each in {attempt.job_id, job.array if job else ""}:
                if each in job_ids:
                    found[each] += attempt.amounts.get(GPUS, 0)
        return dict(found)

    def _summed_up(self) -> list[QueueUsage]:
        with self._controller.lock:
            live = self._controller.live
            jobs, attempts = list(live.jobs.values()), list(live.attempts.values())
            arrays = list(live.arrays.known.values())
            now_ns = live.clock.now_ns()
        found: dict[tuple[str, str], QueueUsage] = {}
        for job in jobs:
            if job.state.waits or job.state.placed:
                use = _use(found, job.spec.queue, job.spec.tenant)
                _count(use, _one(job.state, jobs=not job.array, tasks=1))
            if (since_ns := live.stages.waits_since_ns(job)) is not None:
                use = _use(found, job.spec.queue, job.spec.tenant)
                use.longest_wait_s = max(use.longest_wait_s, (now_ns - since_ns) / 1e9)
        for array in arrays:
            if array.waiting or array.state.waits or array.state.placed:
                use = _use(found, array.spec.queue, array.spec.tenant)
                _count(use, _one(array.state, jobs=1, tasks=0))
                use.waiting += array.waiting
        _add_held(found, attempts)
        return [found[key] for key in sorted(found)]

    def waiting(self, queue: str = "", tenant: str = "") -> list[Place]:
        """Return the waiting jobs of a queue and a tenant, or of all, in the order in which they are tried.

        Jobs without a planned start follow those that have one. Last come arrays with tasks that are not stored yet.
        """
        plan = self._controller.forecast.plan()
        with self._controller.lock:
            live = self._controller.live
            orders = {each.id: each.order for each in live.waiting.entries()}
            jobs = [
                job
                for job in live.jobs.values()
                if job.state.waits and queue in {"", job.spec.queue} and tenant in {"", job.spec.tenant}
            ]
            arrays = [
                Place(0, array)
                for array in live.arrays.known.values()
                if array.waiting and queue in {"", array.spec.queue} and tenant in {"", array.spec.tenant}
            ]
        lanes: defaultdict[tuple[str, str], list[JobRecord]] = defaultdict(list)
        for job in sorted(jobs, key=lambda job: (orders.get(job.id, LAST), job.submitted_ns, job.id)):
            lanes[job.spec.queue, job.spec.tenant].append(job)
        ranked = []
        for name, line in sorted(lanes.items()):
            for position, job in enumerate(line, 1):
                planned = plan.get(job.id)
                place = Place(position, job, planned.starts_ns if planned else None)
                ranked.append((planned.rank if planned else len(plan), position, name, place))
        return [place for *_, place in sorted(ranked, key=lambda each: each[:3])] + arrays


def _one(state: JobState, *, jobs: int, tasks: int) -> QueueUsage:
    """Return the counts of a job or a task in a state."""
    waits, runs = int(state.waits), int(state.placed)
    return QueueUsage("", "", waits * tasks, runs * tasks, waits * jobs, runs * jobs)


def _count(sums: QueueUsage | QueueTotals | TenantTotals, use: QueueUsage) -> None:
    """Add the numbers of jobs and tasks."""
    sums.waiting += use.waiting
    sums.running += use.running
    sums.waiting_jobs += use.waiting_jobs
    sums.running_jobs += use.running_jobs


def _use(found: dict[tuple[str, str], QueueUsage], queue: str, tenant: str) -> QueueUsage:
    return found.setdefault((queue, tenant), QueueUsage(queue, tenant))


def _add_held(found: dict[tuple[str, str], QueueUsage], attempts: Iterable[Attempt]) -> None:
    """Add the allocations of attempts. A job with an ending and a new attempt counts once."""
    running: defaultdict[tuple[str, str], set[str]] = defaultdict(set)
    for attempt in attempts:
        spec, request = attempt.spec, attempt.spec.demand.request
        use = _use(found, spec.queue, spec.tenant)
        running[spec.queue, spec.tenant].add(attempt.job_id)
        add(use.amounts, attempt.amounts)
        use.cpu_milli += request.cpu_milli * len(attempt.holding)
        use.memory_mib += request.memory_mib * len(attempt.holding)
        for placement in attempt.holding:
            for taken in placement.slices:
                use.gpu_milli += taken.core_milli
                use.gpu_memory_mib += taken.memory_mib
    for key, jobs in running.items():
        found[key].holding = len(jobs)
