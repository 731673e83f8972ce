"""Latency of the first view of a large fleet and of changes in it, with the resources used."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.api.server import Served
from benchmarks.clusters.world import World, plane, world
from benchmarks.record import Result
from tests.fakes.kubernetes.seeding import Crowd

CLUSTERS, NODES, PODS, CARDS = 10, 1_000, 5_000, 8
NODE_BYTES, POD_BYTES = 8192, 4096
CHANGES = 20
GIVE_UP_S = 180
MILLI_PER_CORE = 10
"""Thousandths of a device per percent point of its cores in a pod's request."""


def fleet(seed: int) -> Result:
    """Observe 10,000 nodes with 80,000 GPUs and 50,000 pods in 10 clusters, and changes in them."""
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory(prefix="seaway-fleet-") as name:
        folder = Path(name)
        crowd = {"members": CLUSTERS, "nodes": NODES, "pods": PODS, "cards": CARDS}
        sizes = {"node-bytes": NODE_BYTES, "pod-bytes": POD_BYTES, "seed": seed}
        options = [text for key, value in (crowd | sizes).items() for text in (f"--{key}", str(value))]
        with (
            world(folder, *options) as servers,
            plane(folder / "data", SEAWAY_CLUSTERS_KUBECONFIG_DIR=str(servers.kubeconfigs)) as (served, began_s),
        ):
            _first_view(servers, served, began_s, rows)
            _changes(servers, served, rows)
            _pods(servers, served, rows)
            _metrics(served, rows)
            rows.append({"what": "memory at its peak, MiB", "figure": served.peak_memory_mib(), "asked": "< 1,536"})
            rows.append({"what": "memory at the end, MiB", "figure": served.memory_mib(), "asked": ""})
            rows.append({"what": "CPU time so far, s", "figure": round(served.cpu_s(), 1), "asked": ""})
    notes = [
        f"{CLUSTERS} API servers in one process on the same cores, each with {NODES:,} nodes of {NODE_BYTES // 1024} "
        f"KiB with {CARDS} GPUs by HAMi's annotations, and {PODS:,} pods of {POD_BYTES // 1024} KiB.",
        "First full view: from the start of the control plane's process until its API has every node, and shows all as "
        "held that all pods together hold.",
        f"A change: a node is cordoned, or no more, at its API server; until Seaway's API shows it; {CHANGES} times.",
        "A pod with a share of a card is removed, or bound again; until Seaway shows the allocations; as often.",
        "Metrics: all of them, some 600,000 series, as Prometheus reads them, once.",
    ]
    return Result("fleet", rows, notes)


def _first_view(servers: World, served: Served, began_s: float, rows: list[dict[str, Any]]) -> None:
    """Wait until every node and pod is observed."""
    servers_cpu_s = servers.cpu_s()
    crowd = Crowd(NODES, PODS)
    all_held = CLUSTERS * crowd.pods * crowd.cores * MILLI_PER_CORE
    while True:
        clusters = served.get("/api/v1/fleet/clusters").json()["clusters"]
        nodes = sum(each["nodes"] for each in clusters)
        held = sum(each["gpu_milli"]["used"] for each in clusters)
        if (nodes, held) == (CLUSTERS * NODES, all_held):
            break
        if time.monotonic() - began_s > GIVE_UP_S:
            raise RuntimeError(f"after {GIVE_UP_S} s there are {nodes} nodes, and {held} of {all_held} held")
        time.sleep(0.05)
    rows.append({"what": "first full view, s", "figure": round(time.monotonic() - began_s, 1), "asked": "< 20"})
    rows.append({"what": "CPU time until then, s", "figure": round(served.cpu_s(), 1), "asked": ""})
    used_s = round(servers.cpu_s() - servers_cpu_s, 1)
    rows.append({"what": "CPU time until then of the API servers, s", "figure": used_s, "asked": ""})
    rows.append({"what": "nodes", "figure": nodes, "asked": ""})
    rows.append({"what": "GPUs held by pods", "figure": round(held / 1000), "asked": ""})


def _changes(servers: World, served: Served, rows: list[dict[str, Any]]) -> None:
    """Cordon and uncordon nodes one by one, and measure the time until Seaway shows it."""
    seen_s = []
    for number in range(CHANGES):
        cluster, cordoned = f"member{number % CLUSTERS + 1}", number % (2 * CLUSTERS) < CLUSTERS
        change = {"spec": {"unschedulable": cordoned}}
        began_s = time.monotonic()
        servers.order(cluster, "patch", kind="nodes", namespace="", name=f"{cluster}-gpu-00000", change=change)
        while served.get(f"/api/v1/fleet/nodes?cluster={cluster}&limit=1").json()["nodes"][0]["ready"] is cordoned:
            if time.monotonic() - began_s > GIVE_UP_S:
                raise RuntimeError(f"a change in {cluster} was never seen")
            time.sleep(0.01)
        seen_s.append(time.monotonic() - began_s)
    _tell("a change", seen_s, rows)


def _pods(servers: World, served: Served, rows: list[dict[str, Any]]) -> None:
    """Delete and restore a pod of each cluster one by one, and measure the time until Seaway shows it."""
    crowd, name = Crowd(NODES, PODS), "worker-000000"
    share, seen_s = crowd.cores * MILLI_PER_CORE, []
    retained: dict[str, Any] = {}
    for number in range(CHANGES):
        cluster = f"member{number % CLUSTERS + 1}"
        held = _held(served, cluster)
        if back := retained.pop(cluster, None):
            began_s = time.monotonic()
            servers.order(cluster, "put", body=back)
        else:
            where = {"kind": "pods", "namespace": crowd.namespace}
            (retained[cluster],) = servers.order(cluster, "list", **where, fields=f"metadata.name={name}")
            began_s = time.monotonic()
            servers.order(cluster, "delete", **where, name=name, grace_period_s=0)
        expected = held + (share if back else -share)
        while _held(served, cluster) != expected:
            if time.monotonic() - began_s > GIVE_UP_S:
                raise RuntimeError(f"a pod in {cluster} was never seen")
            time.sleep(0.01)
        seen_s.append(time.monotonic() - began_s)
    _tell("a pod bound or gone", seen_s, rows)


def _held(served: Served, cluster: str) -> int:
    """Return the allocated cores of a cluster's devices, thousandths."""
    clusters = served.get("/api/v1/fleet/clusters").json()["clusters"]
    return next(int(each["gpu_milli"]["used"]) for each in clusters if each["name"] == cluster)


def _tell(what: str, seen_s: list[float], rows: list[dict[str, Any]]) -> None:
    rows.append({"what": f"{what} until it is seen, p50 s", "figure": round(median(seen_s), 2), "asked": ""})
    rows.append({"what": f"{what} until it is seen, most s", "figure": round(max(seen_s), 2), "asked": "< 1"})


def _metrics(served: Served, rows: list[dict[str, Any]]) -> None:
    """Scrape all metrics, as Prometheus does."""
    cpu_s, began_s = served.cpu_s(), time.monotonic()
    size = len(served.get("/metrics").content)
    rows.append({"what": "metrics, s", "figure": round(time.monotonic() - began_s, 1), "asked": "< 2"})
    rows.append({"what": "metrics, CPU s", "figure": round(served.cpu_s() - cpu_s, 1), "asked": ""})
    rows.append({"what": "metrics, MB", "figure": round(size / 1e6), "asked": ""})
