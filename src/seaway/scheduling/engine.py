"""The decision engine: a snapshot and a queue in, a plan out."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Protocol

import numpy as np

from seaway.domain.placement import Explanation
from seaway.scheduling.columns import JOB_DATA, JOB_SEQUENCE, JOB_SPANS
from seaway.scheduling.compiled import CompiledPlacer
from seaway.scheduling.data_locality import place_drawn
from seaway.scheduling.explain import explain
from seaway.scheduling.framework import QueueSort
from seaway.scheduling.gang import Placer, place_spanning
from seaway.scheduling.job_queue import JobQueue
from seaway.scheduling.plain import PlainPlacer
from seaway.scheduling.plan import Plan
from seaway.scheduling.plugins import RULES_OF_FIT
from seaway.scheduling.profile import Profile
from seaway.scheduling.snapshot.snapshot import Snapshot
from seaway.scheduling.statement import Statement


class Policy(Protocol):
    """A whole policy, for what no set of plugins can say (see `volcano`)."""

    @property
    def name(self) -> str:
        """What users call it."""

    def decide(self, snapshot: Snapshot, queue: JobQueue) -> Plan:
        """Decide every job of the queue and bring the snapshot up to date."""


def decide(
    snapshot: Snapshot,
    queue: JobQueue,
    policy: Profile | Policy,
    *,
    explained: Collection[int] = (),
    overdue: Collection[int] = (),
) -> Plan:
    """Decide, for every replica of every job in a queue, the node and the devices.

    Parameters
    ----------
    snapshot
        The fleet; brought up to date with each decision.
    queue
        The jobs, encoded for this snapshot. A profile with a QueueSort plugin puts them in order,
        and the plan's queue is then in that order.
    policy
        How to decide.
    explained
        Numbers of jobs, in the order of decision, for which to note why; nothing is spent on
        the others.
    overdue
        Numbers of jobs, likewise, that no plugin may hold back any more.

    Returns
    -------
    Plan
        What was decided. `Snapshot.release` takes decisions back.
    """
    if not isinstance(policy, Profile):
        return policy.decide(snapshot, queue)
    for sorter in policy.at(QueueSort):  # type: ignore[type-abstract]
        queue = queue.take(sorter.order(queue))
        break
    statement = Statement(snapshot, queue, overdue=overdue)
    placer = placer_for(snapshot, policy)
    reasons: dict[int, Explanation] = {}
    for first, end in _runs(queue, explained):
        if first in explained:
            sequence = int(queue.lines[first, JOB_SEQUENCE])
            reasons[first] = explain(snapshot, queue.jobs[first], policy, sequence=sequence)
        if queue.lines[first, JOB_DATA]:
            place_drawn(placer, statement, first)
        elif queue.lines[first, JOB_SPANS]:
            place_spanning(placer, statement, first)
        else:
            placer.place(statement, first, end)
    plan = statement.commit()
    plan.explanations = reasons
    return plan


def placer_for(snapshot: Snapshot, profile: Profile) -> Placer:
    """Return what places jobs on `snapshot` by `profile`: machine code where that is possible.

    What remembers scores is kept with the snapshot, so that it serves the next decision too.
    """
    placer: Placer | None = snapshot.placers.get(profile)
    if placer is None and profile not in snapshot.placers:
        only = profile.compiled(RULES_OF_FIT)
        placer = snapshot.placers[profile] = CompiledPlacer(snapshot, only, profile.seed) if only else None
    return placer or PlainPlacer(profile)


def _runs(queue: JobQueue, explained: Collection[int]) -> Iterator[tuple[int, int]]:
    """Cut a queue into runs of jobs that can be decided in one go.

    A job whose replicas may spread over clusters, one that is drawn to its data, and one to be explained is a run
    of its own.
    """
    if len(queue) == 1:
        yield 0, 1
        return
    alone = np.flatnonzero(queue.lines[:, JOB_SPANS] | queue.lines[:, JOB_DATA])
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
