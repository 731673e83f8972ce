"""Policies by name."""

from __future__ import annotations

import pytest

from seaway.domain.errors import RejectedError
from seaway.scheduling.policies import PolicyOptions, make_policy, policy_names

HEURISTICS = ("greedy", "bestfit", "random", "utilization", "spread")


def test_names_are_known_to_users() -> None:
    """The heuristics and the reference modes go by the names that the documentation uses."""
    assert {*HEURISTICS, "fgd", "seaway", "volcano-divided", "volcano-duplicated"} <= set(policy_names())


@pytest.mark.parametrize("name", HEURISTICS)
def test_heuristics_have_two_levels(name: str) -> None:
    """A heuristic keeps its name at either level."""
    assert make_policy(name).name == name
    assert make_policy(name, PolicyOptions(level="cluster")).name == name


@pytest.mark.parametrize("name", ["volcano-divided", "volcano-duplicated"])
def test_reference_modes_stand_beside_either_level(name: str) -> None:
    """A reference mode chooses clusters whatever the level, so that it can be compared at both."""
    assert make_policy(name).name == name
    assert make_policy(name, PolicyOptions(level="cluster")).name == name


@pytest.mark.parametrize("name", ["fgd", "seaway"])
def test_other_policies_reject_the_level(name: str) -> None:
    """A policy without a form for clusters says so instead of ignoring the option."""
    with pytest.raises(RejectedError, match=rf"{name}.*no level 'cluster'"):
        make_policy(name, PolicyOptions(level="cluster"))


def test_unknown_names_are_rejected_with_the_known_ones() -> None:
    """A slip in a name is answered with what there is."""
    with pytest.raises(RejectedError, match=r"best-fit.*bestfit"):
        make_policy("best-fit")
