"""Totals of the attempts in a cluster, updated with each change instead of summed up on demand."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import TypeAlias

from seaway.application.control.fleet import Key
from seaway.domain.amounts import GPUS
from seaway.domain.attempt import Attempt

Amounts: TypeAlias = tuple[int, int, int, int, int]
"""CPU in thousandths, memory in MiB, GPUs and GPU cores in thousandths, GPU memory in MiB."""

NOTHING: Amounts = (0, 0, 0, 0, 0)


@dataclass(frozen=True, slots=True)
class Held:
    """Allocated total.

    Attributes
    ----------
    gpus_milli
        GPUs, thousandths. A slice counts as the larger share of cores and memory.
    gpu_milli
        GPU cores, thousandths.
    jobs
        Number of jobs with an allocation. Orphans belong to no job.
    """

    cpu_milli: int = 0
    memory_mib: int = 0
    gpus_milli: int = 0
    gpu_milli: int = 0
    gpu_memory_mib: int = 0
    jobs: int = 0


class Holdings:
    """Allocations of the attempts in a cluster."""

    def __init__(self, cluster: str) -> None:
        self._cluster = cluster
        self._parts: dict[Key, Amounts] = {}
        self._sums = NOTHING
        self._jobs: Counter[str] = Counter()

    def add(self, attempt: Attempt) -> None:
        """Add the allocation of an attempt, at most once."""
        key = (attempt.job_id, attempt.number)
        if key in self._parts:
            return
        self._parts[key] = part = amounts(attempt, self._cluster)
        self._sums = _plus(self._sums, part)
        self._jobs[attempt.job_id] += 1

    def discard(self, key: Key) -> None:
        """Subtract the allocation of an attempt, if it has one."""
        part = self._parts.pop(key, None)
        if part is None:
            return
        self._sums = _plus(self._sums, tuple(-each for each in part))
        self._jobs[key[0]] -= 1
        if not self._jobs[key[0]]:
            del self._jobs[key[0]]

    def held(self) -> Held:
        """Return the total."""
        return Held(*self._sums, jobs=len(self._jobs))


def held_by(attempts: Iterable[Attempt], cluster: str, elsewhere: Collection[str] = ()) -> Held:
    """Return the total allocation of attempts or orphans in a cluster.

    Parameters
    ----------
    elsewhere
        Devices to exclude.
    """
    sums, jobs = NOTHING, set[str]()
    for attempt in attempts:
        sums = _plus(sums, amounts(attempt, cluster, elsewhere))
        if attempt.policy:
            jobs.add(attempt.job_id)
    return Held(*sums, jobs=len(jobs))


def amounts(attempt: Attempt, cluster: str, elsewhere: Collection[str] = ()) -> Amounts:
    """Return the allocation of an attempt in a cluster, without the devices `elsewhere`."""
    placements = [each for each in attempt.holding if each.cluster == cluster]
    request, slices = attempt.spec.demand.request, [taken for each in placements for taken in each.slices]
    if elsewhere:
        slices = [taken for taken in slices if taken.uuid not in elsewhere]
    gpu_milli, every = sum(taken.core_milli for taken in slices), sum(len(each.slices) for each in attempt.holding)
    return (
        request.cpu_milli * len(placements),
        request.memory_mib * len(placements),
        attempt.amounts[GPUS] * len(slices) // every if every and GPUS in attempt.amounts else gpu_milli,
        gpu_milli,
        sum(taken.memory_mib for taken in slices),
    )


def _plus(one: Amounts, other: tuple[int, ...]) -> Amounts:
    return (one[0] + other[0], one[1] + other[1], one[2] + other[2], one[3] + other[3], one[4] + other[4])
