"""Pages on a fleet of 10,000 nodes: render time, update latency, and the cost of a hundred viewers."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import httpx

from benchmarks.api.server import Served, served
from benchmarks.record import Result
from benchmarks.web.looks import Seen, browser_page, rendered, submit_seen
from benchmarks.web.rounds import Burst, burst, pairs, spread

CLUSTERS = 10
NODES = 1_000
"""Nodes of each cluster."""

FLEET = (
    "gateways: [gw-users]\nclusters:\n"
    + "".join(
        f"  - name: cluster-{number}\n    gateway: gw-{number}\n    price_per_gpu_hour: {1 + number / 8}\n    nodes:\n"
        f'      - {{count: {NODES}, name: "c{number}-n{{}}", cpu: 64, memory: 512Gi, gpus: 2, '
        f"model: NVIDIA L40S, gpu_memory: 45Gi}}\n"
        for number in range(CLUSTERS)
    )
    + "links:\n"
    + "".join(
        f"  - {{between: [gw-users, gw-{number}], latency: {number + 2}ms, bandwidth: 10Gbps}}\n"
        for number in range(CLUSTERS)
    )
)
PAGES = {
    "/": ("/", ".fragment-clusters tbody tr"),
    "/submit": ("/submit", ".submit-trial"),
    "/jobs": ("/jobs", ".jobs-rows tbody tr"),
    "/jobs/{job}": ("/jobs/{job}", ".job-title .state"),
    "/compare": ("/compare?jobs={job},{job}", ".compare"),
    "/queues": ("/queues", ".fragment-queues tbody tr"),
    "/schedule": ("/schedule", ".bar-key"),
    "/history": ("/history", ".fragment-history"),
    "/fleet": ("/fleet", ".node-name"),
    "/fleet/{cluster}/{node}": ("/fleet/cluster-0/c0-n0", ".fragment-node-cards"),
    "/network": ("/network", ".links-graph svg text"),
    "/network/{source}/{target}": ("/network/gw-users/gw-0", ".fragment-link-head"),
    "/policies": ("/policies", ".fragment-policies tbody tr"),
    "/whatif": ("/whatif", "section.question"),
    "/settings": ("/settings", ".panel tbody tr"),
}
"""Pages by route: an example path, and a selector of its content."""

LOOKED_AT = ("/", "/fleet", "/network", "/jobs", "/jobs/{job}", "/queues")
LIVELY = ("/", "/jobs", "/queues")
"""Pages that change with every burst."""

JOBS = 2_000
"""Number of running jobs in the background."""

BURST = 1_500
"""Number of jobs in each burst, with and without viewers."""

BLOCKS = 3
"""Number of blocks, of two pairs each."""

CHANGES = 30
VIEWERS = 100

MAX_RENDER_S = 1.0
MAX_LIVE_S = 1.0
MAX_SLOWER = 1.10


def web(seed: int) -> Result:
    """Time pages in a browser, and the control loop with and without a hundred viewers."""
    del seed
    with TemporaryDirectory() as folder, served(Path(folder), fleet=FLEET) as server:
        burst(server, JOBS)
        job = server.get("/api/v1/jobs?limit=1").json()["jobs"][0]["id"]
        with browser_page(server) as page:
            shown = [
                {"page": path, **rendered(page, server, address.format(job=job), shows)}
                for path, (address, shows) in PAGES.items()
            ]
            live = _live(page, server)
        paths = [PAGES[path][0].format(job=job) for path in LOOKED_AT]
        found, seen = pairs(server, BLOCKS, BURST, VIEWERS, tokens(server), paths)
    in_vain = sum(each.in_vain(LIVELY) for each in seen)
    ratios = ratios_of(found)
    slower = median(ratios["took"])
    rows = [*shown, *_live_rows(live), *_ratio_rows(found, ratios)]
    rows.append({"page": f"of {len(seen)} x {VIEWERS} viewers, cut off or saw nothing", "median": in_vain})
    missed = [
        f"{row['page']}: {row['content s']} s, asked < {MAX_RENDER_S:g}"
        for row in shown
        if row["content s"] >= MAX_RENDER_S
    ]
    worst = max(each.of_submit for each in live)
    missed += [f"a submit is seen after {worst:.2f} s, asked < {MAX_LIVE_S:g}"] if worst >= MAX_LIVE_S else []
    missed += [f"bursts take {slower:.2f} times as long, asked {MAX_SLOWER:g}"] if slower > MAX_SLOWER else []
    missed += [f"{in_vain} viewers saw nothing"] if in_vain else []
    notes = [
        f"{CLUSTERS * NODES:,} nodes, {JOBS:,} jobs and more; browser, viewers and server on the same cores",
        f"viewers: half an admin, half a viewer, who load the page and hold its socket; in turn {', '.join(LOOKED_AT)}",
        "ratios: of bursts side by side, watched by alone, whose order takes turns; in the loop: deciding and storing",
        "seen: by the browser's own clock, after the frame with it was painted",
    ]
    return Result("web", rows, notes, missed)


def _live(page: Any, server: Served) -> list[Seen]:  # noqa: ANN401  # Playwright's page
    """Return the latencies from a submit until the overview counts one more running job."""
    page.goto(server.url)
    page.wait_for_function("() => window.did_handshake === true")
    found = []
    for number in range(CHANGES):
        time.sleep(1 + number / CHANGES)  # avoid phase lock with anything that happens each second
        found.append(submit_seen(page, server, ".tile:nth-child(5) .tile-figure"))
    return found


def _live_rows(live: Sequence[Seen]) -> list[dict[str, Any]]:
    """Return rows of update latencies."""
    return [
        {"page": name, **spread(values), "worst s": round(max(values), 3)}
        for name, values in (
            ("s from submit to seen on /", [each.of_submit for each in live]),
            ("s from the event that it runs to seen", [each.of_change for each in live]),
        )
    ]


def tokens(server: Served) -> list[str]:
    """Return the tokens of viewers: an admin's, and a viewer's of the tenant of these jobs."""
    made = httpx.post(
        f"{server.url}/api/v1/tokens",
        headers={"authorization": f"Bearer {server.token}"},
        json={"name": "looks", "role": "viewer", "tenant": "default"},
    )
    return [server.token, made.raise_for_status().json()["secret"]]


def ratios_of(found: Sequence[tuple[Burst, Burst]]) -> dict[str, list[float]]:
    """Return the ratios of each pair: with viewers to without."""
    return {
        "took": [watched.took / alone.took for alone, watched in found],
        "in loop": [watched.in_loop / alone.in_loop for alone, watched in found],
        "cpu": [watched.cpu / alone.cpu for alone, watched in found],
    }


def _ratio_rows(found: Sequence[tuple[Burst, Burst]], ratios: dict[str, list[float]]) -> list[dict[str, Any]]:
    """Return rows of the cost of viewers."""
    alone, watched = ([pair[at].took for pair in found] for at in (0, 1))
    return [
        {"page": f"s for {BURST} jobs, no one looks", **spread(alone)},
        {"page": f"the same, {VIEWERS} look", **spread(watched)},
        {"page": "ratio of pairs", **spread(ratios["took"])},
        {"page": "ratio of time in the loop", **spread(ratios["in loop"])},
        {"page": "ratio of the server's CPU time, pages included", **spread(ratios["cpu"])},
    ]
