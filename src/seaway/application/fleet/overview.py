"""Views of the fleet, the queues and the decisions, available while the loop runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import islice
from typing import Any

from seaway.application.control.loop import Controller
from seaway.application.control.state import ControlState, deployment
from seaway.application.fleet.costs import Cost, Costs, Lane
from seaway.application.fleet.gpu_metrics import GpuMetrics
from seaway.application.fleet.gpu_use import GpuUse, SliceUse, UnusedGpus, UseSample
from seaway.application.fleet.link_history import UsualFigures
from seaway.application.fleet.nodes import FleetViews
from seaway.application.fleet.queues import NO_COSTS, Place, QueueTotals, QueueUsage, QueueViews, TenantTotals
from seaway.application.fleet.schedule import Grouping, Schedule, ScheduleFilter, schedule
from seaway.application.fleet.search import FleetFilter, Found
from seaway.application.fleet.shares import Factor, Share, Shares
from seaway.application.histogram import Timed
from seaway.application.monitoring.conditions import NetworkFigures, QueueFigures, network_figures
from seaway.application.monitoring.counters import Figures, NotifierCounts, figures
from seaway.application.monitoring.waiting_rules import WaitingRules
from seaway.application.network.bandwidth import Interface
from seaway.application.network.views import Asked, LinkState, LinkView, RingPart, Side, Usual, reported
from seaway.application.policies import Policies
from seaway.application.ports.backend import Backend
from seaway.application.ports.logs import LogArchive
from seaway.application.ports.store import Store
from seaway.application.records import NS_PER_S
from seaway.application.views import (
    HEURISTIC,
    PACKAGE,
    PROFILE,
    TRAINED,
    ClusterView,
    DeviceUse,
    DeviceView,
    DryRun,
    ModelView,
    NodeUse,
    NodeView,
    PolicyView,
    Reason,
    Sees,
    StandbyView,
)
from seaway.application.whatif.dry_run import DryRuns
from seaway.application.writer import Writer
from seaway.domain import job_spec as ids
from seaway.domain import reasons
from seaway.domain.amounts import GPUS
from seaway.domain.attempt import Attempt
from seaway.domain.deployment import Deployment, Workload
from seaway.domain.errors import ConflictError, RejectedError, UnavailableError
from seaway.domain.job_record import JobRecord
from seaway.domain.job_spec import JobSpec
from seaway.domain.placement import ring_links
from seaway.domain.queues import children_of, subtree_guarantee
from seaway.domain.runtime import PROGRAM_NAMES
from seaway.domain.usage import UsageSpan
from seaway.learning.policies.monitor import PolicyCount
from seaway.scheduling.policies.registry import BUILT_IN, policy_names

MAX_LINES = 10_000
"""Maximum number of lines of a log in one answer, and of searched lines."""

MAX_PRESENT_NS = 500_000_000
"""Time for the present reasons of a list, nanoseconds."""

UNNAMED = "0" * ids.LENGTH
"""Placeholder for the ID of a job in a dry run."""


@dataclass(frozen=True, slots=True)
class Log:
    """Log of one container of a replica."""

    backend: Backend
    copy: str
    replica: int
    attempt: int
    container: str = ""
    archive: LogArchive | None = None

    def lines(self, tail: int, since_ns: int = 0, contains: str = "", *, times: bool = False) -> list[str]:
        """Return the last lines. May wait for the cluster.

        Parameters
        ----------
        since_ns
            Only return lines from this second on, nanoseconds since 1970.
        contains
            Only return lines with this text, in upper or lower case.
        times
            True to begin each line with its time.

        Raises
        ------
        RejectedError
            If the log neither exists in the cluster nor is stored, or the container does not exist.
        """
        try:
            lines = self.read(MAX_LINES if contains else tail, since_ns, times=times)
        except (RejectedError, UnavailableError):
            if not self.stored():
                raise
            lines = self.stored(since_ns, times=times)
        wanted = contains.casefold()
        return [line for line in lines if wanted in line.casefold()][-tail:] if contains else lines[-tail:]

    def read(self, tail: int, since_ns: int = 0, *, times: bool = False) -> list[str]:
        """Return the last lines that the cluster has; raise as `lines`."""
        found = self.backend.logs(self.copy, self.replica, tail, self.container, since_ns, times=times)
        return [line.rstrip("\n") for line in islice(found, tail)]

    def stored(self, since_ns: int = 0, *, times: bool = False) -> list[str]:
        """Return the stored lines from a second on; empty if there are none."""
        if self.archive is None:
            return []
        container = "" if self.container in PROGRAM_NAMES else self.container
        lines = self.archive.get(self.copy, self.replica, container) or []
        if since_ns:
            first = datetime.fromtimestamp(since_ns // NS_PER_S, UTC).strftime("%Y-%m-%dT%H:%M:%S")
            lines = [each for each in lines if each[: len(first)] >= first]
        return lines if times else [each.partition(" ")[2] for each in lines]


def _with_room(view: LinkView, room: tuple[int, int] | None, usual: Usual | None) -> LinkView:
    """Add the usual figures, and the reserved and the available bandwidth to a link with a known bandwidth."""
    view = replace(view, usual=usual) if usual else view
    if room is None or view.link is None or not view.link.bandwidth_mbps:
        return view
    return replace(view, reserved_mbps=room[0], left_mbps=room[1])


class Overview:
    """Read-only view of the live state. Thread-safe.

    The lock of the controller is held as briefly as possible.

    Attributes
    ----------
    failing_tasks
        Whether the last run failed, by scheduled task; set by `seaway.application.maintenance.Maintenance`.
    notified
        Numbers of messages of notifications.
    archive
        Storage of logs; None without one.
    costs
        Costs of jobs, queues and tenants.
    """

    def __init__(self, controller: Controller, store: Store, writer: Writer, policies: Policies) -> None:
        self.failing_tasks: dict[str, bool] = {}
        self.archive: LogArchive | None = None
        self.notified = NotifierCounts()
        self._policies = policies
        self._controller = controller
        self._store = store
        self._writer = writer
        self._fleet = FleetViews(controller)
        self._gpus = GpuMetrics(controller)
        self._gpu_use = GpuUse(controller, store, writer)
        self.costs = Costs(controller, store)
        self._queues = QueueViews(controller)
        self._usual = UsualFigures(store, controller.live.clock)
        self._shares = Shares(controller)
        self._tries = DryRuns(controller)
        self._rules = WaitingRules(controller, self._tries)

    @property
    def _live(self) -> ControlState:
        return self._controller.live

    def ready(self) -> bool:
        """Report whether the loop has loaded its state and can place jobs."""
        return self._controller.loaded

    # The fleet.

    def clusters(self) -> list[ClusterView]:
        """Return all clusters with their totals."""
        return self._fleet.clusters()

    def nodes(self, cluster: str = "") -> list[NodeView]:
        """Return the nodes of one cluster or of all, with their devices and slices."""
        return self._fleet.nodes(cluster)

    def find_nodes(self, wanted: FleetFilter) -> Found:
        """Find nodes, and devices on them."""
        return self._fleet.find(wanted)

    def look_at(self, found: Found, nodes: Sequence[int]) -> Iterator[NodeView]:
        """Yield the views of some nodes of a search result, given by their indices."""
        return self._fleet.look(found.columns, nodes)

    def node_uses(self, found: Found) -> list[NodeUse]:
        """Return the allocated GPUs of the nodes of a search result, with their tenants."""
        return self._fleet.uses(found)

    def look_at_devices(self, found: Found, devices: Sequence[int]) -> list[DeviceView]:
        """Return the views of some devices of a search result, given by their indices."""
        return self._fleet.look_at_devices(found.columns, devices)

    def models(self, cluster: str = "") -> list[ModelView]:
        """Return the totals of the devices of one cluster or of all, by model."""
        return self._fleet.models(cluster)

    def cluster_names(self) -> list[str]:
        """Return the names of all clusters."""
        return self._gpus.cluster_names()

    def gpu_uses(self, cluster: str = "") -> list[DeviceUse]:
        """Return the devices of one cluster or of all, with their allocations by holder."""
        return self._gpus.uses(cluster)

    def links(self, wanted: Asked | None = None) -> list[LinkView]:
        """Return the links with their figures for decisions and their measurements, including missing links.

        Parameters
        ----------
        wanted
            Filter of the links; None for all.
        """
        fleet = self._live.fleet
        known = {(link.source, link.target): link for link in fleet.links}
        measured = [
            replace(view, link=known.get((view.source, view.target), view.link)) if view.link else view
            for view in self._live.link_table.views(self._live.clock.now_ns(), wanted)
        ]
        of_clusters = [each for each in fleet.reported_links if wanted is None or wanted(each.source, each.target)]
        views = [*map(reported, of_clusters), *measured]
        with self._controller.lock:
            rooms = fleet.rooms(wanted)
        usual = self._usual.known()
        return [
            _with_room(each, rooms.get(ends), usual.get(ends))
            for each in views
            for ends in ((each.source, each.target),)
        ]

    def agents_last_seen_s(self) -> dict[str, float]:
        """Return the seconds since the last report of the agent of each configured gateway."""
        return self._live.link_table.last_seen_s(self._live.clock.now_ns())

    def gateway_reads(self) -> dict[str, int]:
        """Return the number of readings of interfaces, by outcome."""
        return self._live.link_table.reads()

    def probe_rounds(self) -> dict[tuple[str, str], int]:
        """Return the number of rounds since the start, by probing gateway and outcome."""
        return self._live.link_table.rounds()

    def interfaces(self) -> list[Interface]:
        """Return the known traffic of gateways' interfaces."""
        return self._live.link_table.interfaces()

    def link_states(self) -> dict[str, int]:
        """Count links by state."""
        counted = self._live.link_table.states(self._live.clock.now_ns())
        counted[LinkState.REPORTED.value] += len(self._live.fleet.reported_links)
        return dict(counted)

    def sides(self) -> dict[str, Side]:
        """Return the endpoint behind each gateway: its clusters or its user site."""
        with self._controller.lock:
            return self._live.fleet.sides()

    def network_figures(self) -> NetworkFigures:
        """Return the figures for the network alerts."""
        return network_figures(self.links(), self.sides(), self.interfaces())

    # Queues.

    def queue_figures(self) -> QueueFigures:
        """Return the figures for the alerts of queues."""
        queues, tree = self._controller.names.queues.copy(), self._live.tree
        children = children_of(queues.values())
        guarantees = {name: subtree_guarantee(name, queues, children) for name in queues}
        return QueueFigures(
            {name: tree.use_lately(name).amount(GPUS) for name in queues},
            {name: guarantee[GPUS] for name, guarantee in guarantees.items() if GPUS in guarantee},
            {name: queue.limit[GPUS] for name, queue in queues.items() if GPUS in queue.limit},
            self.start_errors(),
        )

    def tenant_totals(self, costs: Mapping[Lane, Cost] = NO_COSTS) -> list[TenantTotals]:
        """Return the sums of tenants with their quotas, as `QueueViews.tenants`."""
        return self._queues.tenants(costs)

    def held_gpus(self, job_ids: Collection[str]) -> dict[str, int]:
        """Return the GPUs that jobs hold now, thousandths, by ID. Arrays hold those of their tasks."""
        return self._queues.held_gpus(job_ids)

    def queue_usage(self) -> list[QueueUsage]:
        """Return the allocations and waiting jobs, by queue and tenant."""
        return self._queues.uses()

    def queue_totals(self, tenant: str = "", costs: Mapping[Lane, Cost] = NO_COSTS) -> list[QueueTotals]:
        """Return the sums of queues with their descendants; with a tenant, of the queues that it sees."""
        return self._queues.totals(tenant, costs)

    def waiting(self, queue: str = "", tenant: str = "") -> list[Place]:
        """Return the waiting jobs of a queue and a tenant, or of all, in the order in which they are tried."""
        return self._queues.waiting(queue, tenant)

    def schedule(self, by: Grouping, wanted: ScheduleFilter, limit: int) -> Schedule:
        """Return running jobs and planned starts by cluster or queue, as `seaway.application.fleet.schedule`."""
        return schedule(self._controller, self._tries.without_place, by, wanted, limit)

    def shares(self, tenant: str = "") -> list[Share]:
        """Return the shares of queues and their tenants, as `Shares.shares`."""
        return self._shares.shares(tenant)

    def factors(self, job: JobRecord) -> list[Factor]:
        """Return the factors that order a waiting job, as `Shares.factors`."""
        return self._shares.factors(job)

    def start_errors(self) -> Timed:
        """Return how far the expected starts of jobs were off, seconds."""
        return self._controller.forecast.error()

    def duration_errors(self) -> Timed:
        """Return how far the learned durations of completed jobs were off, seconds."""
        return self._live.history.duration_error.timed()

    # Decisions.

    def dry_run(self, spec: JobSpec, user: str = "", sees: Sees = lambda _: True) -> DryRun:
        """Place a job with the policy of its queue on a copy of the current fleet, without side effects.

        Parameters
        ----------
        user
            User who would submit it; empty to ignore quotas of users.
        sees
            Tenants whose jobs are named.

        Raises
        ------
        RejectedError
            If the selected cluster does not support its template.
        """
        trial = self._tries.dry_run(spec, user, sees)
        made = [
            Deployment.of(UNNAMED, 1, cluster, spec, trial.placements)
            for cluster in dict.fromkeys(each.cluster for each in trial.placements)
        ]
        documents = [document for each in made for document in self._backend(each.cluster).manifests(each.shown())]
        return replace(trial, manifests=tuple(documents))

    def present(self, jobs: Iterable[JobRecord], sees: Sees = lambda _: True) -> Iterator[JobRecord]:
        """Yield stored jobs with their present reasons, as `reason` has them, instead of those of their last change.

        Other jobs of tenants that `sees` reports are named. After `MAX_PRESENT_NS`, the rest has its stored reasons.
        """
        until_ns = self._live.clock.monotonic_ns() + MAX_PRESENT_NS
        for job in jobs:
            reason = job.reason
            if (job.state.waits or job.state.placed) and self._live.clock.monotonic_ns() < until_ns:
                with suppress(UnavailableError):  # the state is being read again
                    reason = self._tries.text(job, sees)
            yield job if reason is job.reason else replace(job, reason=reason)

    def expected_starts(self, jobs: Iterable[JobRecord]) -> dict[str, int]:
        """Return the expected starts of waiting jobs by ID, by the wall clock, as far as they are known."""
        waiting = [job for job in jobs if job.state.waits and not job.is_array]
        if not waiting:
            return {}
        plan, without = self._controller.forecast.plan(), self._tries.without_place(waiting)
        starts = {job.id: plan[job.id].starts_ns for job in waiting if job.id in plan and job.id not in without}
        return {job_id: at_ns for job_id, at_ns in starts.items() if at_ns is not None}

    def reason(self, job: JobRecord, sees: Sees = lambda _: True, *, remedies: bool = True) -> Reason:
        """Explain the state of a job. Other jobs of tenants that `sees` reports are named.

        Parameters
        ----------
        remedies
            Whether to try changes that would admit a job, which takes several times as long.
        """
        attempts = self._store.attempts(job.id) if job.attempt else []
        reason = self._tries.reason(job, attempts[-1] if attempts else None, sees, remedies=remedies)
        if not reason.position:
            return reason
        planned = None if self._tries.without_place([job]) else self._controller.forecast.plan().get(job.id)
        with self._controller.lock:
            past = self._live.history.runs(job.spec, job.submitted_by)
        return replace(
            reason,
            estimated_start_ns=planned.starts_ns if planned else None,
            start_by_amounts=bool(planned and planned.by_amounts),
            learned_duration_s=past.expected_s if past else None,
            learned_runs=len(past.runs_s) if past else 0,
        )

    def workloads(self, job: JobRecord) -> list[Workload]:
        """Return the workloads of the latest attempt of a job, by cluster; empty before the first report."""
        with self._controller.lock:
            seen = self._live.seen.get((job.id, job.attempt), {})
            return [seen[cluster] for cluster in sorted(seen)]

    def ring(self, attempt: Attempt) -> list[RingPart]:
        """Return the clusters of an attempt as a ring, with the present figures of its links; empty in one cluster."""
        pairs = ring_links(attempt.placements, attempt.spec.replicas) if attempt.spec.ring else ()
        if not pairs:
            return []
        with self._controller.lock:
            gateways = {each.name: each.gateway for each in self._live.fleet.snapshot.clusters}
        ends = {pair: (gateways.get(pair[0], ""), gateways.get(pair[1], "")) for pair in pairs}
        used = {*ends.values()}
        links = {(each.source, each.target): each for each in self.links(lambda *each: each in used)}
        count = Counter(each.cluster for each in attempt.placements)
        return [RingPart(*pair, count[pair[0]], links.get(ends[pair])) for pair in pairs]

    def gpu_use(self, job: JobRecord, span: UsageSpan = UsageSpan.HOUR) -> tuple[list[SliceUse], list[UseSample]]:
        """Return the slices of a job with their measured use, and samples of a time with the present one."""
        slices = self._gpu_use.slices((job.id, job.attempt))
        present = self._gpu_use.sample(slices)
        return slices, [*self._gpu_use.samples(job.id, span.length_s), *([present] if present else ())]

    def unused_gpus(self) -> list[UnusedGpus]:
        """Return the GPU time that running jobs held and did not use in the last hour, most first."""
        return self._gpu_use.unused()

    def record_gpu_use(self) -> None:
        """Record and store the measured use of all jobs, for `gpu_use`."""
        self._gpu_use.record()

    def standby_of(self, job: JobRecord) -> StandbyView:
        """Return the standby of a service and the addresses of its copies."""
        other = self._store.job(job.other) if job.other else None
        active, standby = (other, job) if other and job.is_standby else (job, other)
        serving, there = self.workloads(active), self.workloads(standby) if standby else []
        if standby:
            where = standby.clusters if standby.state.placed else ()
            return StandbyView(standby.state.value, standby.reason, where, serving, there)
        with self._controller.lock:
            place = self._controller.standbys.places.get(job.id)
        if job.spec.has_warm_standby or place is None:
            return StandbyView("pending", "", (), serving, there)
        state, where = ("verified", (place.cluster,)) if place.cluster else ("no place", ())
        return StandbyView(state, place.reason, where, serving, there)

    def clusters_of(self, job: JobRecord) -> frozenset[str]:
        """Return the clusters that the queue of a job allows; empty for all.

        Raises
        ------
        UnavailableError
            If the queues are not loaded yet.
        """
        return self._controller.names.clusters_of(job.spec.queue)

    def policies(self) -> list[PolicyView]:
        """Return all policies for queues: heuristics, policies of other packages, profiles and trained policies."""
        users: dict[str, list[str]] = {}
        for queue in list(self._live.queues.values()):
            users.setdefault(queue.policy, []).append(queue.name)
        rules = [
            (name, BUILT_IN[name].description, HEURISTIC)
            if name in BUILT_IN
            else (name, "from another package", PACKAGE)
            for name in policy_names()
        ]
        joined = [(name, self._policies.says(name), PROFILE) for name in self._policies.profiles]
        trained = [(name, self._policies.says(name), TRAINED) for name in self._policies.names()]
        return [
            PolicyView(name, says, tuple(users.get(name, ())), source, self.policy_warning(name))
            for name, says, source in (*rules, *joined, *trained)
        ]

    def policy_warning(self, name: str) -> str:
        """Return the limits of a policy to consider before it decides for a queue; empty for none."""
        return self._policies.warning(name, len(self._live.fleet.clusters))

    def policy_counts(self) -> dict[str, PolicyCount]:
        """Return the counters of trained policies that made decisions since the start."""
        return self._policies.counts.counted()

    def expected_end_ns(self, attempt: Attempt) -> int | None:
        """Return the expected end of an attempt by the wall clock; None if it is unknown, or if it has ended."""
        key = attempt.job_id, attempt.number
        with self._controller.lock:
            live = self._live
            now_ns = live.clock.now_ns()
            rest_ns = live.expected_rest_ns(key, now_ns) if key in live.attempts else None
        return None if rest_ns is None else now_ns + rest_ns

    # Workloads.

    def manifests(self, job: JobRecord) -> list[dict[str, Any]]:
        """Return the objects of the latest attempt of a job.

        Raises
        ------
        ConflictError
            If the job was never placed.
        """
        attempt = self.attempt(job)
        return [
            document
            for cluster in attempt.clusters
            for document in self._backend(cluster).manifests(deployment(attempt, cluster).shown())
        ]

    def latest_log(self, job: JobRecord, replica: int, container: str = "", attempt: int = 0) -> Log:
        """Return the location of the log of a replica, by default of the latest attempt and its first container.

        Raises
        ------
        ConflictError
            If the job was never placed, or has no such attempt or replica.
        """
        return self.log_of(self.attempt(job, attempt), replica, container)

    def log(self, job: JobRecord, replica: int, container: str = "") -> Log | None:
        """Return the location of the log of a replica of the latest attempt; None if the job was never placed.

        Raises
        ------
        ConflictError
            If the job has no such replica.
        """
        attempts = self._store.attempts(job.id)
        return self.log_of(attempts[-1], replica, container) if attempts else None

    def log_of(self, attempt: Attempt, replica: int, container: str) -> Log:
        """Return the location of the log of a replica of an attempt.

        Raises
        ------
        ConflictError
            If the attempt has no such replica.
        """
        for placement in attempt.placements:
            if placement.replica == replica:
                copy = deployment(attempt, placement.cluster)
                backend = self._backend(placement.cluster)
                return Log(backend, copy.name, replica, attempt.number, container, self.archive)
        raise ConflictError(reasons.Reason("no_such_replica", last=len(attempt.placements) - 1, replica=replica))

    def attempt(self, job: JobRecord, number: int = 0) -> Attempt:
        """Return an attempt of a job, by default the latest.

        Raises
        ------
        ConflictError
            If the job was never placed, has no such attempt, or is an array.
        """
        if job.is_array and job.spec.array:
            task = f"{job.id}_{job.spec.array.last}"
            raise ConflictError(reasons.Reason("name_a_task", task=task))
        attempts = self._store.attempts(job.id)
        if not attempts:
            raise ConflictError(reasons.Reason("no_place_yet", why=job.reason))
        number = number or attempts[-1].number
        for each in attempts:
            if each.number == number:
                return each
        raise ConflictError(reasons.Reason("no_such_attempt", number=number, last=attempts[-1].number))

    def _backend(self, cluster: str) -> Backend:
        if backend := self._controller.backend(cluster):
            return backend
        raise UnavailableError(reasons.Reason("cluster_not_connected", cluster=cluster))

    # Figures.

    def figures(self) -> Figures:
        """Return the figures for monitoring."""
        found = figures(self._controller, self._writer)
        return replace(found, failing_tasks=dict(self.failing_tasks), notified=self.notified.copied())

    def waiting_rules(self) -> dict[str, int]:
        """Return the number of waiting jobs by the rule that excludes most nodes, or by another reason."""
        return self._rules.counted()
