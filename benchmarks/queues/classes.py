"""Waits of latency-sensitive and best-effort jobs of the openb trace under several orders of a queue."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np

from benchmarks.data import openb
from benchmarks.record import Result
from seaway.bootstrap.policies import policy_of
from seaway.cli.learning.pictures import figure_of, save
from seaway.domain.cluster import Fleet
from seaway.domain.job import Job
from seaway.domain.queues import Order, Preemption, Queue
from seaway.domain.tenancy import DEFAULT
from seaway.scheduling.job_queue import JobQueue
from seaway.scheduling.policies.registry import PolicyOptions, make_policy
from seaway.scheduling.snapshot.snapshot import Snapshot
from seaway.simulation.outcome import Curve, Float64, could_place
from seaway.simulation.timeline import replay_with_departures
from seaway.simulation.waiting.discipline import Discipline
from seaway.simulation.waiting.queued import S_PER_HOUR

LOAD = 1.1
"""GPUs that the jobs request in the window, as a share of those of the fleet."""

LATENCY_SENSITIVE, BEST_EFFORT = "LS", "BE"

BY_PRIORITY = Queue(DEFAULT, order=Order.PRIORITY)
QUEUES = {
    "fifo": Queue(DEFAULT, order=Order.FIFO),
    "priority": BY_PRIORITY,
    "priority + preemption": replace(BY_PRIORITY, preemption=Preemption.PREEMPT_LOWER_PRIORITY),
    "fair": Queue(DEFAULT, order=Order.FAIR),
}

NOTES = [
    "GPU jobs of openb (default) at their own times, in one queue with EASY backfill; LS: all classes but BE",
    "waits of the jobs that arrive in the window, in hours, of displaced jobs until the last start",
    "LS has priority 1, and BE 0; under fair they are two tenants of equal weight",
]

Window = tuple[int, int]
"""Begin and end, seconds."""


def queue_classes(seed: int, plot: Path | None = None) -> Result:
    """Replay openb with its classes LS and BE on a fleet loaded to 110 %, under four orders."""
    trace = openb()
    jobs = [each for each in trace.jobs if each.demand.request.gpus]
    jobs = [replace(each, tenant=LATENCY_SENSITIVE if each.priority else BEST_EFFORT) for each in jobs]
    window = window_of(jobs)
    requested = sum(map(partial(gpu_seconds, window=window), jobs)) / (window[1] - window[0])
    fleet = cut(trace.fleet, requested / LOAD)
    gpus = gpus_of(fleet.clusters[0].nodes)
    make = partial(policy_of, "bestfit", PolicyOptions(seed=seed))
    jobs = fitting(jobs, fleet)
    rows, waits = [], {}
    replay_with_departures(fleet, jobs[:100], make, discipline=Discipline(queues=(BY_PRIORITY,)))  # compiles
    for name, queue in QUEUES.items():
        begun = process_time()
        outcome = replay_with_departures(fleet, jobs, make, discipline=Discipline(queues=(queue,)))
        took_s = process_time() - begun
        assert outcome.starts_s is not None
        assert outcome.sharing is not None
        waits[name] = _waits_h(jobs, outcome.starts_s.tolist(), window)
        figures = {
            f"{of.lower()}_wait_{what}_h": round(float(value), 2)
            for of, found in waits[name].items()
            for what, value in (("mean", found.mean()), ("p95", np.quantile(found, 0.95)))
        }
        rows.append(
            {
                "policy": name,
                **figures,
                "gpus_used_pct": round(_used_pct(outcome.curve, window), 1),
                "preempted": outcome.sharing.preempted,
                "preempted_gpu_hours": round(outcome.sharing.preempted_gpu_hours, 1),
                "seconds": round(took_s, 1),
            }
        )
    if plot:
        draw(waits, plot)
    counted = {of: len(found) for of, found in waits["fifo"].items()}
    days = (window[1] - window[0]) / (24 * S_PER_HOUR)
    load = f"{gpus} GPUs, loaded to {requested / gpus:.0%} for {days:.1f} days, in which 99 % of the jobs arrive: "
    return Result("queue-classes", rows, [load + ", ".join(f"{n:,} {of}" for of, n in counted.items()), *NOTES])


def window_of(jobs: Sequence[Job]) -> Window:
    """Return the time in which the last 99 % of the jobs arrive."""
    arrivals_s = sorted(each.arrives_s for each in jobs)
    return arrivals_s[len(jobs) // 100], arrivals_s[-1]


def gpu_seconds(job: Job, window: Window) -> float:
    """Return the GPUs times seconds in a window that a job uses if it starts when it arrives."""
    ends_s = job.arrives_s + (job.expected_duration_s or 0)
    lasts_s = max(0, min(window[1], ends_s) - max(window[0], job.arrives_s))
    return lasts_s * job.demand.request.gpus * job.demand.request.gpu_milli / 1000


def cut(fleet: Fleet, gpus: float) -> Fleet:
    """Return about the given number of GPUs of a fleet, in every n-th of its nodes by size and model."""
    (cluster,) = fleet.clusters
    nodes = sorted(cluster.nodes, key=lambda node: (len(node.devices), node.devices[0].model, node.name))
    step = int(gpus_of(nodes) // gpus)
    parts = (nodes[first::step] for first in range(step))
    part = min(parts, key=lambda part: abs(gpus_of(part) - gpus))
    return replace(fleet, clusters=(replace(cluster, nodes=tuple(part)),))


def fitting(jobs: Sequence[Job], fleet: Fleet, replicas: int = 1) -> list[Job]:
    """Return the jobs that fit the empty fleet, with a number of replicas at once."""
    empty, policy = Snapshot(fleet), make_policy("bestfit")
    gangs = {each: Job("one", each, replicas, gang=replicas > 1) for each in {job.demand for job in jobs}}
    fits = {each: could_place(empty, JobQueue(empty, [gang]), policy) for each, gang in gangs.items()}
    return [each for each in jobs if fits[each.demand]]


def gpus_of(nodes: Sequence[Any]) -> int:
    """Return the number of GPUs of nodes."""
    return sum(len(node.devices) for node in nodes)


def _waits_h(jobs: Sequence[Job], starts_s: Sequence[int], window: Window) -> dict[str, Float64]:
    """Return the waits by class, hours, of the jobs that arrive in a window and started."""
    found: dict[str, list[float]] = {LATENCY_SENSITIVE: [], BEST_EFFORT: []}
    for job, start_s in zip(sorted(jobs, key=lambda job: job.arrives_s), starts_s, strict=True):
        if start_s >= 0 and window[0] <= job.arrives_s:
            found[job.tenant].append((start_s - job.arrives_s) / S_PER_HOUR)
    return {of: np.array(each) for of, each in found.items()}


def _used_pct(curve: Curve, window: Window) -> float:
    """Return the mean allocated share of the GPUs in a window, percent."""
    assert curve.time_s is not None
    begins_s = np.clip(curve.time_s, *window)
    return float(np.average(curve.allocated_pct[:-1], weights=np.diff(begins_s)))


TICKS_H = {1 / 60: "1 min", 1 / 6: "10 min", 1: "1 h", 10: "10 h", 100: "100 h"}


def draw(waits: Mapping[str, Mapping[str, Float64]], path: Path) -> list[Path]:
    """Draw the share of the jobs of each class that started after at most some time; return the files."""
    figure = figure_of(7.4, 2.8)
    percent = np.linspace(0, 100, 61)
    for axes, of in zip(figure.subplots(1, 2, sharey=True), (LATENCY_SENSITIVE, BEST_EFFORT), strict=True):
        for name, found in waits.items():
            after_h = np.quantile(found[of], percent / 100)
            shown = after_h >= min(TICKS_H)
            axes.plot(after_h[shown], percent[shown], label=name, linewidth=1.6)
        axes.set_xscale("log")
        axes.set_xticks(list(TICKS_H), list(TICKS_H.values()))
        axes.minorticks_off()
        axes.set_title(f"{of} jobs started, %", loc="left", fontsize="medium")
        axes.set_xlabel("time after arrival")
        axes.grid(color="#dddddd", linewidth=0.6)
        axes.spines[["top", "right"]].set_visible(False)
        axes.set_ylim(0, 100)
    axes.legend(frameon=False, loc="lower right", fontsize="small")
    return save(figure, path)
