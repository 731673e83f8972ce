"""Time of `seaway up` until it is ready, step by step."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import httpx

from benchmarks.api.server import DEMO, Served, cpu_s, served
from benchmarks.record import Result

ROUNDS = 5
JOBS = 1000
BOUND_S = 5.0
FILL_S = 120

STEP, READY = "Starting: ", "Seaway listens"
"""Beginnings of the lines that `seaway up` prints before each step and when it is ready."""

JOB = {"name": "job", "resources": {"gpus": 1}}


def restart(seed: int) -> Result:
    """Time `seaway up` until it is ready, without jobs and with 1,000; bound: 5 s."""
    del seed  # nothing is random
    with TemporaryDirectory() as folder:
        empty, full = Path(folder, "empty"), Path(folder, "full")
        with served(empty, fleet=DEMO):
            pass
        with served(full, fleet=DEMO) as server:
            placed = _fill(server)
        rows = [_row("none", empty), _row(f"{JOBS:,}, {placed} of them placed", full)]
    missed = [f"{row['jobs']} jobs: {row['ready_s']} s, bound {BOUND_S} s" for row in rows if row["ready_s"] >= BOUND_S]
    return Result("restart", rows, [f"whole process, modules and engine compiled before; median of {ROUNDS}"], missed)


def _fill(server: Served) -> int:
    """Submit jobs until the fleet is full and the others wait; return the number of running jobs."""
    with httpx.Client(base_url=server.url, headers={"authorization": f"Bearer {server.token}"}) as client:
        for _ in range(JOBS):
            client.post("/api/v1/jobs", json=JOB).raise_for_status()
    until = time.monotonic() + FILL_S
    while (states := server.jobs()).get("running", 0) + states.get("queued", 0) < JOBS:
        if time.monotonic() > until:
            raise RuntimeError(f"jobs neither run nor wait: {states}")
        time.sleep(0.1)
    return states["running"]


def _row(jobs: str, data: Path) -> dict[str, Any]:
    rounds = [_start(data) for _ in range(ROUNDS)]
    return {
        "jobs": jobs,
        **{name: round(statistics.median(each[name] for each in rounds), 2) for name in rounds[0]},
    }


def _start(data: Path) -> dict[str, float]:
    """Start a server and stop it; return the seconds of each step, of all, and of its processor."""
    command = [sys.executable, "-u", "-m", "seaway", "up", "--data", str(data), "--port", "0"]
    began = last = time.monotonic()
    step, took = "starts", {}
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if not line.startswith((STEP, READY)):
                continue
            took[f"{step}_s"] = (now := time.monotonic()) - last
            step, last = line.strip().removeprefix(STEP).removesuffix(" ..."), now
            if line.startswith(READY):
                break
        else:
            raise RuntimeError(f"the server ended: {process.communicate()[1]}")
        used_s = cpu_s(process.pid)
        process.terminate()
        process.communicate()
    return {**took, "ready_s": last - began, "cpu_s": used_s}
