"""How soon a decision is carried out by clusters, stage by stage, directly and through Karmada.

On API servers in memory, or on real ones where SEAWAY_TEST_MEMBERS (and SEAWAY_TEST_KARMADA) name kubeconfigs of some.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any

from benchmarks.api.server import Served
from benchmarks.clusters.real import real_world, ways
from benchmarks.clusters.world import plane, world
from benchmarks.record import ROOT, Result

JOBS, CONNECTIONS = 600, 20
BODY = {
    "name": "bench",
    "resources": {"cpu": "500m", "memory": "1GB", "gpus": 1, "gpu_memory": "8GB", "gpu_cores": "10%"},
    "run": {"image": "busybox", "command": ["sleep", "3600"]},
}
NODES = 400
REAL_JOBS, REAL_NODES = 200, 20
GIVE_UP_S = 180
STAGES = (
    ("in the queue, until decided", "pending", "scheduled"),
    ("API, until every object is written and bound", "scheduled", "deploying"),
)
RUNNING = (
    ("the cluster's own, until the pods run", "deploying", "running"),
    ("from decision until the pods run", "scheduled", "running"),
)
SEATED = (
    ("the cluster's own, until pods are on their nodes", "deploying", "seated"),
    ("from decision until pods are on their nodes", "scheduled", "seated"),
)
Stages = tuple[tuple[str, str, str], ...]


class TooSlowError(Exception):
    """What was waited for did not come in time."""


def deploy(seed: int) -> Result:
    """Deploy jobs into API servers, in memory or real, directly and through Karmada, and time each stage."""
    bound = "Bound: through Karmada, when its binding names the cluster; directly, when the server has the object."
    if there := ways():
        rows = [row for way in there for row in _measure_real(way, seed)]
        notes = [
            f"{REAL_JOBS} jobs submitted by {CONNECTIONS} connections at once; real API servers on the same cores, "
            f"each with {REAL_NODES} nodes with 8 GPUs. Times are those of the jobs' events and of a watch on pods.",
            bound,
        ]
        return Result("deploy", rows, notes)
    rows = [*_measure("directly", seed, ()), *_measure("through Karmada", seed, ("--karmada",))]
    notes = [
        f"{JOBS} jobs submitted by {CONNECTIONS} connections at once; 2 clusters of 200 nodes with 8 GPUs, their API "
        "servers in one process on the same cores. Times are those of the jobs' own events.",
        bound,
    ]
    return Result("deploy", rows, notes)


def _measure(how: str, seed: int, options: tuple[str, ...]) -> list[dict[str, Any]]:
    with tempfile.TemporaryDirectory(prefix="seaway-deploy-") as name:
        folder = Path(name)
        crowd = ("--members", "2", "--nodes", str(NODES // 2), "--seed", str(seed))
        with world(folder, *crowd, *options) as servers:
            setting = "SEAWAY_CLUSTERS_KARMADA_KUBECONFIG" if options else "SEAWAY_CLUSTERS_KUBECONFIG_DIR"
            where = servers.kubeconfigs / "all" if options else servers.kubeconfigs
            with plane(folder / "data", **{setting: str(where)}) as (served, started_s):
                _until(lambda: sum(each["nodes"] for each in _clusters(served)) == NODES, started_s)
                began_s = _submit(served, JOBS)
                _until(lambda: served.jobs().get("running", 0) >= JOBS, began_s)
                return _figures(how, STAGES + RUNNING, list(_times(served).values()))


def _measure_real(how: str, seed: int) -> list[dict[str, Any]]:
    with tempfile.TemporaryDirectory(prefix="seaway-deploy-") as name:
        folder = Path(name)
        with (
            real_world(folder, how, REAL_NODES, seed) as servers,
            plane(folder / "data", **servers.settings) as (served, started_s),
        ):
            _until(lambda: sum(each["nodes"] for each in _clusters(served)) >= servers.nodes, started_s)
            began_s = _submit(served, REAL_JOBS)
            with suppress(TooSlowError):
                _until(lambda: len(servers.bound) >= REAL_JOBS and not served.jobs().get("scheduled", 0), began_s)
            times = [
                states | {"seated": servers.bound[job]}
                for job, states in _times(served).items()
                if job in servers.bound and "deploying" in states
            ]
            return [
                {"way": how, "what": "jobs on their nodes in time", "figure": len(times), "asked": REAL_JOBS},
                *(_figures(how, STAGES + SEATED, times) if times else ()),
            ]


def _submit(served: Served, count: int) -> float:
    """Submit jobs, and return when that began."""
    began_s = time.monotonic()
    environment = os.environ | {"SEAWAY_TOKEN": served.token, "BURST_BODY": json.dumps(BODY)}
    command = [sys.executable, "-m", "benchmarks.api.burst", served.url, str(count), str(CONNECTIONS)]
    subprocess.run(command, cwd=ROOT, env=environment, check=True)
    return began_s


def _figures(how: str, stages: Stages, times: list[dict[str, float]]) -> list[dict[str, Any]]:
    """Sum up when jobs came to each state."""
    rows = []
    first_s, last_s = min(each["pending"] for each in times), max(each["deploying"] for each in times)
    rows.append(
        {"way": how, "what": "jobs/s until bound", "figure": round(len(times) / (last_s - first_s)), "asked": ">= 100"}
    )
    for what, begin, end in stages:
        took_s = sorted(each[end] - each[begin] for each in times)
        asked = "< 1 p99" if begin == "scheduled" and end != "deploying" else ""
        figure = f"{took_s[len(took_s) // 2]:.2f} / {took_s[len(took_s) * 99 // 100]:.2f}"
        rows.append({"way": how, "what": f"{what}, p50 / p99 s", "figure": figure, "asked": asked})
    return rows


def _times(served: Served) -> dict[str, dict[str, float]]:
    """Return when each job came to each state first, seconds since the epoch."""
    times = {}
    after = ""
    while True:
        page = served.get(f"/api/v1/jobs?limit=100{f'&after={after}' if after else ''}").json()
        for job in page["jobs"]:
            events = served.get(f"/api/v1/jobs/{job['id']}/events").json()["events"]
            states: dict[str, float] = {}
            for event in events:
                if event["state"]:
                    states.setdefault(event["state"], datetime.fromisoformat(event["at"]).timestamp())
            times[job["id"]] = states
        after = page["next"]
        if not after:
            return times


def _clusters(served: Served) -> list[dict[str, Any]]:
    clusters: list[dict[str, Any]] = served.get("/api/v1/fleet/clusters").json()["clusters"]
    return clusters


def _until(what: Callable[[], bool], began_s: float) -> None:
    while not what():
        if time.monotonic() - began_s > GIVE_UP_S:
            raise TooSlowError(f"not within {GIVE_UP_S} s")
        time.sleep(0.05)
