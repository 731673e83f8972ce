"""Logs in the Standard Workload Format, the format of the Parallel Workloads Archive.

A job of size s becomes a gang of s replicas with one GPU each, on nodes with one GPU each.

References
----------
Chapin et al.: Benchmarks and Standards for the Evaluation of Parallel Job Schedulers. JSSPP 1999,
doi:10.1007/3-540-47954-6_4. The archive documents version 2.2 with 18 fields.
"""

from __future__ import annotations

import gzip
import re
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from seaway.domain.cluster import Cluster, Fleet
from seaway.domain.device import Device
from seaway.domain.errors import RejectedError
from seaway.domain.job import Demand, Job, ResourceRequest
from seaway.domain.node import Node
from seaway.domain.numbers import whole_number

FIELDS = 18
"""Number of fields of a line."""

NUMBER, SUBMIT, _, RUN, ALLOCATED, _, _, REQUESTED, _, _, STATUS, USER, _, _, QUEUE = range(15)

PARTIAL = (2, 3, 4)
"""Statuses of the parts of a job, which has another line for the whole."""

MAX_PROCESSORS = 1_000_000
MAX_TIME_S = 2**53

_HEADER = re.compile(r";\s*(MaxProcs|MaxNodes):[ \t]*(.*)", re.ASCII)
_DEVICE_MIB = 1024
_REPLICA = Demand(ResourceRequest(gpus=1))
"""Demand of each replica: a whole device, which fills a node."""


@dataclass(frozen=True, slots=True)
class Log:
    """Log of a batch system.

    Attributes
    ----------
    fleet
        Cluster with one node per processor.
    jobs
        Jobs in order of submission.
    skipped
        Number of entries that never ran, or without a size.
    """

    fleet: Fleet
    jobs: tuple[Job, ...]
    skipped: int


def read_swf(path: Path, processors: int | None = None) -> Log:
    """Read a log.

    Parameters
    ----------
    processors
        Number of processors; None for that of the header (``MaxProcs``, else ``MaxNodes``).

    Raises
    ------
    RejectedError
        If the file cannot be read, a line is invalid, a job is larger than the machine, or the number of processors is
        unknown.
    """
    lines = _lines(path)
    if processors and processors > MAX_PROCESSORS:
        raise RejectedError(f"is {processors}, but at most {MAX_PROCESSORS:,}", where="--processors")
    processors = processors or _processors(lines, path)
    jobs, skipped = _jobs(lines, path)
    largest = max(jobs, key=lambda job: job.replicas)
    if largest.replicas > processors:
        raise RejectedError(
            f"job {largest.name} needs {largest.replicas} processors, but there are {processors}; set --processors",
            where=str(path),
        )
    return Log(_fleet(processors), tuple(jobs), skipped)


def read_swf_jobs(path: Path) -> tuple[list[Job], int]:
    """Return the jobs of a log in order of submission, and the number of skipped entries; raises as `read_swf`."""
    return _jobs(_lines(path), path)


def _lines(path: Path) -> list[str]:
    opened = gzip.open if path.suffix == ".gz" else open
    try:
        with opened(path, "rt", encoding="utf-8", errors="replace") as file:
            return file.read().splitlines()
    except (OSError, EOFError, zlib.error) as error:
        raise RejectedError(f"cannot be read: {getattr(error, 'strerror', None) or error}", where=str(path)) from None


def _jobs(lines: Sequence[str], path: Path) -> tuple[list[Job], int]:
    entries = list(_entries(lines, path))
    jobs = [job for job in (_job(entry) for entry in entries) if job]
    if not jobs:
        raise RejectedError("has no job that ran", where=str(path))
    jobs.sort(key=lambda job: job.arrives_s)  # stable: jobs of one second stay in the order of the log
    return jobs, len(entries) - len(jobs)


def _processors(lines: Iterable[str], path: Path) -> int:
    sizes = {match[1]: match[2] for line in lines if (match := _HEADER.match(line))}
    name = next((name for name in ("MaxProcs", "MaxNodes") if sizes.get(name, "-1").strip() != "-1"), "")
    if not name:
        raise RejectedError("does not name its number of processors (MaxProcs); set --processors", where=str(path))
    words = sizes[name].split()
    found = whole_number(words[0], MAX_PROCESSORS) if words else None
    if not found:
        text = f"{name} is {sizes[name][:40]!r}, no number from 1 to {MAX_PROCESSORS:,}; set --processors"
        raise RejectedError(text, where=str(path))
    return found


def _entries(lines: Sequence[str], path: Path) -> Iterator[list[int]]:
    """Yield the fields of each job up to the queue."""
    seen: set[int] = set()
    for number, line in enumerate(lines, 1):
        text = line.partition(";")[0].split()
        if not text:
            continue
        where = f"{path}:{number}"
        if len(text) < FIELDS:
            raise RejectedError(f"has {len(text)} fields, but the format has {FIELDS}", where=where)
        try:
            entry = [round(float(field)) for field in text[: QUEUE + 1]]
        except (ValueError, OverflowError):
            raise RejectedError("a field is not a number", where=where) from None
        if entry[STATUS] in PARTIAL:
            continue
        if not 0 <= entry[SUBMIT] <= MAX_TIME_S or entry[RUN] > MAX_TIME_S:
            raise RejectedError("the submit time or the run time is out of range", where=where)
        if entry[NUMBER] in seen:
            raise RejectedError(f"job {entry[NUMBER]} appears twice", where=where)
        seen.add(entry[NUMBER])
        yield entry


def _job(entry: Sequence[int]) -> Job | None:
    """Return the job of an entry; None if it never ran or has no size."""
    size = entry[ALLOCATED] if entry[ALLOCATED] > 0 else entry[REQUESTED]
    if entry[RUN] < 0 or size <= 0:
        return None
    return Job(
        str(entry[NUMBER]),
        _REPLICA,
        size,
        gang=True,
        single_cluster=True,
        tenant=f"user-{entry[USER]}" if entry[USER] >= 0 else "default",
        queue=f"queue-{entry[QUEUE]}" if entry[QUEUE] >= 0 else "default",
        arrives_s=entry[SUBMIT],
        expected_duration_s=entry[RUN],
    )


def _fleet(processors: int) -> Fleet:
    nodes = (
        Node(f"node-{at}", 1000, _DEVICE_MIB, (Device(f"gpu-{at}", 0, "processor", _DEVICE_MIB),))
        for at in range(processors)
    )
    return Fleet((Cluster("log", tuple(nodes)),))
