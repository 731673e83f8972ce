"""Looking back on a replay: which jobs could have been placed but were not.

Decisions are undone from the last to the first, exactly, so that each job finds the fleet as it was
when its turn came. Nothing of this is timed.
"""

from __future__ import annotations

import numpy as np

from seaway.scheduling.columns import PLAN_JOB, PLAN_LINK_MISSED
from seaway.scheduling.engine import Policy, decide
from seaway.scheduling.plan import Plan
from seaway.scheduling.policies import make_policy
from seaway.scheduling.profile import Profile
from seaway.scheduling.queue import JobQueue
from seaway.scheduling.snapshot import Snapshot
from seaway.simulation.outcome import Counts

PLACES_ALL_THAT_FITS = "bestfit"
"""The policy by which it is judged whether a job could have been placed."""


def judge(plan: Plan, put_back: int = 0) -> Counts:
    """Count what became of the jobs of a plan.

    A job that was not placed was refused when nothing could have held it at that moment: a policy
    that places all that fits finds no place for it either. One that holds devices where its links are
    not good enough failed, and so did one that was put back, which is possible only with what fits.

    Parameters
    ----------
    plan
        All decisions since its snapshot was empty; left as it is, as is the snapshot.
    put_back
        How many of its jobs, the last ones, had been put back before.
    """
    then, lines, policy = plan.snapshot.copy(), plan.lines.copy(), make_policy(PLACES_ALL_THAT_FITS)
    placed = plan.jobs_placed
    first_line = np.searchsorted(lines[:, PLAN_JOB], np.arange(len(plan.queue)))
    astray = np.unique(lines[lines[:, PLAN_LINK_MISSED] != 0, PLAN_JOB])
    undone, refused = len(lines), 0
    judged = len(placed) - put_back
    for j in np.setdiff1d(np.flatnonzero(~placed[:judged]), astray)[::-1]:
        then.release(lines, plan.slices, np.arange(first_line[j], undone))
        undone = first_line[j]
        refused += not could_place(then, plan.queue.part(j, j + 1), policy)
    jobs, successes = len(placed), int(placed.sum())
    return Counts(jobs, successes, refused, jobs - successes - refused)


def could_place(snapshot: Snapshot, job: JobQueue, policy: Profile | Policy) -> bool:
    """Tell whether `policy` would place a queue of one job; the snapshot is left as it was."""
    plan = decide(snapshot, job, policy)
    placed = bool(plan.jobs_placed[0])
    snapshot.release(plan.lines, plan.slices, np.arange(len(plan.lines)))
    return placed
