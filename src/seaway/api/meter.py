"""Figures for monitoring, in Prometheus' text format. Labels are operations, states, clusters: all bounded."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate

from prometheus_client import CollectorRegistry, Counter, Histogram, disable_created_metrics, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from seaway.application.audit import AuditLog
from seaway.application.network.bandwidth import Interface
from seaway.application.overview import Overview
from seaway.application.views import Figures
from seaway.learning.policies.watch import BOUNDS_S, PolicyCount

MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"
SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)
STREAMS = frozenset({"follow_events", "follow_log"})
"""Operations that last; how long says nothing."""


disable_created_metrics()  # type: ignore[no-untyped-call]  # when each series began: doubles the page, told by none


class Meter:
    """Counts requests, and shows them with what the control loop counts."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self._requests = Counter(
            "seaway_http_requests_total",
            "Requests, by operation and status.",
            ("operation", "status"),
            registry=self._registry,
        )
        self._seconds = Histogram(
            "seaway_http_request_seconds",
            "Seconds until a request was answered.",
            ("operation",),
            buckets=SECONDS,
            registry=self._registry,
        )
        self._known: dict[tuple[str, int], tuple[Counter, Histogram]] = {}

    def count(self, operation: str, status: int, seconds: float) -> None:
        """Count a request."""
        pair = self._known.get((operation, status))
        if pair is None:
            pair = self._requests.labels(operation, str(status)), self._seconds.labels(operation)
            self._known[operation, status] = pair
        pair[0].inc()
        if operation not in STREAMS:
            pair[1].observe(seconds)

    def text(self, overview: Overview, audit: AuditLog, listeners: int, *, by_queue: bool) -> bytes:
        """Write everything down.

        Parameters
        ----------
        by_queue
            Whether queues are named, and figures shown that everybody's jobs and requests make up; not to tenants.
        """
        registry = CollectorRegistry()
        registry.register(_Loop(overview.figures(), audit, listeners, by_queue=by_queue))
        registry.register(_Network(overview))
        if by_queue:
            registry.register(_Trained(overview.policy_counts()))
        return (generate_latest(self._registry) if by_queue else b"") + generate_latest(registry)


class _Loop(Collector):
    """What the control loop counts, for one answer."""

    def __init__(self, figures: Figures, audit: AuditLog, listeners: int, *, by_queue: bool) -> None:
        self._figures = figures
        self._audit = audit
        self._listeners = listeners
        self._by_queue = by_queue

    def collect(self) -> Iterator[Metric]:
        """Return every figure."""
        figures = self._figures
        yield _by("seaway_clusters", "Clusters.", "state", figures.clusters)
        yield _by("seaway_cluster_silent_seconds", "Seconds since a cluster answered.", "cluster", figures.silent_s)
        if self._by_queue:
            yield from self._everybodys(figures)

    def _everybodys(self, figures: Figures) -> Iterator[Metric]:
        """Return the figures that all tenants make up together."""
        yield _by("seaway_jobs", "Jobs that are not over.", "state", figures.jobs)
        yield _by("seaway_jobs_waiting", "Jobs that wait.", "queue", figures.waiting)
        yield _by("seaway_outgoing", "What a cluster is still to be told.", "cluster", figures.outgoing)
        yield CounterMetricFamily("seaway_jobs_decided", "Decisions on jobs.", figures.decided)
        yield CounterMetricFamily("seaway_jobs_placed", "Jobs placed.", figures.placed)
        yield CounterMetricFamily("seaway_conflicts", "Decisions given back.", figures.conflicts)
        yield CounterMetricFamily("seaway_network_breaches", "Jobs whose network broke a bound.", figures.breaches)
        yield CounterMetricFamily("seaway_network_moves", "Jobs moved for that.", figures.moves)
        yield CounterMetricFamily("seaway_changes", "Changes stored.", figures.changes)
        yield CounterMetricFamily("seaway_transactions", "Transactions they took.", figures.transactions)
        yield CounterMetricFamily("seaway_audit_dropped", "Audit entries without room.", self._audit.dropped)
        yield GaugeMetricFamily("seaway_event_listeners", "Who follows events.", self._listeners)
        troubles = {name: each.troubles for name, each in figures.collecting.items()}
        failing_s = {name: each.failing_s for name, each in figures.collecting.items()}
        yield _by_cluster(
            "seaway_collector_troubles", "What a cluster says that is broken or doubtful.", "kind", troubles
        )
        yield _by_cluster(
            "seaway_collector_failing_seconds",
            "For how long a source has not answered.",
            "source",
            failing_s,
        )
        scrapes = CounterMetricFamily(
            "seaway_usage_scrapes", "How often exporters were read for real use.", labels=["cluster", "outcome"]
        )
        for name, each in figures.collecting.items():
            for outcome, count in each.scrapes.items():
                scrapes.add_metric([name, outcome], count)
        yield scrapes


