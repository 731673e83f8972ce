"""Metrics of requests and of the process, in Prometheus text format. Label values come from bounded sets."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import accumulate
from platform import python_version

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    ProcessCollector,
    disable_created_metrics,
    generate_latest,
)
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from seaway import __version__
from seaway.api.http.connections import REASONS, Connections
from seaway.api.http.sockets import SWITCHED
from seaway.api.metric_families import NetworkMetrics, QueueMetrics, counter_by, gauge_by, gauge_by_cluster, timed_by
from seaway.application.audit import AuditLog
from seaway.application.monitoring.counters import Figures, JobFigures, NotifierCounts, StoreFigures
from seaway.application.views import ClusterState
from seaway.bootstrap.control_plane import ControlPlane
from seaway.domain.job_state import JobState
from seaway.domain.notifications import Channel
from seaway.learning.policies.monitor import BOUNDS_S, PolicyCount


@dataclass(frozen=True, slots=True)
class Clients:
    """Clients of the server.

    Attributes
    ----------
    listeners
        Number of clients that follow events.
    sessions
        Open sessions with containers, by kind.
    """

    listeners: int
    connections: Connections
    sessions: Mapping[str, int]


class LoopMetrics(Collector):
    """Metrics of the control loop for one response, with totals over tenants if the caller may see them.

    Parameters
    ----------
    waiting_rules
        Waiting jobs by rule; None if the caller may not see all jobs.
    """

    def __init__(
        self,
        figures: Figures,
        audit: AuditLog,
        clients: Clients,
        waiting_rules: dict[str, int] | None,
    ) -> None:
        self._figures = figures
        self._audit = audit
        self._clients = clients
        self._waiting_rules = waiting_rules

    def collect(self) -> Iterator[Metric]:
        """Return all metrics."""
        figures = self._figures
        states = {state.value: figures.clusters.get(state.value, 0) for state in ClusterState}
        yield gauge_by("seaway_clusters", "Clusters of the fleet, by state.", "state", states)
        yield gauge_by(
            "seaway_cluster_last_seen_seconds",
            "Age of the state of a cluster: seconds since its last report or its first failure.",
            "cluster",
            figures.last_seen_s,
        )
        for name, says, values in (
            ("seaway_nodes_not_ready", "Nodes that accept no new work, by cluster.", figures.nodes_not_ready),
            ("seaway_gpus_unhealthy", "GPUs that are not reported as healthy, by cluster.", figures.gpus_unhealthy),
        ):
            yield gauge_by(name, says, "cluster", values)
        if self._waiting_rules is not None:
            yield from _of_jobs(figures.jobs, self._waiting_rules)
            yield from _of_decisions(figures)
            yield from _of_clusters(figures)
            yield from _of_the_store(figures.store)
            failing = {name: int(fails) for name, fails in figures.failing_tasks.items()}
            yield gauge_by("seaway_task_failing", "1 while the last run of a scheduled task failed.", "task", failing)
            yield CounterMetricFamily(
                "seaway_audit_dropped", "Audit entries dropped because the queue was full.", self._audit.dropped
            )
            yield from _of_notifications(figures.notified)
            connections = self._clients.connections
            yield GaugeMetricFamily("seaway_event_listeners", "Clients that follow events.", self._clients.listeners)
            yield gauge_by("seaway_sessions", "Open sessions with containers, by kind.", "kind", self._clients.sessions)
            yield GaugeMetricFamily("seaway_connections", "Open connections to the server.", len(connections))
            yield counter_by(
                "seaway_connections_closed",
                "Connections closed because of a limit, by reason.",
                ["reason"],
                {(reason,): connections.closed[reason] for reason in REASONS},
            )


def _of_jobs(jobs: JobFigures, waiting_rules: dict[str, int]) -> Iterator[Metric]:
    states = {state.value: jobs.states.get(state.value, 0) for state in JobState if not state.final}
    yield gauge_by("seaway_jobs", "Unfinished jobs, by state. Each task of an array counts.", "state", states)
    yield gauge_by(
        "seaway_jobs_waiting", "Waiting jobs, by queue. Each task of an array counts.", "queue", jobs.waiting
    )
    yield gauge_by(
        "seaway_jobs_unschedulable",
        "Waiting jobs, by the rule that excludes most nodes. Each task of an array counts.",
        "rule",
        waiting_rules,
    )
    yield gauge_by(
        "seaway_queue_longest_wait_seconds",
        "Longest wait of a waiting job in seconds, since its submit or since it last ran.",
        "queue",
        jobs.longest_waits_s,
    )
    yield timed_by(
        "seaway_queue_wait_seconds", "Seconds that jobs waited until their placement was stored.", "queue", jobs.waits
    )
    reached = {(state,): count for state, count in jobs.reached.items()}
    yield counter_by("seaway_jobs_reached", "Transitions of jobs into each state.", ["state"], reached)


def _of_decisions(figures: Figures) -> Iterator[Metric]:
    placed = {(policy,): count for policy, count in figures.placed.items()}
    yield GaugeMetricFamily("seaway_ready", "1 while jobs can be placed, 0 while not.", int(figures.ready))
    yield CounterMetricFamily("seaway_loop_failures", "Failed cycles of the control loop.", figures.failures)
    yield timed_by(
        "seaway_stage_seconds",
        "Seconds that jobs spent in each stage between submit and start.",
        "stage",
        figures.stages,
    )
    yield CounterMetricFamily("seaway_jobs_decided", "Scheduling attempts of jobs, successful or not.", figures.decided)
    yield counter_by(
        "seaway_jobs_placed",
        "Stored placements, by policy; a job that is placed again counts again.",
        ["policy"],
        placed,
    )
    yield CounterMetricFamily(
        "seaway_conflicts", "Placements dropped because of a concurrent change of the job.", figures.conflicts
    )
    yield counter_by(
        "seaway_preemptions",
        "Running jobs displaced by waiting ones, by queue and rule: a higher priority, or reclaim by another queue.",
        ["queue", "rule"],
        figures.preempted,
    )
    standbys, missing = figures.standbys
    yield GaugeMetricFamily("seaway_standbys", "Placed services that should have a standby.", standbys)
    yield GaugeMetricFamily("seaway_standbys_missing", "Placed services that cannot switch to their standby.", missing)
    yield CounterMetricFamily(
        "seaway_slo_violations", "Running jobs whose network violated a bound for too long.", figures.slo_violations
    )
    yield CounterMetricFamily(
        "seaway_slo_moves", "Running jobs moved elsewhere because their network violated a bound.", figures.moves
    )


def _of_clusters(figures: Figures) -> Iterator[Metric]:
    pending_commands, collecting = figures.pending_commands.items(), figures.collecting.items()
    deployed = {(cluster, what.value): count for (cluster, what), count in figures.deployed.items()}
    yield counter_by(
        "seaway_deployments",
        "Deployments in clusters, by outcome.",
        ["cluster", "outcome"],
        deployed,
    )
    for name, says, values in (
        (
            "seaway_pending_commands",
            "Commands that a cluster has not confirmed.",
            {name: each.count for name, each in pending_commands},
        ),
        (
            "seaway_pending_commands_retrying",
            "Commands that failed and are retried, by cluster.",
            {name: each.delayed for name, each in pending_commands},
        ),
        (
            "seaway_pending_command_oldest_seconds",
            "Age of the oldest unconfirmed command of a cluster, in seconds.",
            {name: each.oldest_s for name, each in pending_commands},
        ),
    ):
        yield gauge_by(name, says, "cluster", values)
    yield gauge_by_cluster(
        "seaway_collector_problems",
        "Invalid or doubtful objects in a cluster, by kind.",
        "kind",
        {name: each.problems for name, each in collecting},
    )
    yield gauge_by_cluster(
        "seaway_collector_failing_seconds",
        "Seconds for which a kind of object in a cluster could not be listed or watched.",
        "source",
        {name: each.failing_s for name, each in collecting},
    )
    yield counter_by(
        "seaway_usage_scrapes",
        "Scrapes of exporters in clusters, by outcome.",
        ["cluster", "outcome"],
        {(name, outcome): count for name, each in collecting for outcome, count in each.scrapes.items()},
    )


def _of_notifications(notified: NotifierCounts) -> Iterator[Metric]:
    for name, says, counts in (
        ("seaway_notifications_sent", "Messages that their receivers accepted, by channel.", notified.sent),
        ("seaway_notifications_failed", "Failed tries to send a message, by channel.", notified.failed),
    ):
        yield counter_by(name, says, ["channel"], {(each.value,): counts[each.value] for each in Channel})
    yield GaugeMetricFamily(
        "seaway_notifications_waiting", "Messages that are sent now or tried again.", notified.waiting
    )
    yield GaugeMetricFamily("seaway_notifications_dead", "Messages that are not tried again.", notified.dead)


def _of_the_store(store: StoreFigures) -> Iterator[Metric]:
    yield CounterMetricFamily("seaway_changes", "Changes stored in the database.", store.changes)
    yield CounterMetricFamily("seaway_transactions", "Database transactions that stored changes.", store.transactions)
    yield timed_by("seaway_transaction_seconds", "Duration of database transactions, in seconds.", "", {"": store.took})
    yield CounterMetricFamily(
        "seaway_transaction_failures", "Database transactions that failed, since the start.", store.failures
    )
    yield GaugeMetricFamily("seaway_changes_waiting", "Changes that wait to be stored in the database.", store.waiting)
    yield GaugeMetricFamily(
        "seaway_store_failing",
        "1 while the database stores no changes, such as on a full disk.",
        int(bool(store.trouble)),
    )
    yield GaugeMetricFamily(
        "seaway_unreadable_rows", "Damaged rows of the database, which are left out.", store.unreadable
    )


MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"
SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)
STREAMS = frozenset({"follow_events", "follow_log"})
"""Streaming operations, which have no duration histogram, as web sockets."""


disable_created_metrics()  # type: ignore[no-untyped-call]  # start time of each series: doubles the size, unused


class Tally:
    """Counter of requests of one kind.

    Parameters
    ----------
    name
        Prefix of the metrics.
    what
        Description of the requests.
    label
        Label of the requests besides the status.
    registry
        Registry of the metrics.
    """

    def __init__(self, name: str, what: str, label: str, registry: CollectorRegistry) -> None:
        labels = (label, "status")
        self._requests = Counter(f"{name}s_total", f"{what}, by {label} and status.", labels, registry=registry)
        self._seconds = Histogram(
            f"{name}_seconds",
            f"{what}: duration in seconds.",
            (label,),
            buckets=SECONDS,
            registry=registry,
        )
        self._known: dict[tuple[str, int], tuple[Counter, Histogram]] = {}

    def count(self, of: str, status: int, seconds: float) -> None:
        """Count a request."""
        pair = self._known.get((of, status))
        if pair is None:
            pair = self._requests.labels(of, str(status)), self._seconds.labels(of)
            self._known[of, status] = pair
        pair[0].inc()
        if of not in STREAMS and status != SWITCHED:
            pair[1].observe(seconds)


class Meter:
    """Counters of requests, combined with metrics of the control loop and the process in one response."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        ProcessCollector(registry=self._registry)
        build = Gauge(
            "seaway_build_info", "1, with the versions as labels.", ("version", "python"), registry=self._registry
        )
        build.labels(__version__, python_version()).set(1)
        self.requests = Tally("seaway_http_request", "Requests to the API", "operation", self._registry)
        self.pages = Tally("seaway_page_request", "Requests for pages", "page", self._registry)
        self.queries = Tally("seaway_page_api_request", "API requests of pages", "operation", self._registry)

    def text(self, plane: ControlPlane, audit: AuditLog, clients: Clients, *, by_queue: bool) -> bytes:
        """Return all metrics.

        Parameters
        ----------
        by_queue
            Whether to include queues and totals over all tenants, which tenants may not see.
        """
        registry, overview = CollectorRegistry(), plane.overview
        rules = overview.waiting_rules() if by_queue else None
        registry.register(LoopMetrics(overview.figures(), audit, clients, rules))
        registry.register(NetworkMetrics(overview, plane.network.agents))
        if by_queue:
            errors = overview.start_errors(), overview.duration_errors()
            registry.register(QueueMetrics(overview.queue_totals(), overview.tenant_totals(), *errors))
            registry.register(_Trained(overview.policy_counts()))
        return (generate_latest(self._registry) if by_queue else b"") + generate_latest(registry)


class _Trained(Collector):
    """Metrics of trained policies for one response; empty before the first decision."""

    def __init__(self, counts: Mapping[str, PolicyCount]) -> None:
        self._counts = counts

    def collect(self) -> Iterator[Metric]:
        """Return all metrics."""
        seconds = HistogramMetricFamily(
            "seaway_policy_decision_seconds",
            "Duration of decisions by trained policies, in seconds.",
            labels=["policy"],
        )
        fallbacks = CounterMetricFamily(
            "seaway_policy_fallbacks",
            "Decisions by the fallback instead of a trained policy.",
            labels=["policy", "reason"],
        )
        for name, each in self._counts.items():
            upto = list(accumulate(each.decided))
            bounds = [*(f"{bound_s:g}" for bound_s in BOUNDS_S), "+Inf"]
            seconds.add_metric([name], list(zip(bounds, upto, strict=True)), each.took_ns / 1e9)
            for reason, count in each.fallbacks.items():
                fallbacks.add_metric([name, reason.value], count)
        if self._counts:
            yield seconds
            yield fallbacks
