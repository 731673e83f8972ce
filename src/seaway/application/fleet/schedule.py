"""Schedule: running jobs with their expected ends, and waiting jobs with their planned starts, computed on demand."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from heapq import nsmallest
from itertools import islice, zip_longest

from seaway.application.control.loop import Controller
from seaway.application.control.scheduler.forecast import PlannedStart
from seaway.application.records import Attempt, JobRecord
from seaway.domain.amounts import GPUS, requested_amounts

NS_PER_S = 1_000_000_000


class Grouping(Enum):
    """Property by which a schedule groups jobs."""

    CLUSTER = "cluster"
    QUEUE = "queue"


@dataclass(frozen=True, slots=True)
class ScheduleFilter:
    """Filter of a schedule; empty names match all.

    Attributes
    ----------
    within_s
        Time from now in which planned starts count, seconds.
    """

    cluster: str = ""
    queue: str = ""
    tenant: str = ""
    within_s: int = 86_400

    def matches(self, queue: str, tenant: str) -> bool:
        """Report whether jobs of a tenant in a queue match."""
        return self.queue in {"", queue} and self.tenant in {"", tenant}


@dataclass(frozen=True, slots=True)
class ScheduledJob:
    """A running job, or a waiting one with a planned start.

    Attributes
    ----------
    clusters
        Clusters of its placement. Of a planned job: those of its reservation, or those that it may use; empty for all.
    starts_ns, ends_ns
        Start and expected end by the wall clock. None if the end is unknown.
    gpu_milli
        GPUs that it holds or requests, thousandths, as amounts count them.
    """

    id: str
    name: str
    tenant: str
    queue: str
    clusters: tuple[str, ...]
    planned: bool
    starts_ns: int
    ends_ns: int | None
    gpu_milli: int


@dataclass(frozen=True, slots=True)
class ScheduleGroup:
    """Jobs of a cluster or a queue.

    Attributes
    ----------
    name
        Name; empty for planned jobs that may start in several clusters.
    running, planned
        Number of running jobs, and of jobs with a planned start, with those that are left out.
    jobs
        The jobs that are shown: running ones by start, then planned ones by start.
    """

    name: str
    running: int
    planned: int
    jobs: list[ScheduledJob]


@dataclass(frozen=True, slots=True)
class Schedule:
    """Running and planned jobs by cluster or queue.

    Attributes
    ----------
    unplanned
        Number of waiting jobs without an expected start within the time.
    """

    now_ns: int
    groups: list[ScheduleGroup]
    unplanned: int


@dataclass(frozen=True, slots=True)
class _Running:
    """Running attempt; `rest_ns` is the time until its expected end, None if unknown."""

    attempt: Attempt
    rest_ns: int | None


@dataclass(frozen=True, slots=True)
class _Planned:
    """Waiting job with its plan, and the clusters of its reservation or that it may use; empty for all."""

    job: JobRecord
    start: PlannedStart
    starts_ns: int
    clusters: Collection[str]


@dataclass(slots=True)
class _Group:
    running: list[_Running] = field(default_factory=list)
    planned: list[_Planned] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.running) + len(self.planned)

    def jobs(self, most: int, now_ns: int) -> list[ScheduledJob]:
        """Return the largest running jobs and the earliest planned ones, as many of each as possible."""
        running = nsmallest(most, self.running, key=lambda each: -each.attempt.amounts.get(GPUS, 0))
        planned = nsmallest(most, self.planned, key=lambda each: each.starts_ns)
        pairs = zip_longest(running, planned)
        shown = islice((each for pair in pairs for each in pair if each is not None), most)
        jobs = [_job_of(each, now_ns) for each in shown]
        return sorted(jobs, key=lambda job: (job.planned, job.starts_ns))


def schedule(controller: Controller, by: Grouping, wanted: ScheduleFilter, limit: int) -> Schedule:
    """Return the schedule of the fleet.

    A job that runs in several clusters is part of the group of each.

    Parameters
    ----------
    limit
        Maximum number of shown jobs. Groups share it equally. Large running jobs and early starts are shown first.
    """
    plan = controller.forecast.plan()
    with controller.lock:
        live = controller.live
        now_ns = live.clock.now_ns()
        running = [
            _Running(each, live.expected_rest_ns(key, now_ns))
            for key, each in live.attempts.items()
            if each.state.live
            and wanted.matches(each.spec.queue, each.spec.tenant)
            and (not wanted.cluster or wanted.cluster in each.clusters)
        ]
        waiting = [
            job for job in live.jobs.values() if job.state.waits and wanted.matches(job.spec.queue, job.spec.tenant)
        ]
        reserved = {
            each.entry.record.id: {placement.cluster for placement in each.placements}
            for each in controller.scheduler.reservations.made()
        }
    planned, unplanned = _planned(waiting, plan, reserved, wanted, now_ns)
    groups: defaultdict[str, _Group] = defaultdict(_Group)
    for each in running:
        spec = each.attempt.spec
        for name in _names(by, wanted, spec.queue, each.attempt.clusters):
            groups[name].running.append(each)
    for waits in planned:
        for name in _names(by, wanted, waits.job.spec.queue, waits.clusters if len(waits.clusters) == 1 else [""]):
            groups[name].planned.append(waits)
    names = sorted(groups, key=lambda name: (not name, name))
    most = _divided(limit, [len(groups[name]) for name in names])
    shown = [
        ScheduleGroup(name, len(groups[name].running), len(groups[name].planned), groups[name].jobs(part, now_ns))
        for name, part in zip(names, most, strict=True)
    ]
    return Schedule(now_ns, shown, unplanned)


def _planned(
    waiting: Sequence[JobRecord],
    plan: Mapping[str, PlannedStart],
    reserved: Mapping[str, Collection[str]],
    wanted: ScheduleFilter,
    now_ns: int,
) -> tuple[list[_Planned], int]:
    """Return the jobs with a planned start in the order of the plan, and the number of the others."""
    found, unplanned, until_ns = [], 0, now_ns + wanted.within_s * NS_PER_S
    for job in waiting:
        start = plan.get(job.id)
        clusters = reserved.get(job.id) or (start.clusters if start else job.spec.demand.nodes.clusters)
        if wanted.cluster and clusters and wanted.cluster not in clusters:
            continue
        if start is None or start.starts_ns is None or start.starts_ns > until_ns:
            unplanned += 1
        else:
            found.append(_Planned(job, start, max(start.starts_ns, now_ns), clusters))
    return sorted(found, key=lambda each: each.start.rank), unplanned


def _names(by: Grouping, wanted: ScheduleFilter, queue: str, clusters: Collection[str]) -> Collection[str]:
    """Return the names of the groups of a job; of a single cluster if the schedule is of that cluster."""
    if by is Grouping.QUEUE:
        return (queue,)
    return (wanted.cluster,) if wanted.cluster in clusters and wanted.cluster else clusters


def _divided(limit: int, sizes: Sequence[int]) -> list[int]:
    """Divide a number of places equally among groups, none of which gets more than its size."""
    turns = sorted((turn, at) for at, size in enumerate(sizes) for turn in range(min(limit, size)))
    parts = Counter(at for _, at in turns[:limit])
    return [parts[at] for at in range(len(sizes))]


def _job_of(source: _Running | _Planned, now_ns: int) -> ScheduledJob:
    if isinstance(source, _Running):
        attempt, rest_ns = source.attempt, source.rest_ns
        spec, job_id, clusters = attempt.spec, attempt.job_id, attempt.clusters
        starts_ns, ends_ns = attempt.running_ns or attempt.created_ns, None if rest_ns is None else now_ns + rest_ns
        gpu_milli = attempt.amounts.get(GPUS, 0)
    else:
        spec, job_id, clusters = source.job.spec, source.job.id, tuple(sorted(source.clusters))
        late_ns = source.starts_ns - (source.start.starts_ns or 0)  # the plan is older than now
        starts_ns, ends_ns = source.starts_ns, source.start.ends_ns and source.start.ends_ns + late_ns
        gpu_milli = requested_amounts(spec.demand, spec.replicas).get(GPUS, 0)
    return ScheduledJob(
        job_id,
        spec.name,
        spec.tenant,
        spec.queue,
        clusters,
        isinstance(source, _Planned),
        starts_ns,
        ends_ns,
        gpu_milli,
    )
