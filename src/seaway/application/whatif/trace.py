"""Replay of a trace on a copy of the live fleet, with its queues."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from operator import itemgetter
from typing import Protocol

import numpy as np

from seaway.application.control.tenancy import Names
from seaway.application.ports.store import MAX_ROWS, JobFilter, Store
from seaway.application.whatif.queues import QueueChanges
from seaway.application.whatif.waits import UNKNOWN_S, Groups, WaitChange, changes_of
from seaway.domain.amounts import GPU_MEMORY, GPUS, requested_amounts
from seaway.domain.cluster import Fleet
from seaway.domain.device import WHOLE_DEVICE_MILLI
from seaway.domain.errors import RejectedError, UnavailableError
from seaway.domain.job import Job
from seaway.domain.job_record import JobRecord
from seaway.domain.job_spec import NS_PER_MS, JobSpec
from seaway.domain.queues import Queue
from seaway.domain.reasons import Reason
from seaway.domain.tenancy import DEFAULT, Tenant
from seaway.domain.units import rough_time_text
from seaway.scheduling.arrays import Int64
from seaway.scheduling.engine import Policy
from seaway.scheduling.job_queue import JobQueue
from seaway.scheduling.policies.registry import PolicyOptions, make_policy, policy_names
from seaway.scheduling.profile import Profile
from seaway.scheduling.queueing.tree import RESTART_COST_S, GpuWeights, Owner, QueueTree
from seaway.scheduling.snapshot.snapshot import Snapshot
from seaway.simulation.outcome import COMPLETE_POLICIES, Outcome, could_place
from seaway.simulation.timeline import replay_with_departures
from seaway.simulation.waiting.discipline import Discipline, queue_tree

NS_PER_S = 1_000_000_000
MS_PER_S = 1000

MIX = 1000
"""Number of jobs from which policies learn."""

MAX_PAST = 100_000
"""Maximum number of submitted jobs in a replay. They are read into the memory of the server."""

FALLBACK = "bestfit"
"""Policy of a replay if that of the queue is trained, since it decides in the server only."""


@dataclass(frozen=True, slots=True)
class TraceJob:
    """A job of a trace.

    Attributes
    ----------
    arrives_s
        Time of its submission, seconds from the beginning of the trace.
    lasts_s
        Duration, seconds; None for a job without an end. For an elastic job, with its minimum of replicas.
    """

    spec: JobSpec
    arrives_s: int
    lasts_s: int | None


@dataclass(frozen=True, slots=True)
class TraceChanges:
    """Replays of a trace before and after a change.

    Attributes
    ----------
    jobs, skipped
        Number of jobs, and of past jobs that never ran or have no known duration.
    defaulted
        Number of jobs that wait in the default queue, because their own does not exist or has children.
    rejected_before, rejected_after
        Number of jobs that a submit would reject, since they fit neither the fleet nor a limit.
    policy
        Policy that places all jobs.
    span_s
        Time from the first to the last arrival, seconds, which shares of GPUs cover.
    queues, tenants
        Waits from the submission to the start. A job that never starts is unknown.
    """

    jobs: int
    skipped: int
    defaulted: int
    rejected_before: int
    rejected_after: int
    policy: str
    span_s: int
    before: Outcome
    after: Outcome
    queues: tuple[WaitChange, ...]
    tenants: tuple[WaitChange, ...]

    @property
    def message(self) -> str:
        """The mean waits as a clause."""
        means = [each.waits.queue_wait_mean_s if each.waits else None for each in (self.before, self.after)]
        texts = ["an unknown time" if each is None else rough_time_text(round(each)) for each in means]
        return f"the {self.jobs:,} jobs of the trace wait {texts[1]} on average (now {texts[0]})"


@dataclass(frozen=True, slots=True)
class Side:
    """Input of one replay. Pickled for a process."""

    fleet: Fleet
    jobs: tuple[Job, ...]
    queues: tuple[Queue, ...]
    tenants: tuple[Tenant, ...]
    pools: Mapping[str, frozenset[str]]
    policy: str
    gpu_weights: GpuWeights = field(default_factory=dict)
    restart_cost_s: float = RESTART_COST_S

    @property
    def discipline(self) -> Discipline:
        """Queues and tenants of the replay."""
        return Discipline(
            queues=self.queues,
            tenants=self.tenants,
            pools=self.pools,
            gpu_weights=self.gpu_weights,
            restart_cost_s=self.restart_cost_s,
        )


@dataclass(frozen=True, slots=True)
class Ran:
    """Result of one replay.

    Attributes
    ----------
    starts_s
        Start of each job, shape (J,); -1 for a job that did not start.
    rejected
        Number of jobs that a submit would reject.
    """

    outcome: Outcome
    starts_s: Int64
    rejected: int


Stopped = Callable[[], str]
"""Returns why a question ends without an answer; empty to go on."""


class Spread(Protocol):
    """Execution of replays, such as processes."""

    def map(self, task: Callable[[Side], Ran], items: Sequence[Side], stopped: Stopped) -> Iterator[tuple[int, Ran]]:
        """Run a task on each item. Return the number and the result of each item, in order of completion.

        Raises
        ------
        UnavailableError
            When `stopped` returns why.
        """


LOOK_JOBS = 4096
"""Number of jobs after which the preparation of a replay looks whether its question ends."""


@dataclass(frozen=True, slots=True)
class Replays:
    """Execution of the replays of a question."""

    spread: Spread
    stopped: Stopped

    def run(self, sides: Sequence[Side]) -> list[Ran]:
        """Return the result of each side in order; raises as `Spread.map`."""
        return [each for _, each in sorted(self.spread.map(run, sides, self.stopped), key=itemgetter(0))]

    def watched(self, jobs: Sequence[TraceJob]) -> Iterator[TraceJob]:
        """Yield jobs until the question ends; raises as `Spread.map`."""
        for at, each in enumerate(jobs):
            if at % LOOK_JOBS == 0 and (why := self.stopped()):
                raise UnavailableError(why)
            yield each


class InTurn:
    """Execution in the calling thread."""

    def map(self, task: Callable[[Side], Ran], items: Sequence[Side], stopped: Stopped) -> Iterator[tuple[int, Ran]]:
        """Run a task on each item."""
        for at, item in enumerate(items):
            if why := stopped():
                raise UnavailableError(why)
            yield at, task(item)


def past_jobs(store: Store, last_s: int, now_ns: int) -> tuple[list[TraceJob], int]:
    """Return the jobs that were submitted within some seconds, with their real durations, and the number of others.

    A running job is expected to take as long as it says, or as it ran so far. A waiting one is left out if it does not
    say how long it takes. The work of an elastic job is what it held over time.

    Raises
    ------
    RejectedError
        If they are more than `MAX_PAST`; it names the time that has as many.
    """
    since_ns = now_ns - last_s * NS_PER_S
    jobs, skipped = list[TraceJob](), 0
    latest_ns = now_ns
    for record, gpu_time in _records(store, since_ns, now_ns):
        if len(jobs) + skipped == MAX_PAST:
            few_s = max(1, (now_ns - latest_ns) // NS_PER_S)
            said = Reason("replay_too_long", most=MAX_PAST, few_s=few_s)
            raise RejectedError(said, where="last")
        latest_ns = record.submitted_ns
        lasts_s = _duration_s(record, now_ns, gpu_time)
        if lasts_s is None and not (record.spec.restarts and not record.state.final):
            skipped += 1
        else:
            jobs.append(TraceJob(record.spec, (record.submitted_ns - since_ns) // NS_PER_S, lasts_s))
    return jobs, skipped


def _records(store: Store, since_ns: int, now_ns: int) -> Iterator[tuple[JobRecord, int]]:
    """Yield past jobs, each with the time that an elastic one held GPUs, thousandths of a GPU times milliseconds."""
    wanted = JobFilter(submitted_from_ns=since_ns, array=None)
    while rows := store.jobs(wanted, MAX_ROWS):
        elastic, times = [row.id for row in rows if row.spec.elastic], Counter[str]()
        for use in store.held_uses(job_ids=elastic) if elastic else ():
            lasted_ns = (now_ns if use.ended_ns is None else use.ended_ns) - use.created_ns
            times[use.task or use.job_id] += use.amounts.get(GPUS, 0) * (lasted_ns // NS_PER_MS)
        yield from ((row, times[row.id]) for row in rows if not row.is_array)
        wanted = replace(wanted, before=rows[-1].id)


def _duration_s(record: JobRecord, now_ns: int, gpu_time: int) -> int | None:
    """Return how long a job ran or is expected to run, seconds; None if that is unknown or has no end.

    For an elastic job that ended, this is the time that it would have run with its minimum of replicas.
    """
    if record.started_ns is None:
        return None if record.state.final else record.spec.max_duration_s
    ran_s = max(1, -(-((record.ended_ns or now_ns) - record.started_ns) // NS_PER_S))
    if record.state.final:
        least = requested_amounts(record.spec.demand, record.spec.least_replicas).get(GPUS, 0)
        return max(ran_s, round(gpu_time / (least * MS_PER_S))) if least else ran_s
    return None if record.spec.restarts else max(ran_s, record.spec.max_duration_s or 0)


def replay_trace(
    jobs: Sequence[TraceJob],
    changes: QueueChanges,
    names: tuple[Names, Names],
    fleets: tuple[Fleet, Fleet],
    policy: str,
    replays: Replays,
    tree: QueueTree,
) -> TraceChanges:
    """Replay a trace before and after a change.

    Parameters
    ----------
    names, fleets
        Queues and tenants, and the empty fleet, before and after.
    policy
        Policy that places the jobs; empty for that of the queue with most jobs.
    replays
        Runs the replays.
    tree
        The live queues, with the weights of GPU models and the cost of restarts.

    Raises
    ------
    RejectedError
        If the trace has no jobs that fit, the policy cannot be used, or a job has no queue.
    """
    if not jobs:
        raise RejectedError(Reason("trace_empty"), where="trace")
    ordered = sorted(jobs, key=lambda each: each.arrives_s)
    before = [_existing(each.spec.queue, names[0]) for each in ordered]
    after = [_queue_after(each.spec, queue, changes, names) for each, queue in zip(ordered, before, strict=True)]
    chosen = _policy(policy, before, names[0])
    sides = [
        replace(
            _side(replays.watched(ordered), line, known, fleet, chosen),
            gpu_weights=tree.gpu_weights,
            restart_cost_s=tree.restart_cost_s,
        )
        for line, known, fleet in zip((before, after), names, fleets, strict=True)
    ]
    different = sides if sides[0] != sides[1] else sides[:1]
    ran = replays.run(different)
    first, last = ran[0], ran[-1]
    span_s = max(1, ordered[-1].arrives_s - ordered[0].arrives_s)
    both = {str(at) for at in np.flatnonzero((first.starts_s >= 0) & (last.starts_s >= 0)).tolist()}
    queues, tenants, _ = changes_of(*(_groups(*each, both, span_s) for each in zip(sides, (first, last), strict=True)))
    return TraceChanges(
        jobs=len(ordered),
        skipped=0,
        defaulted=sum(queue != each.spec.queue for queue, each in zip(before, ordered, strict=True)),
        rejected_before=first.rejected,
        rejected_after=last.rejected,
        policy=chosen,
        span_s=span_s,
        before=first.outcome,
        after=last.outcome,
        queues=queues,
        tenants=tenants,
    )


def _existing(queue: str, names: Names) -> str:
    """Return a queue, or the default queue if it does not exist or has children."""
    if queue in names.queues and not names.leaves(queue):
        return queue
    if names.leaves(DEFAULT):
        said = Reason("trace_queue", queue=queue, other=DEFAULT)
        raise RejectedError(said, where="trace")
    return DEFAULT


def _queue_after(spec: JobSpec, queue: str, changes: QueueChanges, names: tuple[Names, Names]) -> str:
    """Return the queue of a job after the changes; its own if that is a new one."""
    new = spec.queue in names[1].queues and spec.queue not in names[0].queues
    return _existing(spec.queue if new else changes.queue_of(queue, spec.tenant), names[1])


def _policy(wanted: str, queues: Sequence[str], names: Names) -> str:
    if wanted and wanted not in policy_names():
        raise RejectedError(Reason("policy_not_replayed", name=wanted, names=tuple(policy_names())), where="policy")
    if wanted:
        return wanted
    ((most, _),) = Counter(queues).most_common(1)
    policy = names.queues[most].policy
    return policy if policy in policy_names() else FALLBACK


def _side(jobs: Iterator[TraceJob], queues: Sequence[str], names: Names, fleet: Fleet, policy: str) -> Side:
    pools = {name: pool.clusters for name, pool in names.pools.items()}
    ready = []
    for at, (each, queue) in enumerate(zip(jobs, queues, strict=True)):
        job, most = each.spec.job(str(at), names.clusters_of(queue)), each.spec.replicas if each.spec.elastic else 0
        job = replace(job, queue=queue, max_replicas=most)
        ready.append(replace(job, arrives_s=each.arrives_s, expected_duration_s=each.lasts_s))
    return Side(fleet, tuple(ready), tuple(names.queues.values()), tuple(names.tenants.values()), pools, policy)


def run(side: Side) -> Ran:
    """Replay one side. Jobs that a submit would reject are left out.

    Raises
    ------
    RejectedError
        If no job is left.
    """
    admitted = _admitted(side)
    if not admitted:
        raise RejectedError(Reason("trace_fits_nothing"), where="trace")
    jobs = [side.jobs[at] for at in admitted]
    make = partial(make_policy, side.policy, PolicyOptions(mix=jobs[:MIX]))
    outcome = replay_with_departures(side.fleet, jobs, make, discipline=side.discipline)
    starts_s = np.full(len(side.jobs), -1, np.int64)
    if outcome.starts_s is not None:
        starts_s[admitted] = outcome.starts_s
    return Ran(outcome, starts_s, len(side.jobs) - len(jobs))


def _admitted(side: Side) -> list[int]:
    """Return the numbers of the jobs that fit the empty fleet and all limits, in order."""
    empty, policy = Snapshot(side.fleet), make_policy(COMPLETE_POLICIES)
    tree = queue_tree(side.discipline, empty.clusters)
    verdicts: dict[Hashable, bool] = {}
    admitted = []
    for at, job in enumerate(side.jobs):
        asked = job.demand, job.replicas, job.gang, job.single_cluster, job.between_replicas, job.ring
        if asked not in verdicts:
            verdicts[asked] = _fits(empty, job, policy)
        limited = (*asked, job.queue, job.tenant)
        if limited not in verdicts:
            requested = requested_amounts(job.demand, job.replicas)
            verdicts[limited] = tree.hit(Owner(job.queue, job.tenant), requested) is None
        if verdicts[asked] and verdicts[limited]:
            admitted.append(at)
    return admitted


def _fits(empty: Snapshot, job: Job, policy: Profile | Policy) -> bool:
    try:
        return could_place(empty, JobQueue(empty, [job]), policy)
    except RejectedError:  # its gateway does not exist
        return False


def _groups(side: Side, ran: Ran, both: Collection[str], span_s: int) -> Groups:
    """Return the waits of a replay, and the shares of GPUs from the first to the last arrival."""
    gpus = side.fleet.device_count * WHOLE_DEVICE_MILLI or 1
    memory_mib = sum(device.memory_mib for device in side.fleet.devices) or 1
    end_s = side.jobs[0].arrives_s + span_s
    waits, shares = [], []
    for job, start_s in zip(side.jobs, ran.starts_s.tolist(), strict=True):
        waits.append((job.name, job.queue, job.tenant, start_s - job.arrives_s if start_s >= 0 else UNKNOWN_S))
        if start_s >= 0:
            ends_s = end_s if job.expected_duration_s is None else start_s + job.expected_duration_s
            amounts, within = requested_amounts(job.demand, job.replicas), max(0, min(ends_s, end_s) - start_s) / span_s
            share = max(amounts.get(GPUS, 0) / gpus, amounts.get(GPU_MEMORY, 0) / memory_mib)
            shares.append((job.queue, job.tenant, share * within))
    return Groups({each.name: each for each in side.queues}, waits, shares, both)
