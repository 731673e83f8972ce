"""Speed of the engine, through the same `decide` as the replay and the control plane."""

from __future__ import annotations

import random
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from benchmarks.data import ORDERS, openb
from benchmarks.plain_scan import scans_per_s
from benchmarks.record import Result, peak_memory_mib
from seaway.domain.cluster import Cluster, Fleet
from seaway.domain.device import Device
from seaway.domain.job import Demand, Job, ResourceRequest
from seaway.domain.node import Node
from seaway.scheduling.engine import decide
from seaway.scheduling.job_queue import JobQueue
from seaway.scheduling.policies.registry import PolicyOptions, make_policy
from seaway.scheduling.snapshot.snapshot import Snapshot

ROUNDS = 5
SAME_PLAN_JOBS = 1000
"""Number of jobs for which the plan is compared with that of the plain path."""

LARGE_NODES = 12_500
LARGE_GPUS = 8
LARGE_MEMORY_MIB = 81_920
LARGE_JOBS = 200_000


def engine(seed: int) -> Result:
    """Measure decisions per second on the openb fleet: 1,213 nodes, 6,212 GPUs, 130 % of them requested."""
    trace = openb(ORDERS[0])
    snapshot = Snapshot(trace.fleet)
    queue = JobQueue(snapshot, trace.jobs)
    rows = [
        _speed(snapshot, queue, name, PolicyOptions(seed=seed, mix=trace.mix)) for name in ("bestfit", "fgd", "seaway")
    ]
    return Result("engine", rows, _notes(len(trace.fleet.clusters[0].nodes), trace.fleet.device_count))


def engine_100k(seed: int) -> Result:
    """Measure decisions per second on 12,500 nodes with 100,000 GPUs, for equal and for distinct jobs."""
    rows = []
    for label, unlike in (("alike", False), ("all different", True)):
        snapshot = Snapshot(large_fleet())
        queue = JobQueue(snapshot, large_jobs(seed, unlike=unlike))
        row = _speed(snapshot, queue, "bestfit", PolicyOptions(seed=seed))
        rows.append({"jobs": label, **row, "peak_memory_mib": peak_memory_mib()})
    return Result("engine-100k", rows, _notes(LARGE_NODES, LARGE_NODES * LARGE_GPUS))


def start(seed: int) -> Result:
    """Time a new process until its first decision, with cached kernels; bound: 3 s."""
    rows = []
    for policy in ("bestfit", "fgd", "seaway"):
        command = [sys.executable, "-m", "benchmarks.first_decision", policy, str(seed)]
        subprocess.run(command, check=True)
        took = [_seconds(partial(subprocess.run, command, check=True)) for _ in range(ROUNDS)]
        rows.append({"policy": policy, "first_decision_s": round(statistics.median(took), 3)})
    return Result("start", rows, ["whole process: imports, three clusters, one job decided; median of 5"])


def large_fleet() -> Fleet:
    """Return one cluster of similar nodes with eight devices each."""
    nodes = tuple(
        Node(
            f"node-{n}",
            cpu_milli=96_000 + n % 3 * 32_000,
            memory_mib=786_432,
            devices=tuple(Device(f"node-{n}/{d}", d, "A100", LARGE_MEMORY_MIB) for d in range(LARGE_GPUS)),
        )
        for n in range(LARGE_NODES)
    )
    return Fleet((Cluster("large", nodes),))


def large_jobs(seed: int, *, unlike: bool) -> list[Job]:
    """Generate jobs in the proportions of the openb trace: most share a device, some use eight."""
    draw = random.Random(seed)
    jobs = []
    for number in range(LARGE_JOBS):
        cpu = draw.choice((2000, 4000, 6000, 8000, 10_000, 12_000, 16_000))
        cpu += draw.randrange(1000) if unlike else 0
        gpus = draw.choices((0, 1, 2, 4, 8), (13, 80, 3, 2, 2))[0]
        milli = 1000 if gpus > 1 else draw.choice((250, 460, 500, 810, 1000, 1000))
        gpu = (gpus, LARGE_MEMORY_MIB * milli // 1000, 0, milli) if gpus else ()
        jobs.append(Job(f"job-{number}", Demand(ResourceRequest(cpu, 4 * cpu, *gpu))))
    return jobs


def _speed(snapshot: Snapshot, queue: JobQueue, name: str, options: PolicyOptions) -> dict[str, Any]:
    """Time whole queues in rounds, each next to the plain scan."""
    policy = make_policy(name, options)
    decide(snapshot.copy(), queue.part(0, 10), policy)
    rates, ratios = [], []
    for _ in range(ROUNDS):
        fresh = snapshot.copy()
        decide(fresh, queue.part(0, 0), policy)
        took = _seconds(partial(decide, fresh, queue, policy))
        rates.append(queue.replicas / took)
        ratios.append(rates[-1] / scans_per_s(snapshot, queue))
    return {
        "policy": name,
        "decisions_per_s": round(statistics.median(rates)),
        "ratio_to_plain_scan": round(statistics.median(ratios), 2),
        "same_plan_as_plain_path": _same_plan(snapshot, queue, name, options),
    }


def _same_plan(snapshot: Snapshot, queue: JobQueue, name: str, options: PolicyOptions) -> bool:
    part = queue.part(0, SAME_PLAN_JOBS)
    plain = make_policy(name, PolicyOptions(options.level, options.seed, options.mix, plain=True))
    fast = decide(snapshot.copy(), part, make_policy(name, options))
    slow = decide(snapshot.copy(), part, plain)
    return bool(np.array_equal(fast.decisions, slow.decisions) and np.array_equal(fast.slices, slow.slices))


def _seconds(run: Callable[[], object]) -> float:
    begin = time.perf_counter()
    run()
    return time.perf_counter() - begin


def _notes(nodes: int, gpus: int) -> list[str]:
    return [
        f"{nodes:,} nodes, {gpus:,} GPUs, one core, kernels compiled before; median of {ROUNDS} rounds",
        "ratio: against a compiled scan over all devices without rules of fit, run beside it each round",
        f"same plan: the first {SAME_PLAN_JOBS:,} jobs decided by the plugins' own methods, compared line by line",
    ]
