"""Measured use of the GPUs of jobs: now, in the last hour, and over the life of each job.

Samples of the last hour are in memory. Every ten minutes, and when a job ends, they are added to those in the database.
There, a job has one row. Older samples are joined, so that a month has about 630.
"""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass
from threading import Lock
from typing import NamedTuple
from zlib import compress, crc32, decompress

import numpy as np

from seaway.application.changes import Change
from seaway.application.control.fleet import Key
from seaway.application.control.loop import Controller
from seaway.application.fleet.gpu_metrics import attempts_in
from seaway.application.ports.store import Store
from seaway.application.ports.usage import Used, usage_of
from seaway.application.records import NS_PER_S, JobUse
from seaway.application.writer import Writer
from seaway.domain.attempt import Attempt
from seaway.domain.deployment import Workload
from seaway.domain.job_record import JobRecord
from seaway.domain.job_state import JobState
from seaway.scheduling.arrays import Int64

INTERVAL_S = 30
"""Time between two samples, seconds."""

MAX_SAMPLES = 120
"""Maximum number of samples of a job in memory."""

STORED_EVERY = 20
"""Number of runs of `GpuUse.record` in which it stores the samples of all measured jobs once."""

STEP_S = 60
"""Minimum time between two stored samples, seconds. It doubles with each doubling of their age beyond an hour."""

STORED_AT_ONCE = 200
"""Maximum number of jobs whose samples one transaction stores."""

PART = 1024
"""Number of attempts to read before the lock of the loop is released once."""

S_PER_H = 3600
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


WIDTH = len(UseSample._fields)


@dataclass(frozen=True, slots=True)
class UnusedGpus:
    """GPU time of a running job in the last hour, as far as it is measured.

    Attributes
    ----------
    gpu_core_hours
        Reserved GPU cores times hours.
    unused_gpu_core_hours
        The part of them that the job did not use.
    """

    job: JobRecord
    gpu_core_hours: float
    unused_gpu_core_hours: float

    @property
    def used_percent(self) -> float:
        """Used part of the reserved cores, percent."""
        return 100 * (1 - self.unused_gpu_core_hours / self.gpu_core_hours)


