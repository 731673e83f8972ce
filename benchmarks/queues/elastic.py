"""Use and waits with elastic jobs, on the arrivals of the openb trace."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from itertools import islice, product, takewhile
from multiprocessing import get_context
from pathlib import Path
from random import Random
from time import process_time
from typing import Any

import numpy as np

from benchmarks.data import openb
from benchmarks.queues.classes import Window, cut, fitting, gpu_seconds, gpus_of, window_of
from benchmarks.record import Result
from seaway.adapters.simulated.backends import SimulatedBackends
from seaway.adapters.simulated.faults import Options
from seaway.application.changes import Change
from seaway.application.control.settings import ControlSettings
from seaway.application.records import Event
from seaway.cli.learning.pictures import figure_of, save
from seaway.domain.amounts import GPUS
from seaway.domain.attempt import Attempt
from seaway.domain.cluster import Fleet
from seaway.domain.job import Job
from seaway.domain.job_record import JobRecord
from seaway.domain.job_spec import JobSpec
from seaway.domain.queues import Backfill, Elastic, Order, Queue
from seaway.domain.scaling import UNIT, Metric, Trigger
from seaway.domain.tenancy import DEFAULT
from seaway.scheduling.policies.registry import PolicyOptions, make_profile
from seaway.testing.clocks import VirtualClock
from tests.fakes.control_plane import SmallControlPlane

LOADS = 0.8, 1.0, 1.25, 1.5
"""GPUs that the jobs request in the window, as shares of those of the fleet."""

SHARE = 5
"""One of so many jobs is elastic."""

RIGID, LEAST, MOST = 2, 1, 8
"""Number of replicas of these jobs when they are rigid, and their bounds when they are elastic."""

FORMS = "rigid", "elastic", "queue_depth"

DEPTH = Trigger(Metric.QUEUE_DEPTH, target_milli=1000, shrink_after_s=60)
"""Trigger of these jobs in the form ``queue_depth``: they shrink while more than one job waits."""

TICK_NS = 75_000_000_000
"""Time after an event at which triggers are evaluated once more, longer than `DEPTH` waits."""

NS_PER_S, S_PER_H, S_PER_DAY = 1_000_000_000, 3600, 86_400

NOTES = [
    f"GPU jobs of openb (default) at their own times; a fifth of them runs as {RIGID} replicas for half of the time",
    f"elastic: the same jobs with {LEAST} to {MOST} replicas; with more replicas, their work takes less time",
    f"queue_depth: these jobs also shrink while more than {DEPTH.target_milli // UNIT} job has waited for a minute",
    "the control plane decides, on simulated clusters with a virtual clock: first in, first out, with EASY backfill",
    "waits and times from arrival to end of the jobs that arrive in the window, in hours",
]


@dataclass(frozen=True, slots=True)
class Course:
    """Course of the jobs of a replay.

    Attributes
    ----------
    starts_s, ends_s
        Start and end of each job, seconds in the time of the trace.
    time_s, used_gpus
        Times of changes, and the GPUs that jobs hold from each on.
    resizes
        Number of resizes.
    """

    starts_s: Sequence[float]
    ends_s: Sequence[float]
    time_s: Sequence[float]
    used_gpus: Sequence[float]
    resizes: int


@dataclass(frozen=True, slots=True)
class Loaded:
    """Fleet with the jobs that load it, and the positions of those that are elastic in some forms."""

    fleet: Fleet
    jobs: Sequence[Job]
    chosen: frozenset[int]


def elastic(seed: int, plot: Path | None = None) -> Result:
    """Run openb with a fifth of the jobs elastic, and with the same jobs rigid."""
    trace = openb()
    jobs = sorted((each for each in trace.jobs if each.demand.request.gpus), key=lambda job: job.arrives_s)
    window = window_of(jobs)
    requested = sum(gpu_seconds(each, window) for each in jobs) / (window[1] - window[0])
    loaded = {load: _loaded(trace.fleet, jobs, requested / load, seed) for load in LOADS}
    runs = [(load, form) for load in reversed(LOADS) for form in FORMS]  # the longest first
    with ProcessPoolExecutor(os.cpu_count(), get_context("fork")) as pool:
        ended = pool.map(_timed, [loaded[load] for load, _ in runs], [form for _, form in runs])
        courses = dict(zip(runs, ended, strict=True))
    rows, curves = list[dict[str, Any]](), dict[str, tuple[Course, int]]()
    for load, form in product(LOADS, FORMS):
        each, (course, took_s) = loaded[load], courses[load, form]
        gpus = gpus_of(each.fleet.clusters[0].nodes)
        row = {"load_pct": round(100 * requested / gpus), "gpus": gpus, "form": form}
        figures = _figures(course, each.jobs, each.chosen, window, gpus)
        rows.append(row | figures | {"seconds": round(took_s, 1)})
        curves[f"{form}, load {requested / gpus:.0%}"] = course, gpus
    if plot:
        draw(curves, window, plot)
    return Result("elastic", rows, NOTES)


def _loaded(whole: Fleet, jobs: Sequence[Job], gpus: float, seed: int) -> Loaded:
    """Return about the given number of GPUs of a fleet, and the jobs that fit it."""
    fleet = cut(whole, gpus)
    found = fitting(jobs, fleet)
    return Loaded(fleet, found, _chosen(found, fleet, seed))


def _timed(loaded: Loaded, form: str) -> tuple[Course, float]:
    """Run the jobs with the chosen ones in a form; return their course and the CPU time, seconds."""
    begun = process_time()
    specs = [_spec(job, form if at in loaded.chosen else "") for at, job in enumerate(loaded.jobs)]
    return run(loaded.fleet, loaded.jobs, specs), process_time() - begun


def _chosen(jobs: Sequence[Job], fleet: Fleet, seed: int) -> frozenset[int]:
    """Return the positions of a fifth of the jobs, drawn from those of which two replicas fit the empty fleet."""
    fits = {each.demand for each in fitting(jobs, fleet, RIGID)}
    possible = [at for at, job in enumerate(jobs) if job.demand in fits]
    return frozenset(Random(seed).sample(possible, len(jobs) // SHARE))


def _spec(job: Job, form: str) -> JobSpec:
    """Return the submitted job: in one of `FORMS`, or as in the trace."""
    lasts_s = job.expected_duration_s or 0
    spec = JobSpec(job.name, job.demand, expected_duration_s=lasts_s)
    if form == "rigid":
        return replace(spec, replicas=RIGID, gang=True, expected_duration_s=lasts_s // RIGID)
    if form:
        scale = (DEPTH,) if form == "queue_depth" else ()
        return replace(spec, replicas=MOST, gang=True, min_replicas=LEAST, max_replicas=MOST, scale=scale)
    return spec


ARRIVALS = Queue(DEFAULT, order=Order.FIFO, backfill=Backfill.EASY, elastic=Elastic.KEEP)
"""Queue of all jobs, first in, first out."""


def run(fleet: Fleet, jobs: Sequence[Job], specs: Sequence[JobSpec], *queues: Queue) -> Course:
    """Run a control plane on a simulated cluster through all arrivals, resizes and ends."""
    clock = VirtualClock()
    clusters = SimulatedBackends(fleet, clock, Options(start_delay_s=0, waits=False))
    plane = SmallControlPlane(clusters, clock=clock, settings=ControlSettings(ttl_after_finished_s=0))
    plane.make = lambda _, mix: make_profile("bestfit", PolicyOptions(mix=mix))
    plane.restart()
    plane.writer.commit([Change(put=list(queues or (ARRIVALS,)))])
    plane.settle()
    live, state = plane.controller.live, clusters.clusters()[0]._state  # noqa: SLF001  # for the time of the next end
    begins_s = clock.now_ns() / NS_PER_S - jobs[0].arrives_s
    ids, time_s, used_gpus, ticks = list[str](), list[float](), list[float](), False
    while len(ids) < len(jobs) or live.jobs:
        now_s = clock.now_ns() / NS_PER_S - begins_s
        arrived = sum(1 for _ in takewhile(lambda job: job.arrives_s <= now_s, islice(jobs, len(ids), None)))  # noqa: B023
        ids += plane.submit(*specs[len(ids) : len(ids) + arrived]) if arrived else []
        plane.settle()
        time_s.append(now_s)
        used_gpus.append(live.tree.node(DEFAULT).use.held.get(GPUS, 0) / 1000)
        now_ns = clock.monotonic_ns()
        due_ns = [at_ns for job, at_ns in live.resize_after_ns.items() if job in live.resizing and at_ns > now_ns]
        if len(ids) < len(jobs):
            due_ns.append(now_ns + round((jobs[len(ids)].arrives_s - now_s) * NS_PER_S))
        if state.next_due_ns is not None:
            due_ns.append(now_ns + max(state.next_due_ns - clock.now_ns(), 0))
        next_ns, ticked = min(due_ns, default=now_ns + NS_PER_S), ticks
        ticks = bool(live.scaled) and not ticked and next_ns > now_ns + TICK_NS
        clock.advance(max((now_ns + TICK_NS if ticks else next_ns) - now_ns, 0))
    rows = plane.store.database.rows
    starts = {each.job_id: each.created_ns / NS_PER_S - begins_s for each in rows[Attempt].values()}
    ends = {each.id: (each.ended_ns or 0) / NS_PER_S - begins_s for each in rows[JobRecord].values()}
    resizes = sum(each.kind == "resized" for each in rows[Event].values())
    return Course([starts[each] for each in ids], [ends[each] for each in ids], time_s, used_gpus, resizes)


def _figures(course: Course, jobs: Sequence[Job], chosen: frozenset[int], window: Window, gpus: int) -> dict[str, Any]:
    """Return the use of the GPUs in a window, and means of the jobs that arrive in it."""
    begins_s = np.clip(course.time_s, *window)
    used_pct = 100 * np.average(course.used_gpus[:-1], weights=np.diff(begins_s)) / gpus
    figures: dict[str, Any] = {"gpus_used_pct": round(float(used_pct), 1)}
    inside = [at for at, job in enumerate(jobs) if job.arrives_s >= window[0]]
    parts = {"all": inside, "fifth": [at for at in inside if at in chosen]}
    parts["others"] = [at for at in inside if at not in chosen]
    for what, moments in (("wait", course.starts_s), ("time", course.ends_s)):
        for name, part in parts.items():
            mean_s = np.mean([moments[at] - jobs[at].arrives_s for at in part])
            figures[f"{name}_mean_{what}_h"] = round(float(mean_s) / S_PER_H, 2)
    return figures | {"resizes": course.resizes}


def draw(curves: Mapping[str, tuple[Course, int]], window: Window, path: Path) -> list[Path]:
    """Draw the use of the GPUs over time; return the files."""
    figure = figure_of(7.4, 1.8 * len(LOADS))
    days, every = np.linspace(*window, 500), iter(curves.items())
    for axes in figure.subplots(len(LOADS), 1, sharex=True):
        part = islice(every, len(FORMS))
        for name, (course, gpus) in part:
            begins_s = np.clip(course.time_s, *window)
            done = np.concatenate([[0.0], np.cumsum(np.diff(begins_s) * course.used_gpus[:-1])])
            mean = np.diff(np.interp(days, begins_s, done)) / np.diff(days)
            axes.plot((days[1:] - window[0]) / S_PER_DAY, 100 * mean / gpus, label=name, linewidth=1.2)
        axes.set_title("GPUs used, %", loc="left", fontsize="medium")
        axes.set_ylim(0, 102)
        axes.grid(color="#dddddd", linewidth=0.6)
        axes.spines[["top", "right"]].set_visible(False)
        axes.legend(frameon=False, loc="lower right", fontsize="small")
    axes.set_xlabel("days")
    return save(figure, path)
