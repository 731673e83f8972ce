"""Latency of deployments in clusters by stage, directly and through Karmada.

They run on fake API servers, or on real ones whose kubeconfigs SEAWAY_TEST_MEMBERS (and SEAWAY_TEST_KARMADA) name.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from benchmarks.api.server import Served, cpu_s
from benchmarks.clusters.landed import Seats, astray, decided, on_nodes, seats_of
from benchmarks.clusters.real import RealWorld, real_world, ways
from benchmarks.clusters.world import World, plane, world
from benchmarks.record import ROOT, Result

CONNECTIONS = 20
BODY = {
    "resources": {"cpu": "500m", "memory": "1GB", "gpus": 1, "gpu_memory": "8GB", "gpu_cores": "10%"},
    "run": {"image": "busybox", "command": ["sleep", "3600"]},
}


@dataclass(frozen=True, slots=True)
class Jobs:
    """Numbers of submitted jobs.

    Attributes
    ----------
    at_once
        Jobs submitted as fast as possible, to measure deployments per second.
    one_by_one
        Jobs submitted after them with pauses, to measure the latency of each.
    pause_s
        The pause, seconds.
    """

    at_once: int
    one_by_one: int
    pause_s: float


JOBS = Jobs(600, 200, 0.05)
REAL_JOBS = Jobs(100, 50, 0.25)
NODES = 400
REAL_NODES = 20
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
    """A condition was not met in time."""


def deploy(seed: int) -> Result:
    """Deploy jobs to API servers, fake or real, directly and through Karmada, and time each stage."""
    bound = "Bound: through Karmada, when its binding names the cluster; directly, when the server has the object."
    if there := ways():
        rows = [row for way in there for row in _measure_real(way, seed)]
        return Result("deploy", rows, [_reported(REAL_JOBS, f"real API servers, each with {REAL_NODES} nodes"), bound])
    rows = [*_measure("directly", seed, ()), *_measure("through Karmada", seed, ("--karmada",))]
    return Result("deploy", rows, [_reported(JOBS, "2 API servers in one process, each with 200 nodes"), bound])


def _reported(jobs: Jobs, where: str) -> str:
    return (
        f"{jobs.at_once} jobs submitted by {CONNECTIONS} connections at once, then {jobs.one_by_one} with a pause "
        f"of {jobs.pause_s:g} s after each; {where} with 8 GPUs, on the same cores. Times are those of jobs' events."
    )


def _measure(how: str, seed: int, options: tuple[str, ...]) -> list[dict[str, Any]]:
    with tempfile.TemporaryDirectory(prefix="seaway-deploy-") as name:
        folder = Path(name)
        crowd = ("--members", "2", "--nodes", str(NODES // 2), "--seed", str(seed))
        with world(folder, *crowd, *options) as servers:
            setting = "SEAWAY_CLUSTERS_KARMADA_KUBECONFIG" if options else "SEAWAY_CLUSTERS_KUBECONFIG_DIR"
            where = servers.kubeconfigs / "all" if options else servers.kubeconfigs
            with plane(folder / "data", **{setting: str(where)}) as (served, started_s):
                _until(lambda: sum(each["nodes"] for each in _clusters(served)) == NODES, started_s)
                before = served.cpu_s(), cpu_s(servers.process.pid)
                began_s = _submit(served, "burst", JOBS.at_once, CONNECTIONS)
                _until(lambda: served.jobs()["running"] >= JOBS.at_once, began_s)
                after = served.cpu_s(), cpu_s(servers.process.pid)
                began_s = _submit(served, "stream", JOBS.one_by_one, 1, JOBS.pause_s)
                _until(lambda: served.jobs()["running"] >= JOBS.at_once + JOBS.one_by_one, began_s)
                burst = _times(served, "burst")
                rows = _rates(how, burst, "running")
                for whose, began, ended in zip(("Seaway's", "the servers' own"), before, after, strict=True):
                    figure = round((ended - began) / JOBS.at_once * 1000, 1)
                    rows.append(
                        {"way": how, "what": f"{whose} CPU for each of them, ms", "figure": figure, "asked": ""}
                    )
                stream = _times(served, "stream")
                rows += _delays(how, STAGES + RUNNING, stream)
                wrong = astray(decided(served, [*burst, *stream]), _seats(servers))
                return [*rows, _astray(how, wrong, "node or card")]


def _measure_real(how: str, seed: int) -> list[dict[str, Any]]:
    with tempfile.TemporaryDirectory(prefix="seaway-deploy-") as name:
        folder = Path(name)
        with (
            real_world(folder, how, REAL_NODES, seed) as servers,
            plane(folder / "data", **servers.settings) as (served, started_s),
        ):
            _until(lambda: sum(each["nodes"] for each in _clusters(served)) >= servers.nodes, started_s)
            rows: list[dict[str, Any]] = []
            burst = _seated(served, servers, "burst", REAL_JOBS.at_once, CONNECTIONS)
            rows.append(_in_time(how, "burst", len(burst), REAL_JOBS.at_once))
            rows += _rates(how, burst, "seated")
            stream = _seated(served, servers, "stream", REAL_JOBS.one_by_one, 1, REAL_JOBS.pause_s)
            rows.append(_in_time(how, "stream", len(stream), REAL_JOBS.one_by_one))
            rows += _delays(how, STAGES + SEATED, stream)
            meant = on_nodes(decided(served, [*burst, *stream]))
            found: Seats = {job: [(node, ())] for job, node in servers.seats.items()}
            return [*rows, _astray(how, astray(meant, found), "node")]


def _seated(
    served: Served, servers: RealWorld, name: str, count: int, connections: int, pause_s: float = 0.0
) -> dict[str, dict[str, float]]:
    """Submit jobs to real clusters; return the time of each state, for the jobs whose pods were bound in time."""
    before = len(servers.bound)
    began_s = _submit(served, name, count, connections, pause_s)
    with suppress(TooSlowError):
        _until(lambda: len(servers.bound) >= before + count and not served.jobs()["scheduled"], began_s)
    return {
        job: states | {"seated": servers.bound[job]}
        for job, states in _times(served, name).items()
        if job in servers.bound and "deploying" in states
    }


def _seats(servers: World) -> Seats:
    """Return the seats of the pods of all members."""
    pods = (servers.order(f"member{number}", "list", kind="pods", namespace="seaway-default") for number in (1, 2))
    return seats_of(pod for each in pods for pod in each)


def _astray(how: str, wrong: int, what: str) -> dict[str, Any]:
    return {"way": how, "what": f"jobs with pods on another {what} than decided", "figure": wrong, "asked": 0}


def _in_time(how: str, name: str, count: int, asked: int) -> dict[str, Any]:
    return {"way": how, "what": f"jobs of the {name} on their nodes in time", "figure": count, "asked": asked}


def _submit(served: Served, name: str, count: int, connections: int, pause_s: float = 0.0) -> float:
    """Submit jobs, and return the start time."""
    began_s = time.monotonic()
    environment = os.environ | {"SEAWAY_TOKEN": served.token, "BURST_BODY": json.dumps(BODY | {"name": name})}
    command = [sys.executable, "-m", "benchmarks.api.burst", served.url, str(count), str(connections), str(pause_s)]
    subprocess.run(command, cwd=ROOT, env=environment, check=True)
    return began_s


def _rates(how: str, times: Mapping[str, Mapping[str, float]], last: str) -> list[dict[str, Any]]:
    """Return rows of jobs per second that reached a state."""
    first_s = min((each["pending"] for each in times.values()), default=0.0)
    rows = []
    for state, what, asked in (("deploying", "bound", ">= 100"), (last, last, "")):
        seconds = max((each[state] for each in times.values()), default=first_s) - first_s
        figure = round(len(times) / seconds) if seconds else 0
        rows.append({"way": how, "what": f"jobs/s until {what}", "figure": figure, "asked": asked})
    return rows


def _delays(how: str, stages: Stages, times: Mapping[str, Mapping[str, float]]) -> list[dict[str, Any]]:
    """Return rows of latencies between states."""
    rows = []
    for what, begin, end in stages:
        took_s = sorted(each[end] - each[begin] for each in times.values())
        asked = "< 1 p99" if begin == "scheduled" and end != "deploying" else ""
        figure = f"{took_s[len(took_s) // 2]:.2f} / {took_s[len(took_s) * 99 // 100]:.2f}" if took_s else "none came"
        rows.append({"way": how, "what": f"{what}, p50 / p99 s", "figure": figure, "asked": asked})
    return rows


def _times(served: Served, name: str) -> dict[str, dict[str, float]]:
    """Return the first time of each state for the jobs with a name, seconds since the epoch."""
    times = {}
    after = ""
    while True:
        page = served.get(f"/api/v1/jobs?name={name}&limit=100{f'&after={after}' if after else ''}").json()
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
