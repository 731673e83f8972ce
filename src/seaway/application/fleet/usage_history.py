"""Stored history of the use of GPUs and of jobs that wait: of the fleet, and by cluster, tenant and queue.

A thread beside the control loop stores a sample at each interval. When a longer step is over, it is made from the
stored shorter ones, so the history survives restarts and has a limited size.
"""

from __future__ import annotations

import logging
import threading
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from seaway.application.changes import Change
from seaway.application.control.loop import Controller
from seaway.application.fleet.overview import Overview
from seaway.application.ports.clock import Clock
from seaway.application.ports.store import USAGE_STEPS_S, Store, UsageFilter
from seaway.application.ports.usage import Measuring
from seaway.application.records import NS_PER_S, UsageSample
from seaway.application.writer import Writer
from seaway.domain.amounts import GPUS
from seaway.domain.errors import UnavailableError
from seaway.domain.usage import UsageBy, UsageSpan

log = logging.getLogger(__name__)

FLEET, CLUSTER, QUEUE = "fleet", "cluster", "queue"
"""Kinds of samples. Those of queues have a tenant."""

S_PER_H = 3600

FIRST_S = 5.0
"""Delay of the first sample after the start, and of one that was not stored, seconds."""


@dataclass(frozen=True, slots=True)
class UsageStep:
    """Use in a step of time: means of its samples.

    Attributes
    ----------
    at_ns
        Start of the step.
    gpu_milli, gpu_milli_used, gpu_milli_measured
        GPUs, thousandths: those that exist (0 for tenants and queues), the allocated part, and its measured use; None
        without a measurement. A slice counts as its larger share of cores and memory.
    longest_wait_s
        Longest wait of a job that waited in the step.
    started, waited_s
        Number of jobs that were placed, and the sum of their waits; of a cluster, jobs that started to run there.
    """

    at_ns: int
    gpu_milli: float = 0.0
    gpu_milli_used: float = 0.0
    gpu_milli_measured: float | None = None
    running: float = 0.0
    waiting: float = 0.0
    longest_wait_s: int = 0
    started: int = 0
    waited_s: int = 0

    def __add__(self, other: UsageStep) -> UsageStep:
        """Return the use of both."""
        measured = [each for each in (self.gpu_milli_measured, other.gpu_milli_measured) if each is not None]
        return UsageStep(
            self.at_ns,
            self.gpu_milli + other.gpu_milli,
            self.gpu_milli_used + other.gpu_milli_used,
            sum(measured) if measured else None,
            self.running + other.running,
            self.waiting + other.waiting,
            max(self.longest_wait_s, other.longest_wait_s),
            self.started + other.started,
            self.waited_s + other.waited_s,
        )


@dataclass(frozen=True, slots=True)
class UsageSeries:
    """History of a cluster, tenant or queue, or of the fleet; `name` is empty for the fleet and for the rest.

    Attributes
    ----------
    gpu_hours
        Allocated GPU cores, in whole GPUs, times the hours that were sampled.
    """

    name: str
    steps: Sequence[UsageStep]
    gpu_hours: float


@dataclass(frozen=True, slots=True)
class UsageReport:
    """History by one grouping.

    Attributes
    ----------
    from_ns, until_ns
        Its start and end.
    series
        Series with the most GPU-hours first.
    others
        Sum of the series beyond the limit; None for none.
    """

    from_ns: int
    until_ns: int
    series: Sequence[UsageSeries]
    others: UsageSeries | None


