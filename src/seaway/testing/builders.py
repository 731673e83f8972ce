"""Builders: small fleets and jobs in one line each, for tests.

Whatever a test does not care about has a default. Names may be left out: `fleet` then calls clusters
``cluster-0``, nodes ``node-0`` and devices ``GPU-<cluster>-<node>-<index>``, counting each kind in
its own parent.

Examples
--------
>>> small = fleet(node(gpu(), gpu(memory_mib=24_000)), node(labels={"zone": "a"}))
>>> [device.uuid for device in small.devices]
['GPU-cluster-0-node-0-0', 'GPU-cluster-0-node-0-1']
>>> job(gpus=1, gpu_memory_mib=8_000, models={"NVIDIA L4"}).demand.devices.models
frozenset({'NVIDIA L4'})
"""

# ruff: noqa: ANN401  # figures go straight into the values' fields, which check them

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import fields, replace
from typing import Any

from seaway.domain.cluster import Cluster, Fleet
from seaway.domain.device import Device, DeviceMode, MigProfile
from seaway.domain.errors import InvariantError
from seaway.domain.job import Demand, DeviceRules, Job, NodeRules, ResourceRequest
from seaway.domain.network import Gateway, Link, NetworkNeed
from seaway.domain.node import Node

A100_40GB_PROFILES = (
    MigProfile("1g.5gb", 4_864, 150, 1, 1, tuple(range(7))),
    MigProfile("2g.10gb", 9_984, 290, 2, 2, (0, 2, 4)),
    MigProfile("3g.20gb", 20_096, 430, 3, 4, (0, 4)),
    MigProfile("7g.40gb", 40_448, 1_000, 7, 8, (0,)),
)
"""Sizes in which an A100 with 40 GB may be cut, with the figures that HAMi announces."""


def gpu(**figures: Any) -> Device:
    """Make a device: an A100 with 80 GB unless `figures`, the fields of `Device`, say otherwise."""
    defaults = {"uuid": "", "index": 0, "model": "NVIDIA A100-SXM4-80GB", "memory_mib": 81_920}
    return Device(**{**defaults, **figures})


def mig_gpu(**figures: Any) -> Device:
    """Make a device in MIG mode: an A100 with 40 GB unless `figures` say otherwise."""
    defaults = {
        "model": "NVIDIA A100-SXM4-40GB",
        "memory_mib": 40_960,
        "share_limit": 7,
        "mode": DeviceMode.MIG,
        "mig_profiles": A100_40GB_PROFILES,
    }
    return gpu(**{**defaults, **figures})


def node(*devices: Device, **figures: Any) -> Node:
    """Make a node with `devices`, which are numbered; 64 cores and 256 GiB unless `figures` say otherwise."""
    defaults = {"name": "", "cpu_milli": 64_000, "memory_mib": 262_144}
    numbered = tuple(replace(device, index=at) for at, device in enumerate(devices))
    return Node(**{**defaults, "devices": numbered, **figures})


def cluster(*nodes: Node, **figures: Any) -> Cluster:
    """Make a cluster of `nodes`; `figures` are the fields of `Cluster`."""
    return Cluster(**{"name": "", "nodes": nodes, **figures})


def fleet(*parts: Node | Cluster, links: Iterable[Link] = (), gateways: Iterable[str | Gateway] = ()) -> Fleet:
    """Make a fleet of clusters; nodes given by themselves form one cluster, before the others.

    Gateways that clusters and links name need not be given.
    """
    alone = tuple(part for part in parts if isinstance(part, Node))
    clusters = [part for part in parts if isinstance(part, Cluster)]
    if alone:
        clusters.insert(0, cluster(*alone))
    named = tuple(_named_cluster(each, f"cluster-{at}") for at, each in enumerate(clusters))
    ties = tuple(links)
    doors = {each.name: each for each in (Gateway(each) if isinstance(each, str) else each for each in gateways)}
    for end in (*(each.gateway for each in named), *(end for tie in ties for end in (tie.source, tie.target))):
        if end:
            doors.setdefault(end, Gateway(end))
    return Fleet(named, tuple(doors.values()), ties)


def job(name: str = "job", **figures: Any) -> Job:
    """Make a job from the fields of `Job` and of everything in it, all on one level.

    `figures` are the fields of `Job`, `Demand`, `ResourceRequest`, `DeviceRules`, `NodeRules` and
    `NetworkNeed`; lists and sets become what the fields hold, and ``node_labels`` may be a dict.

    Raises
    ------
    InvariantError
        When one of `figures` is no such field.
    """
    labels = figures.get("node_labels")
    if isinstance(labels, Mapping):
        figures["node_labels"] = tuple(sorted(labels.items()))
    request, devices, nodes, network = (
        _taken(kind, figures) for kind in (ResourceRequest, DeviceRules, NodeRules, NetworkNeed)
    )
    parts = {"request": request, "devices": devices, "nodes": nodes, "network": network, **figures}
    demand = _taken(Demand, parts)
    unknown = set(parts) - {field.name for field in fields(Job)}
    if unknown:
        raise InvariantError(f"a job has no field {sorted(unknown)}")
    return Job(name=name, demand=demand, **parts)


def _taken(kind: Any, figures: dict[str, Any]) -> Any:
    """Make a `kind` of those of `figures` that are its fields, which are taken out."""
    own = {field.name: figures.pop(field.name) for field in fields(kind) if field.name in figures}
    for field, value in own.items():
        if isinstance(value, set):
            own[field] = frozenset(value)
        elif isinstance(value, list):
            own[field] = tuple(value)
    return kind(**own)


def _named_cluster(each: Cluster, name: str) -> Cluster:
    """Give a cluster and all in it the names that were left out."""
    name = each.name or name
    nodes = tuple(_named_node(part, name, f"node-{at}") for at, part in enumerate(each.nodes))
    return replace(each, name=name, nodes=nodes)


def _named_node(each: Node, cluster_name: str, name: str) -> Node:
    """Give a node and its devices the names that were left out."""
    name = each.name or name
    stem = f"GPU-{cluster_name}-{name}"
    devices = tuple(replace(part, uuid=part.uuid or f"{stem}-{part.index}") for part in each.devices)
    return replace(each, name=name, devices=devices)
