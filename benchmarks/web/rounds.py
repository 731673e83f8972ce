"""What it costs the control loop that people look at pages: bursts of jobs with and without them, in pairs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from statistics import quantiles
from time import perf_counter, sleep
from typing import Any

import httpx
from prometheus_client.parser import text_string_to_metric_families

from benchmarks.api.server import Served
from seaway.web.mount import RECONNECT_S

CONNECTIONS = 8
GONE_S = RECONNECT_S + 3
"""After so long nothing is kept any more of pages whose viewers left."""

LOOP_STAGES = ("decide", "store")
"""Stages of a job that the control loop itself goes through."""


@dataclass(frozen=True, slots=True)
class Burst:
    """What a burst of jobs took, seconds.

    Attributes
    ----------
    took
        Until all of them ran.
    in_loop
        Of that, in the control loop: deciding, and until it was stored.
    cpu
        CPU time of the server, pages included.
    """

    took: float
    in_loop: float
    cpu: float


@dataclass(frozen=True, slots=True)
class Looked:
    """What came to those who looked.

    Attributes
    ----------
    came
        The path of each, and how many messages; None for one that was cut off.
    """

    came: list[tuple[str, int | None]]

    def in_vain(self, lively: Sequence[str]) -> int:
        """Count who was cut off, or saw nothing of a page on which something happens."""
        return sum(count is None or (count == 0 and path in lively) for path, count in self.came)


def burst(server: Served, count: int) -> Burst:
    """Submit jobs and wait until they run."""
    running = server.jobs().get("running", 0)
    in_loop, cpu, began = _in_loop_s(server), server.cpu_s(), perf_counter()
    command = [sys.executable, "-m", "benchmarks.api.burst", server.url, str(count), str(min(count, CONNECTIONS))]
    subprocess.run(command, check=True, env=os.environ | {"SEAWAY_TOKEN": server.token})
    while server.jobs().get("running", 0) < running + count:
        sleep(0.02)
    took, used = perf_counter() - began, server.cpu_s() - cpu
    return Burst(took, _in_loop_s(server) - in_loop, used)


def pairs(
    server: Served, blocks: int, count: int, viewers: int, tokens: Sequence[str], paths: Sequence[str]
) -> tuple[list[tuple[Burst, Burst]], list[Looked]]:
    """Return bursts without and with viewers side by side, and what these saw.

    Each block is: alone, watched, watched, alone. So neither comes first more often, and what drifts in time, as the
    number of jobs that are there, weighs on both alike.
    """
    found, seen = [], []
    for _ in range(blocks):
        first = burst(server, count)
        looked: list[Looked] = []
        with _looking(server, viewers, tokens, paths, looked):
            watched = [burst(server, count) for _ in range(2)]
        sleep(GONE_S)
        found += [(first, watched[0]), (burst(server, count), watched[1])]
        seen += looked
    return found, seen


def spread(values: Sequence[float]) -> dict[str, Any]:
    """Return the median of figures, and between what half of them lie."""
    low, middle, high = quantiles(values, n=4, method="inclusive")
    return {"median": round(middle, 3), "quarter": round(low, 3), "three quarters": round(high, 3)}


def _in_loop_s(server: Served) -> float:
    """Return the seconds that the control loop spent on jobs so far."""
    text = server.get("/metrics").text
    stages = "".join(line for line in text.splitlines(keepends=True) if "seaway_stage_seconds" in line)  # of 9 MB
    return sum(
        sample.value
        for family in text_string_to_metric_families(stages)
        if family.name == "seaway_stage_seconds"
        for sample in family.samples
        if sample.name.endswith("_sum") and sample.labels["stage"] in LOOP_STAGES
    )


@contextmanager
def _looking(
    server: Served, viewers: int, tokens: Sequence[str], paths: Sequence[str], looked: list[Looked]
) -> Iterator[None]:
    """Have people look; add to `looked` what came to them, once they left."""
    command = [sys.executable, "-m", "benchmarks.web.viewers", server.url, str(viewers), *paths]
    with subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"VIEWER_TOKENS": ",".join(tokens)},
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        if process.stdout.readline().strip() != "ready":
            raise RuntimeError("viewers could not look")
        yield
        process.stdin.close()
        said = process.stdout.readline()
        if not said:
            raise httpx.ProtocolError("viewers do not say what they saw")
        looked.append(Looked([(path, came) for path, came in json.loads(said)]))
