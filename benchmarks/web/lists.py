"""Pages and lists with 10,000 nodes and 100,000 jobs, and the cost of a hundred viewers there."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import median, quantiles
from tempfile import TemporaryDirectory
from typing import Any

from playwright.sync_api import Page

from benchmarks.api.full import BATCH, JOBS, NS_PER_JOB, WAITING, fill
from benchmarks.api.server import Served, served
from benchmarks.record import Result
from benchmarks.web.cases import (
    BLOCKS,
    BURST,
    CLUSTERS,
    FLEET,
    LIVELY,
    MAX_SLOWER,
    NODES,
    PAGES,
    VIEWERS,
    ratios_of,
    tokens,
)
from benchmarks.web.looks import TIMES as LOADS
from benchmarks.web.looks import WARM, browser_page, rendered
from benchmarks.web.rounds import pairs, spread

OPENED = ("/", "/jobs", "/queues", "/history", "/fleet", "/schedule")
"""Pages to open."""

LOOKED_AT = ("/", "/fleet", "/network", "/jobs", "/queues", "/history")
"""Pages of viewers."""

CHANGED = "before => document.querySelector('.jobs-rows tbody tr')?.dataset.key !== before"
"""Reports whether another job is first, in each frame."""

QUERIES = {
    "jobs": "jobs?limit=50",
    "jobs, failed": "jobs?limit=50&state=failed",
    "jobs, label": "jobs?limit=50&label=team%3Dteam-3",
    "jobs, cluster": "jobs?limit=50&cluster=cluster-3",
    "jobs, name": "jobs?limit=50&name=job-77",
    "jobs, name without a match": "jobs?limit=50&name=none-such",
    "jobs, last of a name": "jobs?limit=6&name=job-0",
    "jobs, columns GPU-hours and cost": "jobs?limit=50&gpu_hours=true&cost=true",
    "jobs by name": "jobs?limit=50&sort=name",
    "jobs by state": "jobs?limit=50&sort=state",
    "jobs by end": "jobs?limit=50&sort=-ended",
    "jobs by duration": "jobs?limit=50&sort=-duration",
    "jobs by GPU-hours": "jobs?limit=50&sort=-gpu_hours&gpu_hours=true",
    "jobs of a state by GPU-hours": "jobs?limit=50&sort=-gpu_hours&gpu_hours=true&state=failed",
    "jobs by cost": "jobs?limit=50&sort=-cost&cost=true",
    "counts": "job-counts",
    "counts of a name": "job-counts?name=job-77",
    "nodes, name": "fleet/nodes?name=c7-n99&limit=6",
    "queues with costs": "queue-usage",
}
"""Requests by name."""

TIMES = 20
TYPED = ("job-77", "none-such", "c7-n99", "cluster-3")
"""Texts of searches."""

SORTED = ("Job", "GPU-hours", "Cost", "Submitted")
"""Columns to sort by on the page of jobs."""

MAX_OPEN_S = 0.7
MAX_LIST_S = 0.3


def lists(seed: int) -> Result:
    """Time pages, lists in each order, filters and the search with 100,000 jobs on 10,000 nodes."""
    rows: list[dict[str, Any]] = []
    with _full_server(seed) as server:
        rows += [_requests(server, what, path) for what, path in QUERIES.items()]
        with browser_page(server) as page:
            rows += [_opened(page, server, path) for path in OPENED]
            rows += [*_sorted(page, server), *_searched(page, server)]
        rows.append({"what": "memory of the server, MiB", "median": server.memory_mib()})
    bounds = {"opens": ("median", MAX_OPEN_S)}
    missed = []
    for row in rows:
        figure, most = bounds.get(row["what"].partition(" ")[0], ("p95 s", MAX_LIST_S))
        if row.get(figure, 0) >= most:
            missed.append(f"{row['what']}: {row[figure]} s, asked < {most:g}")
    sent = f"requests: {TIMES} each, the first apart; page: from the input until the rows or results are painted"
    return Result("lists", rows, [_SIZE, sent], missed)


def viewers(seed: int) -> Result:
    """Time bursts of jobs with and without a hundred viewers, with 100,000 jobs on 10,000 nodes."""
    with _full_server(seed) as server:
        found, seen = pairs(server, BLOCKS, BURST, VIEWERS, tokens(server), LOOKED_AT)
    ratios = ratios_of(found)
    in_vain = sum(each.in_vain(LIVELY) for each in seen)
    missed = [f"{in_vain} viewers saw nothing"] if in_vain else []
    if median(ratios["in loop"]) > MAX_SLOWER:
        missed.append(f"the loop takes {median(ratios['in loop']):.2f} times as long, asked {MAX_SLOWER:g}")
    rows = [{"ratio": name, **spread(values)} for name, values in ratios.items()]
    watched = (
        f"{2 * BLOCKS} pairs of bursts of {BURST:,} jobs, with {VIEWERS} viewers of {', '.join(LOOKED_AT)}, and without"
    )
    return Result("viewers", rows, [_SIZE, watched], missed)


_SIZE = (
    f"{CLUSTERS * NODES:,} nodes, {JOBS:,} jobs with attempts, of which {WAITING:,} run; browser, viewers and server "
    "share the cores"
)


@contextmanager
def _full_server(seed: int) -> Iterator[Served]:
    """Run a server with many jobs, which has started those that waited."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        fill(folder, seed, time.time_ns() - (JOBS + BATCH) * NS_PER_JOB, waiting_gpus=1)
        with served(folder, fleet=FLEET) as server:
            while server.jobs().get("running", 0) < WAITING:
                time.sleep(0.1)
            yield server


