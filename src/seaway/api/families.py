"""Families of metrics from plain figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import TypeVar

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily

from seaway.application.timing import BOUNDS_S, Timed

Figures = Mapping[str, int] | Mapping[str, float]
Labels = TypeVar("Labels", bound=tuple[str, ...])


def gauge_by(name: str, says: str, label: str, figures: Figures) -> GaugeMetricFamily:
    """Make gauges by one label."""
    family = GaugeMetricFamily(name, says, labels=[label])
    for value, figure in figures.items():
        family.add_metric([value], figure)
    return family


def gauge_by_cluster(name: str, says: str, label: str, figures: Mapping[str, Figures]) -> GaugeMetricFamily:
    """Make gauges by cluster and another label."""
    family = GaugeMetricFamily(name, says, labels=["cluster", label])
    for cluster, by_value in figures.items():
        for value, figure in by_value.items():
            family.add_metric([cluster, value], figure)
    return family


def counter_by(name: str, says: str, labels: Sequence[str], figures: Mapping[Labels, int]) -> CounterMetricFamily:
    """Make counters by labels."""
    family = CounterMetricFamily(name, says, labels=labels)
    for values, count in figures.items():
        family.add_metric(values, count)
    return family


def timed_by(name: str, says: str, label: str, figures: Mapping[str, Timed]) -> HistogramMetricFamily:
    """Make histograms of seconds by one label; without one, under an empty name, when `label` is empty."""
    family = HistogramMetricFamily(name, says, labels=[label] if label else [])
    bounds = [*(f"{bound_s:g}" for bound_s in BOUNDS_S), "+Inf"]
    for value, timed in figures.items():
        buckets = list(zip(bounds, accumulate(timed.counts), strict=True))
        family.add_metric([value] if label else [], buckets, timed.total_s)
    return family
