"""Duration of a Prometheus scrape of the metrics of many GPUs."""

from __future__ import annotations

import asyncio
import gzip
import time
from dataclasses import replace
from random import Random
from statistics import median
from typing import Any

import httpx

from benchmarks.loop import CLUSTERS, FULL, GPUS, MEMORY_MIB, NODES, many_nodes
from benchmarks.record import Result
from seaway.adapters.simulated.backends import SimulatedBackends
from seaway.adapters.simulated.faults import Options
from seaway.api.app import make_app
from seaway.api.http.server import tuned_gc
from seaway.application.control.dispatch import InPlace
from seaway.application.records import Role
from seaway.application.transitions import accepted
from seaway.bootstrap.control_plane import ControlPlane, make_plane
from seaway.bootstrap.settings import Settings
from seaway.domain.job import Demand, ResourceRequest
from seaway.domain.job_record import JobRecord
from seaway.domain.job_spec import JobIds, JobSpec
from seaway.domain.job_state import JobState
from seaway.testing.clocks import VirtualClock
from tests.fakes.memory_store import MemoryStore

SLICES = 20_000
WAITING = 5_000
KINDS = 200
"""Number of distinct requests of the waiting jobs."""

TIMES = 7
MAX_S = 1.0
HALF = JobSpec("half", Demand(ResourceRequest(1_000, 4_096, 1, MEMORY_MIB // 2, 0, 500)))
MOST = JobSpec("most", Demand(ResourceRequest(1_000, 4_096, 1, MEMORY_MIB * 3 // 5, 0, 600)))


def scrape(seed: int) -> Result:
    """Read all metrics of 10,000 GPUs and 20,000 slices, as Prometheus does."""
    clock, store = VirtualClock(), MemoryStore()
    backends = SimulatedBackends(many_nodes(), clock, Options(waits=False))
    plane = make_plane(Settings(), store, backends, clock, dispatcher=InPlace(clock), random=Random(seed))
    with tuned_gc():  # as a server does
        fill(plane, clock, seed)
        secret = plane.access.create("prometheus", Role.OPERATOR, "", None, "benchmark")[1]
        rows = asyncio.run(_read(plane, clock, secret))
    seconds = [row["s"] for row in rows]
    missed = [f"{median(seconds):.2f} s, asked < {MAX_S:g}"] if median(seconds) >= MAX_S else []
    notes = [
        f"{CLUSTERS * NODES * GPUS:,} GPUs, {SLICES:,} slices, {WAITING:,} jobs of {KINDS} kinds that wait; "
        "by way of the whole application, packed with gzip as Prometheus asks, in one process, and no socket",
        "the clock advances by a minute before each, so that no cached answer is repeated",
    ]
    return Result("scrape", rows, notes, missed)


def fill(plane: ControlPlane, clock: VirtualClock, seed: int, full: int = 0, partly: int = 0) -> None:
    """Run jobs on halves of all devices, and submit others that must wait.

    Parameters
    ----------
    full
        Number of jobs that also run, each on a whole node for some hours.
    partly
        Number of devices of which a job takes a part that leaves less than half.
    """
    ids, now_ns = JobIds(Random(seed)), clock.now_ns()
    kinds = [JobSpec("whole", Demand(ResourceRequest(1_000 + kind, 4_096, 1, 0, 100, 1_000))) for kind in range(KINDS)]
    whole = [replace(FULL, expected_duration_s=3600 * (1 + number % 24)) for number in range(full)]
    specs = [*[HALF] * SLICES, *[MOST] * partly, *whole, *(kinds[number % KINDS] for number in range(WAITING))]
    plane.controller.step()
    for spec in specs:
        job = JobRecord(ids.generate(now_ns), spec, JobState.PENDING, now_ns, now_ns, "benchmark", "accepted")
        plane.writer.require(accepted(job))
    while plane.controller.step():
        clock.advance_s(1)


async def _read(plane: ControlPlane, clock: VirtualClock, secret: str) -> list[dict[str, Any]]:
    transport = httpx.ASGITransport(make_app(plane))
    headers = {"authorization": f"Bearer {secret}", "accept-encoding": "gzip"}
    rows = []
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1", headers=headers) as client:
        for number in range(TIMES):
            clock.advance_s(60)
            cpu_s, began_s = time.process_time(), time.perf_counter()
            async with client.stream("GET", "/metrics") as answer:
                sent = b"".join([piece async for piece in answer.aiter_raw()])
            took_s, took_cpu_s = time.perf_counter() - began_s, time.process_time() - cpu_s
            text = gzip.decompress(sent)
            rows.append(
                {
                    "scrape": number + 1,
                    "s": round(took_s, 3),
                    "cpu_s": round(took_cpu_s, 3),
                    "mb": round(len(text) / 1e6, 1),
                    "sent_mb": round(len(sent) / 1e6, 2),
                    "series": sum(not line.startswith(b"#") for line in text.splitlines()),
                }
            )
    return rows
