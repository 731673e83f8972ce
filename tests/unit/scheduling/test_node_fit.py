"""Filters of nodes and clusters rather than devices."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from seaway.domain.node import Taint, TaintEffect, Toleration
from seaway.domain.placement import Placement
from seaway.scheduling.allocations import allocate_all
from seaway.scheduling.engine import decide
from seaway.scheduling.job_queue import JobQueue
from seaway.scheduling.plugins.nodes import NodeLabels, TaintToleration
from seaway.scheduling.policies.registry import make_policy
from seaway.scheduling.snapshot.update import put_node
from seaway.testing.plugins import cluster, gpu, job, node
from tests.unit.scheduling.requesting import cycle_for, place, refusals, snapshot_of

REFUSED = "the job failed to start there"
SPOT = Taint("spot", "yes")
FULL = "no room for another pod"


@pytest.mark.parametrize(
    ("rules", "reason"),
    [
        ({}, ""),
        ({"clusters": {"a", "b"}}, ""),
        ({"clusters": {"b"}}, "cluster not requested"),
        ({"regions": {"north"}}, ""),
        ({"regions": {"south"}}, "region not requested"),
        ({"hardware": {"nvlink"}}, ""),
        ({"hardware": {"nvlink", "rdma"}}, "cluster lacks requested hardware"),
        ({"clusters": {"b"}, "regions": {"south"}}, "cluster not requested"),
        ({"clusters": {"b"}, "pool": {"a", "b"}}, "cluster not requested"),
        ({"clusters": {"b"}, "pool": {"b"}}, "cluster not in the pool of the queue"),
    ],
)
def test_cluster_rules(rules: dict[str, Any], reason: str) -> None:
    """A cluster is checked by pool, name, region, then hardware, of which it needs all requested kinds."""
    here = cluster(node(), name="a", region="north", hardware=frozenset({"nvlink", "ib"}))
    assert refusals(snapshot_of(here), job(**rules)) == [reason]


@pytest.mark.parametrize(
    ("rules", "reason"),
    [
        ({}, ""),
        ({"regions": {"north"}, "hardware": {"nvlink"}}, "region of the cluster is unknown"),
        ({"hardware": {"nvlink"}}, "hardware of the cluster is unknown"),
        ({"cluster_labels": (("team", "a"),)}, "label of the cluster missing or different"),
        ({"gpus": 1, "max_microprice": 5}, "price unknown"),
    ],
)
def test_unknown_facts_of_a_cluster_meet_no_rule(rules: dict[str, Any], reason: str) -> None:
    """A cluster of unknown region or hardware takes only jobs that request none, and the reason names the unknown."""
    assert refusals(snapshot_of(cluster(node(gpu()), name="a")), job(**rules)) == [reason]


def test_a_maximum_price_counts_for_each_node() -> None:
    """By its models and by spot capacity; nodes without GPUs have no price."""
    spot = {"cloud.google.com/gke-spot": "true"}
    nodes = (node(gpu(model="A100")), node(gpu(model="A100"), labels=spot), node(gpu(model="T4")), node())
    here = cluster(*nodes, name="a", prices={"A100": 5, "T4": 3}, spot_prices={"A100": 3}, labels={"team": "a"})
    asked = job(gpus=1, max_microprice=3, cluster_labels=(("team", "a"),))
    above, _, _, without = refusals(snapshot_of(here), asked)
    assert refusals(snapshot_of(here), asked) == [above, "", "", without]
    assert (above, "price" in without) == ("price above the maximum", False)


@pytest.mark.parametrize(
    ("asked", "reason"),
    [
        ({}, ""),
        ({"zone": "a"}, ""),
        ({"zone": "a", "disk": "ssd"}, ""),
        ({"zone": "b"}, "label missing or different"),
        ({"zone": "a", "arch": ""}, "label missing or different"),
    ],
)
def test_labels(asked: dict[str, str], reason: str) -> None:
    """A node needs every requested label with the same value."""
    assert refusals(snapshot_of(node(labels={"zone": "a", "disk": "ssd"})), job(node_labels=asked)) == [reason]


@pytest.mark.parametrize(
    ("toleration", "reason"),
    [
        (Toleration(), ""),
        (Toleration("spot"), ""),
        (Toleration("spot", "yes", TaintEffect.NO_SCHEDULE), ""),
        (Toleration("spot", "no"), "taint not tolerated"),
        (Toleration("spot", effect=TaintEffect.NO_EXECUTE), "taint not tolerated"),
        (Toleration("other"), "taint not tolerated"),
    ],
)
def test_tolerations(toleration: Toleration, reason: str) -> None:
    """A toleration matches by key, value and effect; omitted fields match anything."""
    assert refusals(snapshot_of(node(taints=(SPOT,))), job(tolerations=[toleration])) == [reason]


@pytest.mark.parametrize(
    ("avoid", "reasons"),
    [
        (set(), ["", "", ""]),
        ({("a", "n")}, [REFUSED, "", ""]),
        ({("a", "n"), ("b", "m")}, [REFUSED, "", ""]),
        ({("a", "")}, [REFUSED, REFUSED, ""]),
        ({("", "n")}, ["", "", ""]),
    ],
)
def test_avoided_nodes(avoid: set[tuple[str, str]], reasons: list[str]) -> None:
    """A node is avoided by its name in its own cluster, or with the whole cluster."""
    snapshot = snapshot_of(cluster(node(name="n"), node(name="m"), name="a"), cluster(node(name="n"), name="b"))
    assert refusals(snapshot, job(avoid=avoid)) == reasons


def test_every_taint_has_to_be_tolerated() -> None:
    """One untolerated taint is enough for a rejection."""
    tainted = node(taints=(SPOT, Taint("gpu", effect=TaintEffect.NO_EXECUTE)))
    assert refusals(snapshot_of(tainted), job(tolerations=[Toleration("spot")])) == ["taint not tolerated"]


def test_prefer_no_schedule_taint_rejects_nothing() -> None:
    """The effect PreferNoSchedule is no reason for a rejection."""
    assert refusals(snapshot_of(node(taints=(Taint("x", "", TaintEffect.PREFER_NO_SCHEDULE),))), job()) == [""]


def test_unready_node_rejects_jobs() -> None:
    """A node that is not ready or is cordoned takes no new replicas."""
    assert refusals(snapshot_of(node(ready=False)), job()) == ["node not ready or cordoned"]


@pytest.mark.parametrize(
    ("asked", "reason"),
    [
        ({"cpu_milli": 600, "memory_mib": 70}, ""),
        ({"cpu_milli": 601}, "not enough free CPU"),
        ({"memory_mib": 71}, "not enough free memory"),
        ({"cpu_milli": 601, "memory_mib": 71}, "not enough free CPU"),
    ],
)
def test_cpu_and_memory(asked: dict[str, Any], reason: str) -> None:
    """CPU and memory fit up to the free amount; CPU is named first when both are short."""
    snapshot = snapshot_of(node(cpu_milli=1_000, memory_mib=100))
    place(snapshot, job(cpu_milli=400, memory_mib=30))
    assert refusals(snapshot, job(**asked)) == [reason]


@pytest.mark.parametrize(("pods", "reason"), [(None, ""), (3, ""), (2, FULL), (1, FULL), (0, FULL)])
def test_pods(pods: int | None, reason: str) -> None:
    """A node takes its maximum number of pods, and any number without one."""
    snapshot = snapshot_of(cluster(node(name="n", pods=pods), name="c"))
    held = allocate_all(snapshot, [(job("others"), [Placement("others", 0, "c", "n")], 2)])
    assert refusals(snapshot, job()) == [reason]
    held[0].release(snapshot)
    assert refusals(snapshot, job()) == ([FULL] if pods == 0 else [""])


def test_the_size_of_a_node_is_the_first_reason() -> None:
    """A node that is too small is named so, then one without room for pods, then one that is full."""
    snapshot = snapshot_of(node(pods=0, cpu_milli=1), node(pods=0, cpu_milli=2), node(memory_mib=9))
    assert refusals(snapshot, job(cpu_milli=2, memory_mib=10)) == ["too little CPU", FULL, "too little memory"]


def test_replicas_of_a_gang_share_the_pod_limit() -> None:
    """A gang needs room for all its pods."""
    snapshot = snapshot_of(cluster(node(name="n", pods=2), node(name="m", pods=1), name="c"))
    assert place(snapshot, job(replicas=4, gang=True)) == []
    assert sorted(each.node for each in place(snapshot, job(replicas=3, gang=True))) == ["m", "n", "n"]
    assert refusals(snapshot, job()) == [FULL, FULL]


def test_lower_pod_limit_leaves_running_pods() -> None:
    """A node takes another pod after enough of them have ended."""
    snapshot = snapshot_of(cluster(node(name="n", pods=2), name="c"))
    plan = decide(snapshot, JobQueue(snapshot, [job("one"), job("two")]), make_policy("bestfit"))
    put_node(snapshot, "c", node(gpu(uuid="new"), name="n", pods=1))
    found = snapshot.node_index["c", "n"]
    assert refusals(snapshot, job())[found] == FULL
    snapshot.release(plan.decisions, plan.slices, np.array([0]))
    assert refusals(snapshot, job())[found] == FULL
    snapshot.release(plan.decisions, plan.slices, np.array([1]))
    assert refusals(snapshot, job())[found] == ""


def test_changed_nodes_are_filtered_again() -> None:
    """A filter drops its cached labels and taints when a node changes or joins."""
    snapshot = snapshot_of(cluster(node(name="n", labels={"zone": "a"}), name="c"))
    asked = job(node_labels={"zone": "a"})
    labels, taints = NodeLabels(), TaintToleration()
    assert labels.filter(cycle_for(snapshot, asked)).tolist() == [0]
    assert taints.filter(cycle_for(snapshot, asked)).tolist() == [0]
    put_node(snapshot, "c", node(name="n", labels={"zone": "b"}, taints=(SPOT,)))
    put_node(snapshot, "c", node(name="m", labels={"zone": "a"}))
    assert labels.filter(cycle_for(snapshot, asked)).tolist() == [1, 0]
    assert taints.filter(cycle_for(snapshot, asked)).tolist() == [1, 0]
