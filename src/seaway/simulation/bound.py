"""Upper bound of the allocation on a trace, with full knowledge."""

from __future__ import annotations

from collections.abc import Sequence

from seaway.domain.cluster import Fleet
from seaway.domain.job import Job
from seaway.scheduling.policies.job_mix import typical_jobs
from seaway.scheduling.policies.seaway.fluid import fluid_problem, solve_fluid
from seaway.scheduling.snapshot.snapshot import Snapshot
from seaway.simulation.replay import arrivals_until_requested


def bound_pct(fleet: Fleet, jobs: Sequence[Job]) -> float | None:
    """Bound the GPU cores that any policy could have in use once 100 % had been asked for.

    The bound pools the CPU of alike nodes and leaves out their memory and jobs without a GPU, and it may
    decline jobs: no policy need reach it.

    Parameters
    ----------
    fleet
        With nothing on it.
    jobs
        In order of arrival; those after 100 % do not count.

    Returns
    -------
    float or None
        Percent of the fleet's GPU cores; None for a fleet without any.
    """
    capacity = sum(device.core_milli for device in fleet.devices)
    if not capacity:
        return None
    kinds = typical_jobs(
        [job for job in arrivals_until_requested(fleet, jobs, 1.0) if job.demand.request.gpus], share=1.0
    )
    return 100 * solve_fluid(fluid_problem(Snapshot(fleet), kinds)).value / capacity if kinds else 0.0
