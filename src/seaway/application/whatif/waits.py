"""Waits of jobs until their expected starts, before and after a change."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from seaway.domain.amounts import GPU_MEMORY, GPUS
from seaway.domain.device import WHOLE_DEVICE_MILLI
from seaway.domain.queues import Queue, children_of, path_of
from seaway.scheduling.cycle.jobs import Entry
from seaway.scheduling.cycle.plan import NS_PER_S, PlannedStart, PlanState, Running
from seaway.scheduling.queueing.backfill import NEVER_S
from seaway.scheduling.queueing.tree import Key

MAX_SHIFTS = 20
"""Maximum number of jobs that start earlier, and of those that start later, in an answer."""

SHIFT_S = 1.0
"""Minimum change of a start. The two sides are planned one after the other, so equal starts differ a little."""

UNKNOWN_S = math.inf
"""Wait of a job without a known start."""

Group = tuple[str, str]
"""Kind and name of a group of jobs."""

FLEET: Group = ("fleet", "")
"""Group of all jobs."""


@dataclass(frozen=True, slots=True)
class Waits:
    """Waiting jobs of a queue with its descendants or of a tenant, and what they and the running jobs get.

    Attributes
    ----------
    waiting, unknown
        Number of waiting jobs, and of those without a known start.
    compared
        Number of jobs with a known start on both sides.
    mean_s
        Mean wait from now to the expected start of these jobs; None without any.
    mean_all_s
        Mean wait of the jobs that wait on one of the sides. A job that runs on the other one counts there with 0, and a
        job without a known start with the longest known wait of both sides. So a side with fewer known starts has no
        shorter mean. None without any known start.
    p50_s, p95_s
        Percentiles of the wait. Jobs without a known start wait longest. None if the wait at that rank is unknown.
    gpu_share
        Mean share of the fleet's GPUs within the window, 0 to 1.
    """

    waiting: int = 0
    unknown: int = 0
    compared: int = 0
    mean_s: float | None = None
    mean_all_s: float | None = None
    p50_s: float | None = None
    p95_s: float | None = None
    gpu_share: float = 0.0


@dataclass(frozen=True, slots=True)
class WaitChange:
    """Waits of a queue or a tenant before and after a change.

    Attributes
    ----------
    depth
        Number of ancestors of a queue; 0 for a tenant.
    """

    name: str
    depth: int
    before: Waits
    after: Waits


@dataclass(frozen=True, slots=True)
class Shift:
    """Waiting job whose expected start changes.

    Attributes
    ----------
    queue
        Its queue after the change.
    before_ns, after_ns
        Expected start by the wall clock; None if it is unknown.
    """

    job_id: str
    job: str
    queue: str
    tenant: str
    before_ns: int | None
    after_ns: int | None


@dataclass(frozen=True, slots=True)
class WaitChanges:
    """Waits before and after a change.

    Attributes
    ----------
    window_s
        Time from now that shares of GPUs cover, seconds.
    queues
        Queues in the order of the tree after the change, then removed ones, without those that have no jobs.
    tenants
        Tenants by name, without those that have no jobs.
    fleet
        All jobs.
    earlier, later
        Number of waiting jobs that start earlier or later.
    earlier_jobs, later_jobs
        Those whose start changes most, the largest change first.
    starts_ns
        Expected start of each waiting job after the change, by job ID, as far as it is known.
    """

    window_s: int
    queues: tuple[WaitChange, ...]
    tenants: tuple[WaitChange, ...]
    fleet: WaitChange
    earlier: int
    later: int
    earlier_jobs: tuple[Shift, ...]
    later_jobs: tuple[Shift, ...]
    starts_ns: Mapping[str, int]


@dataclass(slots=True)
class Side:
    """One side of a comparison: the state with its running jobs, and the waits.

    Attributes
    ----------
    plan
        Expected starts.
    started
        Jobs that start now, which are among the running ones. They have waited for 0 seconds.
    waits_s
        Wait of each waiting job by ID; `UNKNOWN_S` without a known start.
    """

    state: PlanState
    running: Sequence[tuple[Key, Running]]
    plan: Mapping[str, PlannedStart]
    started: Sequence[Entry] = ()
    waits_s: Mapping[str, float] = field(init=False)

    def __post_init__(self) -> None:
        """Compute the waits."""
        starts = {each.id: self.plan.get(each.id) for each in self.state.entries}
        self.waits_s = dict.fromkeys((each.id for each in self.started), 0.0) | {
            job_id: UNKNOWN_S
            if start is None or start.starts_ns is None
            else (start.starts_ns - self.state.now_ns) / NS_PER_S
            for job_id, start in starts.items()
        }

    def start_ns(self, job_id: str) -> int | None:
        """Return the expected start of a waiting job by the wall clock; None if it is unknown."""
        wait_s = self.waits_s[job_id]
        return None if wait_s == UNKNOWN_S else self.state.now_ns + int(wait_s * NS_PER_S)

    def queues(self) -> Mapping[str, Queue]:
        """Return the queues by name."""
        return {each.name: each for each in self.state.queues}

    def entries(self) -> Iterator[Entry]:
        """Yield the jobs that wait, and those that start now."""
        yield from self.started
        yield from self.state.entries

    def waits(self) -> Iterator[tuple[str, str, str, float]]:
        """Yield the ID, queue, tenant and wait of each job."""
        for entry in self.entries():
            yield entry.id, *entry.lane, self.waits_s[entry.id]

    def runs(self, waiting: Collection[str]) -> Iterator[tuple[str, str]]:
        """Yield the queue and tenant of each running job of `waiting`, the jobs that wait on the other side."""
        for (job_id, _), each in self.running:
            if job_id in waiting and job_id not in self.waits_s:
                yield each.owner.queue, each.owner.tenant

    def gpu_uses(self, window_s: int) -> Iterator[tuple[str, str, float]]:
        """Yield what jobs get within a window: queue, tenant, and the share of the fleet's GPUs.

        Of a waiting job that requests memory, that is the share of the fleet's GPU memory.
        """
        totals = [each.totals for each in self.state.clusters]
        gpus = sum(each.gpus for each in totals) * WHOLE_DEVICE_MILLI or 1
        memory_mib = sum(each.gpu_memory_mib for each in totals) or 1
        for _, each in self.running:
            within = min(each.ends_s, window_s) / window_s
            yield each.owner.queue, each.owner.tenant, each.amounts.get(GPUS, 0) / gpus * within
        for entry in self.state.entries:
            wait_s, lasts_s = self.waits_s[entry.id], entry.max_duration_s
            ends_s = min(wait_s + (NEVER_S if lasts_s is None else lasts_s), window_s)
            amounts, within = entry.kind.requested, max(0.0, ends_s - wait_s) / window_s
            share = max(amounts.get(GPUS, 0) / gpus, amounts.get(GPU_MEMORY, 0) / memory_mib)
            yield entry.queue, entry.spec.tenant, share * within


def compare(before: Side, after: Side, window_s: int) -> WaitChanges:
    """Compare the waits of two sides.

    Parameters
    ----------
    window_s
        Time from now that shares of GPUs cover, seconds.
    """
    both = {
        job_id
        for job_id, wait_s in after.waits_s.items()
        if max(wait_s, before.waits_s.get(job_id, UNKNOWN_S)) != UNKNOWN_S
    }
    groups = [
        Groups(one.queues(), one.waits(), one.gpu_uses(window_s), both, one.runs(other.waits_s))
        for one, other in ((before, after), (after, before))
    ]
    queues, tenants, all_jobs = changes_of(*groups)
    earlier, later = _shifts(before, after)
    starts = {job_id: start for job_id in after.waits_s if (start := after.start_ns(job_id)) is not None}
    return WaitChanges(
        window_s,
        queues,
        tenants,
        all_jobs,
        len(earlier),
        len(later),
        tuple(earlier[:MAX_SHIFTS]),
        tuple(later[:MAX_SHIFTS]),
        starts,
    )


class Groups:
    """Waits of jobs by queue with its descendants, and by tenant.

    Parameters
    ----------
    queues
        Queues by name.
    waits
        Job ID, queue, tenant and wait of each waiting job; `UNKNOWN_S` for an unknown wait.
    shares
        Queue, tenant, and share of the fleet's GPUs of each job.
    both
        Jobs with a known wait on both sides.
    runs
        Queue and tenant of each job that waits on the other side only.

    Attributes
    ----------
    longest_s
        Longest known wait, seconds; None without any.
    """

    def __init__(
        self,
        queues: Mapping[str, Queue],
        waits: Iterable[tuple[str, str, str, float]],
        shares: Iterable[tuple[str, str, float]],
        both: Collection[str],
        runs: Iterable[tuple[str, str]] = (),
    ) -> None:
        self.queues = queues
        self._lines: defaultdict[Group, list[tuple[str, float]]] = defaultdict(list)
        self._shares: defaultdict[Group, float] = defaultdict(float)
        self._both = both
        for job_id, queue, tenant, wait_s in waits:
            for key in self._keys(queue, tenant):
                self._lines[key].append((job_id, wait_s))
        for queue, tenant, share in shares:
            for key in self._keys(queue, tenant):
                self._shares[key] += share
        self._runs = Counter(key for queue, tenant in runs for key in self._keys(queue, tenant))
        known = (wait_s for _, wait_s in self._lines.get(FLEET, ()) if wait_s != UNKNOWN_S)
        self.longest_s = max(known, default=None)

    def _keys(self, queue: str, tenant: str) -> Iterator[Group]:
        """Yield the groups of a job: the fleet, its queues up to the root, and its tenant."""
        yield FLEET
        yield "tenant", tenant
        if queue not in self.queues:
            yield "queue", queue
        for each in path_of(queue, self.queues):
            yield "queue", each.name

    def found(self, kind: str, longest_s: float | None) -> dict[str, Waits]:
        """Return the waits of the groups of a kind by name.

        Parameters
        ----------
        longest_s
            Longest known wait of both sides, seconds; None without any.
        """
        keys = self._lines.keys() | self._shares.keys() | self._runs.keys()
        return {key[1]: self._waits(key, longest_s) for key in keys if key[0] == kind}

    def _waits(self, key: Group, longest_s: float | None) -> Waits:
        line, share, runs = self._lines.get(key, []), self._shares.get(key, 0.0), self._runs[key]
        waits = sorted(wait_s for _, wait_s in line)
        known = [wait_s for job_id, wait_s in line if job_id in self._both]
        unknown = sum(each == UNKNOWN_S for each in waits)
        mean_all_s = None
        if (waits or runs) and longest_s is not None:
            mean_all_s = (sum(waits[: len(waits) - unknown]) + unknown * longest_s) / (len(waits) + runs)
        return Waits(
            len(waits),
            unknown,
            len(known),
            sum(known) / len(known) if known else None,
            mean_all_s,
            _percentile(waits, 0.5),
            _percentile(waits, 0.95),
            share,
        )


def changes_of(before: Groups, after: Groups) -> tuple[tuple[WaitChange, ...], tuple[WaitChange, ...], WaitChange]:
    """Return the changes of queues in the order of the tree after the change, those of tenants by name, and of all."""
    longest_s = max((each for each in (before.longest_s, after.longest_s) if each is not None), default=None)

    def rows(kind: str, order: Callable[[Collection[str]], Iterable[tuple[str, int]]]) -> tuple[WaitChange, ...]:
        was, would = before.found(kind, longest_s), after.found(kind, longest_s)
        return tuple(_rows(was, would, order(was.keys() | would.keys())))

    queues = rows("queue", lambda names: _in_tree(after, names))
    tenants = rows("tenant", lambda names: [(name, 0) for name in sorted(names)])
    all_jobs = rows(FLEET[0], lambda names: [(name, 0) for name in names])
    return queues, tenants, all_jobs[0] if all_jobs else WaitChange(FLEET[1], 0, Waits(), Waits())


def _percentile(waits: Sequence[float], share: float) -> float | None:
    """Return the value at a rank of sorted waits; None without one, or if it is unknown."""
    wait_s = waits[math.ceil(share * len(waits)) - 1] if waits else UNKNOWN_S
    return None if wait_s == UNKNOWN_S else wait_s


def _in_tree(after: Groups, names: Collection[str]) -> Iterator[tuple[str, int]]:
    """Yield the queues in the order of the tree after the change, with their depth, then all others."""
    children = children_of(after.queues.values())

    def below(parent: str, depth: int) -> Iterator[tuple[str, int]]:
        for each in children.get(parent, ()):
            yield each.name, depth
            yield from below(each.name, depth + 1)

    yield from below("", 0)
    yield from ((name, 0) for name in sorted(set(names) - after.queues.keys()))


def _rows(
    before: Mapping[str, Waits], after: Mapping[str, Waits], order: Iterable[tuple[str, int]]
) -> Iterator[WaitChange]:
    for name, depth in order:
        if name in before or name in after:
            yield WaitChange(name, depth, before.get(name, Waits()), after.get(name, Waits()))


def _shifts(before: Side, after: Side) -> tuple[list[Shift], list[Shift]]:
    """Return the jobs that start earlier, and those that start later; the largest change first."""
    changes = []
    for entry in after.entries():
        job_id, spec = entry.id, entry.spec
        if job_id not in before.waits_s:
            continue
        was_s, is_s = before.waits_s[job_id], after.waits_s[job_id]
        if was_s != is_s and abs(is_s - was_s) >= SHIFT_S:
            shift = Shift(
                job_id, entry.display_name, spec.queue, spec.tenant, before.start_ns(job_id), after.start_ns(job_id)
            )
            changes.append((is_s - was_s, shift))
    changes.sort(key=lambda each: each[0])
    earlier = [shift for change_s, shift in changes if change_s < 0]
    later = [shift for change_s, shift in reversed(changes) if change_s > 0]
    return earlier, later
