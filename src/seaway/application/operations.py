"""What operators do: cordons, queues, pools, tenants."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TypeVar

from seaway.application.changes import Change, Record
from seaway.application.control.loop import Controller
from seaway.application.control.scheduler.scheduler import Scheduler
from seaway.application.policies import Gate, Policies
from seaway.application.policies import Meant as MeantPolicy
from seaway.application.ports.clock import Clock
from seaway.application.ports.store import MAX_ROWS, JobFilter, Store
from seaway.application.records import Cordon, Event, JobRecord
from seaway.application.writer import Writer
from seaway.domain.deployment import Workload
from seaway.domain.errors import ConflictError, RejectedError, StaleError, UnknownError
from seaway.domain.job_state import FINAL
from seaway.domain.tenancy import DEFAULT, Pool, Queue, Tenant
from seaway.scheduling.policies.registry import policy_names
from seaway.scheduling.profile import Profile

Thing = TypeVar("Thing", Queue, Pool, Tenant)
Meant = Callable[[Queue | Pool | Tenant | None], bool]
"""Tells whether what there is, None for nothing, is what a change is meant for."""

AT_ONCE = 200
"""Jobs that are removed in one step."""


class Operations:
    """Changes how the fleet and the queues are used.

    Parameters
    ----------
    controller
        Knows which clusters and nodes there are.
    policies
        The trained policies there are.
    gate
        Says which of them may decide.
    """

    def __init__(
        self, store: Store, writer: Writer, controller: Controller, clock: Clock, policies: Policies, gate: Gate
    ) -> None:
        self.policies = policies
        self._gate = gate
        self._store = store
        self._writer = writer
        self._controller = controller
        self._clock = clock
        self._setting_up = threading.Lock()  # so that what there is stays so until it is changed

    # Clusters and nodes.

    def cordon(self, cluster: str, node: str, actor: str, reason: str, *, drain: bool = False) -> Cordon:
        """Keep new work away from a cluster (`node` empty) or a node; with `drain` move away what runs there.

        Raises
        ------
        UnknownError
            When there is no such cluster or node.
        """
        self._require_place(cluster, node)
        cordon = Cordon(cluster, node, drain, reason, actor, self._clock.now_ns())
        verb = "drained" if drain else "cordoned"
        self._store_with_event(Change(put=[cordon]), verb, f"{_place(cluster, node)}: {reason or verb}", actor)
        return cordon

    def uncordon(self, cluster: str, node: str, actor: str) -> None:
        """Let new work come again, also to what is not there at the moment; where nothing was cordoned, do nothing.

        Raises
        ------
        UnknownError
            When nothing of that name is there or was cordoned.
        """
        cordon = next((each for each in self._store.cordons() if (each.cluster, each.node) == (cluster, node)), None)
        if cordon is None:
            self._require_place(cluster, node)
            return
        text = f"{_place(cluster, node)} takes new work again"
        self._store_with_event(Change(delete=[cordon]), "uncordoned", text, actor)

    def _require_place(self, cluster: str, node: str) -> None:
        with self._controller.lock:
            live = self._controller.live.fleet.clusters.get(cluster)
            nodes = {each.name for each in live.cluster.nodes} if live and live.cluster else set()
            names = ", ".join(self._controller.live.fleet.clusters) or "none"
        if live is None:
            raise UnknownError(f"cluster {cluster!r} not found; available: {names}", where="cluster")
        if node and node not in nodes:
            raise UnknownError(f"cluster {cluster!r} has no node {node!r}", where="node")

    # Copies that no job accounts for.

    def orphans(self, cluster: str = "") -> list[Workload]:
        """Return the copies in a cluster, or in all, that no job known to Seaway accounts for, by cluster and name."""
        with self._controller.lock:
            clusters = self._controller.live.fleet.clusters.values()
            found = [each.copy for live in clusters for each in live.orphans.values() if cluster in ("", live.name)]
        return sorted(found, key=lambda copy: (copy.cluster, copy.name))

    def remove_orphans(self, cluster: str, actor: str, name: str = "") -> list[str]:
        """Have a cluster remove a copy that no job known to Seaway accounts for, or all of them; return their names.

        They are listed until the cluster says that they are gone.

        Raises
        ------
        UnknownError
            When there is no such cluster, or no orphan of that name in it.
        """
        self._require_place(cluster, "")
        with self._controller.lock:
            orphans = dict(self._controller.live.fleet.clusters[cluster].orphans)
        if name and name not in orphans:
            raise UnknownError(f"cluster {cluster!r} has no orphan {name!r}", where="name")
        wanted = [name] if name else sorted(orphans)
        if wanted:
            text = f"{', '.join(wanted[:3])}{f' and {len(wanted) - 3} more' if len(wanted) > 3 else ''}"
            self._store_with_event(
                Change(), "orphans_removed", f"{cluster} is to remove {text}, which no job accounts for", actor
            )
        with self._controller.lock:
            for copy in (orphans[each].copy for each in wanted):
                self._controller.observer.remove(copy.job_id, copy.attempt, cluster)
        return wanted

    # Queues, pools, tenants.

    def put_queue(self, queue: Queue, actor: str, meant: Meant | None = None) -> Queue:
        """Make or change a queue.

        Its policies are made ready before, which takes a while the first time. Where it takes too long, the queue is
        stored nevertheless, and its jobs wait for the rest of it.

        Raises
        ------
        RejectedError
            When its policy, pool or tenant is not there.
        ConflictError
            When its policy may not decide yet.
        StaleError
            When the change is not `meant` for what there is.
        """
        for field in ("policy", "shadow"):
            name = getattr(queue, field)
            if name or field == "policy":
                require_policy(self._controller.scheduler, name, field)
        if queue.pool not in {pool.name for pool in self._store.pools()}:
            raise RejectedError(f"unknown pool {queue.pool!r}", where="pool")
        if queue.tenant and queue.tenant not in {tenant.name for tenant in self._store.tenants()}:
            raise RejectedError(f"unknown tenant {queue.tenant!r}", where="tenant")
        self._controller.scheduler.readiness.wait(queue.policy, queue.shadow)
        shadow = f" with {queue.shadow} in its shadow" if queue.shadow else ""
        text = f"queue {queue.name}: policy {queue.policy}{shadow}, pool {queue.pool}"
        with self._setting_up:
            _require_meant(meant, self._store.queues(), queue.name, "queue")
            self._require_policies(queue)
            self._require_seen(queue)
            self._store_with_event(Change(put=[queue]), "queue", text, actor)
        return queue

    def delete_queue(self, name: str, actor: str, meant: Meant | None = None) -> None:
        """Remove a queue in which no job is that is not over; raises as `put_queue` where it is another by now."""
        with self._setting_up:
            queue = _named(self._store.queues(), name, "queue")
            _require_meant(meant, [queue], name, "queue")
            self._require_unused(JobFilter(queue=name), f"queue {name!r}")
            _require_not_default(name, "queue")
            self._store_with_event(Change(delete=[queue]), "queue", f"queue {name} removed", actor)

    def activate_policy(self, name: str, queue: str, actor: str, *, shadow: bool = False) -> tuple[Queue, str]:
        """Let a policy decide for a queue, or be its shadow.

        Parameters
        ----------
        shadow
            Whether it becomes the shadow, and what decides stays.

        Returns
        -------
        tuple
            The queue, and what is left until the policy may decide; empty where it may.

        Raises
        ------
        UnknownError
            When there is no such policy or queue.
        ConflictError
            When it may not decide yet.
        StaleError
            When another user changed the queue meanwhile.
        """
        if not self._is_there(name):
            raise UnknownError(f"policy {name[:63]!r} not found; bring it first")
        there = _named(self._store.queues(), queue, "queue")
        if there.policy == name:
            return there, ""
        if not shadow:
            live = replace(there, policy=name, shadow="" if there.shadow == name else there.shadow)
            return self.put_queue(live, actor, lambda now: now == there), ""
        if there.shadow != name:
            there = self.put_queue(replace(there, shadow=name), actor, lambda now: now == there)
        return there, self._left(there, name)

    def delete_policy(self, name: str, actor: str, meant: MeantPolicy | None = None) -> None:
        """Remove a trained policy that no queue has, live or as its shadow; raises as `Policies.remove`."""
        with self._setting_up:
            names = {name, *self.policies.profiles_with(name)}
            users = [queue.name for queue in self._store.queues() if names & {queue.policy, queue.shadow}]
            if users:
                raise ConflictError(f"policy {name!r} is used by queue {users[0]!r}")
            self.policies.remove(name, actor, meant)

    def _require_seen(self, queue: Queue) -> None:
        """Check that a policy that is to decide from now on may."""
        before = next((each for each in self._store.queues() if each.name == queue.name), None)
        if before is None or before.policy != queue.policy:
            self._gate.require(before or queue, require_policy(self._controller.scheduler, queue.policy, "policy"))

    def _left(self, queue: Queue, policy: str) -> str:
        """Return what is left until a policy may decide for a queue, in a sentence; empty where it may."""
        try:
            self._gate.require(queue, require_policy(self._controller.scheduler, policy, "policy"))
        except ConflictError as error:
            return str(error)
        return ""

    def _is_there(self, policy: str) -> bool:
        return policy in policy_names() or policy in self.policies.names() or policy in self.policies.profiles

    def _require_policies(self, queue: Queue) -> None:
        """Check that no one removed a policy of a queue since it was looked up."""
        for field in ("policy", "shadow"):
            name = getattr(queue, field)
            if name and not self._is_there(name):
                raise RejectedError(f"policy {name!r} not found any more", where=field)

    def put_pool(self, pool: Pool, actor: str, meant: Meant | None = None) -> Pool:
        """Make or change a pool; its clusters need not have joined yet. Raises as `put_queue` where it is another."""
        text = f"pool {pool.name}: {', '.join(sorted(pool.clusters)) or 'all clusters'}"
        with self._setting_up:
            _require_meant(meant, self._store.pools(), pool.name, "pool")
            self._store_with_event(Change(put=[pool]), "pool", text, actor)
        return pool

    def delete_pool(self, name: str, actor: str, meant: Meant | None = None) -> None:
        """Remove a pool that no queue uses; raises as `put_queue` where it is another by now."""
        with self._setting_up:
            pool = _named(self._store.pools(), name, "pool")
            _require_meant(meant, [pool], name, "pool")
            _require_not_default(name, "pool")
            users = [queue.name for queue in self._store.queues() if queue.pool == name]
            if users:
                raise ConflictError(f"pool {name!r} is used by queue {users[0]!r}")
            self._store_with_event(Change(delete=[pool]), "pool", f"pool {name} removed", actor)

    def put_tenant(self, tenant: Tenant, actor: str, meant: Meant | None = None) -> Tenant:
        """Make or change a tenant; raises as `put_queue` where it is another by now."""
        with self._setting_up:
            _require_meant(meant, self._store.tenants(), tenant.name, "tenant")
            self._store_with_event(Change(put=[tenant]), "tenant", f"tenant {tenant.name}", actor)
        return tenant

    def delete_tenant(self, name: str, actor: str, meant: Meant | None = None) -> None:
        """Remove a tenant that has no queue of its own and no unfinished job; its tokens hold no longer.

        Its jobs go with it, with all that is stored of them, so that no one finds them who makes a tenant of that name
        again. The audit log stays. Many go in several steps, the tenant in the last: what fails can be repeated.

        Raises
        ------
        UnknownError
            When there is no such tenant.
        ConflictError
            When it is in use, or clusters are still removing workloads of its jobs.
        StaleError
            When this is not `meant` for what there is.
        """
        tenant = _named(self._store.tenants(), name, "tenant")
        _require_meant(meant, [tenant], name, "tenant")
        _require_not_default(name, "tenant")
        owned = [queue.name for queue in self._store.queues() if queue.tenant == name]
        if owned:
            raise ConflictError(f"queue {owned[0]!r} belongs to tenant {name!r}")
        self._require_unused(JobFilter(tenant=name), f"tenant {name!r}")
        removed, left = self._remove_jobs(name)
        now_ns = self._clock.now_ns()
        tokens = [each for each in self._store.tokens() if each.tenant == name and each.revoked_ns is None]
        change = Change(update=[replace(each, revoked_ns=now_ns) for each in tokens], delete=[tenant])
        change.add(left)
        text = f"tenant {name} removed" + (f" and {len(tokens)} tokens of it revoked" if tokens else "")
        text += f", with {removed} finished jobs" if removed else ""
        self._store_with_event(change, "tenant", text, actor)

    def _remove_jobs(self, tenant: str) -> tuple[int, Change]:
        """Remove a tenant's jobs, which are over, but for the last of them: return how many, and what is left to do."""
        wanted = JobFilter(tenant=tenant, states=FINAL)
        held = {each.job_id for each in self._store.held_attempts()}
        held |= {each.job_id for each in self._store.pending_commands()}
        removed, last = 0, Change()
        while jobs := self._store.jobs(wanted, AT_ONCE):
            if busy := [job.id for job in jobs if job.id in held]:
                text = f"clusters are still removing workloads of {len(busy)} jobs of tenant {tenant!r}"
                raise ConflictError(f"{text}, like {busy[0]}; try again later")
            if last:
                self._writer.require(last)
            last = Change(delete=[record for job in jobs for record in self._records_of(job)])
            removed += len(jobs)
            wanted = replace(wanted, before=jobs[-1].id)
        return removed, last

    def _records_of(self, job: JobRecord) -> Iterator[Record]:
        """Return a job and all that hangs on it."""
        yield job
        yield from self._store.attempts(job.id)
        after = 0
        while events := self._store.events(after, MAX_ROWS, job_id=job.id):
            yield from events
            after = events[-1].id

    def _require_unused(self, wanted: JobFilter, what: str) -> None:
        live = sum(count for state, count in self._store.count_jobs(wanted).items() if not state.final)
        if live:
            raise ConflictError(f"{what} has {live} unfinished job{'s' if live > 1 else ''}")

    def _store_with_event(self, change: Change, kind: str, reason: str, actor: str) -> None:
        change.insert.append(Event(self._clock.now_ns(), kind, reason, actor))
        self._writer.require(change)


def require_policy(scheduler: Scheduler, name: str, field: str) -> Profile:
    """Return a policy that queues can have.

    Raises
    ------
    RejectedError
        When there is none of that name; `field` says where it was given.
    """
    try:
        return scheduler.made(name)
    except RejectedError as error:
        raise RejectedError(error.message, where=field) from None


def _require_not_default(name: str, kind: str) -> None:
    if name == DEFAULT:
        raise ConflictError(f"the {kind} {name!r} is always there")


def _named(things: list[Thing], name: str, kind: str) -> Thing:
    for thing in things:
        if thing.name == name:
            return thing
    raise UnknownError(f"there is no {kind} {name!r}")


def _require_meant(meant: Meant | None, things: list[Thing], name: str, kind: str) -> None:
    """Check that a change is meant for the thing of a name as it is, or for there being none."""
    there = next((thing for thing in things if thing.name == name), None)
    if meant and not meant(there):
        what = "is not there" if there is None else "has changed since you read it"
        raise StaleError(f"the {kind} {name!r} {what}; read it again")


def _place(cluster: str, node: str) -> str:
    return f"{cluster}/{node}" if node else cluster
