"""How soon a decision is carried out by clusters, stage by stage, directly and through Karmada."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

from benchmarks.api.server import Served
from benchmarks.clusters.world import plane, world
from benchmarks.record import ROOT, Result

JOBS, CONNECTIONS = 600, 20
BODY = {
    "name": "bench",
    "resources": {"cpu": "500m", "memory": "1GB", "gpus": 1, "gpu_memory": "8GB", "gpu_cores": "10%"},
    "run": {"image": "busybox", "command": ["sleep", "3600"]},
}
NODES = 400
GIVE_UP_S = 180
STAGES = (
    ("in the queue, until decided", "pending", "scheduled"),
    ("API, until every object is written and bound", "scheduled", "deploying"),
    ("the cluster's own, until the pods run", "deploying", "running"),
    ("from decision until the pods run", "scheduled", "running"),
)


def deploy(seed: int) -> Result:
    """Deploy jobs into API servers in memory, directly and through Karmada, and say how long each stage takes."""
    rows = [*_measure("directly", seed, ()), *_measure("through Karmada", seed, ("--karmada",))]
    notes = [
        f"{JOBS} jobs submitted by {CONNECTIONS} connections at once; 2 clusters of 200 nodes with 8 GPUs, their API "
        "servers in one process on the same cores. Times are those of the jobs' own events.",
        "Bound: through Karmada, when its binding names the cluster; directly, when the server has the object.",
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
                began_s = time.monotonic()
                environment = os.environ | {"SEAWAY_TOKEN": served.token, "BURST_BODY": json.dumps(BODY)}
                command = [sys.executable, "-m", "benchmarks.api.burst", served.url, str(JOBS), str(CONNECTIONS)]
                subprocess.run(command, cwd=ROOT, env=environment, check=True)
                _until(lambda: served.jobs().get("running", 0) >= JOBS, began_s)
                return _figures(how, _times(served))


def _figures(how: str, times: list[dict[str, float]]) -> list[dict[str, Any]]:
    """Sum up when jobs came to each state."""
    rows = []
    first_s, last_s = min(each["pending"] for each in times), max(each["deploying"] for each in times)
    rows.append(
        {"way": how, "what": "jobs/s until bound", "figure": round(JOBS / (last_s - first_s)), "asked": ">= 100"}
    )
    for what, begin, end in STAGES:
        took_s = sorted(each[end] - each[begin] for each in times)
        asked = "< 1 p99" if begin == "scheduled" and end == "running" else ""
        figure = f"{took_s[len(took_s) // 2]:.2f} / {took_s[len(took_s) * 99 // 100]:.2f}"
        rows.append({"way": how, "what": f"{what}, p50 / p99 s", "figure": figure, "asked": asked})
    return rows


def _times(served: Served) -> list[dict[str, float]]:
    """Return when each job came to each state first, seconds."""
    times = []
    after = ""
    while True:
        page = served.get(f"/api/v1/jobs?limit=100{f'&after={after}' if after else ''}").json()
        for job in page["jobs"]:
            events = served.get(f"/api/v1/jobs/{job['id']}/events").json()["events"]
            states: dict[str, float] = {}
            for event in events:
                if event["state"]:
                    states.setdefault(event["state"], datetime.fromisoformat(event["at"]).timestamp())
            times.append(states)
        after = page["next"]
        if not after:
            return times


def _clusters(served: Served) -> list[dict[str, Any]]:
    clusters: list[dict[str, Any]] = served.get("/api/v1/fleet/clusters").json()["clusters"]
    return clusters


def _until(what: Callable[[], bool], began_s: float) -> None:
    while not what():
        if time.monotonic() - began_s > GIVE_UP_S:
            raise RuntimeError(f"not within {GIVE_UP_S} s")
        time.sleep(0.05)
