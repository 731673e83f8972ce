"""Policies by name."""

from __future__ import annotations

import pytest

from seaway.domain.errors import RejectedError
from seaway.domain.network import Gateway, Link
from seaway.scheduling.engine import decide
from seaway.scheduling.job_queue import JobQueue
from seaway.scheduling.policies.registry import PolicyOptions, make_policy, policy_names
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


@pytest.mark.parametrize("name", ["volcano-divided", "volcano-duplicated"])
def test_reference_modes_accept_either_level(name: str) -> None:
    """A reference mode chooses clusters at either level, for comparison."""
    assert make_policy(name).name == name
    assert make_policy(name, PolicyOptions(level="cluster")).name == name


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
    """The error for a misspelt name lists the existing names."""
    with pytest.raises(RejectedError, match=r"best-fit.*bestfit"):
        make_policy("best-fit")
