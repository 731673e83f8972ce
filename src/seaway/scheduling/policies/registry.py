"""Registry of policies, built in and from other packages."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, get_args

from seaway.domain.errors import RejectedError
from seaway.domain.job import Job
from seaway.domain.reasons import Reason, also
from seaway.domain.tenancy import unknown_name
from seaway.scheduling.engine import Policy
from seaway.scheduling.entry_points import entry_point_names, load_entry_point
from seaway.scheduling.framework import Plugin
from seaway.scheduling.plugins import rules_of_fit
from seaway.scheduling.plugins.network import NetworkScore
from seaway.scheduling.policies.balanced import BalancedWeights, balanced_scores
from seaway.scheduling.policies.bestfit import BestFit
from seaway.scheduling.policies.cluster_level import ClusterLevel, ClusterRule
from seaway.scheduling.policies.fgd import Fgd
from seaway.scheduling.policies.greedy import Greedy
from seaway.scheduling.policies.random import Random
from seaway.scheduling.policies.seaway.plugin import Seaway
from seaway.scheduling.policies.spread import Spread
from seaway.scheduling.policies.utilization import Utilization
from seaway.scheduling.policies.volcano import VolcanoDivided, VolcanoDuplicated, divided_plugins
from seaway.scheduling.profile import Profile, WeightedPlugin

ENTRY_POINTS = "seaway.policies"
"""Group of entry points for policies of other packages."""

Level = Literal["node", "cluster"]

MAX_SEED = 2**31 - 1

LEAST_MIX = 20
"""Minimum number of jobs of a queue that make a job mix of their own."""

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
    weights
        Weights of the aims of `balanced`; its defaults for missing ones.
    """

    level: Level = "node"
    seed: int = 0
    mix: Sequence[Job] = ()
    plain: bool = False
    weights: Mapping[str, int] = field(default_factory=dict)


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
            raise RejectedError(Reason("policy_without_level", name=name, level=options.level))
        return make(options)

    return factory


def _nearest_profile(options: PolicyOptions) -> Profile:
    """Return the profile `nearest`: the link from the user's gateway first, then the free resources of nodes."""
    scores = (WeightedPlugin(NetworkScore(), NETWORK_WEIGHT), WeightedPlugin(BestFit()))
    return Profile("nearest", (*map(WeightedPlugin, rules_of_fit()), *scores), seed=options.seed, plain=options.plain)


def _balanced_profile(options: PolicyOptions) -> Profile:
    """Return the profile `balanced`, with the weights of the options."""
    scores = balanced_scores(BalancedWeights.of(options.weights))
    plugins = (*map(WeightedPlugin, rules_of_fit()), *(WeightedPlugin(plugin, weight) for plugin, weight in scores))
    return Profile("balanced", plugins, seed=options.seed, plain=options.plain)


def _divided_profile(options: PolicyOptions) -> Profile:
    """Return the form of `volcano-divided` for queues."""
    plugins = tuple(map(WeightedPlugin, divided_plugins()))
    return Profile("volcano-divided", plugins, seed=options.seed, plain=options.plain, divides=True)


@dataclass(frozen=True, slots=True)
class PolicyEntry:
    """A policy that users can choose.

    Attributes
    ----------
    make
        Factory of the policy.
    description
        Description, one clause.
    options
        Names of its options in queues.
    in_queues
        Factory of its form for queues; None if it is that of `make`.
    warning
        Limits to consider before it decides for a queue, one or two sentences; empty for none.
    refused
        Reason why no queue can use it, one clause; empty for none.
    """

    make: PolicyFactory
    description: str
    options: tuple[str, ...] = ()
    in_queues: Callable[[PolicyOptions], Profile] | None = None
    warning: str = ""
    refused: str = ""


