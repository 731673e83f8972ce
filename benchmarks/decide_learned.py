"""Decision time of trained policies on the openb fleet: complete decisions, one by one, on one core."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import numpy as np

from benchmarks.data import ORDERS, openb
from benchmarks.record import Result, SkippedError
from seaway.bootstrap.trained_policies import Trained, own_library
from seaway.learning.policies.file import Level
from seaway.learning.policies.library import Library
from seaway.learning.policies.monitor import Counts, Limits
from seaway.scheduling.engine import decide
from seaway.scheduling.job_queue import JobQueue
from seaway.scheduling.policies.registry import PolicyOptions
from seaway.scheduling.snapshot.snapshot import Snapshot
from seaway.simulation.trace import Trace

BOUND_US = 1_000.0
"""Bound of the 99th percentile, microseconds."""

WARM_UP_JOBS = 256

SHADOWED = 500
"""Jobs that are each decided on a copy of the fleet, as in a shadow and in a dry run; the copy is not timed."""


def decide_learned(seed: int) -> Result:
    """Time decisions of trained policies on the openb fleet; bound: 1 ms at the 99th percentile."""
    library = own_library()
    names = [name for name in library.names() if library.load(name).manifest.level is Level.NODE]
    if not names:
        raise SkippedError("no trained policy for nodes is there")
    trace = openb(ORDERS[0])
    options = PolicyOptions(seed=seed, mix=trace.mix)
    servers = Limits(failure_threshold=len(trace.jobs) + 1)
    replays = replace(servers, budget_ms=0)
    rows = [_times(trace, name, library, options, limits) for name in names for limits in (servers, replays)]
    rows.append(_times(trace, "seaway", library, options, replays))
    rows += [_times(trace, name, library, options, servers, shadowed=SHADOWED) for name in names]
    notes = [
        f"{len(trace.fleet.clusters[0].nodes):,} nodes, {trace.fleet.device_count:,} GPUs, {len(trace.jobs):,} jobs",
        "a job a call: what fits, figures, model, booking; wall-clock time of `decide`, and CPU time of the thread",
        "with the budget of servers, which stop a run that takes four times that, and with none as in replays",
        "no policy is set aside; fallbacks: decisions that took longer than the budget",
        "seaway: the heuristic by machine code, beside it",
        f"as shadow: the last {SHADOWED} jobs, each decided on a copy of the snapshot first",
    ]
    missed = [
        f"{row['policy']} took {row['p99_us']:,} us at the 99th percentile with a budget of {row['budget_ms']:g} ms"
        for row in rows
        if row["p99_us"] > BOUND_US and row["policy"] in names
    ]
    return Result("decide-learned", rows, notes, missed)


def _times(  # parameters of a run
    trace: Trace, name: str, library: Library, options: PolicyOptions, limits: Limits, *, shadowed: int = 0
) -> dict[str, Any]:
    """Return the times of all decisions, one by one; with `shadowed`, of the last ones, each on a copy."""
    counts = Counts(time.monotonic_ns)
    policy = Trained(library, limits, counts).make(name, options)
    snapshot = Snapshot(trace.fleet)
    queue = JobQueue(snapshot, trace.jobs)
    decide(snapshot.copy(), queue.part(0, WARM_UP_JOBS), policy)
    decide(snapshot, JobQueue(snapshot), policy)
    took_us, cpu_us, placed, warming = [], [], 0, _fallbacks(counts)
    first = len(queue) - shadowed if shadowed else 0
    if first:
        decide(snapshot, queue.part(0, first), policy)
    for job in range(first, len(queue)):
        alone = queue.part(job, job + 1)
        stage = snapshot.copy() if shadowed else snapshot
        begun, cpu = time.perf_counter_ns(), time.thread_time_ns()
        plan = decide(stage, alone, policy, overdue={0})
        cpu_us.append((time.thread_time_ns() - cpu) / 1e3)
        took_us.append((time.perf_counter_ns() - begun) / 1e3)
        placed += int(plan.jobs_placed[0])
        if shadowed:
            decide(snapshot, alone, policy, overdue={0})
    return {
        "policy": f"{name}, as shadow" if shadowed else name,
        "budget_ms": limits.budget_ms,
        "p50_us": round(float(np.quantile(took_us, 0.5)), 1),
        "p99_us": round(float(np.quantile(took_us, 0.99)), 1),
        "cpu_p50_us": round(float(np.quantile(cpu_us, 0.5)), 1),
        "cpu_p99_us": round(float(np.quantile(cpu_us, 0.99)), 1),
        "placed": placed,
        "fallbacks": _fallbacks(counts) - warming,
    }


def _fallbacks(counts: Counts) -> int:
    return sum(sum(each.fallbacks.values()) for each in counts.counted().values())