class UsageHistory:
    """Recorder and reader of the history.

    Parameters
    ----------
    interval_s
        Seconds between two samples.
    """

    def __init__(
        self,
        controller: Controller,
        overview: Overview,
        store: Store,
        writer: Writer,
        clock: Clock,
        interval_s: float,
    ) -> None:
        self._controller, self._overview = controller, overview
        self._store, self._writer, self._clock = store, writer, clock
        self._interval_s = interval_s
        self._placed: Counter[tuple[str, str]] = Counter()
        self._waited_s: dict[tuple[str, str], float] = {}
        self._begun: Counter[str] = Counter()
        self._waited_in_s: dict[str, float] = {}
        self._summed_ns: dict[int, int] = {}  # start of the first step that is not made yet, by the length of steps
        self._stopping = threading.Event()

    def start(self) -> None:
        """Start a thread that records until `stop`."""
        threading.Thread(target=self._run, name="history", daemon=True).start()

    def stop(self) -> None:
        """End the thread without waiting for it."""
        self._stopping.set()

    def record(self) -> None:
        """Store a sample, and the longer steps that are over."""
        if not self._overview.ready():
            return
        now_ns = self._clock.now_ns()
        self._writer.require(Change(put=[*self._sample(now_ns)]))
        for shorter_s, step_s in pairwise(USAGE_STEPS_S):
            step_ns = step_s * NS_PER_S
            until_ns = now_ns - now_ns % step_ns
            earliest_ns = until_ns - USAGE_STEPS_S[shorter_s] * NS_PER_S // 2
            from_ns = self._summed_ns.get(step_s, earliest_ns - earliest_ns % step_ns)
            wanted = UsageFilter(shorter_s, from_ns, until_ns, step_s)
            if from_ns < until_ns and (rows := self._store.usage_samples(wanted)):
                self._writer.require(Change(put=[*rows]))
            self._summed_ns[step_s] = until_ns

    def report(
        self, by: UsageBy, span: UsageSpan, limit: int, *, tenant: str = "", queue: str = "", own: bool = False
    ) -> UsageReport:
        """Return a history.

        Parameters
        ----------
        limit
            Maximum number of series.
        tenant, queue
            Only the jobs of a tenant or in a queue; empty for all. They do not apply to clusters.
        own
            Whether a fleet has the jobs and waits of the tenant only, and a cluster no waits.
        """
        now_ns = self._clock.now_ns()
        over_ns = span.step_s * NS_PER_S
        from_ns = now_ns - span.length_s * NS_PER_S
        from_ns -= from_ns % over_ns
        wanted = UsageFilter(0, from_ns, now_ns + 1, span.step_s, FLEET, by=())
        fleet = self._rows(span, wanted)
        known = {row.at_ns: row for row in fleet}
        rows: Iterable[UsageSample] = fleet
        of_queues = replace(wanted, kind=QUEUE, name=queue, tenant=tenant)
        if by is UsageBy.CLUSTER:
            rows = self._rows(span, replace(wanted, kind=CLUSTER, by=("name",)))
            rows = [replace(row, started=0, waited_s=0) for row in rows] if own else rows
        elif by is not UsageBy.FLEET:
            rows = self._rows(span, replace(of_queues, by=("tenant",) if by is UsageBy.TENANT else ("name",)))
        elif own:
            mine = self._rows(span, of_queues)
            rows = [*map(_without_jobs, fleet), *map(_without_gpus, mine)]
        found: defaultdict[str, dict[int, UsageStep]] = defaultdict(dict)
        for row in rows:
            steps, step = found[row.name or row.tenant if by is not UsageBy.FLEET else ""], _mean(row, known)
            steps[row.at_ns] = steps[row.at_ns] + step if row.at_ns in steps else step
        hours_of = {row.at_ns: row.samples * self._interval_s / S_PER_H for row in fleet}
        series = [_series(name, steps, hours_of) for name, steps in found.items()]
        series.sort(key=lambda each: (-each.gpu_hours, each.name))
        rest = [step for each in series[limit:] for step in each.steps]
        together: dict[int, UsageStep] = {}
        for step in rest:
            together[step.at_ns] = together[step.at_ns] + step if step.at_ns in together else step
        others = _series("", together, hours_of) if rest else None
        return UsageReport(from_ns, now_ns, series[:limit], others)

    def _rows(self, span: UsageSpan, wanted: UsageFilter) -> list[UsageSample]:
        """Return the steps of a history: recent ones from short stored steps, and older ones from longer ones."""
        found: dict[tuple[int, str, str], UsageSample] = {}
        now_ns = until_ns = wanted.until_ns
        steps = [step_s for step_s in USAGE_STEPS_S if step_s <= span.step_s]
        for step_s, longer_s in zip(steps, [*steps[1:], 0], strict=True):
            since_ns = wanted.from_ns
            if longer_s:  # two steps, since the newest one is made a while after its end
                since_ns = max(since_ns, now_ns - now_ns % (longer_s * NS_PER_S) - 2 * longer_s * NS_PER_S)
            part = replace(wanted, step_s=step_s, from_ns=since_ns, until_ns=until_ns)
            for row in self._store.usage_samples(part):
                key = row.at_ns, row.name, row.tenant
                found[key] = _both(found[key], row) if key in found else row
            until_ns = since_ns
        return [found[key] for key in sorted(found)]

    def _sample(self, now_ns: int) -> Iterator[UsageSample]:
        """Yield the current use. Queues without jobs have none."""
        shortest_s = next(iter(USAGE_STEPS_S))
        clusters, uses, measured = self._overview.clusters(), self._overview.queue_usage(), self._measured()
        with self._controller.lock:
            stages = self._controller.live.stages
            placed, waited_s = stages.placed.copy(), dict(stages.waited_s)
            begun, waited_in_s = stages.started_in.copy(), dict(stages.waited_in_s)
        fleet = UsageSample(shortest_s, now_ns, FLEET)
        for view in clusters:
            used = measured.get((CLUSTER, view.name, ""))
            row = UsageSample(
                shortest_s,
                now_ns,
                CLUSTER,
                view.name,
                gpu_milli=view.gpu_milli.total,
                gpu_milli_used=view.gpus_used_milli,
                measured=int(used is not None),
                gpu_milli_measured=used or 0,
                running=view.jobs,
                started=begun[view.name] - self._begun[view.name],
                waited_s=round(waited_in_s.get(view.name, 0.0) - self._waited_in_s.get(view.name, 0.0)),
            )
            fleet = _both(fleet, replace(_without_jobs(row), samples=0))
            yield row
        pairs = {(each.queue, each.tenant): each for each in uses}
        started = placed - self._placed
        for queue, tenant in sorted(pairs.keys() | started.keys()):
            use, used = pairs.get((queue, tenant)), measured.get((QUEUE, queue, tenant))
            key = queue, tenant
            row = UsageSample(
                shortest_s,
                now_ns,
                QUEUE,
                queue,
                tenant,
                gpu_milli_used=use.amounts.get(GPUS, 0) if use else 0,
                measured=int(used is not None),
                gpu_milli_measured=used or 0,
                running=use.running if use else 0,
                waiting=use.waiting if use else 0,
                longest_wait_s=int(use.longest_wait_s) if use else 0,
                started=started[key],
                waited_s=round(waited_s.get(key, 0.0) - self._waited_s.get(key, 0.0)),
            )
            fleet = _both(fleet, replace(_without_gpus(row), samples=0))
            yield row
        self._placed, self._waited_s = placed, waited_s
        self._begun, self._waited_in_s = begun, waited_in_s
        yield replace(fleet, measured=min(1, fleet.measured))

    def _measured(self) -> Mapping[tuple[str, str, str], int]:
        """Return the measured use of cores by kind, name and tenant, thousandths."""
        found: dict[tuple[str, str, str], int] = {}
        backends = [each for each in self._controller.backends if isinstance(each, Measuring) and each.usage()]
        for use in (use for each in backends for use in self._overview.gpu_uses(each.cluster)):
            if use.used is None or use.used.core_milli is None:
                continue
            key = CLUSTER, use.cluster, ""
            found[key] = found.get(key, 0) + use.used.core_milli
            holders = {(each.namespace, each.pod, each.container): each for each in use.holdings if each.queue}
            for each in holders.values():
                if each.used is not None and each.used.core_milli is not None:
                    key = QUEUE, each.queue, each.tenant
                    found[key] = found.get(key, 0) + each.used.core_milli
        return found

    def _run(self) -> None:
        failed, delay_s = False, min(FIRST_S, self._interval_s)
        while not self._stopping.wait(delay_s):
            delay_s = self._interval_s
            try:
                self.record()
                failed = False
            except UnavailableError as error:
                if not failed:
                    log.warning("the history of use is not recorded: %s", error)
                failed = True
                delay_s = min(FIRST_S, self._interval_s)
            except Exception:  # a bug must not end the thread
                log.exception("recording the history of use failed")


