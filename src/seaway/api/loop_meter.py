"""What the control loop and the database count, as metrics."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from seaway.api.families import counter_by, gauge_by, gauge_by_cluster, timed_by
from seaway.application.audit import AuditLog
from seaway.application.figures import Figures, JobFigures, StoreFigures
from seaway.application.views import ClusterState
from seaway.domain.lifecycle import JobState


class LoopMetrics(Collector):
    """What is said of clusters, for one answer, and to whom it may be told what all tenants make up together.

    Parameters
    ----------
    waiting_rules
        Jobs that wait, by what keeps them; None for who may not know of everybody's jobs.
    """

    def __init__(self, figures: Figures, audit: AuditLog, listeners: int, waiting_rules: dict[str, int] | None) -> None:
        self._figures = figures
        self._audit = audit
        self._listeners = listeners
        self._waiting_rules = waiting_rules

    def collect(self) -> Iterator[Metric]:
        """Return every figure."""
        figures = self._figures
        states = {state.value: figures.clusters.get(state.value, 0) for state in ClusterState}
        yield gauge_by("seaway_clusters", "Clusters.", "state", states)
        yield gauge_by(
            "seaway_cluster_silent_seconds", "Seconds since a cluster answered.", "cluster", figures.silent_s
        )
        if self._waiting_rules is not None:
            yield from _of_jobs(figures.jobs, self._waiting_rules)
            yield from _of_decisions(figures)
            yield from _of_clusters(figures)
            yield from _of_the_store(figures.store)
            yield CounterMetricFamily("seaway_audit_dropped", "Audit entries without room.", self._audit.dropped)
            yield GaugeMetricFamily("seaway_event_listeners", "Who follows events.", self._listeners)


def _of_jobs(jobs: JobFigures, waiting_rules: dict[str, int]) -> Iterator[Metric]:
    states = {state.value: jobs.states.get(state.value, 0) for state in JobState if not state.final}
    yield gauge_by("seaway_jobs", "Jobs that are not over.", "state", states)
    yield gauge_by("seaway_jobs_waiting", "Jobs that wait.", "queue", jobs.waiting)
    yield gauge_by("seaway_jobs_refused", "Jobs that wait, by the rule that keeps most nodes.", "rule", waiting_rules)
    yield gauge_by(
        "seaway_queue_longest_wait_seconds",
        "For how long the job has waited that has waited longest.",
        "queue",
        jobs.longest_waits_s,
    )
    yield timed_by("seaway_queue_wait_seconds", "Seconds that jobs waited for their place.", "queue", jobs.waits)
    reached = {(state,): count for state, count in jobs.reached.items()}
    yield counter_by("seaway_jobs_reached", "How often jobs came into a state.", ["state"], reached)


def _of_decisions(figures: Figures) -> Iterator[Metric]:
    placed = {(policy,): count for policy, count in figures.placed.items()}
    yield GaugeMetricFamily("seaway_ready", "Whether jobs can be placed.", int(figures.ready))
    yield CounterMetricFamily("seaway_loop_failures", "Rounds of the control loop that failed.", figures.failures)
    yield timed_by("seaway_stage_seconds", "Seconds that stages of jobs took.", "stage", figures.stages)
    yield CounterMetricFamily("seaway_jobs_decided", "Decisions on jobs.", figures.decided)
    yield counter_by("seaway_jobs_placed", "Jobs placed.", ["policy"], placed)
    yield CounterMetricFamily("seaway_conflicts", "Decisions given back.", figures.conflicts)
    yield CounterMetricFamily("seaway_network_breaches", "Jobs whose network broke a bound.", figures.breaches)
    yield CounterMetricFamily("seaway_network_moves", "Jobs moved for that.", figures.moves)


def _of_clusters(figures: Figures) -> Iterator[Metric]:
    outgoing, collecting = figures.outgoing.items(), figures.collecting.items()
    deployed = {(cluster, what.value): count for (cluster, what), count in figures.deployed.items()}
    yield counter_by("seaway_deployments", "What became of deployments.", ["cluster", "outcome"], deployed)
    for name, says, values in (
        ("seaway_outgoing", "What a cluster is still to be told.", {name: each.count for name, each in outgoing}),
        ("seaway_outgoing_delayed", "What of it was told in vain.", {name: each.delayed for name, each in outgoing}),
        (
            "seaway_outgoing_oldest_seconds",
            "For how long the oldest of it has waited.",
            {name: each.oldest_s for name, each in outgoing},
        ),
    ):
        yield gauge_by(name, says, "cluster", values)
    yield gauge_by_cluster(
        "seaway_collector_troubles",
        "What a cluster says that is broken or doubtful.",
        "kind",
        {name: each.troubles for name, each in collecting},
    )
    yield gauge_by_cluster(
        "seaway_collector_failing_seconds",
        "For how long a source has not answered.",
        "source",
        {name: each.failing_s for name, each in collecting},
    )
    yield counter_by(
        "seaway_usage_scrapes",
        "How often exporters were read for real use.",
        ["cluster", "outcome"],
        {(name, outcome): count for name, each in collecting for outcome, count in each.scrapes.items()},
    )


def _of_the_store(store: StoreFigures) -> Iterator[Metric]:
    yield CounterMetricFamily("seaway_changes", "Changes stored.", store.changes)
    yield CounterMetricFamily("seaway_transactions", "Transactions they took.", store.transactions)
    yield timed_by("seaway_transaction_seconds", "Seconds that transactions took.", "", {"": store.took})
    yield CounterMetricFamily("seaway_transaction_failures", "Transactions that failed.", store.failures)
    yield GaugeMetricFamily("seaway_changes_waiting", "Changes that wait to be stored.", store.waiting)
