"""Figures beyond the thresholds of the rules, most of which Prometheus has too (`deploy/prometheus/rules`)."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, islice
from typing import Generic, NamedTuple, TypeVar

from seaway.application.control.stages import Deployed
from seaway.application.histogram import BOUNDS_S, Timed, Timing
from seaway.application.monitoring.counters import Figures
from seaway.application.monitoring.rules import (
    AGENT_LOST,
    AT_LIMIT,
    CLUSTER_UNREACHABLE,
    DATABASE_BEHIND,
    DATABASE_FAILS,
    DATABASE_SLOW,
    DEPLOYING_WITHIN_S,
    DEPLOYMENTS_FAIL,
    FAILED_WITHIN_S,
    FAILING_SHARE,
    FAILING_WITHIN_S,
    FEW_STARTS,
    GATEWAY_DEAD,
    GATEWAY_FULL,
    GATEWAY_UNREAD,
    GPUS_UNHEALTHY,
    JOBS_FAIL,
    LINK_LOSSY,
    LOSSY_WITHIN_S,
    LOW_UTILISATION,
    NODES_NOT_READY,
    NOT_READY,
    NOTIFICATIONS_DEAD,
    PREEMPTED_WITHIN_S,
    PREEMPTIONS_MANY,
    QUEUE_AT_LIMIT,
    QUEUE_BELOW_GUARANTEE,
    QUEUE_LONG,
    ROWS_UNREADABLE,
    SLOW_SHARE,
    SLOW_WITHIN_S,
    STANDBY_MISSING,
    START_ESTIMATES_OFF,
    STARTED_WITHIN_S,
    STORE_FAILS,
    TASK_FAILS,
    Rule,
)
from seaway.application.network.bandwidth import Interface
from seaway.application.network.views import FRESH, LinkView, Side
from seaway.application.views import ClusterState, ClusterView
from seaway.domain.network import PPM
from seaway.domain.reasons import Reason

T = TypeVar("T")

NS = 1_000_000_000

EVERY_S = 15.0
"""Seconds between two evaluations of all rules, as in Prometheus."""

NODES = 10
"""Maximum number of named nodes of a finding."""

ROWS = 5
"""Maximum number of named damaged rows."""

Ends = tuple[str, str]
"""Source and target gateway of a link."""


class Finding(NamedTuple):
    """Figure beyond the threshold of a rule.

    Attributes
    ----------
    of
        Name of the queue, cluster, gateway or task, or a link as ``from/to``; empty for Seaway itself and its database.
    value
        The figure: percent, seconds, a share, or a number.
    why
        Reason in words; empty if the figure says all.
    nodes
        Names of affected nodes, at most `NODES`.
    """

    rule: Rule
    of: str
    value: float
    why: str = ""
    nodes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class NetworkFigures:
    """Current figures of the network.

    Attributes
    ----------
    losses
        Loss in the latest round, 0-1, of links to a cluster's gateway.
    full
        Use of interfaces as a share of their speed, in the busier direction, by gateway; only if both are known.
    unread
        Gateways whose interfaces cannot be read.
    """

    losses: Mapping[Ends, float] = field(default_factory=dict)
    full: Mapping[str, float] = field(default_factory=dict)
    unread: Sequence[str] = ()


def network_figures(
    links: Sequence[LinkView], sides: Mapping[str, Side], interfaces: Sequence[Interface]
) -> NetworkFigures:
    """Return the figures for alerts: links with metrics, and measured interfaces."""
    losses = {}
    for each in links:
        target = sides.get(each.target)
        if not each.path and each.state in FRESH and target and target.cluster and each.latest and each.source in sides:
            losses[each.source, each.target] = each.latest.loss_ppm / PPM
    full = {
        each.gateway: max(each.traffic.in_used_mbps, each.traffic.out_used_mbps) / each.traffic.speed_mbps
        for each in interfaces
        if each.traffic and each.traffic.speed_mbps and each.traffic.age_s is not None
    }
    return NetworkFigures(losses, full, [each.gateway for each in interfaces if each.unread])


def dead(losses: Mapping[Ends, float]) -> list[str]:
    """Return the gateways that do not answer any probe."""
    least: dict[str, float] = {}
    for (_, target), loss in losses.items():
        least[target] = min(loss, least.get(target, loss))
    return [target for target, loss in least.items() if loss >= 1]


@dataclass(frozen=True, slots=True)
class QueueFigures:
    """Current figures of queues.

    Attributes
    ----------
    used, guarantee, limit
        GPUs by queue, thousandths. A queue without a guarantee or a limit is missing there.
    start_errors
        Differences between expected and real starts.
    """

    used: Mapping[str, int] = field(default_factory=dict)
    guarantee: Mapping[str, int] = field(default_factory=dict)
    limit: Mapping[str, int] = field(default_factory=dict)
    start_errors: Timed = field(default_factory=lambda: Timing().timed())


class Losses:
    """Recent loss of links."""

    def __init__(self) -> None:
        self._seen: dict[Ends, deque[tuple[int, float]]] = {}

    def note(self, now_ns: int, losses: Mapping[Ends, float]) -> None:
        """Add the current losses, and remove old ones."""
        for ends, loss in losses.items():
            self._seen.setdefault(ends, deque()).append((now_ns, loss))
        for ends, seen in list(self._seen.items()):
            while seen and seen[0][0] < now_ns - LOSSY_WITHIN_S * NS:
                seen.popleft()
            if not seen:
                del self._seen[ends]

    def means(self) -> dict[Ends, float]:
        """Return the mean loss of each link, 0-1."""
        return {ends: sum(loss for _, loss in seen) / len(seen) for ends, seen in self._seen.items()}


POINTS = 60
"""Number of stored values of a period that is long."""


class History(Generic[T]):
    """Values of a counter within a period.

    Parameters
    ----------
    within_s
        The period, seconds. Stored values are a part of `POINTS` of it apart.
    """

    def __init__(self, within_s: float) -> None:
        self._within_ns = int(within_s * NS)
        self._seen: deque[tuple[int, T]] = deque()

    def first(self, now_ns: int, value: T) -> T:
        """Add the current value, and return the first one within the period."""
        while self._seen and self._seen[0][0] < now_ns - self._within_ns:
            self._seen.popleft()
        if not self._seen or now_ns - self._seen[-1][0] >= self._within_ns // POINTS:
            self._seen.append((now_ns, value))
        return self._seen[0][1]


@dataclass(frozen=True, slots=True)
class Faults:
    """Current faults.

    Attributes
    ----------
    failed_jobs
        Number of jobs that failed since the start.
    trouble
        Reason why the database stores nothing; empty while it does.
    lost_agents
        Gateways whose agent does not report.
    unreadable
        Tables and keys of damaged rows.
    """

    failed_jobs: int = 0
    trouble: str = ""
    lost_agents: Sequence[str] = ()
    unreadable: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Sources:
    """Functions that return the figures to evaluate."""

    faults: Callable[[], Faults]
    figures: Callable[[], Figures]
    clusters: Callable[[], Sequence[ClusterView]]
    network: Callable[[], NetworkFigures]
    queues: Callable[[], QueueFigures]


@dataclass(frozen=True, slots=True)
class _Seen:
    at_ns: int
    failures: int
    took: Timed
    deployed: dict[tuple[str, bool], int]
    """Deployments by cluster and success."""


class Conditions:
    """Evaluation of the figures of Seaway, with the recent ones that rules compare them with."""

    def __init__(self, sources: Sources, now_ns: int) -> None:
        self._sources = sources
        self._preempted = History[Mapping[str, int]](PREEMPTED_WITHIN_S)
        self._start_errors = History[Timed](STARTED_WITHIN_S)
        self._failed_jobs = History[int](FAILED_WITHIN_S)
        self._failed_jobs.first(now_ns, 0)
        self._losses = Losses()
        self._seen: deque[_Seen] = deque(maxlen=int(DEPLOYING_WITHIN_S / EVERY_S) + 1)

    def clusters(self) -> Sequence[ClusterView]:
        """Return the clusters with their figures, for all rules of one evaluation."""
        return self._sources.clusters()

    def faults(self, now_ns: int, clusters: Sequence[ClusterView]) -> Iterator[Finding]:
        """Yield the figures beyond the thresholds of rules without a duration."""
        faults = self._sources.faults()
        if faults.trouble:
            yield Finding(STORE_FAILS, "", 1, faults.trouble)
        if rows := tuple(faults.unreadable):
            named = Reason("and_others", names=rows[:ROWS]) if len(rows) > ROWS else Reason("listed", parts=rows)
            yield Finding(ROWS_UNREADABLE, "", len(rows), named)
        for each in clusters:
            if each.unreachable_s > CLUSTER_UNREACHABLE.bound:
                yield Finding(CLUSTER_UNREACHABLE, each.name, each.unreachable_s)
            if each.state is ClusterState.UP:
                if each.not_ready:
                    yield Finding(NODES_NOT_READY, each.name, len(each.not_ready), nodes=each.not_ready[:NODES])
                if each.unhealthy:
                    nodes = tuple(islice(each.unhealthy, NODES))
                    yield Finding(GPUS_UNHEALTHY, each.name, each.gpus_unhealthy, nodes=nodes)
        for gateway in faults.lost_agents:
            yield Finding(AGENT_LOST, gateway, 1)
        failed = faults.failed_jobs - self._failed_jobs.first(now_ns, faults.failed_jobs)
        if failed > JOBS_FAIL.bound:
            yield Finding(JOBS_FAIL, "", failed)

    def beyond_thresholds(self, now_ns: int, clusters: Sequence[ClusterView]) -> Iterator[Finding]:
        """Yield the figures beyond the thresholds of rules with a duration."""
        figures = self._sources.figures()
        self._seen.append(_seen(now_ns, figures))
        before, early, now = self._before(FAILING_WITHIN_S), self._before(SLOW_WITHIN_S), self._seen[-1]
        if not figures.ready:
            yield Finding(NOT_READY, "", NOT_READY.bound)
        if (failures := now.failures - before.failures) > DATABASE_FAILS.bound:
            yield Finding(DATABASE_FAILS, "", failures)
        if (slow_s := quantile_s(early.took, now.took, SLOW_SHARE)) > DATABASE_SLOW.bound:
            yield Finding(DATABASE_SLOW, "", slow_s)
        for task, fails in figures.failing_tasks.items():
            if fails:
                yield Finding(TASK_FAILS, task, 1)
        counts = {DATABASE_BEHIND: figures.store.waiting, STANDBY_MISSING: figures.standbys[1]}
        for rule, number in {**counts, NOTIFICATIONS_DEAD: figures.notified.dead}.items():
            if number > rule.bound:
                yield Finding(rule, "", number)
        for cluster, failed, ended in self._deployments():
            if failed > max(DEPLOYMENTS_FAIL.bound, FAILING_SHARE * ended):
                yield Finding(DEPLOYMENTS_FAIL, cluster, failed)
        yield from self._network_alerts()
        yield from self._queue_alerts(figures)
        yield from _cluster_alerts(clusters)

    def _network_alerts(self) -> Iterator[Finding]:
        seen = self._sources.network()
        self._losses.note(self._seen[-1].at_ns, seen.losses)
        silent = dead(seen.losses)
        for gateway in silent:
            yield Finding(GATEWAY_DEAD, gateway, GATEWAY_DEAD.bound)
        for gateway, share in seen.full.items():
            if share > GATEWAY_FULL.bound:
                yield Finding(GATEWAY_FULL, gateway, share)
        for gateway in seen.unread:
            yield Finding(GATEWAY_UNREAD, gateway, GATEWAY_UNREAD.bound)
        for (source, target), loss in self._losses.means().items():
            if loss > LINK_LOSSY.bound and target not in silent:
                yield Finding(LINK_LOSSY, f"{source}/{target}", loss)

    def _queue_alerts(self, figures: Figures) -> Iterator[Finding]:
        now_ns, seen = self._seen[-1].at_ns, self._sources.queues()
        for queue, waited_s in figures.jobs.longest_waits_s.items():
            if waited_s > QUEUE_LONG.bound:
                yield Finding(QUEUE_LONG, queue, waited_s)
            used = seen.used.get(queue, 0)
            if waited_s > QUEUE_BELOW_GUARANTEE.bound and used < seen.guarantee.get(queue, 0):
                yield Finding(QUEUE_BELOW_GUARANTEE, queue, waited_s)
            if waited_s > QUEUE_AT_LIMIT.bound and queue in seen.limit and used >= AT_LIMIT * seen.limit[queue]:
                yield Finding(QUEUE_AT_LIMIT, queue, waited_s)
        preempted = Counter[str]()
        for (queue, _), count in figures.preempted.items():
            preempted[queue] += count
        before = self._preempted.first(now_ns, +preempted)
        for queue, count in preempted.items():
            if (more := count - before.get(queue, 0)) > PREEMPTIONS_MANY.bound:
                yield Finding(PREEMPTIONS_MANY, queue, more)
        errors = self._start_errors.first(now_ns, seen.start_errors)
        off_s = quantile_s(errors, seen.start_errors, 0.5)
        if off_s > START_ESTIMATES_OFF.bound and sum(seen.start_errors.counts) - sum(errors.counts) > FEW_STARTS:
            yield Finding(START_ESTIMATES_OFF, "", off_s)

    def _deployments(self) -> Iterator[tuple[str, int, int]]:
        """Yield each cluster with its numbers of failed and of all deployments in the recent period."""
        before, now = self._before(DEPLOYING_WITHIN_S).deployed, self._seen[-1].deployed
        for cluster in {cluster for cluster, _ in now}:
            failed, ran = (now[cluster, well] - before.get((cluster, well), 0) for well in (False, True))
            yield cluster, failed, failed + ran

    def _before(self, seconds: float) -> _Seen:
        """Return the first counters within this period."""
        since_ns = self._seen[-1].at_ns - seconds * NS
        return next(each for each in self._seen if each.at_ns >= since_ns)


def _cluster_alerts(clusters: Sequence[ClusterView]) -> Iterator[Finding]:
    """Yield underused clusters. The use of clusters that do not respond is unknown."""
    for each in clusters:
        amounts = [amount for amount in (each.gpu_milli, each.gpu_memory_mib) if amount.total]
        if each.state is not ClusterState.UP or not amounts:
            continue
        if (percent := 100 * max(amount.used / amount.total for amount in amounts)) < LOW_UTILISATION.bound:
            yield Finding(LOW_UTILISATION, each.name, percent)


def quantile_s(before: Timed, now: Timed, share: float) -> float:
    """Return the quantile of the durations between two times, in seconds; 0 without durations.

    Durations within a bucket count as evenly distributed, as in Prometheus.
    """
    counts = [late - early for late, early in zip(now.counts, before.counts, strict=True)]
    upto = list(accumulate(counts))
    if not upto[-1]:
        return 0.0
    rank = share * upto[-1]
    at = next(i for i, each in enumerate(upto) if each >= rank)
    if at == len(BOUNDS_S):
        return BOUNDS_S[-1]
    low_s = BOUNDS_S[at - 1] if at else 0.0
    return low_s + (BOUNDS_S[at] - low_s) * (rank - (upto[at] - counts[at])) / counts[at]


def _seen(at_ns: int, figures: Figures) -> _Seen:
    deployed: dict[tuple[str, bool], int] = {}
    for (cluster, what), count in figures.deployed.items():
        key = cluster, what is Deployed.RUNNING
        deployed[key] = deployed.get(key, 0) + count
    return _Seen(at_ns, figures.store.failures + figures.failures, figures.store.took, deployed)
