"""Lock hold times of the control loop, and its cost of many distinct jobs."""

from __future__ import annotations

import gc
import time
from collections.abc import Sequence
from random import Random
from typing import Any

from benchmarks.record import Result
from seaway.adapters.simulated.backends import SimulatedBackends
from seaway.adapters.simulated.faults import Options
from seaway.application.control.loop import Controller, FairLock
from seaway.domain.cluster import Cluster, Fleet
from seaway.domain.device import Device
from seaway.domain.job import Demand, ResourceRequest
from seaway.domain.job_spec import JobSpec
from seaway.domain.node import Node
from seaway.testing.clocks import VirtualClock
from tests.fakes.control_plane import SmallControlPlane

CLUSTERS = 5
NODES = 250
GPUS = 8
MEMORY_MIB = 81_920
JOBS = 100_000
FULL = JobSpec("full", Demand(ResourceRequest(96_000, 700_000, GPUS, 0, 100, 1000)))


class Passing(VirtualClock):
    """Virtual clock that also advances with real time, so that time limits apply."""

    def monotonic_ns(self) -> int:
        """Return the virtual time plus the real time."""
        return super().monotonic_ns() + time.perf_counter_ns()


class Timed(FairLock):
    """Lock that records its hold times."""

    def __init__(self) -> None:
        super().__init__()
        self.held_s: list[float] = []
        self._since = 0.0

    def __enter__(self) -> None:
        """Acquire the lock."""
        super().__enter__()
        self._since = time.perf_counter()

    def __exit__(self, *_: object) -> None:
        """Release the lock."""
        self.held_s.append(time.perf_counter() - self._since)
        super().__exit__(*_)


def loop(seed: int) -> Result:
    """Measure the time under the lock with 100,000 distinct waiting jobs, on 10,000 GPUs in use."""
    plane = SmallControlPlane(SimulatedBackends(many_nodes(), clock := Passing(), Options(waits=False)), clock=clock)
    plane.settle()
    running = plane.submit(*[FULL] * (CLUSTERS * NODES))
    plane.run(20, 5)
    plane.submit(*unlike(seed))
    gc.collect()
    gc.disable()  # a server disables it during the start, and collects rarely afterwards
    try:
        rows = [_row("they all come at once", plane.controller, once=True), _row("all are tried", plane.controller)]
        for job_id in running[:2]:
            plane.jobs.cancel(job_id, "benchmark")
            clock.advance_s(5)
            rows.append(_row("a running job ends", plane.controller))
        plane.restart()
        rows.append(_row("everything is read again", plane.controller, once=True))
    finally:
        gc.enable()
    return Result("loop", rows, [f"{CLUSTERS * NODES:,} nodes, {JOBS:,} jobs, a store in memory; garbage left lying"])


def _row(what: str, controller: Controller, *, once: bool = False) -> dict[str, Any]:
    """Run cycles until there are no more changes, or only one."""
    controller.lock = lock = Timed()
    tally, began_s = controller.scheduler.tally.decided, time.process_time()
    while controller.step() and not once:
        pass
    held_ms = sorted(1000 * each for each in lock.held_s)
    return {
        "when": what,
        "cpu_s": round(time.process_time() - began_s, 2),
        "longest_hold_ms": round(held_ms[-1], 1),
        "p99_hold_ms": round(held_ms[int(0.99 * len(held_ms))], 1),
        "tries": controller.scheduler.tally.decided - tally,
        "demands_known": len(controller.live.fleet.snapshot.demands),
    }


def many_nodes(models: Sequence[tuple[str, int]] = (("A100", MEMORY_MIB),), nodes: int = NODES) -> Fleet:
    """Return a fleet of five clusters, by default of 10,000 GPUs.

    Parameters
    ----------
    models
        Name and memory of the GPUs of each node, in turn.
    nodes
        Number of nodes of each cluster.
    """
    return Fleet(
        tuple(
            Cluster(
                f"cluster-{c}",
                tuple(
                    Node(
                        f"node-{n}",
                        cpu_milli=96_000,
                        memory_mib=786_432,
                        devices=tuple(Device(f"{c}/{n}/{d}", d, *models[n % len(models)]) for d in range(GPUS)),
                    )
                    for n in range(nodes)
                ),
            )
            for c in range(CLUSTERS)
        )
    )


def unlike(seed: int) -> list[JobSpec]:
    """Generate distinct jobs in the proportions of the openb trace."""
    draw = Random(seed)
    jobs = []
    for _ in range(JOBS):
        cpu = draw.choice((2000, 4000, 6000, 8000, 10_000, 12_000, 16_000)) + draw.randrange(1000)
        gpus = draw.choices((0, 1, 2, 4, 8), (13, 80, 3, 2, 2))[0]
        milli = 1000 if gpus > 1 else draw.choice((250, 460, 500, 810, 1000, 1000))
        gpu = (gpus, MEMORY_MIB * milli // 1000, 0, milli) if gpus else ()
        jobs.append(
            JobSpec(
                "unlike", Demand(ResourceRequest(cpu, 4 * cpu + draw.randrange(4000), *gpu)), expected_duration_s=600
            )
        )
    return jobs
