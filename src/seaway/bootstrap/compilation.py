"""Compilation of the engine, or load from the compile cache, before the first job."""

from __future__ import annotations

from collections.abc import Callable

from seaway.scheduling.allocations import allocate, allocations_of
from seaway.scheduling.engine import decide
from seaway.scheduling.explain import explain
from seaway.scheduling.job_queue import JobQueue
from seaway.scheduling.policies.registry import PolicyOptions, make_profile
from seaway.scheduling.profile import Profile
from seaway.scheduling.snapshot.snapshot import Snapshot
from seaway.simulation.demo import demo_fleet, demo_jobs

JOBS = 40
POLICIES = ("greedy", "bestfit")
"""Policies of admission, and the default of queues."""


def warm_up() -> None:
    """Compile all code for placing jobs: about a minute on a new machine, else well under a second."""
    for name in POLICIES:
        warm(name)


def warm(name: str, make: Callable[[str, PolicyOptions], Profile] = make_profile) -> None:
    """Compile the code of a policy, with and without past jobs to learn from.

    Parameters
    ----------
    make
        Factory of the policy.

    Raises
    ------
    RejectedError
        If the policy does not exist.
    """
    fleet, jobs = demo_fleet(), demo_jobs(JOBS)
    for mix in ((), jobs):
        snapshot, profile = Snapshot(fleet), make(name, PolicyOptions(mix=mix))
        plan = decide(snapshot, JobQueue(snapshot, jobs), profile, overdue=range(len(jobs)), dry_run=True)
        placements = list(plan.placements())
        for held in allocations_of(plan):
            held.release(snapshot)
        first = next(job for job in jobs if job.name == placements[0].job)
        allocate(snapshot, first, [each for each in placements if each.job == first.name])
        explain(snapshot, jobs[-1], profile)
