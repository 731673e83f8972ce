"""Nodes, pods, slices and claims for the tests of device-plugin decoders; every id is invented."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from seaway.adapters.kubernetes.device_plugins.nodes import read_node
from seaway.adapters.kubernetes.device_plugins.views import NodeView, ProblemKind
from seaway.adapters.kubernetes.objects.core import NodeObject, Part, PodObject, Quantity
from seaway.adapters.kubernetes.objects.decode import Broken, read_item
from seaway.adapters.kubernetes.objects.dra import ResourceClaim, ResourceSlice

A = "GPU-00000000-aaaa-4000-8000-000000000001"
B = "GPU-00000000-bbbb-4000-8000-000000000002"
C = "GPU-00000000-cccc-4000-8000-000000000003"
REGISTER = "hami.io/node-nvidia-register"
RECORD = "hami.io/vgpu-devices-allocated"

A100 = "NVIDIA A100-SXM4-40GB"
CARDS = [
    {"id": A, "count": 10, "devmem": 40960, "devcore": 100, "type": A100, "mode": "hami-core", "health": True},
    {"id": B, "index": 1, "count": 10, "devmem": 40960, "devcore": 100, "type": A100, "numa": 1, "health": True},
    {"id": C, "index": 2, "count": 10, "devmem": 40960, "devcore": 100, "type": A100, "mode": "hami-core"},
]
"""HAMi v2.8: the first lacks index and numa, which are 0, the second its mode, the third is not healthy."""

MIG_CARD = {
    "id": A,
    "count": 7,
    "devmem": 40960,
    "devcore": 100,
    "type": A100,
    "mode": "mig",
    "health": True,
    "migProfiles": [
        {
            "name": "1g.5gb",
            "memoryMB": 4864,
            "core": 15,
            "sliceCount": 1,
            "placements": [{"start": start, "size": 1} for start in range(7)],
        },
        {
            "name": "3g.20gb",
            "memoryMB": 20096,
            "core": 43,
            "sliceCount": 3,
            "placements": [{"start": 0, "size": 4}, {"start": 4, "size": 4}],
        },
    ],
}


T = TypeVar("T", bound=Part)


def decoded(value: Mapping[str, Any], kind: type[T]) -> T:
    """Decode an object as it comes from a cluster."""
    found = read_item(json.dumps(value).encode(), kind)
    assert not isinstance(found, Broken), found
    return found


def node(
    annotations: Mapping[str, str] | None = None,
    allocatable: Mapping[str, Quantity] | None = None,
    labels: Mapping[str, str] | None = None,
    capacity: Mapping[str, Quantity] | None = None,
    **spec: Any,  # noqa: ANN401
) -> NodeObject:
    """Create a node that is ready; its capacity equals its allocatable resources."""
    allocatable = {"cpu": "64", "memory": "256Gi", **(allocatable or {})}
    value = {
        "metadata": {"name": "n1", "annotations": annotations or {}, "labels": labels or {}},
        "spec": spec,
        "status": {
            "allocatable": allocatable,
            "capacity": {**allocatable, **(capacity or {})},
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }
    return decoded(value, NodeObject)


def hami(cards: Sequence[Mapping[str, Any]] = CARDS, notes: Mapping[str, str] | None = None) -> NodeView:
    """Read a node on which HAMi registers NVIDIA's cards, with more annotations."""
    annotations = {REGISTER: json.dumps(cards), **(notes or {})}
    return read_node("alpha", node(annotations, {"nvidia.com/gpu": str(sum(card["count"] for card in cards))}))


def pod(
    annotations: Mapping[str, str] | None = None,
    apps: int = 1,
    init: Sequence[Mapping[str, Any]] = (),
    limits: Mapping[str, Quantity] | None = None,
    status: Mapping[str, Any] | None = None,
    **spec: Any,  # noqa: ANN401
) -> PodObject:
    """Create a pod that runs on the node of `node`; its first app container has the limits."""
    containers = [{"name": f"c{i}", "resources": {"limits": (limits or {}) if i == 0 else {}}} for i in range(apps)]
    value = {
        "metadata": {"name": "p", "namespace": "default", "uid": "pod-1", "annotations": annotations or {}},
        "spec": {"nodeName": "n1", "containers": containers, "initContainers": list(init), **spec},
        "status": {"phase": "Running", **(status or {})},
    }
    return decoded(value, PodObject)


def recorded(text: str, key: str = RECORD, **more: str) -> dict[str, str]:
    """Return a pod's annotations with a record of HAMi."""
    return {"hami.io/vgpu-node": "n1", key: text, **more}


def resource_slice(
    devices: Sequence[Mapping[str, Any]], driver: str = "gpu.nvidia.com", name: str = "s1", **pool: int
) -> ResourceSlice:
    """Create a slice of the pool n1; by default in its first generation, of one slice."""
    value = {
        "metadata": {"name": name},
        "spec": {
            "driver": driver,
            "nodeName": "n1",
            "pool": {"name": "n1", "generation": 1, "resourceSliceCount": 1, **pool},
            "devices": devices,
        },
    }
    return decoded(value, ResourceSlice)


def listed(name: str, memory: str = "40Gi", **attributes: Any) -> dict[str, Any]:  # noqa: ANN401
    """Create a device of a resource slice."""
    kinds = {str: "string", int: "int", bool: "bool"}
    return {
        "name": name,
        "attributes": {key: {kinds[type(value)]: value} for key, value in attributes.items()},
        "capacity": {"memory": {"value": memory}},
    }


def claim(results: Sequence[Mapping[str, Any]], users: Sequence[str] = ("pod-1",)) -> ResourceClaim:
    """Create a claim with allocated devices of the pool n1."""
    value = {
        "metadata": {"name": "gpu", "namespace": "default"},
        "status": {
            "allocation": {"devices": {"results": [{"pool": "n1", **result} for result in results]}},
            "reservedFor": [{"resource": "pods", "name": uid, "uid": uid} for uid in users],
        },
    }
    return decoded(value, ResourceClaim)


def kinds(view: NodeView) -> list[ProblemKind]:
    """Return the kinds of a node's problems."""
    return [trouble.kind for trouble in view.problems]
