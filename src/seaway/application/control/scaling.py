"""Triggers of jobs: metrics and time windows that set the number of replicas."""

from __future__ import annotations

import json
import logging
import threading
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

from cronsim import CronSim

from seaway.application.changes import Change
from seaway.application.control.state import ControlState
from seaway.application.ports.usage import Metrics, NodeUsage, Question, usage_of
from seaway.application.records import ScaleWindow
from seaway.application.transitions import job_event, moved, stepped, stopped
from seaway.domain.attempt import Attempt
from seaway.domain.deployment import ReplicaStatus
from seaway.domain.job_record import JobRecord
from seaway.domain.job_spec import JobSpec
from seaway.domain.job_state import FOLLOWS, JobState
from seaway.domain.placement import Placement
from seaway.domain.reasons import Reason
from seaway.domain.scaling import UNIT, Metric, Trigger, wanted_number

log = logging.getLogger(__name__)

ACTOR = "scaler"
NS_PER_S = 1_000_000_000

_Key = tuple[str, int]
"""ID of a job, and position of a trigger."""

_Window = tuple[int, tuple[tuple[int, int, int], ...]]
"""Number of replicas of a job, and its numbers as in `ScaleWindow`, with monotonic times; 0 for the latest one."""


@dataclass(frozen=True, slots=True)
class _TriggerResult:
    """Number of replicas of a trigger, and its reason, one clause."""

    trigger: Trigger
    number: int
    why: str


