"""Metrics of the control loop and the database."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from seaway.api.metric_families import counter_by, gauge_by, gauge_by_cluster, timed_by
from seaway.application.audit import AuditLog
from seaway.application.monitoring.counters import Figures, JobFigures, StoreFigures
from seaway.application.views import ClusterState
from seaway.domain.job_state import JobState


class LoopMetrics(Collector):
    """Metrics of clusters for one response, with totals over tenants if the caller may see them.

    Parameters
    ----------
    waiting_rules
        Waiting jobs by rule; None if the caller may not see all jobs.
    """

    def __init__(self, figures: Figures, audit: AuditLog, listeners: int, waiting_rules: dict[str, int] | None) -> None:
        self._figures = figures
        self._audit = audit
        self._listeners = listeners
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
        if self._waiting_rules is not None:
            yield from _of_jobs(figures.jobs, self._waiting_rules)
            yield from _of_decisions(figures)
            yield from _of_clusters(figures)
            yield from _of_the_store(figures.store)
            yield CounterMetricFamily(
                "seaway_audit_dropped", "Audit entries that found no room and were left out.", self._audit.dropped
            )
            yield GaugeMetricFamily("seaway_event_listeners", "Clients that follow events.", self._listeners)


def _of_jobs(jobs: JobFigures, waiting_rules: dict[str, int]) -> Iterator[Metric]:
    states = {state.value: jobs.states.get(state.value, 0) for state in JobState if not state.final}
    yield gauge_by("seaway_jobs", "Unfinished jobs, by state.", "state", states)
    yield gauge_by("seaway_jobs_waiting", "Jobs that wait for a place, by queue.", "queue", jobs.waiting)
    yield gauge_by(
        "seaway_jobs_unschedulable", "Waiting jobs, by the rule that excludes most nodes.", "rule", waiting_rules
    )
    yield gauge_by(
        "seaway_queue_longest_wait_seconds",
        "Seconds that the job has waited that has waited longest, since its submit or since it ran last.",
        "queue",
        jobs.longest_waits_s,
    )
    yield timed_by(
        "seaway_queue_wait_seconds", "Seconds that jobs waited until a place for them was stored.", "queue", jobs.waits
    )
    reached = {(state,): count for state, count in jobs.reached.items()}
    yield counter_by("seaway_jobs_reached", "How often jobs came into each state.", ["state"], reached)


def _of_decisions(figures: Figures) -> Iterator[Metric]:
    placed = {(policy,): count for policy, count in figures.placed.items()}
    yield GaugeMetricFamily("seaway_ready", "1 while jobs can be placed, 0 while not.", int(figures.ready))
    yield CounterMetricFamily("seaway_loop_failures", "Rounds of the control loop that failed.", figures.failures)
    yield timed_by(
        "seaway_stage_seconds",
        "Seconds that jobs took for each stage between a submit and running.",
        "stage",
        figures.stages,
    )
    yield CounterMetricFamily("seaway_jobs_decided", "Tries to find a place for a job.", figures.decided)
    yield counter_by(
        "seaway_jobs_placed",
        "Placements that were stored, by the policy that chose; a job that is placed again counts again.",
        ["policy"],
        placed,
    )
    yield CounterMetricFamily(
        "seaway_conflicts", "Placements dropped because of a concurrent change of the job.", figures.conflicts
    )
    yield CounterMetricFamily(
        "seaway_slo_violations", "Running jobs whose network violated a bound for too long.", figures.slo_violations
    )
    yield CounterMetricFamily(
        "seaway_slo_moves", "Running jobs moved elsewhere because their network broke a bound.", figures.moves
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
            "Commands that a cluster has not confirmed yet.",
            {name: each.count for name, each in pending_commands},
        ),
        (
            "seaway_pending_commands_retrying",
            "Commands that failed and are retried, by cluster.",
            {name: each.delayed for name, each in pending_commands},
        ),
        (
            "seaway_pending_command_oldest_seconds",
            "Seconds that the oldest command has waited that a cluster has not confirmed.",
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


def _of_the_store(store: StoreFigures) -> Iterator[Metric]:
    yield CounterMetricFamily("seaway_changes", "Changes stored in the database.", store.changes)
    yield CounterMetricFamily(
        "seaway_transactions", "Transactions of the database in which changes were stored.", store.transactions
    )
    yield timed_by(
        "seaway_transaction_seconds", "Seconds that the database took for a transaction.", "", {"": store.took}
    )
    yield CounterMetricFamily(
        "seaway_transaction_failures", "Transactions of the database that failed.", store.failures
    )
    yield GaugeMetricFamily("seaway_changes_waiting", "Changes that wait to be stored in the database.", store.waiting)
