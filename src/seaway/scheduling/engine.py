"""Decision engine: it makes a plan from a snapshot and a queue."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from functools import partial
from typing import Protocol

import numpy as np

from seaway.domain.errors import InvariantError
from seaway.domain.job import Job
from seaway.domain.placement import Explanation, Placement
from seaway.scheduling.arrays import Int64
from seaway.scheduling.binding import unreserve
from seaway.scheduling.columns import JOB_DATA, JOB_SEQUENCE, JOB_SPANS, PLAN_JOB
from seaway.scheduling.compiled import CompiledPlacer
from seaway.scheduling.data_locality import place_near_data
from seaway.scheduling.explain import explain
from seaway.scheduling.framework import QueueSort, Reserve
from seaway.scheduling.gang import Placer, place_spanning
from seaway.scheduling.job_queue import JobQueue
from seaway.scheduling.plain import PlainPlacer
from seaway.scheduling.plan import Plan
from seaway.scheduling.plugins import RULES_OF_FIT
from seaway.scheduling.profile import Profile
from seaway.scheduling.snapshot.snapshot import Snapshot
from seaway.scheduling.statement import Statement


class Policy(Protocol):
    """A complete policy, for algorithms that plugins cannot express (see `volcano`)."""

    @property
    def name(self) -> str:
        """Name for users."""

    def decide(self, snapshot: Snapshot, queue: JobQueue) -> Plan:
        """Decide all jobs of the queue and update the snapshot."""


def decide(
    snapshot: Snapshot,
    queue: JobQueue,
    policy: Profile | Policy,
    *,
    explained: Collection[int] = (),
    overdue: Collection[int] = (),
    dry_run: bool = False,
) -> Plan:
    """Decide the node and the devices of each replica of each job in a queue.

    Parameters
    ----------
    snapshot
        Snapshot of the fleet, which is updated with each decision.
    queue
        Jobs, encoded for this snapshot. A profile with a QueueSort plugin decides them in the plugin's order. The plan
        uses the numbers of this queue in any case.
    policy
        Policy that decides.
    explained
        Numbers of the jobs in the queue to explain. The others have no additional cost.
    overdue
        Numbers of the jobs in the queue that plugins may not defer.
    dry_run
        Whether the plan will not be executed. At the end, `unreserve` of the Reserve plugins is called for all
        placements.

    Returns
    -------
    Plan
        The decisions. `Snapshot.release` releases them.

    Raises
    ------
    InvariantError
        If a QueueSort plugin does not return each job once.
    """
    if not isinstance(policy, Profile):
        return policy.decide(snapshot, queue)
    plan = _decide_in_order(snapshot, queue, policy, explained, overdue)
    if dry_run and policy.at(Reserve):  # type: ignore[type-abstract]
        for row in np.flatnonzero(plan.placed)[::-1]:
            unreserve(policy, snapshot, queue.jobs[int(plan.decisions[row, PLAN_JOB])], [plan.placement(int(row))])
    return plan


def _decide_in_order(
    snapshot: Snapshot, queue: JobQueue, policy: Profile, explained: Collection[int], overdue: Collection[int]
) -> Plan:
    """Decide a queue in the order of the profile's QueueSort plugin, or in its own without one."""
    sorters = policy.at(QueueSort)  # type: ignore[type-abstract]
    if sorters:
        order = _order(queue, sorters[0])
        place_of = np.argsort(order).tolist()
        plan = _decide(
            snapshot, queue.take(order), policy, {place_of[j] for j in explained}, {place_of[j] for j in overdue}
        )
        return plan.numbered_as(queue, order)
    return _decide(snapshot, queue, policy, explained, overdue)


def _order(queue: JobQueue, sorter: QueueSort) -> Int64:
    order = np.asarray(sorter.order(queue), np.int64)
    if not np.array_equal(np.sort(order), np.arange(len(queue))):
        raise InvariantError(f"the QueueSort plugin {sorter.name!r} did not return each of {len(queue)} jobs once")
    return order


def _decide(
    snapshot: Snapshot, queue: JobQueue, policy: Profile, explained: Collection[int], overdue: Collection[int]
) -> Plan:
    """Decide a queue in its own order."""
    statement = Statement(snapshot, queue, overdue=overdue)
    placer = placer_for(snapshot, policy)
    reasons: dict[int, Explanation] = {}
    for first, end in _runs(queue, explained):
        if first in explained:
            sequence = int(queue.rows[first, JOB_SEQUENCE])
            admits = partial(trial_placements, policy=policy, overdue=True)
            reasons[first] = explain(snapshot, queue.jobs[first], policy, sequence=sequence, admits=admits)
        if queue.rows[first, JOB_DATA]:
            place_near_data(placer, statement, first)
        elif queue.rows[first, JOB_SPANS]:
            place_spanning(placer, statement, first)
        else:
            placer.place(statement, first, end)
    plan = statement.commit()
    plan.explanations = reasons
    return plan


def trial_placements(
    snapshot: Snapshot, job: Job, policy: Profile | Policy, *, overdue: bool = False
) -> tuple[Placement, ...]:
    """Place a whole job now, and release it again. Return its placements, none if it does not fit.

    Parameters
    ----------
    snapshot
        Snapshot, which stays unchanged except for the encoded demand.
    overdue
        Whether plugins may not defer it.
    """
    plan = decide(snapshot, JobQueue(snapshot, [job]), policy, overdue={0} if overdue else (), dry_run=True)
    placements = tuple(plan.placements()) if plan.jobs_placed[0] or job.partial else ()
    snapshot.release(plan.decisions, plan.slices, plan.rows_of(0))
    return placements


def placer_for(snapshot: Snapshot, profile: Profile) -> Placer:
    """Return the placer of a profile for a snapshot: compiled code if possible.

    Score caches are stored with the snapshot, for later decisions.
    """
    placer: Placer | None = snapshot.placers.get(profile)
    if placer is None and profile not in snapshot.placers:
        only = profile.compiled(RULES_OF_FIT)
        placer = snapshot.placers[profile] = CompiledPlacer(snapshot, only, profile.seed) if only else None
    return placer or PlainPlacer(profile)


def _runs(queue: JobQueue, explained: Collection[int]) -> Iterator[tuple[int, int]]:
    """Split a queue into runs of jobs that can be decided in one call.

    A job whose replicas may spread over clusters, whose data has a location, or that is to be explained is a separate
    run.
    """
    if len(queue) == 1:
        yield 0, 1
        return
    alone = np.flatnonzero(queue.rows[:, JOB_SPANS] | queue.rows[:, JOB_DATA])
    if explained:
        alone = np.union1d(alone, np.fromiter(explained, np.intp))
    first = 0
    for job in alone:
        if first < job:
            yield first, int(job)
        yield int(job), int(job) + 1
        first = int(job) + 1
    if first < len(queue):
        yield first, len(queue)
