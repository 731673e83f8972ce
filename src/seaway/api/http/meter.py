"""Metrics of requests and of the process, in Prometheus text format. All labels have a bounded set of values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
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
from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from seaway import __version__
from seaway.api.control_metrics import LoopMetrics
from seaway.api.metric_families import NetworkMetrics
from seaway.application.audit import AuditLog
from seaway.bootstrap.control_plane import ControlPlane
from seaway.learning.policies.monitor import BOUNDS_S, PolicyCount

MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"
SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)
STREAMS = frozenset({"follow_events", "follow_log"})
"""Streaming operations, without a duration histogram."""


disable_created_metrics()  # type: ignore[no-untyped-call]  # start time of each series: doubles the size, unused


class Tally:
    """Counter of requests of one kind.

    Parameters
    ----------
    name
        Prefix of its metrics.
    what
        Description of the requests.
    label
        Label of the requests, besides their status.
    registry
        Registry of the metrics.
    """

    def __init__(self, name: str, what: str, label: str, registry: CollectorRegistry) -> None:
        labels = (label, "status")
        self._requests = Counter(f"{name}s_total", f"{what}, by {label} and status.", labels, registry=registry)
        self._seconds = Histogram(
            f"{name}_seconds",
            f"{what}: seconds until they were answered.",
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
        if of not in STREAMS:
            pair[1].observe(seconds)


class Meter:
    """Counters of requests, combined with metrics of the control loop and the process in one response."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        ProcessCollector(registry=self._registry)
        build = Gauge("seaway_build_info", "1, with what runs.", ("version", "python"), registry=self._registry)
        build.labels(__version__, python_version()).set(1)
        self.requests = Tally("seaway_http_request", "Requests to the API", "operation", self._registry)
        self.pages = Tally("seaway_page_request", "Requests for pages", "page", self._registry)
        self.queries = Tally("seaway_page_api_request", "API requests of pages", "operation", self._registry)

    def text(self, plane: ControlPlane, audit: AuditLog, listeners: int, *, by_queue: bool) -> bytes:
        """Return all metrics.

        Parameters
        ----------
        by_queue
            True to include queues and totals over all tenants, which tenants may not see.
        """
        registry, overview = CollectorRegistry(), plane.overview
        rules = overview.waiting_rules() if by_queue else None
        registry.register(LoopMetrics(overview.figures(), audit, listeners, rules))
        registry.register(NetworkMetrics(overview, plane.network.agents))
        if by_queue:
            registry.register(_Trained(overview.policy_counts()))
        return (generate_latest(self._registry) if by_queue else b"") + generate_latest(registry)


class _Trained(Collector):
    """Metrics of trained policies for one response; empty before the first decision."""

    def __init__(self, counts: Mapping[str, PolicyCount]) -> None:
        self._counts = counts

    def collect(self) -> Iterator[Metric]:
        """Return all metrics."""
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
