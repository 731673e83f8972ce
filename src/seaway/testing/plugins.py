"""Conformance suite for plugins, built in and from other packages.

Call `check_plugin` from a test::

    def test_plugin_keeps_the_rules() -> None:
        check_plugin(MyPlugin())

It calls each extension point of the plugin on several fleets (no devices, several clusters, MIG, cordoned nodes) and
checks the properties that the engine relies on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import fields, replace
from typing import Any

import numpy as np

from seaway.domain.cluster import Cluster, Fleet
from seaway.domain.device import Device, DeviceMode, MigProfile
from seaway.domain.errors import InvariantError
from seaway.domain.facts import Facts
from seaway.domain.job import Demand, DeviceRules, Job, NodeRules, ResourceRequest
from seaway.domain.network import Gateway, Link, NetworkNeed
from seaway.domain.node import Node
from seaway.domain.placement import Placement
from seaway.domain.queues import Order, Queue
from seaway.scheduling.arrays import copy_arrays
from seaway.scheduling.columns import CLUSTERS_ALLOWED, NODE_DEVICE_END, NODE_DEVICE_FIRST
from seaway.scheduling.engine import decide
from seaway.scheduling.framework import (
    EXTENSION_POINTS,
    Bind,
    Cycle,
    DeviceScore,
    Filter,
    Permit,
    Plugin,
    PostBind,
    PostFilter,
    PreBind,
    PreFilter,
    PreScore,
    QueueSort,
    Reserve,
    Score,
    Status,
)
from seaway.scheduling.job_queue import JobQueue
from seaway.scheduling.plugins import rules_of_fit
from seaway.scheduling.policies.bestfit import BestFit
from seaway.scheduling.profile import Profile, WeightedPlugin
from seaway.scheduling.queueing.discipline import QueueDiscipline, SortKey
from seaway.scheduling.queueing.tree import Owner, QueueTree
from seaway.scheduling.snapshot.snapshot import Snapshot

# ruff: noqa: ANN401  # the dataclasses check the types of their fields


A100_40GB_PROFILES = (
    MigProfile("1g.5gb", 4_864, 150, 1, 1, tuple(range(7))),
    MigProfile("2g.10gb", 9_984, 290, 2, 2, (0, 2, 4)),
    MigProfile("3g.20gb", 20_096, 430, 3, 4, (0, 4)),
    MigProfile("7g.40gb", 40_448, 1_000, 7, 8, (0,)),
)
"""MIG profiles of an A100 with 40 GB, with the values that HAMi reports."""


def gpu(**figures: Any) -> Device:
    """Create a device: by default an A100 with 80 GB. `figures` are the fields of `Device`."""
    defaults = {"uuid": "", "index": 0, "model": "NVIDIA A100-SXM4-80GB", "memory_mib": 81_920}
    return Device(**{**defaults, **figures})


def mig_gpu(**figures: Any) -> Device:
    """Create a device in MIG mode: by default an A100 with 40 GB. `figures` are the fields of `Device`."""
    defaults = {
        "model": "NVIDIA A100-SXM4-40GB",
        "memory_mib": 40_960,
        "share_limit": 7,
        "mode": DeviceMode.MIG,
        "mig_profiles": A100_40GB_PROFILES,
    }
    return gpu(**{**defaults, **figures})


def node(*devices: Device, **figures: Any) -> Node:
    """Create a node with `devices`, numbered from 0: by default 64 cores and 256 GiB.

    `figures` are the fields of `Node`.
    """
    defaults = {"name": "", "cpu_milli": 64_000, "memory_mib": 262_144}
    numbered = tuple(replace(device, index=at) for at, device in enumerate(devices))
    return Node(**{**defaults, "devices": numbered, **figures})


def cluster(*nodes: Node, **figures: Any) -> Cluster:
    """Create a cluster of `nodes`. `figures` are the fields of `Cluster` and `Facts`."""
    facts = {each.name: figures.pop(each.name) for each in fields(Facts) if each.name in figures}
    return Cluster(**{"name": "", "nodes": nodes, "facts": Facts(**facts), **figures})


def fleet(*parts: Node | Cluster, links: Iterable[Link] = (), gateways: Iterable[str | Gateway] = ()) -> Fleet:
    """Create a fleet of clusters. Separate nodes form one cluster, before the others.

    Gateways that clusters and links name are added automatically.
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
    """Create a job from the fields of `Job` and of its parts, all on one level.

    `figures` are the fields of `Job`, `Demand`, `ResourceRequest`, `DeviceRules`, `NodeRules` and `NetworkNeed`. Lists
    and sets are converted to the types of the fields, and ``node_labels`` may be a dict.

    Raises
    ------
    InvariantError
        If one of `figures` is not such a field.
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
    """Create a `kind` from the items of `figures` that are its fields, and remove them."""
    own = {field.name: figures.pop(field.name) for field in fields(kind) if field.name in figures}
    for field, value in own.items():
        if isinstance(value, set):
            own[field] = frozenset(value)
        elif isinstance(value, list):
            own[field] = tuple(value)
    return kind(**own)


def _named_cluster(each: Cluster, name: str) -> Cluster:
    """Return a cluster with default names for the cluster, its nodes and devices if they have none."""
    name = each.name or name
    nodes = tuple(_named_node(part, name, f"node-{at}") for at, part in enumerate(each.nodes))
    return replace(each, name=name, nodes=nodes)


def _named_node(each: Node, cluster_name: str, name: str) -> Node:
    """Return a node with default names for the node and its devices if they have none."""
    name = each.name or name
    stem = f"GPU-{cluster_name}-{name}"
    devices = tuple(replace(part, uuid=part.uuid or f"{stem}-{part.index}") for part in each.devices)
    return replace(each, name=name, devices=devices)


def check_plugin(plugin: Plugin) -> None:
    """Check all extension points of a plugin.

    Raises
    ------
    AssertionError
        If it violates a rule. The message names the rule.
    """
    points = [point for point in EXTENSION_POINTS if isinstance(plugin, point)]
    assert points, "a plugin takes part in at least one extension point"
    assert plugin.name, "a plugin has a name"
    for snapshot, asked in _occasions():
        before = copy_arrays(snapshot.arrays)
        for point in points:
            if point in _CHECKS:
                _CHECKS[point](plugin, _cycle(snapshot, asked))
        pairs: list[tuple[Any, Any]] = list(zip(before, snapshot.arrays, strict=True))
        same = all(np.array_equal(old, new) for old, new in pairs)
        assert same, "a plugin leaves the snapshot as it is"
    _check_in_profile(plugin)


def _occasions() -> Iterator[tuple[Snapshot, Job]]:
    """Yield fleets of several shapes, each with a job."""
    bare, rich = node(name="bare"), node(gpu(), gpu(), gpu(cordoned=True), name="rich")
    cut, closed = node(mig_gpu(), name="cut"), node(gpu(), name="closed", ready=False)
    slice_ = job(name="slice", gpus=1, gpu_memory_mib=4096, gpu_milli=250)
    yield Snapshot(fleet(rich, bare)), slice_
    yield Snapshot(fleet(cluster(rich), cluster(cut, closed), cluster())), slice_
    yield Snapshot(fleet(closed)), job(name="plain")
    yield Snapshot(fleet(bare)), slice_


def _cycle(snapshot: Snapshot, asked: Job) -> Cycle:
    return Cycle(
        snapshot=snapshot,
        job=asked,
        replica=0,
        demand_index=snapshot.demands.index(asked.demand),
        random_bits=7,
        usable=snapshot.arrays.clusters_open[CLUSTERS_ALLOWED] != 0,
        feasible=np.ones(len(snapshot.nodes), np.bool_),
    )


def _check_filter(plugin: Filter, cycle: Cycle) -> None:
    codes = plugin.filter(cycle)
    assert codes.shape == (len(cycle.snapshot.nodes),), "a filter answers for every node"
    assert codes.dtype == np.uint8, "a filter answers in uint8 codes"
    assert codes.max(initial=0) <= len(plugin.reasons), "every code has a reason"
    assert all(reason and not reason.endswith(".") for reason in plugin.reasons), "a reason is a clause"
    assert np.array_equal(codes, plugin.filter(cycle)), "a filter answers alike when asked again"


def _check_score(plugin: Score, cycle: Cycle) -> None:
    scores = plugin.score(cycle)
    assert scores.shape == (len(cycle.snapshot.nodes),), "a score answers for every node"
    assert scores.dtype == np.int64, "a score is a whole number"
    assert np.array_equal(scores, plugin.score(cycle)), "a score is the same when asked again"


def _check_device_score(plugin: DeviceScore, cycle: Cycle) -> None:
    nodes = cycle.snapshot.arrays.nodes
    for n in range(len(cycle.snapshot.nodes)):
        count = int(nodes[NODE_DEVICE_END, n] - nodes[NODE_DEVICE_FIRST, n])
        keys = np.asarray(plugin.device_keys(cycle, n))
        assert keys.shape == (count,), "a device score answers for every device of the node"
        assert keys.dtype == np.int64, "a device score is a whole number"
        assert np.array_equal(keys, plugin.device_keys(cycle, n)), "a device score is the same when asked again"


def _check_queue_sort(plugin: QueueSort, cycle: Cycle) -> None:
    queue = JobQueue(cycle.snapshot, [replace(cycle.job, name=f"job-{number}") for number in range(5)])
    assert sorted(plugin.order(queue)) == list(range(5)), "an order names every job once"


def _check_reserve(plugin: Reserve, cycle: Cycle) -> None:
    placement = _placement(cycle)
    _check_status(plugin.reserve(cycle, placement))
    plugin.unreserve(cycle, placement)
    plugin.unreserve(cycle, placement)


def _check_bind(plugin: Bind, cycle: Cycle) -> None:
    _check_status(plugin.bind(_placement(cycle)))


def _check_status(status: object) -> None:
    assert isinstance(status, Status), "an answer is a Status"
    assert status.passes or status.reason, "a status that does not pass has a reason"


def _placement(cycle: Cycle) -> Placement:
    return Placement(cycle.job.name, 0, cycle.snapshot.clusters[0].name, "some-node")


_CHECKS: dict[type, Callable[..., None]] = {
    QueueSort: _check_queue_sort,
    PreFilter: lambda plugin, cycle: _check_status(plugin.pre_filter(cycle)),
    Filter: _check_filter,
    PostFilter: lambda plugin, cycle: _check_status(plugin.post_filter(cycle)),
    PreScore: lambda plugin, cycle: _check_status(plugin.pre_score(cycle)),
    Score: _check_score,
    DeviceScore: _check_device_score,
    Reserve: _check_reserve,
    Permit: lambda plugin, cycle: _check_status(plugin.permit(cycle, _placement(cycle))),
    PreBind: lambda plugin, cycle: _check_status(plugin.pre_bind(_placement(cycle))),
    Bind: _check_bind,
    PostBind: lambda plugin, cycle: plugin.post_bind(_placement(cycle)),
}


def _check_in_profile(plugin: Plugin) -> None:
    """Check that a profile with the plugin and the built-in filters gives the same plan for the same seed."""
    others = [rule for rule in rules_of_fit() if rule.name != plugin.name]
    score = () if isinstance(plugin, Score) else (WeightedPlugin(BestFit()),)
    profile = Profile("check", (*(WeightedPlugin(rule) for rule in others), WeightedPlugin(plugin), *score), plain=True)
    for snapshot, asked in _occasions():
        twin = snapshot.copy()
        jobs = [replace(asked, name=f"job-{number}") for number in range(4)]
        plan = decide(snapshot, JobQueue(snapshot, jobs), profile)
        again = decide(twin, JobQueue(twin, jobs), profile)
        stateful = isinstance(plugin, Reserve | Permit)
        assert stateful or np.array_equal(plan.decisions, again.decisions), "the same seed gives the same plan"
        for placement in plan.placements():
            assert placement.node in {each.name for each in snapshot.nodes}, "a placement names a node"


def check_queue_discipline(make: Callable[[], QueueDiscipline]) -> None:
    """Check a queue discipline, built in or from another package.

    Parameters
    ----------
    make
        Factory that the entry point names.

    Raises
    ------
    AssertionError
        If it violates a rule. The message names the rule.
    """
    discipline, fresh = make(), make()
    assert discipline.name, "a queue discipline has a name"
    waiting = [
        (replace(job(name=name, gpus=gpus), tenant=tenant, priority=priority, expected_duration_s=duration_s), at)
        for name, tenant, gpus, priority, duration_s, at in (
            *(("a", "alpha", 0, 0, None, 3), ("b", "alpha", 2, 5, 60, 2), ("c", "beta", 1, -5, 3600, 1)),
            *(("d", "beta", 1, 0, 0, 1), ("e", "gamma", 8, 0, None, 2**62), ("f", "gamma", 1, 5, 60, 0)),
        )
    ]
    queues = [
        Queue("research", guarantee={"gpus": 2000}, limit={"gpus": 8000}),
        *(Queue(order.value, parent="research", order=order, weight=at) for at, order in enumerate(Order)),
    ]
    tree = QueueTree(queues, {"default": {"gpus": 16_000, "cpu": 64_000}})
    for queue in queues:
        _check_keys("job", *([by.job_key(*each, queue) for each in waiting] for by in (discipline, discipline, fresh)))
    for held in range(3):
        nodes = [tree.node(queue.name) for queue in queues[1:]]
        for node in nodes:
            firsts = {
                tenant: discipline.job_key(*waiting[at], node.queue) for at, tenant in enumerate(("beta", "alpha"))
            }
            _check_keys(
                "tenant",
                *(
                    [
                        by.tenant_key(node, tree.tenant(node.queue.name, each), first, {"gpus": 1000})
                        for each, first in firsts.items()
                    ]
                    for by in (discipline, discipline, fresh)
                ),
            )
        _check_keys(
            "queue", *([by.queue_key(node, {"gpus": 1000}) for node in nodes] for by in (discipline, discipline, fresh))
        )
        for at, queue in enumerate(queues[1:]):
            tree.hold((f"{queue.name}-{held}", 1), Owner(queue.name, "alpha"), {"gpus": 1000 * at, "cpu": 1000})


def _check_keys(kind: str, keys: list[SortKey], again: list[SortKey], others: list[SortKey]) -> None:
    """Check that two instances give the same keys, also when called again, and that the keys can be compared."""
    assert keys == again, f"the key of a {kind} depends on its arguments alone"
    assert keys == others, f"each instance gives a {kind} the same key"
    assert sorted(keys) == sorted(keys, reverse=True)[::-1], f"the keys of a {kind} can be compared"
    assert len(set(keys)) == len(keys), f"no {kind} has the key of another one"
