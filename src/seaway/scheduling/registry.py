"""Plugins by name, ours and those of other packages, and profiles put together from them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from seaway.domain.errors import RejectedError
from seaway.scheduling.framework import Plugin
from seaway.scheduling.offers import load_offer, offered
from seaway.scheduling.plugins import rules_of_fit
from seaway.scheduling.plugins.bestfit import BestFit
from seaway.scheduling.plugins.cluster_score import ClusterScore, ClusterWeights
from seaway.scheduling.plugins.fgd import Fgd
from seaway.scheduling.plugins.greedy import Greedy
from seaway.scheduling.plugins.network_score import NetworkScore, NetworkWeights
from seaway.scheduling.plugins.priority_sort import PrioritySort
from seaway.scheduling.plugins.random import Random
from seaway.scheduling.plugins.seaway import Seaway
from seaway.scheduling.plugins.spread import Spread
from seaway.scheduling.plugins.utilization import Utilization
from seaway.scheduling.policies import PolicyOptions
from seaway.scheduling.profile import Profile, Weighted

ENTRY_POINTS = "seaway.plugins"
"""Group of entry points under which other packages offer plugins: classes or functions that take a
plugin's settings as keywords."""

PluginFactory = Callable[..., Plugin]

BUILT_IN: dict[str, Callable[[PolicyOptions], PluginFactory]] = {
    "BestFit": lambda _: BestFit,
    "ClusterScore": lambda _: lambda **weights: ClusterScore(ClusterWeights(**weights)),
    "Fgd": lambda options: lambda: Fgd(options.mix),
    "Greedy": lambda _: Greedy,
    "NetworkScore": lambda _: lambda **weights: NetworkScore(NetworkWeights(**weights)),
    "PrioritySort": lambda _: PrioritySort,
    "Random": lambda _: Random,
    "Seaway": lambda options: lambda: Seaway(options.mix),
    "Spread": lambda _: Spread,
    "Utilization": lambda _: Utilization,
}
"""What makes each plugin that a profile may choose, given what policies are told."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """A plugin that a profile asks for.

    Attributes
    ----------
    name
        The plugin's name.
    weight
        How much its score counts.
    settings
        What it is told, by keyword.
    """

    name: str
    weight: int = 1
    settings: Mapping[str, Any] = field(default_factory=dict)


def plugin_names() -> list[str]:
    """Return the names that `make_plugin` knows, our own first."""
    return [*BUILT_IN, *offered(ENTRY_POINTS)]


def make_plugin(wanted: Wanted, options: PolicyOptions) -> Plugin:
    """Make a plugin.

    Raises
    ------
    RejectedError
        When there is none of that name, it cannot be loaded, or it does not know a setting.
    """
    factory = _factory(wanted.name, options)
    try:
        return factory(**wanted.settings)
    except TypeError as error:
        settings = ", ".join(wanted.settings) or "nothing"
        raise RejectedError(f"plugin {wanted.name!r} cannot be told {settings}: {error}") from error


def profile_from(name: str, wanted: Sequence[Wanted], options: PolicyOptions) -> Profile:
    """Put a profile together from the rules of fit and plugins by name.

    Raises
    ------
    RejectedError
        When a plugin cannot be made, or no plugin scores nodes.
    """
    rules = tuple(Weighted(rule) for rule in rules_of_fit())
    chosen = tuple(Weighted(make_plugin(each, options), each.weight) for each in wanted)
    return Profile(name, (*rules, *chosen), seed=options.seed, plain=options.plain)


def _factory(name: str, options: PolicyOptions) -> PluginFactory:
    if name in BUILT_IN:
        return BUILT_IN[name](options)
    factory: PluginFactory | None = load_offer(ENTRY_POINTS, name)
    if factory is None:
        raise RejectedError(f"unknown plugin {name!r}; there are: {', '.join(plugin_names())}")
    return factory
