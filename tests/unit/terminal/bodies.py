"""Answers of a server, as the API shows them."""

from __future__ import annotations

from seaway.terminal.words import Body
from seaway.wire.message import with_message

JOB: Body = {
    "id": "6gzx9takdjhgz",
    "name": "train",
    "tenant": "default",
    "queue": "default",
    "priority": 0,
    "replicas": 2,
    "state": "running",
    "message": "runs on east/n0",
    "version": 3,
    "attempt": 1,
    "failures": 0,
    "clusters": ["east"],
    "nodes": ["n0"],
    "submitted_at": "2026-11-21T10:00:00.000000Z",
    "submitted_by": "ada",
    "updated_at": "2026-11-21T10:00:01.000000Z",
    "started_at": "2026-11-21T10:00:01.000000Z",
    "ended_at": None,
    "not_before": None,
    "spec": {"name": "train", "tenant": "default", "resources": {"gpus": 1, "gpu_memory": "8GB"}},
    "request": {
        "cpu_milli": 0,
        "memory_mib": 0,
        "gpus": 1,
        "gpu_memory_mib": 7630,
        "gpu_memory_percent": 0,
        "gpu_milli": 0,
    },
}


def job(name: str, **fields: object) -> Body:
    """Make a job; its id is made of its name."""
    return {**JOB, "id": f"id-{name}", "name": name, **fields}


def amount(used: int, total: int) -> Body:
    """Make an amount."""
    return {"total": total, "used": used, "free": total - used}


def device(cluster: str, node: str, index: int, *slices: Body) -> Body:
    """Make a device."""
    return {
        "cluster": cluster,
        "node": node,
        "uuid": f"{node}/{index}",
        "index": index,
        "model": "NVIDIA A100",
        "vendor": "NVIDIA",
        "mode": "hami-core",
        "healthy": True,
        **with_message(""),
        "share_limit": 10,
        "memory_mib": amount(8192 * len(slices), 81_920),
        "core_milli": amount(300 * len(slices), 1000),
        "slices": [*slices],
        "used": {"memory_bytes": 5 << 30, "core_milli": 250, "age_s": 1.0} if slices else None,
    }


def piece(cluster: str, node: str, of: Body) -> Body:
    """Make a slice of a node's first device, which a job holds."""
    return {
        "cluster": cluster,
        "node": node,
        "uuid": f"{node}/0",
        "job_id": of["id"],
        "job": of["name"],
        "tenant": of["tenant"],
        "attempt": 1,
        "replica": 0,
        "memory_mib": 8192,
        "core_milli": 300,
        "mig_profile": "",
    }


def node(cluster: str, name: str, *slices: Body, cordon: Body | None = None) -> Body:
    """Make a node of two devices."""
    return {
        "cluster": cluster,
        "name": name,
        "ready": cordon is None,
        **with_message(""),
        "cordon": cordon,
        "cpu_milli": amount(0, 64_000),
        "memory_mib": amount(0, 65_536),
        "pods": None,
        "devices": [device(cluster, name, 0, *slices), device(cluster, name, 1)],
    }


def cluster(name: str, nodes: int = 2, *, state: str = "up") -> Body:
    """Make a cluster of nodes of two devices."""
    return {
        "name": name,
        "state": state,
        "last_seen_s": 0,
        "reported_at": "2026-11-21T10:00:00.000000Z",
        **with_message("" if state == "up" else "it is cut off"),
        "gateway": f"gw-{name}",
        "region": "eu",
        "hardware": [],
        "price_per_gpu_hour": "1.00",
        "cordon": None,
        "nodes": nodes,
        "gpus": 2 * nodes,
        "cpu_milli": amount(0, 64_000 * nodes),
        "memory_mib": amount(0, 65_536 * nodes),
        "gpus_used_milli": 550 * nodes,
        "gpu_milli": amount(500 * nodes, 2000 * nodes),
        "gpu_memory_mib": amount(81_920, 163_840 * nodes),
        "jobs": 1,
        "orphans": [],
    }
