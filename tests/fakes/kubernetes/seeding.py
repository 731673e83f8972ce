"""Nodes and pods in HAMi's format to fill servers with, as large as real ones and reproducible by seed.

Most of a real node or pod is rarely read: managedFields, images, conditions, volumes. The seeded objects have all of
that, created once per shape and padded to the wanted size, so that 60,000 objects take seconds.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from random import Random

import orjson

from tests.fakes.kubernetes.applying import track
from tests.fakes.kubernetes.controllers import hami
from tests.fakes.kubernetes.defaults import fill
from tests.fakes.kubernetes.kinds import NODES, PODS, Json
from tests.fakes.kubernetes.server import ApiServer
from tests.fakes.kubernetes.store import Store, Stored

MOMENT = "2026-11-20T08:00:00Z"
FILLER = "testbed/filler"
MODELS = (("NVIDIA A100-SXM4-80GB", 81920), ("NVIDIA H100 80GB HBM3", 81559), ("NVIDIA L40S", 46068))


@dataclass(frozen=True, slots=True)
class Crowd:
    """The objects to fill a server with.

    Attributes
    ----------
    nodes, pods
        Their numbers; pods are spread over the nodes in turn.
    cards
        GPUs of a node.
    node_bytes, pod_bytes
        Minimum size of objects.
    shares
        Maximum number of shares of a card.
    memory_mib, cores
        The allocation of each pod on one card.
    namespace
        The namespace of the pods.
    """

    nodes: int
    pods: int
    cards: int = 8
    node_bytes: int = 8192
    pod_bytes: int = 4096
    shares: int = 10
    memory_mib: int = 4096
    cores: int = 5
    namespace: str = "default"


def seed(server: ApiServer, crowd: Crowd, seed: int = 0) -> int:
    """Fill an open server and return the number of its objects; its controllers are not notified."""

    def fill() -> int:
        return server.store.load(_objects(server.store, server.name, crowd, Random(f"{seed} {server.name}")))

    return server.call(fill)


def _objects(store: Store, cluster: str, crowd: Crowd, random: Random) -> Iterator[Stored]:
    version = store.version
    names = [f"{cluster}-gpu-{number:05d}" for number in range(crowd.nodes)]
    cards: list[list[str]] = []
    shape = _Shape(node_body(cluster, "n", [], MODELS[0], crowd), crowd.node_bytes)
    for name in names:
        model = MODELS[random.randrange(len(MODELS))]
        uuids = [_uuid(random, "GPU") for _ in range(crowd.cards)]
        cards.append(uuids)
        version += 1
        yield Stored(NODES, shape.filled(node_body(cluster, name, uuids, model, crowd), _uuid(random), version))
    sample = pod_body("p", "n", "GPU", 0, crowd)
    fill(PODS, sample)
    shape = _Shape(sample, crowd.pod_bytes)
    for number in range(crowd.pods):
        at = number % crowd.nodes
        card = number // crowd.nodes % crowd.cards
        body = pod_body(f"worker-{number:06d}", names[at], cards[at][card], number, crowd)
        fill(PODS, body)
        version += 1
        yield Stored(PODS, shape.filled(body, _uuid(random), version))


class _Shape:
    """The shared part of all objects of one shape: their managedFields, and their padding."""

    def __init__(self, sample: Json, size: int) -> None:
        sample["apiVersion"] = "v1"
        track(sample, None, "hami-scheduler", "", MOMENT)
        self._managed = sample["metadata"]["managedFields"]
        self._size = size

    def filled(self, body: Json, uid: str, version: int) -> Json:
        meta = body["metadata"]
        meta.update({"uid": uid, "resourceVersion": str(version), "creationTimestamp": MOMENT})
        meta["managedFields"] = self._managed
        missing = self._size - len(orjson.dumps(body)) - len(FILLER) - 6
        if missing > 0:
            meta["annotations"][FILLER] = "x" * missing
        return body


def _uuid(random: Random, prefix: str = "") -> str:
    text = f"{random.getrandbits(128):032x}"
    uuid = "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))
    return f"{prefix}-{uuid}" if prefix else uuid


def node_body(cluster: str, name: str, uuids: list[str], model: tuple[str, int], crowd: Crowd) -> Json:
    """Return a node whose cards HAMi has registered."""
    registered = [
        {
            "id": uuid,
            **({"index": index} if index else {}),
            "count": crowd.shares,
            "devmem": model[1],
            "devcore": 100,
            "type": model[0],
            **({"numa": 1} if index * 2 >= len(uuids) else {}),
            "mode": "hami-core",
            "health": True,
        }
        for index, uuid in enumerate(uuids)
    ]
    amounts = {
        "cpu": "128",
        "memory": "1056270452Ki",
        "ephemeral-storage": "1843269236Ki",
        "pods": "250",
        hami.COUNT: str(crowd.cards * crowd.shares),
    }
    images = [
        {"names": [f"registry.invalid/library/image-{number}@sha256:{number:064x}"], "sizeBytes": 812_345_678 + number}
        for number in range(12)
    ]
    return {
        "metadata": {
            "name": name,
            "labels": {
                "beta.kubernetes.io/arch": "amd64",
                "kubernetes.io/arch": "amd64",
                "kubernetes.io/os": "linux",
                "kubernetes.io/hostname": name,
                "topology.kubernetes.io/region": cluster,
                "topology.kubernetes.io/zone": f"{cluster}-a",
                "gpu": "on",
            },
            "annotations": {
                hami.REGISTER: json.dumps(registered, separators=(",", ":")),
                "hami.io/node-handshake": "Requesting_2026-11-20 08:00:00",
                "node.alpha.kubernetes.io/ttl": "0",
                "volumes.kubernetes.io/controller-managed-attach-detach": "true",
            },
        },
        "spec": {"podCIDR": "10.244.0.0/24", "podCIDRs": ["10.244.0.0/24"], "providerID": f"metal://{name}"},
        "status": {
            "capacity": amounts,
            "allocatable": amounts,
            "conditions": [
                _condition("MemoryPressure", "False", "KubeletHasSufficientMemory"),
                _condition("DiskPressure", "False", "KubeletHasNoDiskPressure"),
                _condition("PIDPressure", "False", "KubeletHasSufficientPID"),
                _condition("Ready", "True", "KubeletReady"),
            ],
            "addresses": [{"type": "InternalIP", "address": "10.0.0.1"}, {"type": "Hostname", "address": name}],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": 10250}},
            "nodeInfo": {"kernelVersion": "6.8.0", "kubeletVersion": "v1.36.2", "architecture": "amd64"},
            "images": images,
        },
    }


def pod_body(name: str, node: str, uuid: str, number: int, crowd: Crowd) -> Json:
    """Return a pod that runs with a share of one card."""
    limits = {
        "cpu": "2",
        "memory": "8Gi",
        hami.COUNT: "1",
        hami.MEMORY: str(crowd.memory_mib),
        hami.CORES: str(crowd.cores),
    }
    text = hami.write_devices([[(uuid, crowd.memory_mib, crowd.cores)]])
    return {
        "metadata": {
            "name": name,
            "namespace": crowd.namespace,
            "labels": {"app": f"app-{number % 100}", hami.NODE: node},
            "annotations": {
                hami.NODE: node,
                hami.TIME: "1795161600",
                hami.TO_ALLOCATE: ";",
                hami.ALLOCATED: text,
                hami.BIND_PHASE: "success",
                hami.BIND_TIME: "1795161600",
            },
        },
        "spec": {
            "containers": [
                {
                    "name": "main",
                    "image": "registry.invalid/team/train:1.4",
                    "command": ["python", "-m", "train"],
                    "resources": {"limits": limits, "requests": limits},
                    "volumeMounts": [
                        {
                            "name": "kube-api-access",
                            "readOnly": True,
                            "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount",
                        }
                    ],
                    "terminationMessagePath": "/dev/termination-log",
                    "terminationMessagePolicy": "File",
                    "imagePullPolicy": "IfNotPresent",
                }
            ],
            "nodeName": node,
            "restartPolicy": "Always",
            "terminationGracePeriodSeconds": 30,
            "dnsPolicy": "ClusterFirst",
            "serviceAccountName": "default",
            "schedulerName": hami.SCHEDULER,
        },
        "status": {
            "phase": "Running",
            "conditions": [
                _condition(kind, "True", "") for kind in ("Initialized", "Ready", "ContainersReady", "PodScheduled")
            ],
            "hostIP": "10.0.0.1",
            "podIP": "10.244.0.9",
            "startTime": MOMENT,
            "containerStatuses": [
                {
                    "name": "main",
                    "state": {"running": {"startedAt": MOMENT}},
                    "lastState": {},
                    "ready": True,
                    "restartCount": 0,
                    "image": "registry.invalid/team/train:1.4",
                    "imageID": f"registry.invalid/team/train@sha256:{0:064x}",
                    "started": True,
                }
            ],
            "qosClass": "Guaranteed",
        },
    }


def _condition(kind: str, value: str, reason: str) -> Json:
    made = {"type": kind, "status": value, "lastTransitionTime": MOMENT}
    return {**made, "reason": reason, "message": "as it should be"} if reason else made
