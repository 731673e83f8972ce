"""Alerts with the same thresholds as the Prometheus rules in `deploy/prometheus/rules`."""

from __future__ import annotations

import logging
import threading
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import accumulate
from typing import Generic, TypeVar

from seaway.application.changes import Change
from seaway.application.control.stages import Deployed
from seaway.application.histogram import BOUNDS_S, Timed, Timing
from seaway.application.monitoring.counters import Figures
from seaway.application.monitoring.rules import (
    AGENT_LOST,
    ALL,
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
from seaway.application.ports.clock import Clock
from seaway.application.ports.store import Store
from seaway.application.records import Acknowledgement
from seaway.application.views import ClusterState, ClusterView
from seaway.application.writer import Writer
from seaway.domain.errors import UnavailableError, UnknownError
from seaway.domain.network import PPM

T = TypeVar("T")

NS = 1_000_000_000

Ends = tuple[str, str]
"""Source and target gateway of a link."""

RESTORE_S = 120
"""Time after the start in which stored acknowledgements wait for their alerts, seconds."""


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


log = logging.getLogger(__name__)

EVERY_S = 15.0
"""Seconds between two evaluations, as in Prometheus."""

AT_ONCE_S = 1.5
"""Seconds between two evaluations of the rules that need no duration."""

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


Key = tuple[str, str]
"""Name of a rule, and its object."""


@dataclass(frozen=True, slots=True)
class Alert:
    """Firing alert.

    Attributes
    ----------
    of
        Name of the queue, cluster, gateway or task, or a link as ``from/to``; empty for Seaway itself and its database.
    value
        Figure beyond the threshold of the rule: percent, seconds, a share, or a number.
    since_ns
        Wall-clock time at which the figure exceeded the threshold.
    reason
        Reason in words; empty if the figure says all.
    acknowledged
        Name and time of its acknowledgement; None without one.
    """

    rule: Rule
    of: str
    value: float
    since_ns: int
    reason: str = ""
    acknowledged: Acknowledgement | None = None

    @property
    def key(self) -> Key:
        """Name of the rule, and the object."""
        return self.rule.name, self.of


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
    """

    failed_jobs: int = 0
    trouble: str = ""
    lost_agents: Sequence[str] = ()


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


class Alerts:
    """Periodic evaluation of the alerts, in a separate thread or on request.

    The evaluation has no history before its start: an alert with a duration of one hour fires after one hour at the
    earliest. Acknowledgements are stored until their alerts clear.
    """

    def __init__(self, sources: Sources, store: Store, writer: Writer, clock: Clock) -> None:
        self._sources, self._store, self._writer, self._clock = sources, store, writer, clock
        self._began_ns: int | None = None  # time at which acknowledgements were read
        self._preempted = History[Mapping[str, int]](PREEMPTED_WITHIN_S)
        self._start_errors = History[Timed](STARTED_WITHIN_S)
        self._failed_jobs = History[int](FAILED_WITHIN_S)
        self._failed_jobs.first(clock.monotonic_ns(), 0)
        self._past: dict[tuple[Rule, str], float] = {}  # figures beyond the thresholds of rules with a duration
        self._losses = Losses()
        self._seen: deque[_Seen] = deque(maxlen=int(DEPLOYING_WITHIN_S / EVERY_S) + 1)
        self._since: dict[tuple[Rule, str], tuple[int, int]] = {}  # monotonic and wall-clock time, ns
        self._wrong: list[Alert] = []
        self._acknowledged: dict[Key, Acknowledgement] = {}
        self._restored: dict[Key, Acknowledgement] = {}  # stored before the start, and not fired since
        self._stopping = threading.Event()
        self._failed = False

    def start(self) -> None:
        """Start a thread that evaluates periodically until `stop`."""
        threading.Thread(target=self._run, name="alerts", daemon=True).start()

    def stop(self) -> None:
        """End the thread without waiting for a running evaluation."""
        self._stopping.set()

    def wrong(self) -> list[Alert]:
        """Return the firing alerts of the last evaluation, the most severe first."""
        known = self._acknowledged.copy()
        return [replace(each, acknowledged=known.get(each.key)) for each in self._wrong]

    def acknowledge(self, name: str, of: str, actor: str) -> None:
        """Store who takes care of a firing alert, until it clears.

        Raises
        ------
        UnknownError
            If it does not fire.
        UnavailableError
            If it is unknown whether it was stored.
        """
        if not any(each.key == (name, of) for each in self._wrong):
            raise UnknownError(f"alert {name[:63]} {of[:253]} does not fire")
        record = Acknowledgement(name, of, actor, self._clock.now_ns())
        self._writer.require(Change(put=[record]))
        self._acknowledged[name, of] = record

    def look(self) -> None:
        """Evaluate all rules now."""
        now_ns, figures = self._clock.monotonic_ns(), self._sources.figures()
        self._seen.append(_seen(now_ns, figures))
        self._past = {(rule, of): value for rule, of, value in self._beyond_thresholds(figures)}
        self.look_at_faults()

    def look_at_faults(self) -> None:
        """Evaluate the rules without a duration now. The others have the figures of the last full evaluation."""
        now_ns, faults = self._clock.monotonic_ns(), self._sources.faults()
        past = self._past | {(rule, of): value for rule, of, value in self._faults(now_ns, faults)}
        begun = now_ns, self._clock.now_ns()
        self._since = {key: self._since.get(key, begun) for key in past}
        found = [
            Alert(rule, of, past[rule, of], wall_ns, faults.trouble if rule is STORE_FAILS else "")
            for (rule, of), (since_ns, wall_ns) in self._since.items()
            if now_ns - since_ns >= rule.for_s * NS
        ]
        self._wrong = sorted(found, key=lambda alert: (ALL.index(alert.rule), alert.of))
        if not faults.trouble:
            with suppress(UnavailableError):  # the next evaluation tries again
                self._restore(now_ns)
                self._drop_cleared(now_ns)

    def _faults(self, now_ns: int, faults: Faults) -> Iterator[tuple[Rule, str, float]]:
        """Yield the figures beyond the thresholds of rules without a duration."""
        if faults.trouble:
            yield STORE_FAILS, "", 1
        for each in self._sources.clusters():
            if each.last_seen_s > CLUSTER_UNREACHABLE.bound:
                yield CLUSTER_UNREACHABLE, each.name, each.last_seen_s
            if each.state is ClusterState.UP:
                if each.nodes_not_ready:
                    yield NODES_NOT_READY, each.name, each.nodes_not_ready
                if each.gpus_unhealthy:
                    yield GPUS_UNHEALTHY, each.name, each.gpus_unhealthy
        for gateway in faults.lost_agents:
            yield AGENT_LOST, gateway, 1
        failed = faults.failed_jobs - self._failed_jobs.first(now_ns, faults.failed_jobs)
        if failed > JOBS_FAIL.bound:
            yield JOBS_FAIL, "", failed

    def _restore(self, now_ns: int) -> None:
        """Read the stored acknowledgements, once."""
        if self._began_ns is None:
            self._restored = {(each.name, each.of): each for each in self._store.acknowledgements()}
            self._acknowledged = self._restored | self._acknowledged
            self._began_ns = now_ns

    def _drop_cleared(self, now_ns: int) -> None:
        """Remove the acknowledgements of cleared alerts. After a start, alerts need time to fire again."""
        firing = {each.key for each in self._wrong}
        kept = firing | {(rule.name, of) for rule, of in self._since}
        self._restored = {key: record for key, record in self._restored.items() if key not in firing}
        if self._began_ns is not None and now_ns - self._began_ns < RESTORE_S * NS:
            kept |= self._restored.keys()
        if gone := [record for key, record in self._acknowledged.copy().items() if key not in kept]:
            self._writer.require(Change(delete=[*gone]))
            for each in gone:
                self._acknowledged.pop((each.name, each.of), None)

    def _beyond_thresholds(self, figures: Figures) -> Iterator[tuple[Rule, str, float]]:
        """Yield the figures beyond the thresholds of rules, with the rule and the object."""
        before, early, now = self._before(FAILING_WITHIN_S), self._before(SLOW_WITHIN_S), self._seen[-1]
        if not figures.ready:
            yield NOT_READY, "", NOT_READY.bound
        if (failures := now.failures - before.failures) > DATABASE_FAILS.bound:
            yield DATABASE_FAILS, "", failures
        if (slow_s := quantile_s(early.took, now.took, SLOW_SHARE)) > DATABASE_SLOW.bound:
            yield DATABASE_SLOW, "", slow_s
        for task, fails in figures.failing_tasks.items():
            if fails:
                yield TASK_FAILS, task, 1
        counts = {DATABASE_BEHIND: figures.store.waiting, STANDBY_MISSING: figures.standbys[1]}
        for rule, number in {**counts, NOTIFICATIONS_DEAD: figures.notified.dead}.items():
            if number > rule.bound:
                yield rule, "", number
        for cluster, failed, ended in self._deployments():
            if failed > max(DEPLOYMENTS_FAIL.bound, FAILING_SHARE * ended):
                yield DEPLOYMENTS_FAIL, cluster, failed
        yield from self._network_alerts()
        yield from self._queue_alerts(figures)
        yield from _cluster_alerts(self._sources.clusters())

    def _network_alerts(self) -> Iterator[tuple[Rule, str, float]]:
        seen = self._sources.network()
        self._losses.note(self._seen[-1].at_ns, seen.losses)
        silent = dead(seen.losses)
        for gateway in silent:
            yield GATEWAY_DEAD, gateway, GATEWAY_DEAD.bound
        for gateway, share in seen.full.items():
            if share > GATEWAY_FULL.bound:
                yield GATEWAY_FULL, gateway, share
        for gateway in seen.unread:
            yield GATEWAY_UNREAD, gateway, GATEWAY_UNREAD.bound
        for (source, target), loss in self._losses.means().items():
            if loss > LINK_LOSSY.bound and target not in silent:
                yield LINK_LOSSY, f"{source}/{target}", loss

    def _queue_alerts(self, figures: Figures) -> Iterator[tuple[Rule, str, float]]:
        now_ns, seen = self._seen[-1].at_ns, self._sources.queues()
        for queue, waited_s in figures.jobs.longest_waits_s.items():
            if waited_s > QUEUE_LONG.bound:
                yield QUEUE_LONG, queue, waited_s
            used = seen.used.get(queue, 0)
            if waited_s > QUEUE_BELOW_GUARANTEE.bound and used < seen.guarantee.get(queue, 0):
                yield QUEUE_BELOW_GUARANTEE, queue, waited_s
            if waited_s > QUEUE_AT_LIMIT.bound and queue in seen.limit and used >= AT_LIMIT * seen.limit[queue]:
                yield QUEUE_AT_LIMIT, queue, waited_s
        preempted = Counter[str]()
        for (queue, _), count in figures.preempted.items():
            preempted[queue] += count
        before = self._preempted.first(now_ns, +preempted)
        for queue, count in preempted.items():
            if (more := count - before.get(queue, 0)) > PREEMPTIONS_MANY.bound:
                yield PREEMPTIONS_MANY, queue, more
        errors = self._start_errors.first(now_ns, seen.start_errors)
        off_s = quantile_s(errors, seen.start_errors, 0.5)
        if off_s > START_ESTIMATES_OFF.bound and sum(seen.start_errors.counts) - sum(errors.counts) > FEW_STARTS:
            yield START_ESTIMATES_OFF, "", off_s

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

    def _run(self) -> None:
        turn = 0
        while not self._stopping.wait(AT_ONCE_S):
            turn += 1
            try:
                (self.look if turn % (EVERY_S // AT_ONCE_S) == 0 else self.look_at_faults)()
                self._failed = False
            except Exception:  # a bug must not end the thread
                if not self._failed:
                    log.exception("evaluating the alerts failed")
                self._failed = True


def _cluster_alerts(clusters: Sequence[ClusterView]) -> Iterator[tuple[Rule, str, float]]:
    """Yield underused clusters. The use of clusters that do not respond is unknown."""
    for each in clusters:
        taken = each.gpu_milli
        if each.state is not ClusterState.UP or not taken.total:
            continue
        if (percent := 100 * taken.used / taken.total) < LOW_UTILISATION.bound:
            yield LOW_UTILISATION, each.name, percent


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
