"""Rounds of the control loop with a tree of 1,000 queues, compared with one flat queue, and preemption."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from statistics import median
from typing import Any

from benchmarks.loop import Passing, many_nodes, unlike
from benchmarks.queues.preemption import preemption
from benchmarks.record import Result
from seaway.adapters.simulated.backends import SimulatedBackends
from seaway.adapters.simulated.faults import Options
from seaway.api.http.server import tuned_gc
from seaway.application.changes import Change
from seaway.domain.job import Demand, DeviceRules, ResourceRequest
from seaway.domain.job_spec import JobSpec
from seaway.domain.queues import Queue
from tests.fakes.control_plane import SmallControlPlane

WIDTH = 10
"""Number of children of each queue, and of roots."""

GPUS = 10_000
WAITING = 100_000
AT_ONCE = 1000
"""Number of jobs that clients submit between two rounds."""

PLACED, TIMES = 4096, 3
"""Number of jobs of which the rate is measured, and of measurements with each tree, in turn."""

ROUND_MS = 250
SHARE = 0.8
"""Bounds: milliseconds of a round, and the rate with the tree as a share of the rate with a flat queue."""

ONE_GPU = Demand(ResourceRequest(4000, 32_000, 1, 0, 100, 1000))

MODELS = tuple((f"model-{at}", 81_920) for at in range(8))
"""GPU models of a fleet on which jobs need single ones, with their memory, MiB."""


def queue_rounds(seed: int) -> Result:
    """Measure rounds with 1,000 queues in three levels, 100,000 waiting jobs and 10,000 GPUs, and preemption."""
    tree = three_levels()
    leaves = [queue.name for queue in tree if queue.name.count("-") == 3]
    rates = [(_rate([], ["default"]), _rate(tree, leaves)) for _ in range(TIMES)]
    flat, many = (median(each) for each in zip(*rates, strict=True))
    rows = [
        {"when": "one flat queue", "jobs_per_s": round(flat)},
        {"when": f"{len(leaves):,} queues in three levels", "jobs_per_s": round(many)},
        *_full(tree, leaves, [JobSpec("one", ONE_GPU)] * WAITING, "equal"),
        *_full(tree, leaves, unlike(seed), "distinct"),
        *_full(tree, leaves, _needing_models(), f"equal, three in five of one of {len(MODELS)} models", MODELS),
    ]
    decisions, slow = preemption(seed)
    longest_ms = max(row["longest_round_ms"] for row in rows if "longest_round_ms" in row)
    missed = [f"a round of {longest_ms:.0f} ms"] if longest_ms > ROUND_MS else []
    missed += [f"{many / flat:.0%} of the rate with a flat queue"] if many < SHARE * flat else []
    missed += slow
    notes = [f"{GPUS:,} GPUs, {WAITING:,} waiting jobs, a store in memory; CPU time"]
    return Result("queue-rounds", rows + decisions, notes, missed=missed)


def _needing_models() -> list[JobSpec]:
    """Return jobs of one GPU, of which some need a model, all of a queue the same one."""
    kinds = [ONE_GPU, ONE_GPU, *(replace(ONE_GPU, devices=DeviceRules(models=frozenset({name}))) for name, _ in MODELS)]
    needs = [kinds[at % 5] if at % 5 < 2 else kinds[2 + at % len(MODELS)] for at in range(WIDTH**3)]
    return [JobSpec("one", needs[at % len(needs)]) for at in range(WAITING)]


def three_levels() -> list[Queue]:
    """Return a tree with limits and guarantees at every level."""
    tops = [Queue(f"q-{a}", limit={"gpus": 5_000_000}) for a in range(WIDTH)]
    middle = [Queue(f"{top.name}-{b}", parent=top.name, weight=1 + b % 3) for top in tops for b in range(WIDTH)]
    given: dict[str, Any] = {"guarantee": {"gpus": 1000}, "limit": {"gpus": 1_000_000}}
    leaves = [
        Queue(f"{each.name}-{c}", parent=each.name, weight=1 + c % 2, **given) for each in middle for c in range(WIDTH)
    ]
    return [*tops, *middle, *leaves]


def _plane(queues: list[Queue], models: Sequence[tuple[str, int]] = ()) -> SmallControlPlane:
    clock, nodes = Passing(), many_nodes(models) if models else many_nodes()
    plane = SmallControlPlane(SimulatedBackends(nodes, clock, Options(waits=False)), clock=clock)
    if queues:
        plane.writer.commit([Change(put=list(queues))])
    plane.settle()
    return plane


def _submit(plane: SmallControlPlane, count: int, leaves: list[str]) -> None:
    plane.submit(*[JobSpec("one", ONE_GPU, queue=leaves[at % len(leaves)]) for at in range(count)])


def _rate(queues: list[Queue], leaves: list[str]) -> float:
    """Return the jobs per second of CPU time from submit to running, with the garbage collector as in a server."""
    plane = _plane(queues)
    _submit(plane, 64, leaves)  # compiles, fills caches
    plane.run(5, 5)
    with tuned_gc():
        began_s = time.process_time()
        _submit(plane, PLACED, leaves)
        plane.run(5, 5)
        return PLACED / (time.process_time() - began_s)


def _full(
    queues: list[Queue], leaves: list[str], waiting: list[JobSpec], which: str, models: Sequence[tuple[str, int]] = ()
) -> list[dict[str, Any]]:
    """Measure rounds on a full fleet, with the garbage collector as in a server."""
    plane = _plane(queues, models)
    waiting = [replace(each, queue=leaves[at % len(leaves)]) for at, each in enumerate(waiting)]
    whole = Demand(ResourceRequest(32_000, 256_000, 8, 0, 100, 1000))
    running = plane.submit(*[JobSpec("whole", whole, queue=waiting[at].queue) for at in range(GPUS // 8)])
    plane.run(20, 5)
    with tuned_gc():
        taken_ms = []
        for first in range(0, len(waiting), AT_ONCE):
            plane.submit(*waiting[first : first + AT_ONCE])
            taken_ms.append(_round(plane)[1])
        rows = [_row(f"{len(waiting):,} {which} jobs come, {AT_ONCE:,} in each round", taken_ms)]
        rows.append(_row("all are tried", _rounds(plane)))
        for job_id in running[:3]:
            plane.jobs.cancel(job_id, "benchmark")
            plane.clock.advance_s(5)
            rows.append(_row("a running job ends", _rounds(plane)))
    return rows


def _round(plane: SmallControlPlane) -> tuple[bool, float]:
    """Run a round; report whether anything happened, and its CPU time in milliseconds."""
    began_s = time.process_time()
    happened = plane.controller.step()
    return happened, 1000 * (time.process_time() - began_s)


def _rounds(plane: SmallControlPlane) -> list[float]:
    """Run rounds until there are no more changes; return the CPU time of each, milliseconds."""
    taken_ms, happened = [], True
    while happened:
        happened, took_ms = _round(plane)
        taken_ms.append(took_ms)
    return taken_ms


def _row(when: str, taken_ms: list[float]) -> dict[str, Any]:
    return {"when": when, "rounds": len(taken_ms), "longest_round_ms": round(max(taken_ms), 1)}