def _requests(server: Served, what: str, path: str) -> dict[str, Any]:
    """Send a request repeatedly; the first one may read what later ones have in memory."""
    took = []
    for _ in range(1 + TIMES):
        began = time.perf_counter()
        server.get(f"/api/v1/{path}").raise_for_status()
        took.append(time.perf_counter() - began)
    return {"what": what, **_figures(took[1:]), "first s": round(took[0], 3)}


def _opened(page: Page, server: Served, path: str) -> dict[str, Any]:
    address, shows = PAGES[path]
    used_s = server.cpu_s()
    found = rendered(page, server, address, shows)
    used_s = server.cpu_s() - used_s
    return {
        "what": f"opens {path}",
        "median": found["content s"],
        "p95 s": found["worst s"],
        "first s": found["first ever s"],
        "server cpu s": round(used_s / (WARM + LOADS), 3),
    }


def _sorted(page: Page, server: Served) -> Iterator[dict[str, Any]]:
    """Sort the page of jobs by clicks."""
    page.goto(f"{server.url}/jobs?columns=submitted,gpu_hours,cost")
    page.wait_for_function("() => window.did_handshake === true")
    first = page.locator(".jobs-rows tbody tr").first
    for column in SORTED:
        took = []
        for _ in range(TIMES // 2):
            before = first.get_attribute("data-key")
            began = time.perf_counter()
            page.locator("thead").get_by_role("button", name=column, exact=True).click()
            page.wait_for_function(CHANGED, arg=before)
            took.append(time.perf_counter() - began)
        yield {"what": f"page sorts by {column}", **_figures(took[1:]), "first s": round(took[0], 3)}


def _searched(page: Page, server: Served) -> Iterator[dict[str, Any]]:
    """Search for texts."""
    page.goto(server.url)
    page.wait_for_function("() => window.did_handshake === true")
    page.keyboard.press("Control+k")
    typed = page.get_by_role("combobox")
    for text in TYPED:
        took = []
        for _ in range(TIMES // 2):
            typed.fill("")
            page.locator("#palette-list[data-query='']").wait_for(state="attached")
            began = time.perf_counter()
            typed.fill(text)
            page.locator(f"#palette-list[data-query='{text}']").wait_for(state="attached")
            took.append(time.perf_counter() - began)
        yield {"what": f"search for {text}", **_figures(took[1:]), "first s": round(took[0], 3)}


def _figures(took: Sequence[float]) -> dict[str, Any]:
    return {"median": round(median(took), 3), "p95 s": round(quantiles(took, n=20, method="inclusive")[-1], 3)}
