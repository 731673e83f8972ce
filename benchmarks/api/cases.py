"""Case of `script/bench api`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from random import Random
from typing import Any

from benchmarks.api.full import JOBS, fill
from benchmarks.api.server import Served, served
from benchmarks.api.wrk import Load, wrk
from benchmarks.record import ROOT, Result

SUBMIT_S = 15
CLIENTS = 50
BRING_UP = 5_000
LISTENERS = 1_000
LISTEN_S = 25
GET_S = 10
GET_CLIENTS = 4


def api(seed: int) -> Result:
    """Load the REST API on SQLite: submits, jobs to running, a full store, listeners."""
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory(prefix="seaway-api-") as name:
        folder = Path(name)
        with served(folder / "submit") as server:
            rows.append({"what": "ready after start, s", "figure": round(server.ready_s, 2), "asked": "< 3"})
            _submits(server, rows)
        with served(folder / "running") as server:
            _to_running(server, rows)
        with served(folder / "listeners") as server:
            _listeners(server, rows)
        ids = fill(folder / "full", seed)
        with served(folder / "full") as server:
            _full_store(server, ids, Random(seed), folder / "paths", rows)
    notes = [
        f"One process, SQLite with synchronous=FULL, 1,250 simulated nodes with 10,000 GPUs; wrk with {CLIENTS} "
        f"connections for submits, {GET_CLIENTS} for reads, on the same cores.",
        f"To running: {BRING_UP:,} jobs submitted by {CLIENTS} connections, counted until the last one runs.",
        f"Full store: {JOBS:,} jobs, of which 2,000 want whole nodes.",
    ]
    return Result("api", rows, notes)


def _submits(server: Served, rows: list[dict[str, Any]]) -> None:
    """Submit for a fixed time while the control loop places and starts jobs."""
    wrk(server, "submit.lua", clients=CLIENTS, seconds=3, RUNS="5s")
    before_s, begin = server.cpu_s(), time.monotonic()
    load = wrk(server, "submit.lua", clients=CLIENTS, seconds=SUBMIT_S, RUNS="5s")
    cores = (server.cpu_s() - before_s) / (time.monotonic() - begin)
    rows += _rows(f"submits, {CLIENTS} clients", load, ">= 1,000", "< 100")
    rows.append({"what": "cores used meanwhile", "figure": round(cores, 2), "asked": ""})
    rows.append({"what": "memory, MiB", "figure": server.memory_mib(), "asked": ""})


def _to_running(server: Served, rows: list[dict[str, Any]]) -> None:
    """Submit jobs that keep running, and measure the time until all of them run."""
    begin = time.monotonic()
    command = [sys.executable, "-m", "benchmarks.api.burst", server.url, str(BRING_UP), str(CLIENTS)]
    subprocess.run(command, cwd=ROOT, env=os.environ | {"SEAWAY_TOKEN": server.token}, check=True)
    submitted_s = time.monotonic() - begin
    while server.jobs().get("running", 0) < BRING_UP and time.monotonic() - begin < 120:
        time.sleep(0.05)
    seconds = time.monotonic() - begin
    running = server.jobs().get("running", 0)
    rows.append({"what": "jobs/s from submit to running", "figure": round(running / seconds), "asked": ">= 500"})
    rows.append({"what": "of that, s until all were submitted", "figure": round(submitted_s, 2), "asked": ""})


def _listeners(server: Served, rows: list[dict[str, Any]]) -> None:
    """Connect many listeners while jobs start and end."""
    environment = os.environ | {"SEAWAY_TOKEN": server.token}
    listening = subprocess.Popen(
        [sys.executable, "-m", "benchmarks.api.listeners", server.url, str(LISTENERS), str(LISTEN_S)],
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
    )
    time.sleep(8)
    command = [sys.executable, "-m", "benchmarks.api.burst", server.url, "40", "1", "0.25"]
    subprocess.run(command, cwd=ROOT, env=environment, check=True)
    found = json.loads(listening.communicate(timeout=LISTEN_S + 60)[0])
    rows.append({"what": "listeners that stayed connected", "figure": found["listeners"], "asked": ">= 1,000"})
    rows.append({"what": "events that each saw, least", "figure": found["events_least"], "asked": ""})
    rows.append({"what": "events that each saw, most", "figure": found["events_most"], "asked": "= least"})
    rows.append({"what": "event to listener, p50 ms", "figure": found["late_p50_ms"], "asked": ""})
    rows.append({"what": "event to listener, p99 ms", "figure": found["late_p99_ms"], "asked": ""})


def _full_store(server: Served, ids: list[str], random: Random, paths: Path, rows: list[dict[str, Any]]) -> None:
    """List and explain jobs of a full store."""
    while server.jobs().get("pending", 0):
        time.sleep(0.1)
    lists = ["", "?state=completed", "?queue=default&limit=20", "?label=team%3Dteam-3", "?name=job-77", "?state=queued"]
    explained = [f"/api/v1/jobs/{job}/explain" for job in (*random.sample(ids, 50), *ids[-50:])]
    for what, asked in (("list", [f"/api/v1/jobs{each}" for each in lists]), ("explain", explained)):
        for path in asked[:20]:
            server.get(path).raise_for_status()
        paths.write_text("\n".join(asked), encoding="utf-8")
        load = wrk(server, "get.lua", clients=GET_CLIENTS, seconds=GET_S, PATHS=str(paths))
        rows += _rows(f"{what} with {JOBS:,} jobs", load, "", "< 50")
    rows.append({"what": "memory, MiB, full store", "figure": server.memory_mib(), "asked": ""})


def _rows(what: str, load: Load, per_s: str, p99_ms: str) -> list[dict[str, Any]]:
    return [
        {"what": f"{what}: per s", "figure": round(load.per_s), "asked": per_s},
        {"what": f"{what}: p50 ms", "figure": load.p50_ms, "asked": ""},
        {"what": f"{what}: p99 ms", "figure": load.p99_ms, "asked": p99_ms},
        {"what": f"{what}: errors", "figure": load.errors, "asked": "0"},
    ]