class Scaler:
    """Numbers of replicas by triggers.

    A thread reads the metrics without the lock of the control loop, and the loop applies them.

    Parameters
    ----------
    lock
        Lock of the control loop.
    backends
        Returns the present clusters, which may measure the use of devices.

    Attributes
    ----------
    metrics
        Source of metrics; None without one.
    """

    def __init__(
        self, live: ControlState, lock: AbstractContextManager[None], backends: Callable[[], Iterable[object]]
    ) -> None:
        self._state = live
        self._lock = lock
        self._backends = backends
        self.metrics: Metrics | None = None
        self._readings: Mapping[_Key, float | str] = {}
        self._past: dict[_Key, deque[tuple[int, int]]] = {}
        self._numbers: dict[str, int] = {}
        self._stored: dict[str, _Window | None] = {}
        self._problems: dict[str, str] = {}
        self._due_ns = 0
        self._read_ns = 0
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None

    def obstacle(self, spec: JobSpec) -> str:
        """Return the reason why a trigger of a job has no value here; empty if all can have one."""
        for each in spec.scale:
            if each.metric in (Metric.REQUESTS, Metric.LATENCY, Metric.QUERY):
                if self.metrics is None:
                    return f"has the metric {each.metric.value}, which needs a Prometheus server: set [scaling] url"
                if why := self.metrics.obstacle(each.metric):
                    return why
        return ""

    # Metrics.

    @property
    def runs(self) -> bool:
        """True if a thread reads the metrics periodically."""
        return self._thread is not None

    def start(self) -> None:
        """Start a thread that reads the metrics until `stop`."""
        if self.metrics is not None:
            self._thread = threading.Thread(target=self._run, name="scaler", daemon=True)
            self._thread.start()

    def stop(self) -> None:
        """End the thread without waiting for a running query."""
        self._stopping.set()

    def _run(self) -> None:
        while not self._stopping.wait(self._state.settings.scale_interval_s):
            try:
                self.read()
            except Exception:
                log.exception("the metrics of triggers cannot be read; trying again")

    def read(self) -> None:
        """Read the metrics of all triggers, if that is due. The caller does not hold the lock."""
        with self._lock:
            asked = dict(self._questions())
        if self.metrics is None or not asked:
            self._readings = {}
            return
        self._readings = dict(zip(asked, self.metrics.read([*asked.values()]), strict=True))

    def read_if_due(self) -> None:
        """Read the metrics if the last time is long enough ago, in a control plane without threads."""
        now_ns = self._state.clock.monotonic_ns()
        if now_ns >= self._read_ns and self._state.scaled:
            self._read_ns = now_ns + round(self._state.settings.scale_interval_s * NS_PER_S)
            self.read()

    def _questions(self) -> Iterator[tuple[_Key, Question]]:
        for job in self._scaled():
            yield from self._questions_of(job)

    def _questions_of(self, job: JobRecord) -> Iterator[tuple[_Key, Question]]:
        spec = job.spec
        for at, each in enumerate(spec.scale):
            if each.metric and not each.limits and not self._from_exporters(each.metric):
                yield (job.id, at), Question(each.metric, job.id, spec.name, spec.tenant, spec.queue, each.query)

    def _from_exporters(self, metric: Metric) -> bool:
        """Report whether a metric is read from the exporters of the clusters."""
        return metric is Metric.UTILIZATION and (self.metrics is None or bool(self.metrics.obstacle(metric)))

    def _scaled(self) -> Iterator[JobRecord]:
        """Yield the jobs whose triggers apply: they run, or their triggers wanted no replica.

        The triggers of the active copy of a service decide for its standby too.
        """
        for job_id in self._state.scaled:
            job = self._state.jobs[job_id]
            if job.is_standby:
                continue
            if job.state is JobState.RUNNING or (job.state is JobState.SUSPENDED and job.spec.scaled_to_zero):
                yield job

    def _is_read(self, job: JobRecord) -> bool:
        """Report whether the metrics of a job were read once, if there is a source."""
        return self.metrics is None or all(key in self._readings for key, _ in self._questions_of(job))

    # Numbers of earlier processes.

    def restore(self, windows: Iterable[ScaleWindow]) -> None:
        """Continue with stored numbers of jobs that this process has not evaluated. The caller holds the lock.

        The latest number counts as wanted until now.
        """
        now_ns, wall_ns = self._state.clock.monotonic_ns(), self._state.clock.now_ns()
        self._stored = {each.job_id: None for each in windows}
        for each in windows:
            if each.job_id in self._numbers:
                continue
            self._numbers[each.job_id] = each.replicas
            for at, at_ns, number in json.loads(each.numbers):
                past = self._past.setdefault((each.job_id, at), deque())
                past.append((now_ns - max(wall_ns - at_ns, 0), number))
        for past in self._past.values():
            past[-1] = now_ns, past[-1][1]

    def _windows(self) -> Iterator[Change]:
        """Yield the changes of stored numbers. Those of a trigger that would not shrink its job are not stored."""
        present = dict[str, _Window]()
        for (job_id, at), past in self._past.items():
            if len(past) > 1:
                replicas, before = present.get(job_id, (self._numbers[job_id], ()))
                latest = (at, 0, past[-1][1])
                present[job_id] = replicas, (*before, *((at, *each) for each in [*past][:-1]), latest)
        ago_ns = self._state.clock.now_ns() - self._state.clock.monotonic_ns()
        for job_id in [*self._stored]:
            if job_id not in present:
                del self._stored[job_id]
                yield Change(delete=[ScaleWindow(job_id, 0, "")])
        for job_id, window in present.items():
            if self._stored.get(job_id) != window:
                self._stored[job_id] = window
                now_ns = self._state.clock.monotonic_ns()
                numbers = [(at, (at_ns or now_ns) + ago_ns, number) for at, at_ns, number in window[1]]
                yield Change(put=[ScaleWindow(job_id, window[0], json.dumps(numbers))])

    # Decisions.

    def changes(self) -> list[Change]:
        """Return the changes of numbers of replicas that are due. The caller holds the lock."""
        now_ns = self._state.clock.monotonic_ns()
        if now_ns < self._due_ns or not (self._state.scaled or self._stored):
            return []
        self._due_ns = now_ns + round(self._state.settings.scale_interval_s * NS_PER_S)
        jobs = list(self._scaled())
        ids, depth = {each.id for each in jobs}, self._queue_depths(jobs)
        self._past = {key: past for key, past in self._past.items() if key[0] in ids}
        self._problems = {job_id: why for job_id, why in self._problems.items() if job_id in ids}
        changed = {each.id for each in jobs if self._numbers.get(each.id) != each.spec.replicas}  # by a user, or new
        self._past = {key: past for key, past in self._past.items() if key[0] not in changed}
        self._numbers = {each.id: each.spec.replicas for each in jobs}
        known = [each for each in jobs if self._is_read(each)]
        return [*(change for job in known for change in self._changes_of(job, depth)), *self._windows()]

    def _queue_depths(self, jobs: Iterable[JobRecord]) -> Counter[str]:
        if not any(each.limits for job in jobs for each in job.spec.scale):
            return Counter()
        return Counter(each.queue for each in self._state.waiting.entries())

    def _changes_of(self, job: JobRecord, depth: Mapping[str, int]) -> Iterator[Change]:
        found = self._state.current((job.id, job.attempt))
        attempt = found[1] if found else None
        if job.state is JobState.RUNNING and attempt is None:
            return
        said, problems = list[_TriggerResult](), list[str]()
        for at, each in enumerate(job.spec.scale):
            number, why = self._number(job, attempt, at, each, depth)
            if number is None:
                problems.append(why)
                number = job.spec.max_replicas if each.limits else job.spec.replicas
            said.append(_TriggerResult(each, self._settled((job.id, at), each, number, job.spec.replicas), why))
        if (problem := "; ".join(problems)) != self._problems.get(job.id, ""):
            self._problems[job.id] = problem
            if problem:
                reason = Reason("not_reduced", problems=tuple(problems))
                yield Change(
                    insert=[replace(job_event(job, ACTOR, "blocked", reason), at_ns=self._state.clock.now_ns())]
                )
        spec = job.spec
        asked, limits = ([each for each in said if each.trigger.limits is limit] for limit in (False, True))
        numbers = [each.number for each in asked], [each.number for each in limits]
        number = wanted_number(*numbers, spec.min_replicas, spec.max_replicas)
        if number != spec.replicas:
            most = max(asked, key=lambda each: each.number, default=None)
            least = min(limits, key=lambda each: each.number, default=None)
            decides = least if least and (most is None or least.number < most.number) else most
            self._numbers[job.id] = number
            change, why = Change(), decides.why if decides else ""
            for copy in (job, self._state.jobs.get(job.other)):
                if copy and copy.spec.replicas != number:
                    change.add(self._scaled_to(copy, number, why))
            yield change

    def _scaled_to(self, job: JobRecord, number: int, why: str) -> Change:
        """Return the change for another number of replicas. A job with none is suspended."""
        now_ns, was = self._state.clock.now_ns(), job.spec.replicas
        after = replace(job, spec=replace(job.spec, replicas=number))
        if not number:
            if JobState.SUSPENDED not in FOLLOWS[job.state]:
                return Change()
            attempt = self._state.attempts.get((job.id, job.attempt))
            return stopped(after, attempt, JobState.SUSPENDED, Reason("to_zero", why=why), ACTOR, now_ns)[1]
        if not was:
            return stepped(moved(after, JobState.QUEUED, Reason("from_zero", why=why), now_ns), ACTOR)
        self._state.scale_reasons[job.id] = number, why
        after = replace(after, changed_ns=now_ns, version=job.version + 1)
        reason = Reason("wants", now=number, was=was, why=why)
        return Change(update=[after], insert=[job_event(after, ACTOR, "updated", reason)])

    def _settled(self, key: _Key, trigger: Trigger, number: int, present: int) -> int:
        """Return the largest number of a trigger in the time for which fewer replicas must suffice.

        Before the first value, it was the present number.
        """
        now_ns = self._state.clock.monotonic_ns()
        past = self._past.setdefault(key, deque([(now_ns, present)]))
        while past and past[-1][1] <= number:
            past.pop()
        past.append((now_ns, number))
        while len(past) > 1 and past[0][0] <= now_ns - trigger.shrink_after_s * NS_PER_S:
            past.popleft()
        return past[0][1]

    def _number(
        self, job: JobRecord, attempt: Attempt | None, at: int, trigger: Trigger, depth: Mapping[str, int]
    ) -> tuple[int | None, str]:
        """Return the number of replicas of a trigger with its reason; None and the problem if it has no value."""
        replicas, spec = len(attempt.remaining) if attempt else 0, job.spec
        if trigger.metric is None:
            if is_open(trigger, self._state.clock.now_ns()):
                return trigger.replicas, Reason("window_begins", opens=trigger.start, timezone=trigger.timezone)
            return spec.min_replicas, Reason("window_ended", closes=trigger.end, timezone=trigger.timezone)
        if not replicas and not trigger.wakes:
            return (spec.max_replicas if trigger.limits else 0), ""
        if trigger.limits:
            value: float | str = depth.get(spec.queue, 0)
        elif self._from_exporters(trigger.metric):
            value = self._utilization(attempt) if attempt else Reason("no_replica")
        else:
            value = self._readings.get((job.id, at), "")
        if isinstance(value, str):
            return None, value or Reason("not_read", metric=trigger.metric.value)
        number = trigger.number_for(round(value * UNIT), replicas)
        return (spec.max_replicas if number is None else number), value_text(trigger, value)

    def _utilization(self, attempt: Attempt) -> float | str:
        """Return the used share of the GPU cores that an attempt has reserved, as exporters report it."""
        used = reserved = 0
        for cluster in attempt.clusters:
            measured = usage_of(cluster, self._backends())
            copy = self._state.seen[attempt.job_id, attempt.number].get(cluster)
            seen = {each.replica: each for each in copy.replicas} if copy else {}
            for each in attempt.remaining:
                usage = measured.get(each.node) if each.cluster == cluster else None
                for cores, most in _uses(each, seen.get(each.replica), usage) if usage else ():
                    used, reserved = used + cores, reserved + most
        return used / reserved if reserved else Reason("no_exporter")


