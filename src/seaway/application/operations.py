"""Operator actions: cordons, orphaned workloads, queues, policies, pools, tenants."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import fields, replace
from typing import TypeVar

from seaway.application.access import tenant_of_owner
from seaway.application.changes import Change, Record
from seaway.application.control.advance_reservations import released
from seaway.application.control.loop import Controller
from seaway.application.control.scheduler.scheduler import Scheduler
from seaway.application.differences import differences, text_of
from seaway.application.policies import Gate, Policies
from seaway.application.policies import Precondition as MeantPolicy
from seaway.application.ports.clock import Clock
from seaway.application.ports.store import MAX_ROWS, JobFilter, Store
from seaway.application.records import ClusterFacts, Cordon, Event
from seaway.application.views import ReservationView
from seaway.application.writer import Writer
from seaway.domain.deployment import Workload
from seaway.domain.errors import ConflictError, RejectedError, StaleError, UnknownError
from seaway.domain.facts import NO_FACTS, Facts
from seaway.domain.job_record import JobRecord
from seaway.domain.job_state import FINAL
from seaway.domain.queues import Queue, check_tree, policy_text
from seaway.domain.reasons import Reason, also
from seaway.domain.reservations import AdvanceReservation
from seaway.domain.tenancy import DEFAULT, Pool, Tenant, unknown_name
from seaway.scheduling.policies.registry import PolicyOptions, policy_names, with_options
from seaway.scheduling.profile import Profile

Thing = TypeVar("Thing", Queue, Pool, Tenant, AdvanceReservation)
Precondition = Callable[[Queue | Pool | Tenant | AdvanceReservation | None], bool]
"""Check that a change is based on the current object; None for a missing object."""

MAX_NAMED = 3
"""Maximum number of names in a reason."""

AT_ONCE = 200
"""Number of jobs that one step removes."""


class Operations:
    """Operator actions on the fleet, its queues and its tenants.

    Parameters
    ----------
    controller
        Source of the clusters and nodes.
    policies
        The trained policies.
    gate
        Check of the policies that may be activated.
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

    # Clusters and nodes.

    def cordon(self, cluster: str, node: str, actor: str, reason: str, *, drain: bool = False) -> Cordon:
        """Stop new work in a cluster (`node` empty) or on a node; with `drain`, also move its jobs away.

        Raises
        ------
        UnknownError
            If the cluster or node does not exist.
        """
        cordon, change = self.cordoned(cluster, node, actor, reason, drain=drain)
        self._writer.require(change)
        return cordon

    def cordoned(self, cluster: str, node: str, actor: str, reason: str, *, drain: bool) -> tuple[Cordon, Change]:
        """Return the cordon of `cordon`, which raises the same, and the change that stores it."""
        self._require_place(cluster, node)
        cordon = Cordon(cluster, node, drain, reason, actor, self._clock.now_ns())
        verb = "drained" if drain else "cordoned"
        place = _place(cluster, node)
        text = Reason(f"{verb}_for", place=place, why=reason) if reason else Reason(verb, place=place)
        return cordon, Change(put=[cordon], insert=[Event(cordon.at_ns, verb, text, actor)])

    def uncordon(self, cluster: str, node: str, actor: str) -> None:
        """Remove a cordon, if any, also of a cluster or node that left the fleet.

        Raises
        ------
        UnknownError
            If the cluster or node does not exist and has no cordon.
        """
        cordon = next((each for each in self._store.cordons() if (each.cluster, each.node) == (cluster, node)), None)
        if cordon is None:
            self._require_place(cluster, node)
            return
        text = Reason("uncordoned", place=_place(cluster, node))
        self._store_with_event(Change(delete=[cordon]), "uncordoned", text, actor)

    def set_facts(self, cluster: str, change: Callable[[Facts], Facts], actor: str) -> Facts:
        """Change the facts of a cluster that operators set; they precede those that the cluster reports.

        Raises
        ------
        UnknownError
            If the cluster does not exist.
        RejectedError
            If `change` rejects the new facts.
        """
        self._require_place(cluster, "")
        with self._writer.setting_up:
            stored = next((each for each in self._store.cluster_facts() if each.cluster == cluster), None)
            facts = change(stored.facts if stored else NO_FACTS)
            row = ClusterFacts(cluster, facts, actor, self._clock.now_ns())
            known = ", ".join(
                each.name for each in fields(facts) if getattr(facts, each.name) != getattr(NO_FACTS, each.name)
            )
            text = (
                Reason("facts_set", cluster=cluster, facts=known) if known else Reason("facts_unset", cluster=cluster)
            )
            change_of = Change(put=[row]) if known else Change(delete=[row] if stored else [])
            self._store_with_event(change_of, "cluster_facts", text, actor)
        return facts

    def _require_place(self, cluster: str, node: str) -> None:
        with self._controller.lock:
            live = self._controller.live.fleet.clusters.get(cluster)
            nodes = {each.name for each in live.cluster.nodes} if live and live.cluster else set()
            names = tuple(self._controller.live.fleet.clusters)
        if live is None:
            missing = Reason("not_found", kind="cluster", name=cluster)
            raise UnknownError(also(missing, Reason("available", names=names) if names else ""), where="cluster")
        if node and node not in nodes:
            raise UnknownError(Reason("no_such_node", cluster=cluster, node=node), where="node")

    # Orphaned workloads.

    def orphans(self, cluster: str = "") -> list[Workload]:
        """Return the orphaned workloads of one cluster or of all, by cluster and name."""
        with self._controller.lock:
            clusters = self._controller.live.fleet.clusters.values()
            found = [each.copy for live in clusters for each in live.orphans.values() if cluster in ("", live.name)]
        return sorted(found, key=lambda copy: (copy.cluster, copy.name))

    def remove_orphans(self, cluster: str, actor: str, name: str = "") -> list[str]:
        """Remove one or all orphaned workloads of a cluster; return their names.

        They stay listed until the cluster reports their removal.

        Raises
        ------
        UnknownError
            If the cluster does not exist, or has no orphan of that name.
        """
        self._require_place(cluster, "")
        with self._controller.lock:
            orphans = dict(self._controller.live.fleet.clusters[cluster].orphans)
        if name and name not in orphans:
            raise UnknownError(Reason("no_such_orphan", cluster=cluster, name=name), where="name")
        wanted = [name] if name else sorted(orphans)
        if wanted:
            names: str = ", ".join(wanted[:MAX_NAMED])
            if len(wanted) > MAX_NAMED:
                names = Reason("and_more", what=names, count=len(wanted) - MAX_NAMED)
            text = Reason("removes_orphans", cluster=cluster, names=names)
            self._store_with_event(Change(), "orphans_removed", text, actor)
        with self._controller.lock:
            for copy in (orphans[each].copy for each in wanted):
                self._controller.observer.remove(copy.job_id, copy.attempt, cluster)
        return wanted

    # Queues, pools, tenants.

    def put_queue(self, queue: Queue, actor: str, meant: Precondition | None = None) -> Queue:
        """Create or change a queue.

        The policies of the queue are compiled first, which takes a while the first time. If compilation takes too long,
        the queue is stored without it, and its jobs wait until the policies are ready.

        Raises
        ------
        RejectedError
            If the policy, pool, tenant or parent does not exist, or the tree would be invalid.
        ConflictError
            If the policy may not decide yet, or the parent has unfinished jobs.
        StaleError
            If the change is based on another version (`meant`).
        """
        for field in ("policy", "shadow"):
            name = getattr(queue, field)
            if name or field == "policy":
                require_policy(self._controller.scheduler, name, field)
        require_options(queue, {each.name for each in self._store.queues()})
        if queue.pool not in (pools := {pool.name for pool in self._store.pools()}):
            raise unknown_name("pool", queue.pool, pools)
        if queue.tenant and queue.tenant not in (tenants := {tenant.name for tenant in self._store.tenants()}):
            raise unknown_name("tenant", queue.tenant, tenants)
        self._controller.scheduler.readiness.wait(queue.policy_spec, queue.shadow)
        what = [Reason("of_policy", policy=policy_text(queue.policy_spec)), Reason("of_pool", pool=queue.pool)]
        if queue.shadow:
            what[0] = Reason("of_policies", policy=policy_text(queue.policy_spec), shadow=queue.shadow)
        if queue.parent:
            what.append(Reason("of_parent", parent=queue.parent))
        text = Reason("queue_set", name=queue.name, what=tuple(what))
        if warning := self.policies.warning(queue.policy, len(self._controller.live.fleet.clusters)):
            text = also(text, Reason("of_policy", policy=queue.policy, why=warning))
        with self._writer.setting_up:
            queues = self._store.queues()
            _require_precondition(meant, queues, queue.name, "queue")
            check_tree(queue, queues)
            if queue.parent and queue.parent != next((each.parent for each in queues if each.name == queue.name), ""):
                hint = Reason("parents_take_no_jobs")
                self._require_unused(JobFilter(queue=queue.parent, array=None), "queue", queue.parent, hint)
            self._require_policies(queue)
            self._require_shadowed(queue)
            self._store_with_event(Change(put=[queue]), "queue", text, actor)
        return queue

    def delete_queue(self, name: str, actor: str, meant: Precondition | None = None) -> None:
        """Remove a queue without unfinished jobs and children; raises `StaleError` as `put_queue` does."""
        with self._writer.setting_up:
            queues = self._store.queues()
            queue = _named(queues, name, "queue")
            _require_precondition(meant, [queue], name, "queue")
            if children := [each.name for each in queues if each.parent == name]:
                raise ConflictError(Reason("queue_has_child", name=name, child=children[0]))
            self._require_unused(JobFilter(queue=name, array=None), "queue", name)
            self._require_unreserved("queue", name)
            _require_not_default(name, "queue")
            self._store_with_event(Change(delete=[queue]), "queue", Reason("queue_removed", name=name), actor)

    def activate_policy(self, name: str, queue: str, actor: str, *, shadow: bool = False) -> tuple[Queue, str]:
        """Set a policy as the live or shadow policy of a queue.

        Parameters
        ----------
        shadow
            Whether to set the shadow policy; the live policy stays.

        Returns
        -------
        tuple
            The queue, and the missing conditions before the policy may decide; empty if it may.

        Raises
        ------
        UnknownError
            If the policy or queue does not exist.
        ConflictError
            If the policy may not decide yet.
        StaleError
            If another user changed the queue at the same time.
        """
        if not self._policy_exists(name):
            raise UnknownError(Reason("policy_to_upload", name=name[:63]))
        there = _named(self._store.queues(), queue, "queue")
        if there.policy == name:
            return there, ""
        if not shadow:
            live = replace(there, policy=name, policy_options={}, shadow="" if there.shadow == name else there.shadow)
            return self.put_queue(live, actor, lambda now: now == there), ""
        if there.shadow != name:
            there = self.put_queue(replace(there, shadow=name), actor, lambda now: now == there)
        return there, self._left(there, name)

    def delete_policy(self, name: str, actor: str, meant: MeantPolicy | None = None) -> None:
        """Remove a trained policy that no queue uses, live or as shadow; raises as `Policies.remove`."""
        with self._writer.setting_up:
            names = {name, *self.policies.profiles_with(name)}
            users = [queue.name for queue in self._store.queues() if names & {queue.policy, queue.shadow}]
            if users:
                raise ConflictError(Reason("policy_in_use", name=name, queue=users[0]))
            self.policies.remove(name, actor, meant)

    def _require_shadowed(self, queue: Queue) -> None:
        """Check that a new live policy may decide."""
        before = next((each for each in self._store.queues() if each.name == queue.name), None)
        if before is None or before.policy != queue.policy:
            self._gate.require(before or queue, require_policy(self._controller.scheduler, queue.policy, "policy"))

    def _left(self, queue: Queue, policy: str) -> str:
        """Return the missing conditions before a policy may decide for a queue; empty if it may."""
        try:
            self._gate.require(queue, require_policy(self._controller.scheduler, policy, "policy"))
        except ConflictError as error:
            return str(error)
        return ""

    def _policy_exists(self, policy: str) -> bool:
        return policy in policy_names() or policy in self.policies.names() or policy in self.policies.profiles

    def _require_policies(self, queue: Queue) -> None:
        for field in ("policy", "shadow"):
            name = getattr(queue, field)
            if name and not self._policy_exists(name):
                raise RejectedError(Reason("policy_gone", name=name), where=field)

    def put_pool(self, pool: Pool, actor: str, meant: Precondition | None = None) -> Pool:
        """Create or change a pool. Its clusters can join later. Raises `StaleError` as `put_queue` does."""
        text = Reason("pool_set", name=pool.name, clusters=", ".join(sorted(pool.clusters)) or Reason("all_clusters"))
        with self._writer.setting_up:
            _require_precondition(meant, self._store.pools(), pool.name, "pool")
            self._store_with_event(Change(put=[pool]), "pool", text, actor)
        return pool

    def delete_pool(self, name: str, actor: str, meant: Precondition | None = None) -> None:
        """Remove a pool that no queue uses; raises `StaleError` as `put_queue` does."""
        with self._writer.setting_up:
            pool = _named(self._store.pools(), name, "pool")
            _require_precondition(meant, [pool], name, "pool")
            _require_not_default(name, "pool")
            users = [queue.name for queue in self._store.queues() if queue.pool == name]
            if users:
                raise ConflictError(Reason("pool_in_use", name=name, queue=users[0]))
            if quotas := [tenant.name for tenant in self._store.tenants() if name in tenant.quotas]:
                raise ConflictError(Reason("pool_in_quota", name=name, tenant=quotas[0]))
            self._store_with_event(Change(delete=[pool]), "pool", Reason("pool_removed", name=name), actor)

    # Advance reservations.

    def reservations(self) -> list[ReservationView]:
        """Return all advance reservations with their present state, by name."""
        with self._controller.lock:
            known = sorted(self._controller.names.reservations.items())
            return [self._controller.live.advance.view(each) for _, each in known]

    def put_reservation(
        self, reservation: AdvanceReservation, actor: str, meant: Precondition | None = None
    ) -> ReservationView:
        """Create or change an advance reservation.

        Raises
        ------
        UnknownError
            If a cluster or node does not exist.
        RejectedError
            If its holder does not exist, it is over, or the fleet has too few GPUs for it.
        StaleError
            If the change is based on another version (`meant`).
        """
        for cluster in sorted(reservation.clusters):
            for node in sorted(reservation.nodes) or [""]:
                self._require_place(cluster, node)
        if reservation.ends_ns <= self._clock.now_ns():
            raise RejectedError(Reason("is_past"), where="ends")
        with self._writer.setting_up:
            for field, rows in (("tenant", self._store.tenants()), ("queue", self._store.queues())):
                name, known = getattr(reservation, field), {each.name for each in rows}
                if name and name not in known:
                    raise unknown_name(field, name, known)
            with self._controller.lock:
                self._controller.live.advance.require_room(reservation)
            _require_precondition(meant, self._store.reservations(), reservation.name, "reservation")
            text = Reason("reservation_set", name=reservation.name, what=reservation.summary)
            self._store_with_event(Change(put=[reservation]), "reservation", text, actor, reservation.tenant)
        with self._controller.lock:
            return self._controller.live.advance.view(reservation)

    def delete_reservation(self, name: str, actor: str, meant: Precondition | None = None) -> None:
        """Remove an advance reservation, and end its maintenance; raises `StaleError` as `put_reservation` does."""
        with self._writer.setting_up:
            reservation = _named(self._store.reservations(), name, "reservation")
            _require_precondition(meant, [reservation], name, "reservation")
            change = released(reservation, self._store.cordons())
            text = Reason("reservation_removed", name=name)
            self._store_with_event(change, "reservation", text, actor, reservation.tenant)

    # Tenants.

    def put_tenant(self, tenant: Tenant, actor: str, meant: Precondition | None = None) -> Tenant:
        """Create or change a tenant with its quotas; raises `StaleError` as `put_queue` does.

        Raises
        ------
        RejectedError
            If a quota is for an unknown pool, or guarantees more GPUs of single models than GPUs.
        """
        tenant.require_models()
        with self._writer.setting_up:
            _require_precondition(meant, self._store.tenants(), tenant.name, "tenant")
            pools = [pool.name for pool in self._store.pools()]
            for name in sorted(tenant.quotas.keys() - {*pools}):
                raise RejectedError(Reason("unknown_pool", names=tuple(sorted(pools))), where=f"quotas.{name}")
            self._store_with_event(Change(put=[tenant]), "tenant", Reason("tenant_set", name=tenant.name), actor)
        return tenant

    def delete_tenant(self, name: str, actor: str, meant: Precondition | None = None) -> None:
        """Remove a tenant without queues and unfinished jobs, and revoke its tokens.

        The jobs of the tenant and all their records are removed too, so a new tenant of that name does not see them.
        The audit log stays. The jobs are removed in steps, and the tenant in the last step. A failed call can be
        repeated.

        Raises
        ------
        UnknownError
            If the tenant does not exist.
        ConflictError
            If the tenant is in use, or clusters still remove workloads of its jobs.
        StaleError
            If the change is based on another version (`meant`).
        """
        tenant = _named(self._store.tenants(), name, "tenant")
        _require_precondition(meant, [tenant], name, "tenant")
        _require_not_default(name, "tenant")
        self._require_ownerless(name)
        self._require_unused(JobFilter(tenant=name, array=None), "tenant", name)
        removed, left = self._remove_jobs(name)
        with self._writer.setting_up:  # no queue and no token of the tenant can be created now
            self._require_ownerless(name)
            now_ns = self._clock.now_ns()
            tokens = [each for each in self._store.tokens() if each.tenant == name and each.revoked_ns is None]
            change = Change(update=[replace(each, revoked_ns=now_ns) for each in tokens], delete=[tenant])
            change.add(left)
            change.delete += [each for each in self._store.notifications() if each.tenant == name]
            change.delete += [each for each in self._store.saved_filters() if tenant_of_owner(each.owner) == name]
            text = Reason("tenant_removed", name=name)
            text = also(text, Reason("tokens_revoked", count=len(tokens)) if tokens else "")
            text = also(text, Reason("jobs_removed", count=removed) if removed else "")
            self._store_with_event(change, "tenant", text, actor)

    def _require_unreserved(self, kind: str, name: str) -> None:
        """Check that no advance reservation is for a tenant or queue."""
        if held := [each.name for each in self._store.reservations() if getattr(each, kind) == name]:
            raise ConflictError(Reason("reservation_is_for", reservation=held[0], kind=kind, name=name))

    def _require_ownerless(self, tenant: str) -> None:
        """Check that a tenant has no queue and no reservation."""
        self._require_unreserved("tenant", tenant)
        owned = [queue.name for queue in self._store.queues() if queue.tenant == tenant]
        if owned:
            raise ConflictError(Reason("queue_belongs", queue=owned[0], tenant=tenant))

    def _remove_jobs(self, tenant: str) -> tuple[int, Change]:
        """Remove the finished jobs of a tenant except the last batch; return the number and that batch's change."""
        wanted = JobFilter(tenant=tenant, states=FINAL, array=None)
        held = {each.job_id for each in self._store.held_attempts()}
        held |= {each.job_id for each in self._store.pending_commands()}
        removed, last = 0, Change()
        while jobs := self._store.jobs(wanted, AT_ONCE):
            if busy := [job.id for job in jobs if job.id in held]:
                raise ConflictError(Reason("workloads_being_removed", count=len(busy), tenant=tenant, job=busy[0]))
            if last:
                self._writer.require(last)
            last = Change(delete=[record for job in jobs for record in self._records_of(job)])
            removed += len(jobs)
            wanted = replace(wanted, before=jobs[-1].id)
        return removed, last

    def _records_of(self, job: JobRecord) -> Iterator[Record]:
        yield job
        yield from self._store.attempts(job.id)
        after = 0
        while events := self._store.events(after, MAX_ROWS, job_id=job.id):
            yield from events
            after = events[-1].id

    def _require_unused(self, wanted: JobFilter, kind: str, name: str, hint: str = "") -> None:
        live = sum(count for state, count in self._store.count_jobs(wanted).items() if not state.final)
        if live:
            raise ConflictError(also(Reason("has_unfinished", kind=kind, name=name, count=live), hint))

    def _store_with_event(self, change: Change, kind: str, reason: str, actor: str, tenant: str = "") -> None:
        change.differences = differences(change, self._store)
        text = text_of(reason, change.differences)
        change.insert.append(Event(self._clock.now_ns(), kind, text, actor, tenant))
        self._writer.require(change)


