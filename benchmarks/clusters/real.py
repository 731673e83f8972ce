"""Real API servers, from the kubeconfigs in SEAWAY_TEST_MEMBERS and SEAWAY_TEST_KARMADA, with fake nodes.

No kubelet is necessary: measurements end when the cluster's own scheduler binds a pod to its node.
"""

from __future__ import annotations

import json
import shutil
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import httpx

from tests.fakes.kubernetes.real import KARMADA, MEMBERS, connect, kubeconfigs, new_name
from tests.fakes.kubernetes.seeding import MODELS, Crowd, node_body

CARDS = 8
MERGE = {"content-type": "application/merge-patch+json"}
WATCH_S = 5


@dataclass(frozen=True, slots=True)
class RealWorld:
    """Real clusters with nodes and a namespace for one benchmark.

    Attributes
    ----------
    settings
        Settings of a control plane for these clusters.
    nodes
        Minimum number of nodes.
    bound
        Time when the pod of each job was observed bound, seconds since the epoch.
    seats
        Node of the pod of each job.
    """

    settings: dict[str, str]
    nodes: int
    bound: dict[str, float]
    seats: dict[str, str]


def ways() -> list[str]:
    """Return the ways in which real clusters can be reached here."""
    members = bool(kubeconfigs(MEMBERS))
    return ["directly"] * members + ["through Karmada"] * bool(members and kubeconfigs(KARMADA))


@contextmanager
def real_world(folder: Path, way: str, nodes: int, seed: int) -> Iterator[RealWorld]:
    """Create nodes in each real member, follow pod bindings, and remove everything at the end."""
    namespace = new_name("seaway-bench")
    settings = {"SEAWAY_CLUSTERS_NAMESPACE": namespace}
    joined = folder / "joined"
    joined.mkdir(parents=True)
    for number, member in enumerate(kubeconfigs(MEMBERS)):
        shutil.copy(member, joined / f"{number}-{member.name}")
    commanded = kubeconfigs(MEMBERS)
    if way == "directly":
        settings["SEAWAY_CLUSTERS_KUBECONFIG_DIR"] = str(joined)
    else:
        commanded = kubeconfigs(KARMADA)[:1]
        settings["SEAWAY_CLUSTERS_KARMADA_KUBECONFIG"] = str(commanded[0])
    bound: dict[str, float] = {}
    seats: dict[str, str] = {}
    over = threading.Event()
    with ExitStack() as stack:
        for number, member in enumerate(kubeconfigs(MEMBERS)):
            client = stack.enter_context(connect(member))
            made = [f"{namespace}-{number}-{each}" for each in range(nodes)]
            stack.callback(_remove, client, [f"/api/v1/nodes/{name}" for name in made])
            random = Random(f"{seed} {number}")
            for name in made:
                _make_node(client, name, random)
            watching = threading.Thread(target=_follow, args=(member, namespace, bound, seats, over))
            watching.start()
            stack.callback(watching.join)
        for each in commanded:
            client = stack.enter_context(connect(each))
            stack.callback(_remove, client, [f"/api/v1/namespaces/{namespace}"])
        stack.callback(over.set)
        yield RealWorld(settings, nodes * len(kubeconfigs(MEMBERS)), bound, seats)


def _make_node(client: httpx.Client, name: str, random: Random) -> None:
    """Create a node as HAMi registers it, with extended resources that Kubernetes' own scheduler can count."""
    uuids = [f"GPU-{random.getrandbits(64):016x}" for _ in range(CARDS)]
    body = node_body("bench", name, uuids, MODELS[0], Crowd(0, 0, cards=CARDS))
    amounts = {"nvidia.com/gpumem": str(CARDS * MODELS[0][1]), "nvidia.com/gpucores": str(CARDS * 100)}
    amounts |= body["status"]["allocatable"]
    status = {"status": body["status"] | {"allocatable": amounts, "capacity": amounts}}
    for method, path, change in (
        ("POST", "/api/v1/nodes", {"metadata": body["metadata"]}),
        ("PATCH", f"/api/v1/nodes/{name}/status", status),
        ("PATCH", f"/api/v1/nodes/{name}", {"spec": {"taints": None}}),
    ):
        client.request(method, path, json=change, headers=MERGE if method == "PATCH" else {}).raise_for_status()


def _remove(client: httpx.Client, paths: list[str]) -> None:
    for path in paths:
        client.delete(path)


def _follow(
    member: Path, namespace: str, bound: dict[str, float], seats: dict[str, str], over: threading.Event
) -> None:
    """Record the time and the node of pod bindings until `over` is set."""
    path, version = f"/api/v1/namespaces/{namespace}/pods", ""
    with connect(member) as client:
        while not over.is_set():
            query: dict[str, Any] = {"watch": "1", "fieldSelector": "spec.nodeName!=", "timeoutSeconds": WATCH_S}
            with client.stream("GET", path, params=query | {"resourceVersion": version}) as answer:
                for line in answer.iter_lines():
                    pod = json.loads(line)["object"]
                    meta = pod["metadata"]
                    version = meta["resourceVersion"]
                    seats[meta["labels"]["seaway.io/job"]] = pod["spec"]["nodeName"]
                    bound.setdefault(meta["labels"]["seaway.io/job"], time.time())
