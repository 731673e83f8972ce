"""Copies of the control loop, on which questions are tried."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass

from seaway.application.control import pending
from seaway.application.control.rejections import NEVER_REFUSED, Refusals
from seaway.application.control.scheduler.scheduler import Scheduler
from seaway.application.control.state import ControlState
from seaway.application.control.tenancy import Names
from seaway.application.views import ClusterState
from seaway.domain.attempt import Attempt
from seaway.domain.job import Job
from seaway.domain.job_record import JobRecord
from seaway.domain.job_spec import JobSpec
from seaway.domain.queues import Queue
from seaway.scheduling.cycle.ahead import Ahead
from seaway.scheduling.cycle.fork import Fork
from seaway.scheduling.cycle.jobs import Entry
from seaway.scheduling.cycle.plan import PlanState
from seaway.scheduling.cycle.resize import Resizer
from seaway.scheduling.profile import Profile
from seaway.scheduling.queueing.discipline import QueueDiscipline


class Policies:
    """Policies of queues, for a copy of the control loop in another thread.

    Parameters
    ----------
    lock
        Lock of the control-plane state.
    names
        Queues, which may differ from the present ones; None for these.
    policy
        Policy of all queues; empty for that of each.
    """

    def __init__(
        self,
        scheduler: Scheduler,
        lock: AbstractContextManager[None],
        names: Names | None = None,
        policy: str = "",
    ) -> None:
        self._scheduler = scheduler
        self._lock = lock
        self._names = names
        self._policy = policy

    def profile(self, queue: str) -> Profile:
        """Return the profile of a queue's policy."""
        with self._lock:
            return self._scheduler.learnt(self._name(queue)).profile

    def unready(self, queue: str) -> str:
        """Return the reason why jobs of a queue are not tried yet; empty if they are."""
        with self._lock:
            return self._scheduler.unready_policy(self._name(queue))

    def by_rules(self, queue: str) -> bool:
        """Report whether only the filter rules of a queue's policy decide whether a job fits."""
        with self._lock:
            return self._scheduler.learnt(self._name(queue)).by_rules

    def _name(self, queue: str) -> str:
        known = self._names.queues.get(queue) if self._names else None
        return self._policy or (known.policy_spec if known else self._scheduler.policy_of(queue))


@dataclass(frozen=True, slots=True)
class Entries:
    """Jobs as they wait in a copy of the control loop, in another thread.

    Parameters
    ----------
    lock
        Lock of the control-plane state.
    names
        Queues, pools and tenants of the copy.
    """

    live: ControlState
    lock: AbstractContextManager[None]
    names: Names
    fork: Fork
    refusals: Mapping[str, Refusals]
    reserves: bool

    def of(self, record: JobRecord) -> Entry:
        """Return the entry of a job."""
        spec, user = record.spec, record.submitted_by
        rules, apart = self._rules(record.id, spec, spec.queue, user)
        with self.lock:
            past = self.live.history.runs(spec, user)
        return pending.entry(record, *rules, apart=apart, past=past)

    def again(self, entry: Entry, queue: str) -> Entry:
        """Return a waiting job as it would be in a queue."""
        rules, apart = self._rules(entry.id, entry.spec, queue, entry.user)
        return pending.in_queue(entry, *rules, apart=apart)

    def more(self, job: JobRecord, attempt: Attempt) -> Job | None:
        """Return what is asked of the engine for more replicas of a running job; None without its queue or pool."""
        with self.lock:
            return self.live.more(job, attempt, self.names)

    def completed_replicas(self, attempt: Attempt) -> frozenset[int]:
        """Return the replicas of a running job that completed."""
        with self.lock:
            return self.live.completed_replicas(attempt)

    def _rules(
        self, job_id: str, spec: JobSpec, queue: str, user: str
    ) -> tuple[tuple[Queue, frozenset[str], QueueDiscipline, Refusals], Hashable]:
        """Return the arguments of `pending.entry` for a job in a queue, and what keeps it apart from others."""
        known, refusals = self.names.queues.get(queue) or Queue(queue), self.refusals.get(job_id, NEVER_REFUSED)
        apart = pending.apart_of(self.fork.tree, spec, queue, user, reserves=self.reserves)
        return (known, self.names.clusters_of(queue), self.fork.waiting.discipline, refusals), apart


@dataclass(frozen=True, slots=True)
class Copy:
    """A copy of the control loop: what it would do, jobs as they wait in it, and the policies of its queues."""

    ahead: Ahead
    entries: Entries
    policies: Policies


def plan_inputs(live: ControlState, names: Names) -> PlanState:
    """Return the inputs of a plan by amounts, without jobs. The caller holds the lock.

    Parameters
    ----------
    names
        Queues, tenants and reservations.
    """
    cordoned = {each.cluster for each in live.fleet.cordons() if not each.node}
    usable = [
        each.cluster
        for name, each in live.fleet.clusters.items()
        if each.cluster and each.state is ClusterState.UP and name not in cordoned
    ]
    return PlanState(
        live.clock.now_ns(),
        live.waiting.discipline,
        list(names.queues.values()),
        list(names.tenants.values()),
        usable,
        advance={
            each: live.advance.devices(each) if each.gpus else frozenset() for each in names.reservations.values()
        },
        typical_s=live.history.typical_s,
    )


def copy_of(
    live: ControlState,
    scheduler: Scheduler,
    lock: AbstractContextManager[None],
    names: Names | None = None,
    policy: str = "",
) -> Copy:
    """Return a copy of the control loop. The caller holds the lock.

    Parameters
    ----------
    names
        Queues, pools and tenants, which may differ from the present ones; None for these.
    policy
        Policy of all queues; empty for that of each.
    """
    fork, policies = live.fork(), Policies(scheduler, lock, names, policy)
    refusals = {**live.refusals, **{each: live.avoided(live.jobs[each]) for each in live.paired}}
    entries = Entries(live, lock, names or live.names, fork, refusals, bool(live.names.reservations))
    resizer = Resizer(fork, entries, policies.profile, policies.unready, rehearses=True)
    cycle = scheduler.cycle.fork(fork, policies)
    plan = plan_inputs(live, names or live.names)
    return Copy(Ahead(fork, cycle, resizer, entries.of, plan), entries, policies)
