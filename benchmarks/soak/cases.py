"""Case of `script/bench soak`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.api.server import DEMO, Served, served
from benchmarks.kill.harness import simulated_clusters
from benchmarks.record import ROOT, Result, RunOptions
from benchmarks.samples import Repeated, Sample, sample
from benchmarks.soak.levels import Trend, trend
from benchmarks.soak.load import ACTIVITIES, SPEED
from benchmarks.soak.picture import draw

SAMPLE_S = 5.0
MIB = 1 << 20

SETTINGS = {
    "SEAWAY_CONTROL_TTL_AFTER_FINISHED_S": "5",
    "SEAWAY_CONTROL_SAMPLE_INTERVAL_S": "1",
    "SEAWAY_CONTROL_STALE_AFTER_S": "2",
    "SEAWAY_CONTROL_GRACE_PERIOD_S": "10",
    "SEAWAY_CONTROL_INITIAL_BACKOFF_S": "1",
    "SEAWAY_CONTROL_MAX_BACKOFF_S": "5",
    "SEAWAY_CONTROL_EXCLUSION_PERIOD_S": "6",
}
"""Settings whose defaults are minutes, divided by about a hundred."""

GAUGES = {
    "connections": "seaway_connections ",
    "event listeners": "seaway_event_listeners ",
    "unfinished jobs": "seaway_jobs{",
    "pending commands": "seaway_pending_commands{",
}
"""Gauges of the server, by the begin of their lines in `/metrics`; several lines are added."""

TOLERANCES = {
    "RSS, MiB": (0.03, 8.0),
    "PSS, MiB": (0.03, 8.0),
    "file descriptors": (0.1, 10.0),
    "threads": (0.1, 4.0),
    "database, MiB": (0.05, 2.0),
    "connections": (0.2, 10.0),
    "event listeners": (0.2, 5.0),
    "unfinished jobs": (0.2, 50.0),
    "pending commands": (0.2, 20.0),
}
"""Accepted growth after the warm-up: a share of the median, and at least a number."""


def soak(seed: int, options: RunOptions) -> Result:
    """Run a server at a hundred times the usual rate of everything; memory, files, threads, database must level off."""
    del seed
    with tempfile.TemporaryDirectory(prefix="seaway-soak-") as name, simulated_clusters(Path(name) / "clusters") as url:
        data = Path(name) / "data"
        with served(data, fleet=DEMO, clusters_url=url, program="benchmarks.soak.server", settings=SETTINGS) as server:
            times_s, curves, said = _measure(server, url, data, 60 * options.minutes)
    trends = {each: trend(times_s, values, *TOLERANCES[each]) for each, values in curves.items()}
    if options.plot:
        draw(times_s, curves, trends, options.plot)
    hours = options.minutes * SPEED / 60
    notes = [
        f"{options.minutes:g} minutes at {SPEED} times the usual rate, which is {hours:.0f} hours; usual per minute: "
        + ", ".join(f"{each.name} {each.per_minute:g}" for each in ACTIVITIES),
        *(f"{word}: {', '.join(f'{what} {n:,}' for what, n in said[word].items())}" for word in ("done", "skipped")),
        f"a sample each {SAMPLE_S:g} s; growth over the last 60 % by Sen's slope; at least: the lower end of its "
        "interval of 95 %",
    ]
    missed = [f"{each} grows by {found.growth:.1f}" for each, found in trends.items() if not found.level]
    missed += [f"{count} times: {what}" for what, count in said["unexpected"].items()]
    return Result("soak", [_row(name, curves[name], found) for name, found in trends.items()], notes, missed)


def _measure(
    server: Served, clusters_url: str, data: Path, seconds: float
) -> tuple[list[float], dict[str, list[float]], dict[str, Any]]:
    """Run the load; return the times of samples, the values of each figure, and the report of the load."""
    times_s: list[float] = []
    curves: dict[str, list[float]] = {name: [] for name in TOLERANCES}

    def take() -> None:
        for name, value in _figures(sample(server.process.pid), data, server).items():
            curves[name].append(value)
        times_s.append(time.monotonic())

    sampling = Repeated(take, SAMPLE_S)
    command = [sys.executable, "-m", "benchmarks.soak.load", server.url, clusters_url, str(seconds)]
    environment = os.environ | {"SEAWAY_TOKEN": server.token}
    with subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True) as load:
        sampling.start()
        said = load.communicate()[0]
    sampling.stop()
    if load.returncode:
        raise RuntimeError(f"the load ended with {load.returncode}")
    return times_s, curves, json.loads(said)


def _figures(now: Sample, data: Path, server: Served) -> dict[str, float]:
    lines = server.get("/metrics").text.splitlines()
    gauges = {
        name: sum(float(line.rpartition(" ")[2]) for line in lines if line.startswith(begin))
        for name, begin in GAUGES.items()
    }
    return {
        "RSS, MiB": now.rss_mib,
        "PSS, MiB": now.pss_mib,
        "file descriptors": now.files,
        "threads": now.threads,
        "database, MiB": sum(each.stat().st_size for each in data.glob("seaway.db*")) / MIB,
        **gauges,
    }


def _row(name: str, values: Sequence[float], found: Trend) -> dict[str, Any]:
    return {
        "what": name,
        "begin": round(values[0], 1),
        "after the warm-up": round(found.first, 1),
        "end": round(found.last, 1),
        "most": round(max(values), 1),
        "growth": round(found.growth, 1),
        "at least": round(found.least_growth, 1),
        "accepted": round(found.tolerance, 1),
        "level": found.level,
    }
