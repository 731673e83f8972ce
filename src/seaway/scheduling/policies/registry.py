"""Registry of policies, built in and from other packages."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from seaway.domain.errors import RejectedError
from seaway.domain.job import Job
from seaway.scheduling.engine import Policy
from seaway.scheduling.entry_points import entry_point_names, load_entry_point
from seaway.scheduling.framework import Plugin
from seaway.scheduling.plugins import rules_of_fit
from seaway.scheduling.plugins.network import NetworkScore
from seaway.scheduling.policies.bestfit import BestFit
from seaway.scheduling.policies.cluster_level import ClusterLevel, ClusterRule
from seaway.scheduling.policies.fgd import Fgd
from seaway.scheduling.policies.greedy import Greedy
from seaway.scheduling.policies.random import Random
from seaway.scheduling.policies.seaway.plugin import Seaway
from seaway.scheduling.policies.spread import Spread
from seaway.scheduling.policies.utilization import Utilization
from seaway.scheduling.policies.volcano import VolcanoDivided, VolcanoDuplicated
from seaway.scheduling.profile import Profile, WeightedPlugin

ENTRY_POINTS = "seaway.policies"
"""Group of entry points for policies of other packages."""

Level = Literal["node", "cluster"]

NETWORK_WEIGHT = 4
"""Weight of the link in `nearest`; the free resources of a node have 1."""


@dataclass(frozen=True, slots=True)
class PolicyOptions:
    """Options of a policy.

    Attributes
    ----------
    level
        Whether to select among all nodes, or first a cluster and then its first fitting node.
    seed
        Seed of random choices.
    mix
        Past jobs, from which `fgd` and `seaway` learn the job mix.
    plain
        Whether to use the plugins' own methods even if compiled code is available.
    """

    level: Level = "node"
    seed: int = 0
    mix: Sequence[Job] = ()
    plain: bool = False


PolicyFactory = Callable[[PolicyOptions], Profile | Policy]


def profile_of(name: str, options: PolicyOptions, *scores: Plugin) -> Profile:
    """Return a profile with the built-in filters and scores of equal weight."""
    plugins = (*rules_of_fit(), *scores)
    return Profile(name, tuple(WeightedPlugin(plugin) for plugin in plugins), seed=options.seed, plain=options.plain)


def two_levels(name: str, score: Callable[[], Plugin], rule: ClusterRule) -> PolicyFactory:
    """Return a factory for both levels: `score` for nodes, `rule` for clusters."""
    return lambda options: profile_of(name, options, score() if options.level == "node" else ClusterLevel(rule))


def one_level(name: str, make: Callable[[PolicyOptions], Profile | Policy]) -> PolicyFactory:
    """Return a factory that rejects the level of clusters."""

    def factory(options: PolicyOptions) -> Profile | Policy:
        if options.level != "node":
            raise RejectedError(f"policy {name!r} has no level {options.level!r}; leave the option out")
        return make(options)

    return factory


def _nearest_profile(options: PolicyOptions) -> Profile:
    """Return the profile `nearest`: the link from the user's gateway first, then the free resources of nodes."""
    scores = (WeightedPlugin(NetworkScore(), NETWORK_WEIGHT), WeightedPlugin(BestFit()))
    return Profile("nearest", (*map(WeightedPlugin, rules_of_fit()), *scores), seed=options.seed, plain=options.plain)


@dataclass(frozen=True, slots=True)
class PolicyEntry:
    """A policy that users can choose.

    Attributes
    ----------
    make
        Factory of the policy.
    description
        Description, one clause.
    """

    make: PolicyFactory
    description: str


BUILT_IN: dict[str, PolicyEntry] = {
    "seaway": PolicyEntry(
        one_level("seaway", lambda options: profile_of("seaway", options, Seaway(options.mix))),
        "Seaway's own: the node whose value to the job mix drops least",
    ),
    "fgd": PolicyEntry(
        one_level("fgd", lambda options: profile_of("fgd", options, Fgd(options.mix))),
        "fragmentation gradient descent: the node where unusable GPU for the job mix grows least",
    ),
    "bestfit": PolicyEntry(two_levels("bestfit", BestFit, ClusterRule.FULLEST), "the feasible node with least left"),
    "greedy": PolicyEntry(two_levels("greedy", Greedy, ClusterRule.FIRST), "the first feasible node"),
    "random": PolicyEntry(two_levels("random", Random, ClusterRule.RANDOM), "a random feasible node"),
    "spread": PolicyEntry(two_levels("spread", Spread, ClusterRule.EMPTIEST), "the feasible node with most left"),
    "utilization": PolicyEntry(
        two_levels("utilization", Utilization, ClusterRule.MATCHING),
        "the node whose free shares match the request best",
    ),
    "nearest": PolicyEntry(
        one_level("nearest", _nearest_profile),
        "the node with the best link to the user, then with the least left",
    ),
    "volcano-divided": PolicyEntry(
        lambda _: VolcanoDivided(),
        "baseline: each replica to the cluster with most free GPU, without devices and links",
    ),
    "volcano-duplicated": PolicyEntry(
        lambda _: VolcanoDuplicated(), "baseline: a duplicate of the whole job in every cluster that could hold it"
    ),
}


def policy_names() -> list[str]:
    """Return the names that `make_policy` accepts, built-in names first."""
    return [*BUILT_IN, *entry_point_names(ENTRY_POINTS)]


def make_profile(name: str, options: PolicyOptions = PolicyOptions()) -> Profile:
    """Create a policy that consists of plugins.

    Raises
    ------
    RejectedError
        As for `make_policy`, and if the policy does not consist of plugins.
    """
    policy = make_policy(name, options)
    if not isinstance(policy, Profile):
        raise RejectedError(f"policy {name!r} does not consist of plugins, so no plugin can be added")
    return policy


def make_policy(name: str, options: PolicyOptions = PolicyOptions()) -> Profile | Policy:
    """Create a policy.

    Raises
    ------
    RejectedError
        If the policy does not exist, or does not support the requested level.
    """
    if name in BUILT_IN:
        return BUILT_IN[name].make(options)
    factory: PolicyFactory | None = load_entry_point(ENTRY_POINTS, name)
    if factory is None:
        raise RejectedError(f"unknown policy {name!r}; available: {', '.join(policy_names())}")
    return factory(options)
