"""Cost of viewers for the control loop: bursts of jobs with and without viewers, in pairs."""

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
"""Time until the server has discarded the pages of viewers that left."""

LOOP_STAGES = ("decide", "store")
"""Stages of a job in the control loop itself."""


@dataclass(frozen=True, slots=True)
class Burst:
    """Duration of a burst of jobs, seconds.

    Attributes
    ----------
    took
        Time until all of them ran.
    in_loop
        Part of it in the control loop: deciding and storing.
    cpu
        CPU time of the server, including pages.
    """

    took: float
    in_loop: float
    cpu: float


@dataclass(frozen=True, slots=True)
class Looked:
    """Messages that viewers received.

    Attributes
    ----------
    came
        Path and number of messages of each viewer; None for a disconnected one.
    """

    came: list[tuple[str, int | None]]

    def in_vain(self, lively: Sequence[str]) -> int:
        """Return the number of viewers that were disconnected, or received nothing on a page that changes."""
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
    """Return bursts without and with viewers in pairs, and the messages that viewers received.

    Each block is: without, with, with, without. So neither is first more often, and drift, such as the number of stored
    jobs, affects both alike.
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
    """Return the median and the quartiles of figures."""
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
    """Run viewers; at the end, add the messages that they received to `looked`."""
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
