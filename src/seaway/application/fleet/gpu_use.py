"""Measured use of the GPUs of jobs: the present one, and that of the last hour, which is in memory only."""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from threading import Lock
from typing import NamedTuple

from seaway.application.control.fleet import Key
from seaway.application.control.loop import Controller
from seaway.application.fleet.gpu_metrics import attempts_in
from seaway.application.ports.usage import Used, usage_of
from seaway.application.records import NS_PER_S, Attempt
from seaway.domain.deployment import Workload

INTERVAL_S = 30
"""Time between two samples, seconds."""

MAX_SAMPLES = 120
"""Maximum number of samples of a job."""

PART = 1024
"""Number of attempts to read before the lock of the loop is released once."""

WHOLE_MILLI = 1000
MIB = 1 << 20
UNKNOWN = 2**32 - 1


@dataclass(frozen=True, slots=True)
class SliceUse:
    """Slice of a device of a replica, with its measured use.

    Attributes
    ----------
    core_milli
        Reserved thousandths of the device; all of them if none are reserved.
    used
        Use by the replica; None if it is not measured.
    """

    replica: int
    cluster: str
    node: str
    uuid: str
    memory_mib: int
    core_milli: int
    used: Used | None


class UseSample(NamedTuple):
    """Sums over the measured slices of a job.

    Attributes
    ----------
    core_milli, memory_mib
        Use; None if not measured.
    core_milli_reserved, memory_mib_reserved
        Reserved amounts of these slices.
    """

    at_s: int
    core_milli: int | None
    core_milli_reserved: int
    memory_mib: int | None
    memory_mib_reserved: int


class GpuUse:
    """Read-only view of the measured use by job. Thread-safe."""

    def __init__(self, controller: Controller) -> None:
        self._controller = controller
        self._samples: dict[str, array[int]] = {}
        self._lock = Lock()

    def slices(self, key: Key) -> list[SliceUse]:
        """Return the slices of an attempt, by replica; empty if it has ended."""
        live = self._controller.live
        with self._controller.lock:
            attempt, seen = live.attempts.get(key), dict(live.seen.get(key, {}))
            backends = list(self._controller.backends)
        if attempt is None:
            return []
        found = (each for cluster in attempt.clusters for each in _uses(attempt, cluster, seen.get(cluster), backends))
        return sorted(found, key=lambda each: each.replica)

    def samples(self, job_id: str) -> list[UseSample]:
        """Return the samples of a job, oldest first."""
        with self._lock:
            flat = list(self._samples.get(job_id, ()))
        width = len(UseSample._fields)
        rows = [flat[at : at + width] for at in range(0, len(flat), width)]
        return [UseSample(at, _known(core), cores, _known(mib), memory) for at, core, cores, mib, memory in rows]

    def sample(self, slices: list[SliceUse]) -> UseSample | None:
        """Return the sums over measured slices; None if there are none."""
        measured = [each for each in slices if each.used]
        if not measured:
            return None
        cores = [each.used.core_milli for each in measured if each.used and each.used.core_milli is not None]
        memory = [each.used.memory_bytes for each in measured if each.used and each.used.memory_bytes is not None]
        return UseSample(
            self._controller.live.clock.now_ns() // NS_PER_S,
            sum(cores) if cores else None,
            sum(each.core_milli for each in measured),
            sum(memory) // MIB if memory else None,
            sum(each.memory_mib for each in measured),
        )

    def record(self) -> None:
        """Add a sample of each measured job, and remove those of jobs without a sample for an hour."""
        by_job: defaultdict[str, list[SliceUse]] = defaultdict(list)
        with self._controller.lock:
            backends = list(self._controller.backends)
            clusters = {name: list(keys) for name, keys in self._controller.live.by_cluster.items()}
        for cluster, keys in clusters.items():
            if usage_of(cluster, backends):
                for attempt, copy in attempts_in(self._controller, cluster, keys, PART):
                    by_job[attempt.job_id] += _uses(attempt, cluster, copy, backends)
        found = {job_id: made for job_id, slices in by_job.items() if (made := self.sample(slices))}
        first_s = self._controller.live.clock.now_ns() // NS_PER_S - INTERVAL_S * MAX_SAMPLES
        width = len(UseSample._fields)
        with self._lock:
            for job_id, made in found.items():
                flat = self._samples.setdefault(job_id, array("I"))
                flat.extend(UNKNOWN if each is None else min(each, UNKNOWN - 1) for each in made)
                del flat[: max(0, len(flat) - MAX_SAMPLES * width)]
            for job_id in [each for each, flat in self._samples.items() if flat[-width] < first_s]:
                del self._samples[job_id]


def _known(number: int) -> int | None:
    return None if number == UNKNOWN else number


def _uses(attempt: Attempt, cluster: str, copy: Workload | None, backends: Sequence[object]) -> Iterator[SliceUse]:
    """Yield the slices of an attempt in a cluster.

    The use of a whole device is that of its only replica. That of a shared device is what its pod uses.
    """
    measured = usage_of(cluster, backends)
    pods = {each.replica: each.pod for each in copy.replicas} if copy else {}
    for each in attempt.remaining:
        if each.cluster != cluster:
            continue
        usage = measured.get(each.node)
        namespace, _, pod = pods.get(each.replica, "").partition("/")
        for taken in each.slices:
            used = usage.container(taken.uuid, namespace, pod, "") if usage else None
            cores = taken.core_milli or WHOLE_MILLI
            if used is None and usage and cores == WHOLE_MILLI and taken.core_milli:
                used = usage.device(taken.uuid)
            yield SliceUse(each.replica, cluster, each.node, taken.uuid, taken.memory_mib, cores, used)
