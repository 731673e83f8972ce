"""Pages on a fleet of 10,000 nodes: how soon they are there, how soon they change, what a hundred viewers cost."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import httpx

from benchmarks.api.server import Served, served
from benchmarks.record import Result
from benchmarks.web.looks import browser_page, rendered, until_seen

CLUSTERS = 10
NODES = 1_000
"""Of each cluster."""

FLEET = "clusters:\n" + "".join(
    f"  - name: cluster-{number}\n    nodes:\n"
    f'      - {{count: {NODES}, name: "c{number}-n{{}}", cpu: 64, memory: 512Gi, gpus: 2, '
    f"model: NVIDIA L40S, gpu_memory: 45Gi}}\n"
    for number in range(CLUSTERS)
)
PAGES = (("/", ".fragment-clusters tbody tr"), ("/fleet", ".node-name"), ("/jobs", "main table"))
"""Pages, and what of them has to be there."""

JOBS = 2_000
"""So many run meanwhile."""

BURST = 1_000
"""So many are decided with and without viewers."""

ROUNDS = 3
CHANGES = 10
VIEWERS = 100
CONNECTIONS = 8

MOST_RENDER_S = 1.0
MOST_LIVE_S = 1.0
MOST_SLOWER = 1.10


def web(seed: int) -> Result:
    """Time pages in a browser, and the control loop with and without a hundred people who look."""
    del seed
    with TemporaryDirectory() as folder, served(Path(folder), fleet=FLEET) as server:
        _burst(server, JOBS)
        rows: list[dict[str, Any]] = []
        with browser_page(server) as page:
            rows += [rendered(page, server, path, shows) for path, shows in PAGES]
            live = _live(page, server)
        rows.append({"page": "live update", "content s": round(median(live), 3), "worst s": round(max(live), 3)})
        alone, watched = _watched(server)
    slower = median(watched) / median(alone)
    rows.append({"page": f"{BURST} jobs decided, s, nobody looks", "content s": round(median(alone), 3)})
    rows.append({"page": f"the same, {VIEWERS} look at /", "content s": round(median(watched), 3)})
    rows.append({"page": "ratio", "content s": round(slower, 3)})
    missed = [
        f"{row['page']}: {row['content s']} s, asked < {MOST_RENDER_S:g}"
        for row in rows[: len(PAGES)]
        if row["content s"] >= MOST_RENDER_S
    ]
    missed += [f"a change is seen after {max(live):.2f} s, asked < {MOST_LIVE_S:g}"] if max(live) >= MOST_LIVE_S else []
    missed += [f"the loop is {slower:.2f} times as slow, asked {MOST_SLOWER:g}"] if slower > MOST_SLOWER else []
    notes = [
        f"{CLUSTERS * NODES:,} nodes, {JOBS:,} jobs; browser, viewers and server on the same cores",
        "viewers load the page and hold its web socket, in a process of their own",
    ]
    return Result("web", rows, notes, missed)


def _live(page: Any, server: Served) -> list[float]:  # noqa: ANN401  # Playwright's page
    """Return how long after a job was taken in the overview shows another count, seconds."""
    page.goto(server.url)
    page.wait_for_function("() => window.did_handshake === true")
    found = []
    for _ in range(CHANGES):
        time.sleep(1)
        found.append(until_seen(page, ".tile:nth-child(5) .tile-figure", lambda: _burst(server, 1)))
    return found


def _watched(server: Served) -> tuple[list[float], list[float]]:
    """Return how long bursts took while nobody looked, and while many did, in turn."""
    alone, watched = [], []
    for _ in range(ROUNDS):
        alone.append(_burst(server, BURST))
        with _viewers(server):
            watched.append(_burst(server, BURST))
    return alone, watched


def _burst(server: Served, count: int) -> float:
    """Submit jobs and wait until they run; return how long that took, seconds."""
    running = server.jobs().get("running", 0)
    began = time.perf_counter()
    command = [sys.executable, "-m", "benchmarks.api.burst", server.url, str(count), str(min(count, CONNECTIONS))]
    subprocess.run(command, check=True, env=os.environ | {"SEAWAY_TOKEN": server.token})
    while server.jobs().get("running", 0) < running + count:
        time.sleep(0.02)
    return time.perf_counter() - began


@contextmanager
def _viewers(server: Served) -> Iterator[None]:
    """Have people look."""
    command = [sys.executable, "-m", "benchmarks.web.viewers", server.url, "/", str(VIEWERS)]
    with subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"SEAWAY_TOKEN": server.token},
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        if process.stdout.readline().strip() != "ready":
            raise RuntimeError("viewers could not look")
        yield
        process.stdin.close()
        if not int(process.stdout.readline() or 0):
            raise httpx.ProtocolError("nothing came to those who looked")
