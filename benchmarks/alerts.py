"""Duration of evaluations of the alerts of 10,000 nodes, and of explanations of waiting jobs there."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from dataclasses import replace
from random import Random
from statistics import median
from typing import Any

from benchmarks.loop import CLUSTERS, GPUS, Timed, many_nodes
from benchmarks.record import Result
from benchmarks.scrape import KINDS, SLICES, WAITING, fill
from seaway.adapters.simulated.backends import SimulatedBackends
from seaway.adapters.simulated.faults import Options
from seaway.application.control.dispatch import InPlace
from seaway.application.monitoring.alerts import AT_ONCE_S
from seaway.application.monitoring.conditions import EVERY_S
from seaway.application.transitions import accepted
from seaway.application.whatif.dry_run import EXPLANATIONS_CACHE_NS
from seaway.bootstrap.control_plane import ControlPlane, make_plane
from seaway.bootstrap.settings import Settings
from seaway.domain.cluster import Fleet
from seaway.domain.job import Demand, ResourceRequest
from seaway.domain.job_record import JobRecord
from seaway.domain.job_spec import JobIds, JobSpec
from seaway.domain.job_state import JobState
from seaway.testing.clocks import VirtualClock
from tests.fakes.memory_store import MemoryStore

NODES = 2_000
"""Number of nodes of each cluster."""

BROKEN = 100
"""One of so many nodes is not ready, and another one has an unhealthy device."""

FULL_NODES, PARTLY = 8_560, 800
"""Number of jobs on whole nodes, and of devices with more than half in use; with `SLICES`, no device is free."""

TIMES = 50
EXPLAINED = 5
MAX_EXPLAIN_S = 1.0
WHOLE = JobSpec("gang", Demand(ResourceRequest(8_000, 65_536, GPUS, 16_384, 0, 1000)))
"""Job that would fit with fewer cores of each GPU."""

SMALL = JobSpec("small", Demand(ResourceRequest(1, 1)))
MAX_SHARE = 0.1
"""Maximum share of a core that all evaluations take."""


def alerts(seed: int) -> Result:
    """Evaluate all alerts of 10,000 nodes with 80,000 GPUs, as a server does."""
    plane, clock = _busy_plane(seed)
    rows = [
        _row("faults", plane, clock, AT_ONCE_S, plane.alerts.look_at_faults),
        _row("faults, after a report of each cluster", plane, clock, AT_ONCE_S, plane.alerts.look_at_faults, _report),
        _row("all rules", plane, clock, EVERY_S, plane.alerts.look),
        _row("all rules, after a report of each cluster", plane, clock, EVERY_S, plane.alerts.look, _report),
        _row("a sample of the history", plane, clock, 60, plane.history.record),
    ]
    share = rows[1]["cpu_ms"] / 1000 / AT_ONCE_S + rows[3]["cpu_ms"] / 1000 / EVERY_S
    missed = [f"{share:.1%} of a core, asked < {MAX_SHARE:.0%}"] if share >= MAX_SHARE else []
    firing = len(plane.alerts.wrong())
    notes = [
        f"{_SIZE}; {firing} alerts fire; means of {TIMES} evaluations, of which one a minute plans the starts of jobs",
        f"{share:.2%} of a core with faults each {AT_ONCE_S:g} s, all rules each {EVERY_S:g} s; reports before each",
    ]
    return Result("alerts", rows, notes, missed)


def explanations(seed: int) -> Result:
    """Explain waiting jobs on 10,000 nodes with remedies, which are trials of changed jobs."""
    plane, clock = _busy_plane(seed)
    ids = JobIds(Random(seed))
    gangs = [_submitted(plane, clock, ids, replace(WHOLE, replicas=count)) for count in (1, 12, 64)]
    rows: list[dict[str, Any]] = []
    for job in gangs:
        plane.controller.lock = lock = Timed()
        took_s, cpu_s = [], []
        for _ in range(EXPLAINED):
            _submitted(plane, clock, ids, SMALL)  # a job that starts, so that the fleet is another one
            clock.advance_s(EXPLANATIONS_CACHE_NS / 1e9)
            lock.held_s.clear()
            began_s, began_cpu_s = time.perf_counter(), time.process_time()
            reason = plane.overview.reason(job)
            took_s.append(time.perf_counter() - began_s)
            cpu_s.append(time.process_time() - began_cpu_s)
        explanation = reason.explanation
        rows.append(
            {
                "explanation": f"{job.spec.replicas} replicas on 8 GPUs each",
                "ms": round(1000 * median(took_s), 1),
                "longest_ms": round(1000 * max(took_s), 1),
                "cpu_ms": round(1000 * median(cpu_s), 1),
                "longest_hold_ms": round(1000 * max(lock.held_s), 1),
                "remedies": len(explanation.remedies) if explanation else 0,
            }
        )
    worst = max(row["longest_ms"] for row in rows)
    missed = [f"an explanation takes {worst:.0f} ms, asked < {1000 * MAX_EXPLAIN_S:.0f}"]
    notes = [f"{_SIZE}; the fleet changes before each of {EXPLAINED} explanations; hold: of the lock of the loop"]
    return Result("explain", rows, notes, missed if worst >= 1000 * MAX_EXPLAIN_S else [])


def _submitted(plane: ControlPlane, clock: VirtualClock, ids: JobIds, spec: JobSpec) -> JobRecord:
    """Submit a job, run the loop until nothing changes, and return it."""
    now_ns = clock.now_ns()
    job = JobRecord(ids.generate(now_ns), spec, JobState.PENDING, now_ns, now_ns, "benchmark", "accepted")
    plane.writer.require(accepted(job))
    while plane.controller.step():
        clock.advance_s(1)
    return plane.controller.live.jobs[job.id]


_SIZE = (
    f"{CLUSTERS * NODES:,} nodes, {CLUSTERS * NODES * GPUS:,} GPUs, {SLICES:,} slices, {FULL_NODES:,} jobs on whole "
    f"nodes, {WAITING:,} jobs of {KINDS} kinds that wait"
)


def _busy_plane(seed: int) -> tuple[ControlPlane, VirtualClock]:
    """Return a control plane with running and waiting jobs on a broken fleet."""
    clock, store = VirtualClock(), MemoryStore()
    backends = SimulatedBackends(broken_fleet(), clock, Options(waits=False))
    plane = make_plane(Settings(), store, backends, clock, dispatcher=InPlace(clock), random=Random(seed))
    fill(plane, clock, seed, FULL_NODES, PARTLY)
    gc.collect()
    gc.freeze()
    return plane, clock


def broken_fleet() -> Fleet:
    """Return a fleet of which a hundredth of the nodes is not ready, and another one has an unhealthy device."""
    fleet = many_nodes(nodes=NODES)
    clusters = []
    for cluster in fleet.clusters:
        nodes = list(cluster.nodes)
        for at in range(0, NODES, BROKEN):
            nodes[at] = replace(nodes[at], ready=False)
            first, *others = nodes[at + 1].devices
            nodes[at + 1] = replace(nodes[at + 1], devices=(replace(first, healthy=False), *others))
        clusters.append(replace(cluster, nodes=tuple(nodes)))
    return replace(fleet, clusters=tuple(clusters))


def _report(plane: ControlPlane) -> None:
    """Replace the inventory of each cluster by an equal one, as a report does, so that no cached sum is used."""
    for each in plane.controller.live.fleet.clusters.values():
        each.cluster = replace(each.cluster) if each.cluster else None


def _row(
    what: str,
    plane: ControlPlane,
    clock: VirtualClock,
    every_s: float,
    evaluate: Callable[[], None],
    before: Callable[[ControlPlane], None] = lambda _: None,
) -> dict[str, Any]:
    plane.controller.lock = lock = Timed()
    took_s = cpu_s = 0.0
    for _ in range(TIMES):
        clock.advance_s(every_s)
        before(plane)
        began_s, began_cpu_s = time.perf_counter(), time.process_time()
        evaluate()
        took_s += time.perf_counter() - began_s
        cpu_s += time.process_time() - began_cpu_s
    return {
        "evaluation": what,
        "ms": round(1000 * took_s / TIMES, 1),
        "cpu_ms": round(1000 * cpu_s / TIMES, 1),
        "longest_hold_ms": round(1000 * max(lock.held_s), 1),
    }
