"""Policies by name."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from seaway.domain.errors import RejectedError
from seaway.domain.job import GpuTopology
from seaway.domain.network import Gateway, Link, NetworkNeed
from seaway.learning.instances.wide import drawn
from seaway.scheduling.engine import decide
from seaway.scheduling.explain import explain
from seaway.scheduling.job_queue import JobQueue
from seaway.scheduling.policies.registry import PolicyOptions, make_policy, make_profile, policy_names
from seaway.scheduling.profile import Profile
from seaway.scheduling.snapshot.snapshot import Snapshot
from seaway.testing.plugins import cluster, fleet, gpu, job, node

HEURISTICS = ("greedy", "bestfit", "random", "utilization", "spread")


def test_names_are_those_of_the_documentation() -> None:
    """The heuristics and the reference modes have their documented names."""
    assert {*HEURISTICS, "fgd", "seaway", "nearest", "volcano-divided", "volcano-duplicated"} <= set(policy_names())


@pytest.mark.parametrize("name", HEURISTICS)
def test_heuristics_have_two_levels(name: str) -> None:
    """A heuristic has the same name at either level."""
    assert make_policy(name).name == name
    assert make_policy(name, PolicyOptions(level="cluster")).name == name


@pytest.mark.parametrize("plain", [False, True])
@pytest.mark.parametrize("name", ["greedy", "bestfit", "utilization", "spread", "fgd", "seaway"])
@pytest.mark.parametrize(
    ("gpus", "topology", "chosen"),
    [
        (2, GpuTopology.SAME_ISLAND, "pairs"),
        (2, GpuTopology.BEST_EFFORT, "pairs"),
        (4, GpuTopology.BEST_EFFORT, "one"),
        (5, GpuTopology.BEST_EFFORT, "loose"),
        (2, GpuTopology.ANY, "one"),
    ],
)
def test_among_equal_nodes_few_islands_break(
    name: str, plain: bool, gpus: int, topology: GpuTopology, chosen: str
) -> None:
    """Each policy takes the smallest island that suffices, or a node with many GPUs outside, else the first node."""
    islands = {"one": [0] * 4 + [-1, -1], "pairs": [0, 0, 1, 1, 2, 2], "loose": [-1] * 4 + [0, 0]}
    nodes = [node(*(gpu(island=each) for each in islands[name]), name=name) for name in islands]
    snapshot, asked = Snapshot(fleet(*nodes)), job(gpus=gpus, topology=topology)
    profile = make_policy(name, PolicyOptions(plain=plain, mix=[job(gpus=1), job(gpus=2)]))
    plan = decide(snapshot, JobQueue(snapshot, [asked]), profile)
    assert [each.node for each in plan.placements()] == [chosen]
    assert isinstance(profile, Profile)
    assert explain(Snapshot(fleet(*nodes)), asked, profile).candidates[0].node == chosen


@pytest.mark.parametrize("name", ["volcano-divided", "volcano-duplicated"])
def test_reference_modes_accept_either_level(name: str) -> None:
    """A reference mode chooses clusters at either level, for comparison."""
    assert make_policy(name).name == name
    assert make_policy(name, PolicyOptions(level="cluster")).name == name


@pytest.mark.parametrize("kind", ["placement", "any"])
def test_divided_jobs_go_to_the_same_places_in_queues_and_comparisons(kind: str) -> None:
    """Without links and rules, the form of `volcano-divided` for queues decides as the form for comparisons."""
    (instance,) = drawn(kind, 1, seed=3)
    jobs = [
        replace(each, demand=replace(each.demand, network=NetworkNeed()), replicas=1 + at % 3, gang=at % 2 == 0)
        for at, each in enumerate(instance.jobs)
    ]
    plans = []
    for make in (make_policy, make_profile):
        snapshot = Snapshot(instance.fleet)
        plans.append(decide(snapshot, JobQueue(snapshot, jobs), make("volcano-divided")))
    assert plans[0].jobs_placed.any()
    assert not plans[0].jobs_placed.all()
    np.testing.assert_array_equal(plans[0].decisions, plans[1].decisions)
    np.testing.assert_array_equal(plans[0].slices, plans[1].slices)


def test_a_job_that_is_divided_in_a_queue_keeps_its_rules() -> None:
    """Only clusters that the job allows count, and a link or device that does not suit it leaves the job unplaced."""
    made = fleet(
        cluster(node(gpu(), gpu(), gpu()), name="large", gateway="gw-l"),
        cluster(node(gpu()), node(gpu()), name="small", gateway="gw-s"),
        gateways=(Gateway("gw-l"), Gateway("gw-s"), Gateway("gw-u")),
        links=(Link("gw-u", "gw-l", 40_000_000), Link("gw-u", "gw-s", 4_000_000)),
    )
    snapshot = Snapshot(made)
    jobs = [
        job("free", gpus=1, gateway="gw-u"),
        job("bound", gpus=1, clusters=frozenset({"small"}), gateway="gw-u"),
        job("near", gpus=1, gateway="gw-u", max_latency_ns=5_000_000),
    ]
    profile = make_profile("volcano-divided")
    plan = decide(snapshot, JobQueue(snapshot, jobs), profile)
    assert [(each.job, each.cluster) for each in plan.placements()] == [
        ("free", "large"),
        ("bound", "small"),
    ]
    reported = explain(snapshot, jobs[-1], profile)
    reasons = {(each.reason, each.nodes) for each in reported.refusals}
    assert reasons == {("not in the cluster with the most free GPU", 2), ("latency above the bound", 1)}
    assert reported.message == "volcano-divided considers only large, the cluster with the most free GPU"


@pytest.mark.parametrize("name", ["fgd", "seaway", "nearest"])
def test_other_policies_reject_the_level(name: str) -> None:
    """A policy without a cluster level rejects the option instead of ignoring it."""
    with pytest.raises(RejectedError, match=rf"{name}.*no level 'cluster'"):
        make_policy(name, PolicyOptions(level="cluster"))


def test_nearest_prefers_the_user_link_to_free_resources() -> None:
    """Of two clusters it takes the one with the better link, and of equal links the fuller cluster."""
    made = fleet(
        cluster(node(gpu()), name="far", gateway="gw-f"),
        cluster(node(gpu(), gpu(), gpu(), gpu()), name="near", gateway="gw-n"),
        gateways=(Gateway("gw-f"), Gateway("gw-n"), Gateway("gw-u")),
        links=(Link("gw-u", "gw-f", 40_000_000), Link("gw-u", "gw-n", 4_000_000)),
    )
    snapshot = Snapshot(made)
    jobs = [job("user", gpus=1, gateway="gw-u"), job("nobody", gpus=1)]
    policy = make_policy("nearest")
    assert isinstance(policy, Profile)
    plan = decide(snapshot, JobQueue(snapshot, jobs), policy)
    assert [each.cluster for each in plan.placements()] == ["near", "far"]


def test_unknown_names_are_rejected_with_the_known_names() -> None:
    """The error for a misspelt name lists the existing names, the nearest first."""
    with pytest.raises(RejectedError, match=r"unknown policy 'best-fit'; available: bestfit, .*seaway"):
        make_policy("best-fit")