def require_policy(scheduler: Scheduler, name: str, field: str) -> Profile:
    """Return the profile of a policy.

    Raises
    ------
    RejectedError
        If no policy has that name; `field` is the field of the request.
    """
    try:
        return scheduler.made(name)
    except RejectedError as error:
        raise RejectedError(error.message, where=field) from None


def require_options(queue: Queue, queues: Collection[str]) -> None:
    """Check the options of a queue's policy.

    Parameters
    ----------
    queues
        Names of the other queues.

    Raises
    ------
    RejectedError
        If the policy has no such option, or a value is invalid or names an unknown queue.
    """
    try:
        with_options(queue.policy, queue.policy_options, PolicyOptions())
        mix = queue.policy_options.get("mix", queue.name)
        if mix not in (known := {queue.name, *queues}):
            raise unknown_name("queue", mix, known, where="mix")
    except RejectedError as error:
        raise RejectedError(error.message, where=f"policy_options.{error.where}") from None


def _require_not_default(name: str, kind: str) -> None:
    if name == DEFAULT:
        raise ConflictError(Reason("not_removable", kind=kind, name=name))


def _named(things: list[Thing], name: str, kind: str) -> Thing:
    for thing in things:
        if thing.name == name:
            return thing
    raise UnknownError(Reason("not_found", kind=kind, name=name))


def _require_precondition(meant: Precondition | None, things: list[Thing], name: str, kind: str) -> None:
    """Check that a change is based on the current version of an object, or on its absence."""
    there = next((thing for thing in things if thing.name == name), None)
    if meant and not meant(there):
        raise StaleError(Reason("not_there" if there is None else "changed_since", kind=kind, name=name))


def _place(cluster: str, node: str) -> str:
    return f"{cluster}/{node}" if node else cluster
