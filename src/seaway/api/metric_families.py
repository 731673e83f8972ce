"""Metric families created from plain figures."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import accumulate
from typing import TypeVar

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from seaway.application.fleet.overview import Overview
from seaway.application.fleet.queues import QueueTotals, TenantTotals
from seaway.application.histogram import BOUNDS_S, Timed
from seaway.application.network.agents import Agents, AgentView
from seaway.application.network.bandwidth import Interface
from seaway.application.network.views import LinkState
from seaway.domain.amounts import GPUS, JOBS, Amounts, in_base_units
from seaway.domain.tenancy import Quota

Figures = Mapping[str, int] | Mapping[str, float]
Labels = TypeVar("Labels", bound=tuple[str, ...])


def gauge_by(name: str, says: str, label: str, figures: Figures) -> GaugeMetricFamily:
    """Return gauges by one label."""
    family = GaugeMetricFamily(name, says, labels=[label])
    for value, figure in figures.items():
        family.add_metric([value], figure)
    return family


def gauge_by_cluster(name: str, says: str, label: str, figures: Mapping[str, Figures]) -> GaugeMetricFamily:
    """Return gauges by cluster and another label."""
    family = GaugeMetricFamily(name, says, labels=["cluster", label])
    for cluster, by_value in figures.items():
        for value, figure in by_value.items():
            family.add_metric([cluster, value], figure)
    return family


def counter_by(name: str, says: str, labels: Sequence[str], figures: Mapping[Labels, int]) -> CounterMetricFamily:
    """Return counters by labels."""
    family = CounterMetricFamily(name, says, labels=labels)
    for values, count in figures.items():
        family.add_metric(values, count)
    return family


def timed_by(name: str, says: str, label: str, figures: Mapping[str, Timed]) -> HistogramMetricFamily:
    """Return histograms of seconds by one label. With an empty `label`, the only key is ""."""
    family = HistogramMetricFamily(name, says, labels=[label] if label else [])
    bounds = [*(f"{bound_s:g}" for bound_s in BOUNDS_S), "+Inf"]
    for value, timed in figures.items():
        buckets = list(zip(bounds, accumulate(timed.counts), strict=True))
        family.add_metric([value] if label else [], buckets, timed.total_s)
    return family


class QueueMetrics(Collector):
    """Amounts of queues with their descendants and of tenants with a quota, and errors of estimates."""

    def __init__(
        self, totals: Sequence[QueueTotals], tenants: Sequence[TenantTotals], starts: Timed, durations: Timed
    ) -> None:
        self._totals = totals
        self._starts = starts
        self._durations = durations
        self._tenants = [each for each in tenants if each.quota != Quota()]

    def collect(self) -> Iterator[Metric]:
        """Return all metrics. A resource that a queue guarantees or limits has a usage, also if no job uses it."""
        unit = "GPUs and CPU as numbers, memory in bytes"
        yield self._by_resource(
            "seaway_queue_usage",
            f"Amounts that jobs of a queue and its descendants hold: {unit}.",
            lambda each: {**dict.fromkeys((GPUS, *each.guarantee, *each.limit), 0), **each.used},
        )
        yield self._by_resource(
            "seaway_queue_guarantee", f"Amounts that a queue guarantees: {unit}.", lambda each: each.guarantee
        )
        yield self._by_resource("seaway_queue_limit", f"Limit of a queue: {unit}.", lambda each: each.limit)
        labels = ["tenant", "pool", "resource"]
        usage = GaugeMetricFamily(
            "seaway_quota_usage", f"Amounts that jobs of a tenant with a quota hold in a pool: {unit}.", labels=labels
        )
        guarantee = GaugeMetricFamily("seaway_quota_guarantee", f"Guarantee of a quota: {unit}.", labels=labels)
        limit = GaugeMetricFamily("seaway_quota_limit", f"Limit of a quota: {unit}.", labels=labels)
        for each in self._tenants:
            used = {**dict.fromkeys((GPUS, JOBS, *each.quota.guarantee, *each.quota.limit), 0), **each.used}
            for family, amounts in ((usage, used), (guarantee, each.quota.guarantee), (limit, each.quota.limit)):
                _add(family, [each.tenant, each.pool], amounts)
        yield from (usage, guarantee, limit)
        yield timed_by(
            "seaway_start_estimate_error_seconds",
            "Difference between the first expected start of a job and its start, in seconds.",
            "",
            {"": self._starts},
        )
        yield timed_by(
            "seaway_duration_estimate_error_seconds",
            "Difference between the learned duration of a job at its placement and its run time, in seconds.",
            "",
            {"": self._durations},
        )

    def _by_resource(self, name: str, says: str, amounts: Callable[[QueueTotals], Amounts]) -> GaugeMetricFamily:
        family = GaugeMetricFamily(name, says, labels=["queue", "resource"])
        for each in self._totals:
            _add(family, [each.queue], amounts(each))
        return family


def _add(family: GaugeMetricFamily, labels: Sequence[str], amounts: Amounts) -> None:
    """Add amounts by resource, in base units."""
    for resource, amount in sorted(amounts.items()):
        family.add_metric([*labels, resource], in_base_units(resource, amount))


class NetworkMetrics(Collector):
    """Metrics of the network for one response; empty without a configured network."""

    def __init__(self, overview: Overview, agents: Agents) -> None:
        self._last_seen_s = overview.agents_last_seen_s()
        self._states = overview.link_states()
        self._rounds = overview.probe_rounds()
        self._agents = agents.views()
        self._reads = overview.gateway_reads()
        self._interfaces = overview.interfaces()

    def collect(self) -> Iterator[Metric]:
        """Return all metrics."""
        states = {state.value: self._states.get(state.value, 0) for state in LinkState}
        yield gauge_by("seaway_links", "Links between gateways, by state.", "state", states)
        yield gauge_by(
            "seaway_agent_last_seen_seconds",
            "Seconds since the last report of a gateway's agent.",
            "gateway",
            self._last_seen_s,
        )
        yield from _of_agents(self._agents, self._rounds)
        reads = {(outcome,): count for outcome, count in self._reads.items()}
        yield counter_by("seaway_gateway_scrapes", "Scrapes of gateways' interfaces.", ["outcome"], reads)
        yield from _of_interfaces(self._interfaces)


def _of_agents(agents: Sequence[AgentView], rounds: dict[tuple[str, str], int]) -> Iterator[Metric]:
    """Return metrics of agents. Counters of agents start with their first report."""
    reports = {(each.gateway, "refused"): each.refused for each in agents}
    reports |= {(each.gateway, "taken"): each.known.reports for each in agents if each.known}
    yield counter_by(
        "seaway_agent_reports",
        "Reports of gateways' agents, by outcome.",
        ["gateway", "outcome"],
        reports,
    )
    yield counter_by("seaway_probe_rounds", "Rounds of probes, by outcome.", ["gateway", "outcome"], rounds)
    for name, says, counts in (
        (
            "seaway_probe_rounds_dropped",
            "Rounds dropped before they could be reported.",
            {(each.gateway,): each.known.dropped for each in agents if each.known},
        ),
        (
            "seaway_probe_answers_discarded",
            "Answers with an impossible time, which do not count.",
            {(each.gateway,): each.known.discarded for each in agents if each.known},
        ),
    ):
        yield counter_by(name, says, ["gateway"], counts)


def _of_interfaces(interfaces: Sequence[Interface]) -> Iterator[Metric]:
    """Return the traffic and the speed of gateways' interfaces, and the state of their scrapes."""
    used = GaugeMetricFamily(
        "seaway_gateway_used_mbps",
        "Traffic of a gateway's interface, Mbit/s.",
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
    yield gauge_by("seaway_gateway_speed_mbps", "Speed of a gateway's interface, Mbit/s.", "gateway", speeds)
    yield gauge_by(
        "seaway_gateway_traffic_age_seconds",
        "Seconds since the last reading of a gateway's interface.",
        "gateway",
        ages_s,
    )
    unread = {each.gateway: int(each.unread) for each in interfaces if each.covered}
    yield gauge_by(
        "seaway_gateway_scrape_failed", "1 if a gateway's interface cannot be read, else 0.", "gateway", unread
    )
