"""Plain reference of fragmentation gradient descent, as published: floating point, seven buckets, one node at a time.

Fleets are in the form of the published trace: a device is thousandths, without memory.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum, auto

from seaway.domain.job import Job

WHOLE = 1000


@dataclass(frozen=True)
class Demand:
    """Demand of a job: CPU milli, milli of each device, devices, and models with ``|`` between them."""

    cpu: int
    milli: int
    gpus: int
    spec: str

    @classmethod
    def of(cls, job: Job) -> Demand:
        """Read a job of the trace."""
        request = job.demand.request
        return cls(request.cpu_milli, request.gpu_milli, request.gpus, "|".join(sorted(job.demand.devices.models)))

    def key(self) -> tuple[int, int, int, str]:
        """Return the sort key of equally frequent jobs."""
        return self.cpu, self.milli, self.gpus, self.spec

    def allows(self, model: str) -> bool:
        """Report whether a model is allowed."""
        return not self.spec or model in self.spec.split("|")


@dataclass(frozen=True)
class Machine:
    """A node: free CPU milli, free milli of each device, and the model of its devices."""

    cpu: int
    free: tuple[int, ...]
    model: str

    def has_devices(self, asked: Demand) -> bool:
        """Report whether enough devices have enough free."""
        return sum(free >= asked.milli for free in self.free) >= asked.gpus

    def fits(self, asked: Demand) -> bool:
        """Report whether a job fits now."""
        return self.cpu >= asked.cpu and (not asked.gpus or (asked.allows(self.model) and self.has_devices(asked)))

    def after(self, asked: Demand, devices: Sequence[int]) -> Machine:
        """Return the node after a placement."""
        free = tuple(each - asked.milli if d in devices else each for d, each in enumerate(self.free))
        return replace(self, cpu=self.cpu - asked.cpu, free=free)


class Bucket(Enum):
    """Kinds of jobs by their fit on a node."""

    LACKS_BOTH = auto()
    LACKS_GPU = auto()
    FITS = auto()
    LACKS_CPU = auto()
    CPU_ONLY_FITS = auto()
    CPU_ONLY_LACKS = auto()
    NO_ACCESS = auto()


def typical(jobs: Sequence[Job]) -> list[tuple[Demand, float]]:
    """Return the most frequent kinds of job that cover 95 %, with their shares."""
    counts = Counter(Demand.of(job) for job in jobs)
    ranked = sorted(counts, key=lambda asked: (counts[asked], asked.key()), reverse=True)
    chosen: list[Demand] = []
    while sum(counts[asked] for asked in chosen) < 0.95 * len(jobs):
        chosen.append(ranked[len(chosen)])
    total = sum(counts[asked] for asked in chosen)
    return [(asked, counts[asked] / total) for asked in chosen]


def bucket(machine: Machine, asked: Demand) -> Bucket:
    """Classify a typical job."""
    cpu = machine.cpu >= asked.cpu
    if not asked.gpus:
        return Bucket.CPU_ONLY_FITS if cpu else Bucket.CPU_ONLY_LACKS
    if not asked.allows(machine.model):
        return Bucket.NO_ACCESS
    if machine.has_devices(asked):
        return Bucket.FITS if cpu else Bucket.LACKS_CPU
    return Bucket.LACKS_GPU if cpu else Bucket.LACKS_BOTH


def fragmentation(machine: Machine, mix: list[tuple[Demand, float]]) -> float:
    """Return the idle GPU milli that an average job of the mix could not use."""
    sums = dict.fromkeys(Bucket, 0.0)
    for asked, share in mix:
        sort = bucket(machine, asked)
        lost = [free for free in machine.free if sort is not Bucket.FITS or free < asked.milli]
        sums[sort] += share * sum(lost)
    return sum(sums.values())


def gain(machine: Machine, asked: Demand, devices: Sequence[int], mix: list[tuple[Demand, float]]) -> float:
    """Return 100 times the sigmoid of a placement's improvement: its score before truncation."""
    better = fragmentation(machine, mix) - fragmentation(machine.after(asked, devices), mix)
    return 100 / (1 + math.exp(-better / WHOLE))


def best_devices(machine: Machine, asked: Demand, mix: list[tuple[Demand, float]]) -> list[int]:
    """Return the devices of a job on a node that it fits."""
    fitting = [d for d, free in enumerate(machine.free) if free >= asked.milli]
    if asked.gpus != 1:
        return fitting[: asked.gpus]
    return [max(fitting, key=lambda d: (int(gain(machine, asked, [d], mix)), -d))]


def near_whole(score: float) -> bool:
    """Report whether a score is so close to a whole number that rounding decides its truncation."""
    return abs(score - round(score)) < 1e-6
