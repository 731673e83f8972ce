"""Groups of jobs by user, queue, tenant or label: their numbers, GPUs, GPU time and cost."""

from __future__ import annotations

from dataclasses import dataclass

from seaway.application.fleet.costs import NO_COST, Cost, Costs
from seaway.application.ports.store import JobFilter, Store
from seaway.domain.job_state import PLACED, WAITING

_WAITING = frozenset(each.value for each in WAITING)
_PLACED = frozenset(each.value for each in PLACED)


@dataclass(slots=True)
class JobGroup:
    """Jobs with a common user, queue, tenant or label. An array is one job.

    Attributes
    ----------
    name
        User, queue, tenant or value of the label; empty for jobs without the label.
    jobs
        Number of jobs in all states.
    cost
        GPU time and cost in the last 30 days.
    """

    name: str
    jobs: int = 0
    waiting: int = 0
    running: int = 0
    cost: Cost = NO_COST

    @property
    def gpu_milli(self) -> int:
        """GPUs that they hold now, thousandths. A slice counts as its larger share of cores and memory."""
        return self.cost.now.priced_milli + self.cost.now.unpriced_milli


def job_groups(store: Store, costs: Costs, wanted: JobFilter, by: str) -> list[JobGroup]:
    """Return the groups of the jobs of a filter, those with most GPUs first.

    Parameters
    ----------
    by
        As in `Store.grouped_jobs`.
    """
    found: dict[str, JobGroup] = {}
    names: dict[int, str] = {}
    for number, state, name in store.grouped_jobs(wanted, by):
        names[number] = name
        group = found.get(name)
        if group is None:
            group = found[name] = JobGroup(name)
        group.jobs += 1
        group.waiting += state in _WAITING
        group.running += state in _PLACED
    for name, cost in costs.by_group(names).items():
        found[name].cost = cost
    return sorted(found.values(), key=lambda each: (-each.gpu_milli, -each.cost.gpu_hours, -each.waiting, each.name))