BUILT_IN: dict[str, PolicyEntry] = {
    "seaway": PolicyEntry(
        one_level("seaway", lambda options: profile_of("seaway", options, Seaway(options.mix))),
        "Seaway's own: the node whose value to the job mix drops least",
        ("mix",),
    ),
    "fgd": PolicyEntry(
        one_level("fgd", lambda options: profile_of("fgd", options, Fgd(options.mix))),
        "fragmentation gradient descent: the node where unusable GPU for the job mix grows least",
        ("mix",),
    ),
    "bestfit": PolicyEntry(
        two_levels("bestfit", BestFit, ClusterRule.FULLEST), "the feasible node with least left", ("level",)
    ),
    "greedy": PolicyEntry(two_levels("greedy", Greedy, ClusterRule.FIRST), "the first feasible node", ("level",)),
    "random": PolicyEntry(
        two_levels("random", Random, ClusterRule.RANDOM), "a random feasible node", ("level", "seed")
    ),
    "spread": PolicyEntry(
        two_levels("spread", Spread, ClusterRule.EMPTIEST), "the feasible node with most left", ("level",)
    ),
    "utilization": PolicyEntry(
        two_levels("utilization", Utilization, ClusterRule.MATCHING),
        "the node whose free shares match the request best",
        ("level",),
    ),
    "nearest": PolicyEntry(
        one_level("nearest", _nearest_profile),
        "the node with the best link to the user, then with the least left",
    ),
    "balanced": PolicyEntry(
        one_level("balanced", _balanced_profile),
        "a weighted mean of free resources, distance, topology, hardware and price",
        ("weights",),
    ),
    "volcano-divided": PolicyEntry(
        lambda _: VolcanoDivided(),
        "baseline: each replica to the cluster with most free GPU, without devices and links",
        in_queues=_divided_profile,
        warning="This is a baseline for comparison. It considers only the cluster with the most free GPU, so jobs wait "
        "although they fit elsewhere.",
    ),
    "volcano-duplicated": PolicyEntry(
        lambda _: VolcanoDuplicated(),
        "baseline: a duplicate of the whole job in every cluster that could hold it",
        refused="it runs a job once in every cluster with room, and a job of a queue runs once; use volcano-divided, "
        "or a standby for a second copy of a service",
    ),
}


def policy_names() -> list[str]:
    """Return the names that `make_policy` accepts, built-in names first."""
    return [*BUILT_IN, *entry_point_names(ENTRY_POINTS)]


def split_spec(spec: str) -> tuple[str, dict[str, Any]]:
    """Split a policy of a queue, as in `Queue.policy_spec`, into its name and options.

    Raises
    ------
    RejectedError
        If the options are not a JSON object.
    """
    name, brace, rest = spec.partition("{")
    try:
        return name, json.loads(brace + rest) if brace else {}
    except ValueError:
        raise RejectedError(Reason("options_not_json", name=name, text=brace + rest[:80])) from None


def with_options(name: str, given: Mapping[str, Any], options: PolicyOptions) -> PolicyOptions:
    """Return options of a policy with those that a queue sets.

    `mix` of a queue is the name of a queue, and selects its jobs of the mix in `options`; all if they are too few.

    Raises
    ------
    RejectedError
        If the policy has no such option, or a value is invalid; names the option.
    """
    known = BUILT_IN[name].options if name in BUILT_IN else ()
    for option, value in given.items():
        if option not in known:
            hint = Reason("options_are", names=tuple(known)) if known else Reason("options_none")
            raise RejectedError(also(Reason("no_such_option", policy=name, option=option), hint), where=option)
        if option == "level" and value not in get_args(Level):
            raise RejectedError(Reason("value_not_one_of", value=repr(value), names=get_args(Level)), where=option)
        if option == "seed" and (type(value) is not int or not 0 <= value <= MAX_SEED):
            raise RejectedError(Reason("whole_number_between", value=repr(value), most=MAX_SEED), where=option)
        if option == "weights":
            _require_weights(value)
        if option == "mix" and not (isinstance(value, str) and value):
            raise RejectedError(Reason("not_a_queue_name", value=repr(value)), where=option)
    if "mix" in given:
        own = [job for job in options.mix if job.queue == given["mix"]]
        given = {**given, "mix": own if len(own) >= LEAST_MIX else options.mix}
    return replace(options, **given)


def _require_weights(value: object) -> None:
    if not isinstance(value, dict):
        raise RejectedError(Reason("not_weights"), where="weights")
    try:
        BalancedWeights.of(value)
    except RejectedError as error:
        raise RejectedError(error.message, where=f"weights.{error.where}" if error.where else "weights") from None


def make_profile(name: str, options: PolicyOptions = PolicyOptions()) -> Profile:
    """Create the form of a policy for queues.

    Raises
    ------
    RejectedError
        As for `make_policy` and `in_queues`.
    """
    return in_queues(make_policy(name, options), options)


def in_queues(policy: Profile | Policy, options: PolicyOptions) -> Profile:
    """Return the form of a policy for queues, with the options of the policy.

    Raises
    ------
    RejectedError
        If it has none, because it does not consist of plugins.
    """
    entry = BUILT_IN.get(policy.name)
    if entry and entry.in_queues:
        return entry.in_queues(options)
    if entry and entry.refused:
        raise RejectedError(Reason("policy_for_replay", name=policy.name, cause=entry.refused))
    if not isinstance(policy, Profile):
        raise RejectedError(Reason("policy_without_plugins", name=policy.name))
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
        raise unknown_name("policy", name, policy_names(), where="")
    return factory(options)