class GpuUse:
    """Measured use by job. Thread-safe, but only one thread calls `record`."""

    def __init__(self, controller: Controller, store: Store, writer: Writer) -> None:
        self._controller, self._store, self._writer = controller, store, writer
        self._samples: dict[str, array[int]] = {}
        self._lock = Lock()
        self._run = 0
        self._measured: Set[str] = frozenset()

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

    def samples(self, job_id: str, span_s: int) -> list[UseSample]:
        """Return the samples of a job in the last `span_s` seconds, oldest first."""
        after_s = self._controller.live.clock.now_ns() // NS_PER_S - span_s
        rows = self._recent(job_id)
        if not len(rows) or rows[0, 0] > after_s:
            older = self._stored([job_id]).get(job_id, rows[:0])
            rows = np.concatenate([older[older[:, 0] < rows[0, 0]] if len(rows) else older, rows])
        return [sample_of(each) for each in rows[rows[:, 0] > after_s].tolist()]

    def unused(self) -> list[UnusedGpus]:
        """Return the running jobs with a measurement in the last hour, most unused GPU time first."""
        with self._lock:
            samples = {job_id: np.array(flat, np.int64).reshape(-1, WIDTH) for job_id, flat in self._samples.items()}
        with self._controller.lock:
            jobs = {job_id: self._controller.live.jobs.get(job_id) for job_id in samples}
        after_s = self._controller.live.clock.now_ns() // NS_PER_S - S_PER_H
        found = []
        for job_id, rows in samples.items():
            job, known = jobs[job_id], rows[(rows[:, 0] > after_s) & (rows[:, 1] != UNKNOWN)]
            spans_s = np.clip(np.diff(known[:, 0], prepend=known[:1, 0] - INTERVAL_S), 0, STEP_S)
            held_milli_s = int(spans_s @ known[:, 2])
            if job is None or not job.state.placed or not held_milli_s:
                continue
            unused_milli_s = int(spans_s @ np.maximum(known[:, 2] - known[:, 1], 0))
            held, unused = (each / WHOLE_MILLI / S_PER_H for each in (held_milli_s, unused_milli_s))
            found.append(UnusedGpus(job, held, unused))
        return sorted(found, key=lambda each: (-each.unused_gpu_core_hours, each.job.id))

    def _stored(self, job_ids: Sequence[str]) -> dict[str, Int64]:
        return {each.job_id: unpacked(each.content) for each in self._store.job_uses(job_ids)}

    def _recent(self, job_id: str) -> Int64:
        with self._lock:
            flat = list(self._samples.get(job_id, ()))
        return np.array(flat, np.int64).reshape(-1, WIDTH)

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
        """Add a sample of each measured job, and remove those of jobs without a sample for an hour.

        Store the samples of some of the jobs, and of those that are not measured any more. The first run reads the
        stored samples of the last hour.
        """
        if not self._run:
            self._restore()
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
        with self._lock:
            for job_id, made in found.items():
                flat = self._samples.setdefault(job_id, array("I"))
                flat.extend(row_of(made))
                del flat[: max(0, len(flat) - MAX_SAMPLES * WIDTH)]
            for job_id in [each for each, flat in self._samples.items() if flat[-WIDTH] < first_s]:
                del self._samples[job_id]
        self._save(found.keys())

    def _restore(self) -> None:
        """Read the samples of running jobs that an earlier process has stored."""
        with self._controller.lock:
            placed = [each.id for each in self._controller.live.jobs.values() if each.state.placed]
        after_s = self._controller.live.clock.now_ns() // NS_PER_S - S_PER_H
        for first in range(0, len(placed), STORED_AT_ONCE):
            for job_id, rows in self._stored(placed[first : first + STORED_AT_ONCE]).items():
                recent = rows[rows[:, 0] > after_s]
                if len(recent):
                    with self._lock:
                        self._samples.setdefault(job_id, array("I", recent.ravel().tolist()))

    def _save(self, measured: Set[str]) -> None:
        self._run += 1
        now_s = self._controller.live.clock.now_ns() // NS_PER_S
        due = [each for each in measured if crc32(each.encode()) % STORED_EVERY == self._run % STORED_EVERY]
        for job_id in self._measured - measured:
            job = self._store.job(job_id)
            if job and job.state is not JobState.DELETED:  # the row would stay when the job is removed
                due.append(job_id)
        for first in range(0, len(due), STORED_AT_ONCE):
            part = due[first : first + STORED_AT_ONCE]
            stored = self._stored(part)
            change = Change()
            for job_id in part:
                recent = self._recent(job_id)
                before = stored.get(job_id, recent[:0])
                last_s = before[-1, 0] if len(before) else 0
                rows = np.concatenate([before, recent[recent[:, 0] > last_s]])
                change.put.append(JobUse(job_id, packed(joined(rows, now_s))))
            self._writer.require(change)
        self._measured = frozenset(measured)


def joined(rows: Int64, now_s: int) -> Int64:
    """Return samples, shape (samples, fields), with older ones joined to their means, at the time of the last one.

    The step is a minute in the last hour, and at most a 60th of the age before: a month has about 630 samples.
    """
    if not len(rows):
        return rows
    age_h = np.maximum(now_s - rows[:, 0], 0) // S_PER_H
    step_s = STEP_S << np.maximum(np.frexp(age_h.astype(np.float64))[1] - 1, 0).astype(np.int64)
    place = rows[:, 0] // step_s
    firsts = np.flatnonzero(np.r_[True, (np.diff(step_s) != 0) | (np.diff(place) != 0)])
    known = rows != UNKNOWN
    counts = np.add.reduceat(known.astype(np.int64), firsts)
    sums = np.add.reduceat(np.where(known, rows, 0), firsts)
    means = np.where(counts > 0, (sums + counts // 2) // np.maximum(counts, 1), UNKNOWN)
    means[:, 0] = rows[np.r_[firsts[1:], len(rows)] - 1, 0]
    return means


def packed(rows: Int64) -> bytes:
    """Pack samples by column, compressed."""
    return compress(rows.T.astype("<u4").tobytes())


def unpacked(content: bytes) -> Int64:
    """Return packed samples."""
    return np.frombuffer(decompress(content), "<u4").reshape(WIDTH, -1).T.astype(np.int64)


def sample_of(numbers: Sequence[int]) -> UseSample:
    """Return a sample from its row."""
    at_s, core_milli, cores, memory_mib, memory = numbers
    return UseSample(at_s, _known(core_milli), cores, _known(memory_mib), memory)


def row_of(sample: UseSample) -> list[int]:
    """Return the row of a sample."""
    return [UNKNOWN if each is None else min(each, UNKNOWN - 1) for each in sample]


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
