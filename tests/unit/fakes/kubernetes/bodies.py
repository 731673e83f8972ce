"""Objects that several tests write."""

from __future__ import annotations

import json
from typing import Any

from tests.fakes.kubernetes.controllers.hami import REGISTER
from tests.fakes.kubernetes.kinds import Json


def node(name: str, cpu: str = "8", cards: int = 0, more: Json | None = None) -> Json:
    """Return a node that is ready, with cards of 80 GiB as HAMi registers them."""
    annotations = {}
    allocatable = {"cpu": cpu, "memory": "64Gi", "pods": "110", **(more or {})}
    if cards:
        registered = [
            {
                "id": f"GPU-{name}-{index}",
                "index": index,
                "count": 10,
                "devmem": 81920,
                "devcore": 100,
                "type": "NVIDIA A100-SXM4-80GB",
                "mode": "hami-core",
                "health": True,
            }
            for index in range(cards)
        ]
        annotations[REGISTER] = json.dumps(registered)
        allocatable["nvidia.com/gpu"] = str(10 * cards)
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}, "annotations": annotations},
        "status": {
            "capacity": allocatable,
            "allocatable": allocatable,
            "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady"}],
        },
    }


def pod_spec(image: str = "busybox:1", limits: Json | None = None, **more: Any) -> Json:  # noqa: ANN401, any field
    """Return the spec of a pod with one container."""
    resources = {"resources": {"limits": limits}} if limits else {}
    return {"containers": [{"name": "main", "image": image, **resources}], **more}


def pod(name: str = "a", annotations: Json | None = None, **spec: Any) -> Json:  # noqa: ANN401, any field
    """Return a pod."""
    meta = {"name": name, **({"annotations": annotations} if annotations else {})}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": pod_spec(**spec)}


def deployment(name: str = "web", replicas: int = 2, annotations: Json | None = None, **spec: Any) -> Json:  # noqa: ANN401
    """Return a deployment."""
    meta = {"labels": {"app": name}, **({"annotations": annotations} if annotations else {})}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": name}},
            "template": {"metadata": meta, "spec": pod_spec(**spec)},
        },
    }


def job(name: str = "train", annotations: Json | None = None, image: str = "busybox:1", **spec: Any) -> Json:  # noqa: ANN401
    """Return a job whose pods run for no time at all."""
    template = {
        "metadata": {"annotations": {"testbed/run-seconds": "0"} if annotations is None else annotations},
        "spec": pod_spec(image, restartPolicy="Never"),
    }
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name},
        "spec": {"template": template, **spec},
    }