class _Trained(Collector):
    """How trained policies do, for one answer; nothing before one was asked."""

    def __init__(self, counts: Mapping[str, PolicyCount]) -> None:
        self._counts = counts

    def collect(self) -> Iterator[Metric]:
        """Return every figure."""
        seconds = HistogramMetricFamily(
            "seaway_policy_decision_seconds", "Seconds that trained policies took to decide.", labels=["policy"]
        )
        fallbacks = CounterMetricFamily(
            "seaway_policy_fallbacks",
            "Decisions that something else made in a trained policy's place.",
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


class _Network(Collector):
    """Who measures the network, and how much of it is known, for one answer; nothing without one."""

    def __init__(self, overview: Overview) -> None:
        self._silent_s = overview.silent_agents_s()
        self._states = overview.link_states()
        self._reads = overview.gateway_reads()
        self._interfaces = overview.interfaces()

    def collect(self) -> Iterator[Metric]:
        """Return every figure."""
        yield _by("seaway_links", "Links, by how much what is known of them is worth.", "state", self._states)
        yield _by("seaway_agent_silent_seconds", "Seconds since a gateway's agent reported.", "gateway", self._silent_s)
        reads = CounterMetricFamily(
            "seaway_gateway_reads", "How often gateways' interfaces were looked at.", labels=["outcome"]
        )
        for outcome, count in self._reads.items():
            reads.add_metric([outcome], count)
        yield reads
        yield from _of_interfaces(self._interfaces)


def _of_interfaces(interfaces: Sequence[Interface]) -> Iterator[Metric]:
    """Return what gateways' interfaces carry, and whether that is known."""
    used = GaugeMetricFamily(
        "seaway_gateway_used_mbps",
        "What passes through a gateway's interface, Mbit/s.",
        labels=["gateway", "direction"],
    )
    speeds: dict[str, float] = {}
    ages_s: dict[str, float] = {}
    for each in interfaces:
        traffic = each.traffic
        if traffic and traffic.speed_mbps is not None:
            speeds[each.gateway] = traffic.speed_mbps
        if traffic and traffic.age_s is not None:
            ages_s[each.gateway] = traffic.age_s
            used.add_metric([each.gateway, "in"], traffic.in_used_mbps)
            used.add_metric([each.gateway, "out"], traffic.out_used_mbps)
    yield used
    yield _by("seaway_gateway_speed_mbps", "What a gateway's interface can carry, Mbit/s.", "gateway", speeds)
    yield _by("seaway_gateway_traffic_age_seconds", "How old it is what an interface carries.", "gateway", ages_s)
    unread = {each.gateway: int(each.unread) for each in interfaces if each.covered}
    yield _by("seaway_gateway_unread", "Whether a gateway's interface is looked at in vain.", "gateway", unread)


def _by_cluster(name: str, says: str, label: str, figures: Mapping[str, Mapping[str, float]]) -> GaugeMetricFamily:
    family = GaugeMetricFamily(name, says, labels=["cluster", label])
    for cluster, by_value in figures.items():
        for value, figure in by_value.items():
            family.add_metric([cluster, value], figure)
    return family


def _by(name: str, says: str, label: str, figures: dict[str, int] | dict[str, float]) -> GaugeMetricFamily:
    family = GaugeMetricFamily(name, says, labels=[label])
    for value, figure in figures.items():
        family.add_metric([value], figure)
    return family
