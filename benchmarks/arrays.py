"""Arrays of 100,000 tasks: their submit, lists, and memory of waiting tasks."""

from __future__ import annotations

import asyncio
import gc
import time
import tracemalloc
from dataclasses import replace
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import httpx
from numpy import percentile

from benchmarks.record import Result
from seaway.adapters.simulated.backends import SimulatedBackends
from seaway.adapters.sqlalchemy.store import SqlStore, open_store
from seaway.api.app import make_app
from seaway.application.control.dispatch import InPlace
from seaway.application.transitions import accepted
from seaway.bootstrap.control_plane import ControlPlane, make_plane
from seaway.bootstrap.settings import ServerSettings, Settings
from seaway.domain.job_state import JobState
from seaway.simulation.demo import demo_fleet
from seaway.testing.clocks import VirtualClock

TASKS = 100_000
LISTS = 200
CYCLES = 20
STORED = 50_000
"""Number of tasks that are stored as finished for the lists, as after half of an array."""

MOST_TOGETHER = 500

JOB: dict[str, Any] = {"name": "sweep", "resources": {"gpus": 8}, "run": {"image": "pytorch:2.9"}}

LIMITS_S = {10_000: 1.0, TASKS: 10.0}
MAX_LIST_S = 0.050
MAX_KIB = 3.0


def arrays(seed: int) -> Result:
    """Submit arrays through the API into a SQLite file; measure lists and the memory of waiting tasks."""
    with TemporaryDirectory() as folder:
        store = open_store(f"sqlite:///{Path(folder) / 'seaway.db'}")
        plane = _plane(store, seed)
        try:
            rows = asyncio.run(_measured(plane))
        finally:
            plane.stop()
    return Result("arrays", rows, [f"{TASKS:,} tasks in one array; SQLite in a file, no network; all GPUs are in use"])


def _plane(store: SqlStore, seed: int) -> ControlPlane:
    clock = VirtualClock()
    settings = Settings(server=ServerSettings(no_auth=True))
    backends = SimulatedBackends(demo_fleet(), clock)
    plane = make_plane(settings, store, backends, clock, dispatcher=InPlace(clock), random=Random(seed))
    plane.controller.step()
    return plane


async def _measured(plane: ControlPlane) -> list[dict[str, Any]]:
    transport = httpx.ASGITransport(make_app(plane))
    rows = []
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1/api/v1") as client:
        for count, most_s in LIMITS_S.items():
            began_s, began_cpu_s = time.perf_counter(), time.process_time()
            answer = await client.post("/jobs", json={**JOB, "array": f"0-{count - 1}"})
            took_s, cpu_s = time.perf_counter() - began_s, time.process_time() - began_cpu_s
            answer.raise_for_status()
            rows.append(_row(f"submit of {count:,} tasks, s", took_s, cpu_s, most_s))
        large = answer.json()["id"]
        memory_kib = _memory_kib(plane)
        rows.append(_row("memory of a waiting task, KiB", memory_kib, None, MAX_KIB))
        _finish(plane, large)
        for name, path in {
            "list of jobs": "/jobs?limit=100",
            "list of jobs of a tenant": "/jobs?tenant=default&state=running&limit=100",
            "first tasks": f"/jobs/{large}/tasks?limit=100",
            "running and waiting tasks": f"/jobs/{large}/tasks?state=running&state=pending&limit=100",
            "the array": f"/jobs/{large}",
            "numbers of jobs": "/job-counts",
        }.items():
            rows.append(_row(f"{name}, p99 s", *await _p99(client, path), MAX_LIST_S))
    return rows


def _row(what: str, figure: float, cpu_s: float | None, most: float) -> dict[str, Any]:
    cpu = None if cpu_s is None else round(cpu_s, 4)
    return {"what": what, "figure": round(figure, 4), "cpu_s": cpu, "bound": most, "within": figure <= most}


def _memory_kib(plane: ControlPlane) -> float:
    """Return the memory that the loop takes for the waiting tasks, by task, once all that may wait are in the queue."""
    gc.collect()
    tracemalloc.start()
    try:
        for _ in range(CYCLES):
            plane.controller.step()
        gc.collect()
        taken, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    waiting = sum(array.waiting for array in plane.controller.live.arrays.known.values())
    return taken / 1024 / (waiting + len(plane.controller.live.waiting))


def _finish(plane: ControlPlane, array_id: str) -> None:
    """Store half of the tasks as completed, as after hours."""
    array = plane.jobs.find(array_id)
    first = TASKS - STORED
    for start in range(first, TASKS, MOST_TOGETHER):
        tasks = [array.task(index) for index in range(start, start + MOST_TOGETHER)]
        plane.writer.commit([accepted(replace(task, state=JobState.COMPLETED)) for task in tasks])


async def _p99(client: httpx.AsyncClient, path: str) -> tuple[float, float]:
    """Return the 99th percentile of the time of a request, and of its CPU time, seconds."""
    took_s, cpu_s = [], []
    for _ in range(LISTS):
        began_s, began_cpu_s = time.perf_counter(), time.process_time()
        (await client.get(path)).raise_for_status()
        took_s.append(time.perf_counter() - began_s)
        cpu_s.append(time.process_time() - began_cpu_s)
    return float(percentile(took_s, 99)), float(percentile(cpu_s, 99))