def _uses(placement: Placement, replica: ReplicaStatus | None, usage: NodeUsage) -> Iterator[tuple[int, int]]:
    """Yield the used and reserved cores of each measured device of a replica, thousandths of a device.

    Without a measurement of the container, it has the same part in the use of the device as others.
    """
    namespace, _, pod = replica.pod.partition("/") if replica else ("", "", "")
    for taken in placement.slices:
        reserved = taken.core_milli or UNIT
        own, whole = usage.container(taken.uuid, namespace, pod, ""), usage.device(taken.uuid)
        if own and own.core_milli is not None:
            yield own.core_milli, reserved
        elif whole and whole.core_milli is not None:
            yield whole.core_milli * reserved // UNIT, reserved


def is_open(trigger: Trigger, now_ns: int) -> bool:
    """Report whether a time window is open: its last start is after its last end."""
    minute_s = now_ns // (60 * NS_PER_S) * 60
    upcoming = datetime.fromtimestamp(minute_s + 60, ZoneInfo(trigger.timezone))
    start, end = (_last(each, upcoming) for each in (trigger.start, trigger.end))
    return start is not None and (end is None or start > end)


def _last(expression: str, upcoming: datetime) -> datetime | None:
    """Return the last time of a cron expression before a time; None if there is none."""
    found = next(CronSim(expression, upcoming, reverse=True), None)
    return None if found is None else found.astimezone(UTC)


def value_text(trigger: Trigger, value: float) -> str:
    """Return a clause with the value of a metric and its target."""
    target = trigger.target_milli / UNIT
    return Reason(f"metric_{trigger.metric or Metric.QUERY}", value=float(value), target=target)
