"""Admission: checks of a job before it is stored, and the reasons of a rejection."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence, Set
from dataclasses import replace
from functools import partial
from itertools import permutations

from seaway.application.control.loop import Controller
from seaway.application.control.tenancy import Names
from seaway.application.ports.templates import PlainTemplates, Templates
from seaway.domain.amounts import (
    GPUS,
    JOBS,
    MODEL_PREFIX,
    Amounts,
    capacity_of,
    counts_in,
    exceeded,
    figure_text,
    model_resource,
    requested_amounts,
    resource_text,
    total_of,
)
from seaway.domain.cluster import Cluster, Fleet
from seaway.domain.deployment import ADDRESS
from seaway.domain.errors import RejectedError, UnavailableError
from seaway.domain.gpu_models import covered, unknown_model
from seaway.domain.job import NO_DATA, OTHER_COPY, Job
from seaway.domain.job_spec import JobSpec
from seaway.domain.network import NO_NEED, Gateway, Link
from seaway.domain.node import Node
from seaway.domain.notifications import Notify
from seaway.domain.queues import Queue
from seaway.domain.reasons import Reason, also, either
from seaway.domain.runtime import secrets_of
from seaway.domain.tenancy import unknown_name
from seaway.scheduling.engine import decide, trial_placements
from seaway.scheduling.explain import (
    MAX_LINKS_NAMED,
    combined_remedies,
    explain,
    remedies,
    remedies_text,
    summary,
    violating_links,
)
from seaway.scheduling.job_queue import JobQueue
from seaway.scheduling.policies.registry import make_profile
from seaway.scheduling.queueing.tree import QueueTree, quota_key
from seaway.scheduling.shortage import fits, most
from seaway.scheduling.snapshot.encode import NO_LIMIT_MBPS, model_allowed
from seaway.scheduling.snapshot.snapshot import Snapshot

PLAIN = PlainTemplates()

MAX_CACHED = 50_000
"""Maximum number of cached results; a full cache is cleared."""

MAX_REPORTED = 20
"""Maximum number of unknown clusters that an error lists."""


class Admission:
    """Check of jobs: valid names, and sufficient capacity of the empty fleet.

    Parameters
    ----------
    notify_obstacle
        Returns why a job of a tenant cannot have messages sent to a receiver; empty if it can.
    """

    def __init__(
        self,
        controller: Controller,
        templates: Templates = PLAIN,
        notify_obstacle: Callable[[str, Notify], str] = lambda _tenant, _notify: "",
    ) -> None:
        self._controller = controller
        self._templates = templates
        self._notify_obstacle = notify_obstacle
        self._lock = threading.Lock()
        self._make = -1
        self._empty: Snapshot | None = None
        self._models: set[str] | None = None  # of the fleet, once all clusters have reported
        self._unreported: Mapping[str, Set[str]] = {}  # GPU models that jobs hold in clusters without a report
        self._capacities: dict[str, Amounts] = {}  # by cluster
        self._unused: tuple[Sequence[Queue], QueueTree] = (), QueueTree()
        self._gateways: frozenset[str] = frozenset()
        self._verdicts: dict[Hashable, str] = {}
        self._first_fit = make_profile("greedy")
        self.has_archive: Callable[[str, str], bool] = lambda *_: True
        """Reports whether an archive is stored for a tenant."""

    def admit(
        self, spec: JobSpec, seen_by: str = "", before: JobSpec | None = None, names: Names | None = None
    ) -> None:
        """Check a job, and raise all its errors together; may take long.

        Parameters
        ----------
        seen_by
            Tenant of the caller, which restricts the names in messages to visible objects; empty for no restriction.
        before
            Current spec of a job that is being changed. Its existing errors are ignored.
        names
            Queues, pools and tenants; by default the present ones.

        Raises
        ------
        RejectedError
            If the job names an unknown object, or no cluster could ever run it. The message suggests a feasible change.
        UnavailableError
            If the names are not loaded yet.
        """
        self._require_started()
        self._look()
        names = names or self._controller.names
        problems = self._unknown_names(spec, names, seen_by)
        if before is not None:
            known = {(each.where, each.message) for each in self._unknown_names(before, names, seen_by)}
            problems = [each for each in problems if (each.where, each.message) not in known]
        if not problems and (before is None or _requirements(spec) != _requirements(before)):
            problems = _rejected(self._never_fits(spec, names.clusters_of(spec.queue)))
        _require_none(problems)

    def with_template_traits(self, spec: JobSpec) -> JobSpec:
        """Return a job with the traits of its template. `admit` reports an unknown template."""
        return self._templates.with_template_traits(spec)

    def admits_at_once(self, spec: JobSpec, seen_by: str = "") -> bool:
        """Check a job as `admit` does, if the capacity result is cached; return False if `admit` is needed.

        Raises as `admit`.
        """
        self._require_started()
        if self._make != self._controller.live.fleet.make:
            return False
        verdict, names = None, self._controller.names
        problems = self._unknown_names(spec, names, seen_by)
        if not problems:
            key = _key(spec, names.clusters_of(spec.queue))
            verdict = "" if self._empty is None else self._verdicts.get(key)
            if verdict is None:
                return False
            problems = _rejected(verdict)
        _require_none(problems)
        return True

    def _require_started(self) -> None:
        if not self._controller.names.tenants:
            raise UnavailableError(Reason("control_plane_starts"), retry_after_s=1)

    def _unknown_names(self, spec: JobSpec, names: Names, seen_by: str) -> list[RejectedError]:
        problems = []
        if spec.tenant not in names.tenants:
            problems.append(unknown_name("tenant", spec.tenant, [] if seen_by else list(names.tenants)))
        queue = names.queues.get(spec.queue)
        if queue is None or (seen_by and queue.tenant not in ("", seen_by)):
            seen = [each.name for each in list(names.queues.values()) if not seen_by or each.tenant in ("", seen_by)]
            problems.append(unknown_name("queue", spec.queue, seen))
        elif queue.tenant and queue.tenant != spec.tenant:
            problems.append(RejectedError(Reason("queue_of_other_tenant", queue=spec.queue), where="queue"))
        elif lacking := names.lacking(spec.queue):
            problems.append(RejectedError(lacking, where="queue"))
        elif not queue.open:
            problems.append(RejectedError(Reason("queue_closed", queue=spec.queue), where="queue"))
        elif leaves := names.leaves(spec.queue):
            seen = [repr(each.name) for each in leaves if not seen_by or each.tenant in ("", seen_by)]
            said = Reason(
                "queue_divides", queue=spec.queue, use=either(seen[:MAX_REPORTED] or [Reason("another_queue")])
            )
            problems.append(RejectedError(said, where="queue"))
        else:
            problems += queue.forbidden(spec.demand.nodes)
            problems += self._beyond_limits(spec, names)
            problems += self._beyond_lending(spec, names)
        templates = self._templates.purposes()
        if spec.template not in templates:
            problems.append(unknown_name("template", spec.template, templates))
        problems += self._templates.problems(spec)
        problems += _forbidden_secrets(spec, names)
        problems += _rejected(self._lacking_archive(spec), "workdir")
        problems += _standby_problems(spec, names)
        problems += _rejected(self._controller.scaler.obstacle(spec), "scale")
        for at, each in enumerate(spec.notify):
            problems += _rejected(self._notify_obstacle(spec.tenant, each), f"notify[{at}].to")
        problems += self._unknown_places(spec)
        problems += self._unknown_models(spec)
        return problems

    def _lacking_archive(self, spec: JobSpec) -> str:
        if not spec.runtime.workdir or self.has_archive(spec.tenant, spec.runtime.workdir):
            return ""
        return "names an archive that is not stored for this tenant; send the folder with seaway submit --workdir"

    def _unknown_places(self, spec: JobSpec) -> Iterator[RejectedError]:
        """Yield an error for each gateway and cluster that does not exist, once the fleet is known."""
        if self._empty is None:
            return
        gateway = spec.demand.gateway
        if gateway and gateway not in self._gateways:
            yield unknown_name("gateway", gateway, self._gateways)
        if clusters := spec.demand.nodes.clusters:
            known = [*(each.name for each in self._empty.clusters), *self._unreported]
            for name in sorted(clusters.difference(known))[:MAX_REPORTED]:
                yield unknown_name("cluster", name, known, where="placement.clusters")

    def _unknown_models(self, spec: JobSpec) -> Iterator[RejectedError]:
        """Yield an error for each field with models of which the fleet has none, once all clusters have reported."""
        rules = spec.demand.devices
        for field, names in (("gpu_model", rules.models), ("gpu_use_types", rules.use_types)):
            if names and self._models is not None and not covered(names, self._models):
                yield RejectedError(unknown_model(", ".join(sorted(names)), self._models), where=f"resources.{field}")

    def _beyond_limits(self, spec: JobSpec, names: Names) -> Iterator[RejectedError]:
        """Yield the errors of a job that exceeds a limit of its queues, its tenant or a user, even if it ran alone."""
        requested = {**requested_amounts(spec.demand, 1 if spec.starts_in_part else spec.replicas), JOBS: 1}
        models = sorted(model_resource(model) for model in spec.demand.devices.models)
        for where, holder, key, limit in _limits(spec, names, self._tree(names)):
            beyond = exceeded(requested, limit)
            small = [
                next(
                    (name for name, most in limit.items() if requested.get(GPUS, 0) > most and counts_in(each, name)),
                    "",
                )
                for each in models
            ]
            if small and all(small):
                beyond = sorted({*beyond, small[0]})
            use = self._controller.live.tree.use_lately(key) if key else None
            for name in beyond:
                most = limit[name]
                asked = figure_text(name, requested.get(name) or requested[GPUS])
                params = {"asked": asked, "holder": holder(), "most": resource_text(name, most)}
                said = Reason("beyond_limit", **params)
                if use:
                    said = Reason(
                        "beyond_limit_used", **params, left=figure_text(name, max(0, most - use.amount(name)))
                    )
                yield RejectedError(said, where=where)

    def _beyond_lending(self, spec: JobSpec, names: Names) -> Iterator[RejectedError]:
        """Yield the error of a job that could never start beside what other queues keep for their own jobs."""
        tree, pool = self._tree(names), names.clusters_of(spec.queue)
        if self._models is None or not tree.keeps_any:  # a cluster is not known yet
            return
        capacity = total_of(each for name, each in self._capacities.items() if not pool or name in pool)
        requested = requested_amounts(spec.demand, 1 if spec.starts_in_part else spec.replicas)
        if hit := tree.beyond_lending(spec.queue, requested, capacity):
            figures = {
                "asked": figure_text(hit.resource, hit.requested),
                "queue": spec.queue,
                "most": resource_text(hit.resource, max(0, hit.limit)),
                "kept": figure_text(hit.resource, hit.reserved),
            }
            yield RejectedError(Reason("beyond_lending", **figures), where="queue")

    def _tree(self, names: Names) -> QueueTree:
        """Return the tree of the present queues, without use."""
        queues = tuple(names.queues.values())
        if self._unused[0] != queues:
            self._unused = queues, QueueTree(queues)
        return self._unused[1]

    def _look(self) -> None:
        """Update the cached data if the fleet changed."""
        fleet = self._controller.live.fleet
        if self._make == fleet.make:
            return
        with self._lock, self._controller.lock:
            if self._make == fleet.make:
                return
            reported = fleet.fleet()
            self._gateways = frozenset(gateway.name for gateway in reported.gateways)
            self._empty = Snapshot(_at_its_best(reported, fleet.surveyed)) if reported.clusters else None
            self._unreported = self._models_in({each.name for each in fleet.clusters.values() if not each.cluster})
            devices = None if self._unreported or self._empty is None else self._empty.devices
            self._models = None if devices is None else {each.model for each in devices}
            self._capacities = {each.name: capacity_of(each) for each in reported.clusters}
            self._verdicts.clear()
            self._make = fleet.make

    def _never_fits(self, spec: JobSpec, clusters: frozenset[str]) -> str:
        """Return why no cluster could ever run a job; empty if one could, or before a cluster has reported."""
        if self._empty is None or self._may_use_unreported(spec, clusters):
            return ""
        key = _key(spec, clusters)
        verdict = self._verdicts.get(key)
        if verdict is None:
            with self._lock:
                verdict = self._infeasibility(self._empty, spec, clusters)
                if spec.standby and not verdict:
                    verdict = self._without_standby(self._empty, spec.job("this job", clusters))
                if len(self._verdicts) >= MAX_CACHED:
                    self._verdicts.clear()
                self._verdicts[key] = verdict
        return verdict

    def _models_in(self, clusters: Set[str]) -> Mapping[str, Set[str]]:
        """Return the GPU models that stored placements hold in clusters that have not reported since the start."""
        found: dict[str, set[str]] = {name: set() for name in clusters}
        for attempt in self._controller.live.attempts.values() if clusters else ():
            held = {name.removeprefix(MODEL_PREFIX) for name in attempt.amounts if name.startswith(MODEL_PREFIX)}
            for name in clusters & {*attempt.clusters}:
                found[name] |= held
        return found

    def _may_use_unreported(self, spec: JobSpec, clusters: frozenset[str]) -> bool:
        """Report whether a cluster without a report, which may be lost, has GPUs of a model that a job may use."""
        own = spec.demand.nodes.clusters
        return bool(spec.demand.request.gpus) and any(
            model_allowed(spec.demand.devices, model)
            for name, models in self._unreported.items()
            if (not clusters or name in clusters) and (not own or name in own)
            for model in models
        )

    def _infeasibility(self, empty: Snapshot, spec: JobSpec, clusters: frozenset[str]) -> str:
        """Return why the empty fleet, restricted to the pool, cannot run a job, with a feasible change."""
        job = replace(spec.job("this job", clusters), data=NO_DATA)
        plan = decide(empty, JobQueue(empty, [job]), self._first_fit, dry_run=True)
        placed, whole = int(plan.placed.sum()), bool(plan.jobs_placed[0])
        empty.release(plan.decisions, plan.slices, plan.rows_of(0))
        if whole or (placed and job.partial):
            return ""
        alone = replace(job, replicas=1, gang=False, single_cluster=False, ring=False)
        one = explain(empty, alone, self._first_fit)
        if not one.fits:
            admits = partial(trial_placements, policy=self._first_fit)
            single = remedies(empty, job, self._first_fit, admits)
            said = Reason("infeasible_everywhere", why=summary(replace(one, remedies=single)))
            if single:
                return said
            if found := combined_remedies(empty, job, self._first_fit, admits):
                return also(said, remedies_text(found))
            free = replace(alone, demand=spec.demand)
            elsewhere = explain(empty, free, self._first_fit).candidates if clusters else ()
            where = f"{elsewhere[0].cluster}/{elsewhere[0].node}" if elsewhere else ""
            return also(said, Reason("fits_in_other_pool", place=where)) if where else said
        if placed:
            return Reason("exceeds_empty_fleet", count=job.replicas, placed=placed)
        too_many, ways = self._too_many_together(empty, job)
        if spec.single_cluster and spec.meets:
            ways = (*ways, Reason("with_variable", name=ADDRESS))
        return also(too_many, Reason("would_fit_with", ways=either(ways)))

    def _without_standby(self, empty: Snapshot, job: Job) -> str:
        """Return why only one cluster of the empty fleet can run a job, which has no standby then; else empty."""
        plan = decide(empty, JobQueue(empty, [job]), self._first_fit, dry_run=True)
        first = next(iter(plan.placements())).cluster
        empty.release(plan.decisions, plan.slices, plan.rows_of(0))
        nodes = replace(job.demand.nodes, avoid=frozenset({(first, OTHER_COPY)}))
        second = replace(job, demand=replace(job.demand, nodes=nodes))
        if fits(empty, second, self._first_fit):
            return ""
        return Reason("standby_fits_only", cluster=first, why=summary(explain(empty, second, self._first_fit)))

    def _too_many_together(self, empty: Snapshot, job: Job) -> tuple[str, Sequence[str]]:
        """Return a message for a gang that the empty fleet cannot run, and ways to make it fit."""
        code = "too_many_in_one_cluster" if job.single_cluster else "too_many_together"
        ways = [Reason("with_replicas", count=most(empty, job, self._first_fit))]
        if job.between_replicas.any and fits(empty, replace(job, between_replicas=NO_NEED), self._first_fit):
            way = Reason("without", field="between_replicas")
            links = violating_links(empty, job)[:MAX_LINKS_NAMED]
            ways.append(Reason("with_links", what=way, clauses=links) if links else way)
        return Reason(code, count=job.replicas), ways


def _forbidden_secrets(spec: JobSpec, names: Names) -> Iterator[RejectedError]:
    """Yield an error for each Secret that the tenant of a job may not use."""
    tenant = names.tenants.get(spec.tenant)
    for where, secret in secrets_of(spec.run, spec.runtime):
        if tenant and not tenant.may_use(secret):
            said = Reason("secret_forbidden", tenant=tenant.name, secret=secret)
            yield RejectedError(said, where=where)


def _standby_problems(spec: JobSpec, names: Names) -> Iterator[RejectedError]:
    """Yield the errors of a job with a standby: it is not a service, or may use one cluster only."""
    if spec.standby is None:
        return
    if not spec.restarts:
        yield RejectedError(Reason("standby_for_services"), where="standby")
    pool = names.clusters_of(spec.queue) if spec.queue in names.queues else frozenset()
    clusters = spec.demand.nodes.clusters
    allowed = clusters & pool if clusters and pool else clusters or pool
    if len(allowed) == 1:
        code = "one_cluster_allowed" if len(clusters) == 1 else "one_cluster_in_pool"
        yield RejectedError(Reason(code, cluster=next(iter(allowed))), where="standby")


def _limits(spec: JobSpec, names: Names, tree: QueueTree) -> Iterator[tuple[str, Callable[[], Reason], str, Amounts]]:
    """Yield the limits of a job: the field of its error, the name and key of what has the limit, and the amounts.

    The key is that of the tree, and empty for a limit of each user.
    """
    for node in tree.node(spec.queue).path:
        yield "queue", partial(Reason, "queue", queue=node.key), node.key, node.limit
    pool = names.queues[spec.queue].pool
    quota = names.tenants[spec.tenant].quotas.get(pool) if spec.tenant in names.tenants else None
    if quota:
        label, key = partial(Reason, "tenant_in_pool", tenant=spec.tenant, pool=pool), quota_key(pool, spec.tenant)
        yield "tenant", label, key, quota.limit
        yield "tenant", lambda: Reason("each_user_of", holder=label()), "", quota.user_limit


def _key(spec: JobSpec, clusters: frozenset[str]) -> Hashable:
    """Return the cache key: the properties of a job and the clusters of its pool, which determine the result."""
    return (*_together(spec), clusters)


def _requirements(spec: JobSpec) -> Hashable:
    return (*_together(spec), spec.queue)


def _together(spec: JobSpec) -> tuple[Hashable, ...]:
    together = spec.gang, spec.in_one_cluster, spec.between_replicas, spec.starts_in_part, spec.ring, spec.meets
    return spec.demand, spec.replicas, spec.standby is None, *together


def _rejected(verdict: str, where: str = "resources") -> list[RejectedError]:
    return [RejectedError(verdict, where=where)] if verdict else []


def _require_none(problems: list[RejectedError]) -> None:
    if problems:
        first = problems[0]
        raise RejectedError(first.message, where=first.where, also=tuple(problems[1:]))


def _at_its_best(fleet: Fleet, surveyed: Set[str]) -> Fleet:
    """Return a fleet without failures and use, since nodes, devices and links can recover.

    Between gateways with agents, links get zero latency and the bandwidth of the slower interface.
    """
    gateways = tuple(
        replace(each, used_in_mbps=0, used_out_mbps=0) if each.name in surveyed else each for each in fleet.gateways
    )
    measured = [each for each in gateways if each.name in surveyed]
    links = [each for each in fleet.links if not {each.source, each.target} <= surveyed]
    links += [_best_link(source, target) for source, target in permutations(measured, 2)]
    return replace(
        fleet, clusters=tuple(_best_cluster(each) for each in fleet.clusters), gateways=gateways, links=tuple(links)
    )


def _best_link(source: Gateway, target: Gateway) -> Link:
    mbps = min(source.speed_mbps or NO_LIMIT_MBPS, target.speed_mbps or NO_LIMIT_MBPS)
    return Link(source.name, target.name, 0, bandwidth_mbps=mbps)


def _best_cluster(cluster: Cluster) -> Cluster:
    return replace(cluster, nodes=tuple(_best_node(node) for node in cluster.nodes))


def _best_node(node: Node) -> Node:
    devices = tuple(
        device if device.healthy and not device.cordoned else replace(device, healthy=True, cordoned=False, reason="")
        for device in node.devices
    )
    return replace(node, ready=True, reason="", devices=devices)
