"""The fleet, the queue and the reasons, as people look at them while the loop goes on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from seaway.application.control.loop import Controller
from seaway.application.control.state import ControlState, deployment
from seaway.application.fleet.gpu_metrics import GpuMetrics
from seaway.application.fleet.nodes import FleetViews
from seaway.application.fleet.queues import Place, QueueUsage, QueueViews
from seaway.application.fleet.search import FleetFilter, Found
from seaway.application.monitoring.alerts import NetworkFigures, network_figures
from seaway.application.monitoring.counters import Figures, figures
from seaway.application.monitoring.waiting_rules import WaitingRules
from seaway.application.network.bandwidth import Interface
from seaway.application.network.views import Asked, LinkState, LinkView, Side, reported
from seaway.application.policies import Policies
from seaway.application.ports.backend import Backend, Backends
from seaway.application.ports.store import Store
from seaway.application.records import Attempt, JobRecord
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
    NodeView,
    PolicyView,
    Reason,
)
from seaway.application.whatif.dry_run import DryRuns
from seaway.application.writer import Writer
from seaway.domain import job_spec as ids
from seaway.domain.deployment import Deployment, Workload
from seaway.domain.errors import ConflictError, UnavailableError
from seaway.domain.job_spec import JobSpec
from seaway.learning.policies.monitor import PolicyCount
from seaway.scheduling.policies.registry import BUILT_IN, policy_names

UNNAMED = "0" * ids.LENGTH
"""Stands for the id of a job that is only tried."""


@dataclass(frozen=True, slots=True)
class Log:
    """Log of a replica of an attempt, for one container."""

    backend: Backend
    copy: str
    replica: int
    attempt: int
    container: str = ""


def _with_room(view: LinkView, room: tuple[int, int] | None) -> LinkView:
    """Say of a link whose bandwidth is known what is promised, and what can still be."""
    if room is None or view.link is None or not view.link.bandwidth_mbps:
        return view
    return replace(view, reserved_mbps=room[0], left_mbps=room[1])


class Overview:
    """Looks at the live state from any thread, and changes nothing.

    Parameters
    ----------
    controller
        Whose state is looked at, under its lock and no longer than needed.
    store
        For jobs that are over.
    backends
        For manifests and logs.
    writer
        For what it counted.
    policies
        The trained policies there are.
    """

    def __init__(
        self, controller: Controller, store: Store, backends: Backends, writer: Writer, policies: Policies
    ) -> None:
        self._policies = policies
        self._controller = controller
        self._store = store
        self._backends = backends
        self._writer = writer
        self._fleet = FleetViews(controller)
        self._gpus = GpuMetrics(controller)
        self._queues = QueueViews(controller)
        self._tries = DryRuns(controller)
        self._rules = WaitingRules(controller, self._tries)

    @property
    def _live(self) -> ControlState:
        return self._controller.live

    def ready(self) -> bool:
        """Tell whether the loop knows what is stored, so that it can place jobs."""
        return self._controller.loaded

    # The fleet.

    def clusters(self) -> list[ClusterView]:
        """Return every cluster, summed up."""
        return self._fleet.clusters()

    def nodes(self, cluster: str = "") -> list[NodeView]:
        """Return the nodes of a cluster, or of all, with their devices and slices."""
        return self._fleet.nodes(cluster)

    def find_nodes(self, wanted: FleetFilter) -> Found:
        """Find nodes, and devices on them, among all there are."""
        return self._fleet.find(wanted)

    def look_at(self, found: Found, nodes: Sequence[int]) -> Iterator[NodeView]:
        """Look at some of the nodes among which something was found, given by their places."""
        return self._fleet.look(found.columns, nodes)

    def look_at_devices(self, found: Found, devices: Sequence[int]) -> list[DeviceView]:
        """Look at some of the devices among which something was found, given by their places."""
        return self._fleet.look_at_devices(found.columns, devices)

    def models(self, cluster: str = "") -> list[ModelView]:
        """Sum up the devices of a cluster, or of all, by model."""
        return self._fleet.models(cluster)

    def cluster_names(self) -> list[str]:
        """Return the names of all clusters."""
        return self._gpus.cluster_names()

    def gpu_uses(self, cluster: str = "") -> list[DeviceUse]:
        """Return the devices of one cluster or of all, with the allocations by holder."""
        return self._gpus.uses(cluster)

    def links(self, wanted: Asked | None = None) -> list[LinkView]:
        """Return the links as decisions go by them, and with what was measured of them; those that are missing too.

        Parameters
        ----------
        wanted
            Tells which; all if left out.
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
        return [_with_room(each, rooms.get((each.source, each.target))) for each in views]

    def agents_last_seen_s(self) -> dict[str, float]:
        """Return for each gateway that is configured how long its agent has not reported, seconds."""
        return self._live.link_table.last_seen_s(self._live.clock.now_ns())

    def gateway_reads(self) -> dict[str, int]:
        """Count the readings of gateways' interfaces, by outcome."""
        return self._live.link_table.reads()

    def probe_rounds(self) -> dict[tuple[str, str], int]:
        """Count rounds of probes since the start, by the gateway that probed and how they ended."""
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
        """Return for each gateway what it stands before."""
        with self._controller.lock:
            return self._live.fleet.sides()

    def network_figures(self) -> NetworkFigures:
        """Return what is looked at to tell whether something is wrong with the network."""
        return network_figures(self.links(), self.sides(), self.interfaces())

    # Queues.

    def queue_usage(self) -> list[QueueUsage]:
        """Return the allocations and waiting jobs, by queue and tenant."""
        return self._queues.uses()

    def waiting(self, queue: str, tenant: str = "") -> list[Place]:
        """Return the jobs that wait in a queue, of a tenant or of all, first in line first."""
        return self._queues.waiting(queue, tenant)

    # Decisions.

    def dry_run(self, spec: JobSpec) -> DryRun:
        """Try a job on the fleet as it is, by the policy of its queue, without consequences.

        Raises
        ------
        RejectedError
            When it cannot become what it names where it would go.
        """
        trial = self._tries.dry_run(spec)
        made = [
            Deployment(UNNAMED, 1, cluster, spec, tuple(each for each in trial.placements if each.cluster == cluster))
            for cluster in dict.fromkeys(each.cluster for each in trial.placements)
        ]
        documents = [document for each in made for document in self._backend(each.cluster).manifests(each)]
        return replace(trial, manifests=tuple(documents))

    def reason(self, job: JobRecord) -> Reason:
        """Say why a job is where it is."""
        attempts = self._store.attempts(job.id) if job.attempt else []
        return self._tries.reason(job, attempts[-1] if attempts else None)

    def workloads(self, job: JobRecord) -> list[Workload]:
        """Return the workloads of a job's latest attempt, by cluster; empty before the first report."""
        with self._controller.lock:
            seen = self._live.seen.get((job.id, job.attempt), {})
            return [seen[cluster] for cluster in sorted(seen)]

    def clusters_of(self, job: JobRecord) -> frozenset[str]:
        """Return the clusters that a job's queue allows it; empty for all.

        Raises
        ------
        UnavailableError
            When it is not known yet which queues there are.
        """
        return self._controller.names.clusters_of(job.spec.queue)

    def policies(self) -> list[PolicyView]:
        """Return the policies that a queue may have: heuristics, those of other packages, profiles, trained ones."""
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
        every = (*rules, *joined, *trained)
        return [PolicyView(name, says, tuple(users.get(name, ())), source) for name, says, source in every]

    def policy_counts(self) -> dict[str, PolicyCount]:
        """Return how trained policies did since the start, of those that were asked."""
        return self._policies.counts.counted()

    # What was carried out.

    def manifests(self, job: JobRecord) -> list[dict[str, Any]]:
        """Return the objects that a job's latest attempt became.

        Raises
        ------
        ConflictError
            When the job never had a place.
        """
        attempt = self._latest(job)
        return [
            document
            for cluster in attempt.clusters
            for document in self._backend(cluster).manifests(deployment(attempt, cluster))
        ]

    def logs(self, job: JobRecord, replica: int, tail: int, container: str = "") -> Iterator[str]:
        """Return the last log lines of a replica of a job's latest attempt, by default of its first container.

        Raises
        ------
        ConflictError
            When the job was never placed, or has no such replica.
        RejectedError
            When the cluster has no logs of it any more, or no such container.
        """
        log = self._log(self._latest(job), replica, container)
        return log.backend.logs(log.copy, replica, tail, container)

    def log(self, job: JobRecord, replica: int, container: str = "") -> Log | None:
        """Return where a replica of a job's latest attempt writes; None when the job never had a place.

        Raises
        ------
        ConflictError
            When the job has no such replica.
        """
        attempts = self._store.attempts(job.id)
        return self._log(attempts[-1], replica, container) if attempts else None

    def _log(self, attempt: Attempt, replica: int, container: str) -> Log:
        for placement in attempt.placements:
            if placement.replica == replica:
                copy = deployment(attempt, placement.cluster)
                return Log(self._backend(placement.cluster), copy.name, replica, attempt.number, container)
        raise ConflictError(f"the job has replicas 0 to {len(attempt.placements) - 1}, not {replica}")

    def _latest(self, job: JobRecord) -> Attempt:
        attempts = self._store.attempts(job.id)
        if not attempts:
            raise ConflictError(f"the job has no place yet: {job.reason}")
        return attempts[-1]

    def _backend(self, cluster: str) -> Backend:
        for backend in self._backends.clusters():
            if backend.cluster == cluster:
                return backend
        raise UnavailableError(f"cluster {cluster!r} is not connected")

    # Figures.

    def figures(self) -> Figures:
        """Count what monitoring looks at."""
        return figures(self._controller, self._writer)

    def waiting_rules(self) -> dict[str, int]:
        """Count jobs that wait by the rule, or whatever else it is, that keeps most nodes from them."""
        return self._rules.counted()