def _both(one: UsageSample, other: UsageSample) -> UsageSample:
    """Add the amounts of a sample to another."""
    return replace(
        one,
        samples=one.samples + other.samples,
        gpu_milli=one.gpu_milli + other.gpu_milli,
        gpu_milli_used=one.gpu_milli_used + other.gpu_milli_used,
        measured=one.measured + other.measured,
        gpu_milli_measured=one.gpu_milli_measured + other.gpu_milli_measured,
        running=one.running + other.running,
        waiting=one.waiting + other.waiting,
        longest_wait_s=max(one.longest_wait_s, other.longest_wait_s),
        started=one.started + other.started,
        waited_s=one.waited_s + other.waited_s,
    )


def _without_jobs(row: UsageSample) -> UsageSample:
    return replace(row, running=0, waiting=0, longest_wait_s=0, started=0, waited_s=0)


def _without_gpus(row: UsageSample) -> UsageSample:
    return replace(row, gpu_milli_used=0, measured=0, gpu_milli_measured=0)


def _mean(row: UsageSample, fleet: Mapping[int, UsageSample]) -> UsageStep:
    """Return the means over the samples of the fleet. A queue without jobs has no sample, and counts as 0."""
    whole = fleet.get(row.at_ns, row)
    samples = max(whole.samples, 1)
    measured = row.measured if row.kind == CLUSTER else whole.measured
    return UsageStep(
        row.at_ns,
        row.gpu_milli / samples,
        row.gpu_milli_used / samples,
        row.gpu_milli_measured / max(measured, 1) if row.measured else None,
        row.running / samples,
        row.waiting / samples,
        row.longest_wait_s,
        row.started,
        row.waited_s,
    )


def _series(name: str, steps: Mapping[int, UsageStep], hours_of: Mapping[int, float]) -> UsageSeries:
    """Return a series. Steps in which only others were sampled have no use."""
    listed = [steps.get(at_ns) or UsageStep(at_ns) for at_ns in sorted(hours_of.keys() | steps.keys())]
    hours = sum(each.gpu_milli_used / 1000 * hours_of.get(each.at_ns, 0.0) for each in listed)
    return UsageSeries(name, listed, hours)
