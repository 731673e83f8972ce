"""Registry of plugins, built in and from other packages, and creation of profiles."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from seaway.domain.errors import RejectedError
from seaway.scheduling.entry_points import entry_point_names, load_entry_point
from seaway.scheduling.framework import Plugin
from seaway.scheduling.plugins import rules_of_fit
from seaway.scheduling.plugins.clusters import ClusterScore, ClusterWeights
from seaway.scheduling.plugins.network import NetworkScore, NetworkWeights
from seaway.scheduling.plugins.priority_sort import PrioritySort
from seaway.scheduling.policies.balanced import Distance, MemoryMatch, Price, SpareHardware, Topology
from seaway.scheduling.policies.bestfit import BestFit
from seaway.scheduling.policies.fgd import Fgd
from seaway.scheduling.policies.greedy import Greedy
from seaway.scheduling.policies.random import Random
from seaway.scheduling.policies.registry import PolicyOptions
from seaway.scheduling.policies.seaway.plugin import Seaway
from seaway.scheduling.policies.spread import Spread
from seaway.scheduling.policies.utilization import Utilization
from seaway.scheduling.profile import Profile, WeightedPlugin

ENTRY_POINTS = "seaway.plugins"
"""Group of entry points for plugins of other packages: classes or functions that accept a plugin's settings as
keywords.
"""

PluginFactory = Callable[..., Plugin]

BUILT_IN: dict[str, Callable[[PolicyOptions], PluginFactory]] = {
    "BestFit": lambda _: BestFit,
    "ClusterScore": lambda _: lambda **weights: ClusterScore(ClusterWeights(**weights)),
    "Distance": lambda _: Distance,
    "Fgd": lambda options: lambda: Fgd(options.mix),
    "Greedy": lambda _: Greedy,
    "MemoryMatch": lambda _: MemoryMatch,
    "NetworkScore": lambda _: lambda **weights: NetworkScore(NetworkWeights(**weights)),
    "Price": lambda _: Price,
    "PrioritySort": lambda _: PrioritySort,
    "Random": lambda _: Random,
    "Seaway": lambda options: lambda: Seaway(options.mix),
    "SpareHardware": lambda _: SpareHardware,
    "Spread": lambda _: Spread,
    "Topology": lambda _: Topology,
    "Utilization": lambda _: Utilization,
}
"""Function that returns the factory of each built-in plugin, given the options of policies."""


@dataclass(frozen=True, slots=True)
class PluginSpec:
    """A plugin of a profile.

    Attributes
    ----------
    name
        Name of the plugin.
    weight
        Weight of its score.
    settings
        Settings, by keyword.
    policy
        Trained policy of the plugin, passed as ``policy``; empty for none.
    """

    name: str
    weight: int = 1
    settings: Mapping[str, Any] = field(default_factory=dict)
    policy: str = ""


@dataclass(frozen=True, slots=True)
class ProfileSpec:
    """Specification of a profile.

    Attributes
    ----------
    name
        Name of the policy.
    plugins
        Plugins in addition to the built-in filters, in order.
    """

    name: str
    plugins: tuple[PluginSpec, ...]

    @property
    def policies(self) -> tuple[str, ...]:
        """Names of the trained policies of its plugins."""
        return tuple(each.policy for each in self.plugins if each.policy)


def plugin_names() -> list[str]:
    """Return the names that `make_plugin` accepts, built-in names first."""
    return [*BUILT_IN, *entry_point_names(ENTRY_POINTS)]


def make_plugin(spec: PluginSpec, options: PolicyOptions, extra: Mapping[str, PluginFactory] = {}) -> Plugin:
    """Create a plugin.

    Parameters
    ----------
    extra
        Factories of additional plugins, by name.

    Raises
    ------
    RejectedError
        If the plugin does not exist, cannot be loaded, or does not support a setting.
    """
    factory = extra.get(spec.name) or _factory(spec.name, options, extra)
    arguments = {**spec.settings, **({"policy": spec.policy} if spec.policy else {})}
    try:
        return factory(**arguments)
    except TypeError as error:
        settings = ", ".join(arguments) or "nothing"
        raise RejectedError(f"plugin {spec.name!r} does not accept {settings}: {error}") from error


def profile_from(spec: ProfileSpec, options: PolicyOptions, extra: Mapping[str, PluginFactory] = {}) -> Profile:
    """Create a profile from the built-in filters and the specified plugins.

    Parameters
    ----------
    extra
        As for `make_plugin`.

    Raises
    ------
    RejectedError
        If a plugin cannot be created, or no plugin scores nodes.
    """
    rules = tuple(WeightedPlugin(rule) for rule in rules_of_fit())
    chosen = tuple(WeightedPlugin(make_plugin(each, options, extra), each.weight) for each in spec.plugins)
    return Profile(spec.name, (*rules, *chosen), seed=options.seed, plain=options.plain)


def _factory(name: str, options: PolicyOptions, extra: Iterable[str]) -> PluginFactory:
    if name in BUILT_IN:
        return BUILT_IN[name](options)
    factory: PluginFactory | None = load_entry_point(ENTRY_POINTS, name)
    if factory is None:
        raise RejectedError(f"unknown plugin {name!r}; available: {', '.join([*plugin_names(), *extra])}")
    return factory
