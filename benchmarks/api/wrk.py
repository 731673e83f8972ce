"""Runs the load generator `wrk`, and parses its output."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from benchmarks.api.server import Served
from benchmarks.record import SkippedError

FOLDER = Path(__file__).resolve().parent
UNITS_MS = {"us": 0.001, "ms": 1.0, "s": 1000.0, "m": 60_000.0}


@dataclass(frozen=True, slots=True)
class Load:
    """Result of a load test.

    Attributes
    ----------
    per_s
        Responses per second.
    p50_ms, p99_ms, most_ms
        Latency.
    errors
        Error responses and broken connections.
    """

    requests: int
    per_s: float
    p50_ms: float
    p99_ms: float
    most_ms: float
    errors: int


def wrk(server: Served, script: str, *, clients: int, seconds: int, **environment: str) -> Load:
    """Load a server with a number of clients for a number of seconds.

    Raises
    ------
    SkippedError
        If wrk is not installed.
    """
    if not shutil.which("wrk"):
        raise SkippedError("wrk is not installed (Debian's package wrk)")
    command = ["wrk", "-t1", f"-c{clients}", f"-d{seconds}s", "--latency", "--timeout", "30s"]
    command += ["-s", str(FOLDER / script), server.url]
    environment |= os.environ | {"SEAWAY_TOKEN": server.token}
    text = subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout
    return read(text)


def read(text: str) -> Load:
    """Parse the output of wrk."""
    found = re.search(r"(\d+) requests in", text)
    rate = re.search(r"Requests/sec:\s+([\d.]+)", text)
    latency = re.search(r"Latency\s+\S+\s+\S+\s+([\d.]+)([a-z]+)", text)
    if not found or not rate or not latency:
        raise ValueError(f"wrk said: {text}")
    bad = re.search(r"Non-2xx or 3xx responses: (\d+)", text)
    broken = re.search(r"Socket errors: connect (\d+), read (\d+), write (\d+), timeout (\d+)", text)
    errors = int(bad[1]) if bad else 0
    errors += sum(map(int, broken.groups())) if broken else 0
    most_ms = float(latency[1]) * UNITS_MS[latency[2]]
    return Load(int(found[1]), float(rate[1]), _share(text, 50), _share(text, 99), most_ms, errors)


def _share(text: str, percent: int) -> float:
    found = re.search(rf"^\s+{percent}%\s+([\d.]+)([a-z]+)", text, re.MULTILINE)
    if not found:
        raise ValueError(f"wrk said nothing of {percent} %: {text}")
    return round(float(found[1]) * UNITS_MS[found[2]], 3)
