"""Metrics for the triggers of elastic jobs, according to the settings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from seaway.bootstrap.bandwidth import TIMEOUT_S, url_errors
from seaway.domain.errors import RejectedError
from seaway.domain.scaling import Metric

if TYPE_CHECKING:
    from seaway.application.ports.usage import Metrics


@dataclass(frozen=True, slots=True)
class ScalingSettings:
    """A Prometheus server with metrics of jobs, for the triggers of elastic jobs. Disabled without a URL."""

    url: str = ""
    """URL of a Prometheus server that has metrics of services."""
    token_file: str = ""
    """Path of a bearer token, read for every query. It is sent only over HTTPS or to this host."""
    ca: str = ""
    """Path of CA certificates, PEM, for the Prometheus server. Empty for those of the system."""
    requests: str = 'sum(rate(http_requests_total{pod=~"{pods}"}[1m]))'
    """PromQL query of the metric `requests`: requests per second of a job. Its placeholders are `{pods}`, a regular
    expression for the names of its pods, and `{job}`, `{name}`, `{tenant}` and `{queue}`.
    """
    latency: str = (
        'histogram_quantile(0.95, sum by (le) (rate(http_request_duration_seconds_bucket{pod=~"{pods}"}[1m])))'
    )
    """The same for the metric `latency`, in seconds."""
    utilization: str = ""
    """The same for the metric `utilization`, from 0 to 1. Empty for the use that exporters in the clusters report."""
    user_queries: bool = False
    """Allow queries that users write. A query can read all metrics of the server."""


def make_metrics(settings: ScalingSettings) -> Metrics | None:
    """Create the source of metrics; None without a Prometheus server.

    Raises
    ------
    RejectedError
        If a query has an unknown placeholder, or a file of certificates cannot be read.
    """
    if not settings.url:
        return None
    from seaway.adapters.http_pages import HttpPages, TlsTrust
    from seaway.adapters.prometheus import PrometheusMetrics

    pages = HttpPages(TlsTrust(settings.ca, settings.token_file), TIMEOUT_S)
    queries = {
        Metric.REQUESTS: settings.requests,
        Metric.LATENCY: settings.latency,
        Metric.UTILIZATION: settings.utilization,
    }
    return PrometheusMetrics(pages, settings.url, queries, user_queries=settings.user_queries)


def scaling_setting_errors(settings: ScalingSettings) -> list[RejectedError]:
    """Return the errors of invalid settings."""
    return url_errors(settings.url, settings.token_file, "[scaling] url")
