"""Profiles: named, ordered, weighted sets of plugins. Users know them as policies."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from seaway.domain.errors import RejectedError
from seaway.scheduling.framework import (
    Bind,
    Compiled,
    DeviceScore,
    Filter,
    Permit,
    Plugin,
    PostFilter,
    PreBind,
    PreFilter,
    PreScore,
    QueueSort,
    Reserve,
    Score,
)

Point = TypeVar("Point")

MAX_WEIGHT = 1_000_000
"""Maximum weight of a plugin."""


@dataclass(frozen=True, slots=True, eq=False)
class WeightedPlugin:
    """A plugin and the weight of its score, at least 1."""

    plugin: Plugin
    weight: int = 1


@dataclass(frozen=True, slots=True, weakref_slot=True, eq=False)
class Profile:
    """An ordered, weighted set of plugins. Profiles are compared by identity, because plugins may have state.

    Attributes
    ----------
    name
        Name of the policy.
    plugins
        Plugins, in the order in which they are called at each extension point.
    seed
        Seed of random choices.
    plain
        Whether to use the plugins' own methods even if compiled code is available.
    version
        Version that distinguishes it from other profiles of the same name, such as the digest of a model; empty for
        none.
    divides
        Whether the replicas of a gang are placed one by one, in the cluster that the plugins choose for each.
        Otherwise a gang is placed in one cluster if it fits.

    Raises
    ------
    RejectedError
        If two plugins share a name, a weight is out of range, or no plugin scores nodes.
    """

    name: str
    plugins: tuple[WeightedPlugin, ...]
    seed: int = 0
    plain: bool = False
    version: str = ""
    divides: bool = False
    _by_point: dict[object, tuple[Any, ...]] = field(default_factory=dict, init=False, repr=False)
    """Cache of plugins by extension point, because protocol checks are slow."""

    @property
    def title(self) -> str:
        """Name and version."""
        return f"{self.name}@{self.version}" if self.version else self.name

    def __post_init__(self) -> None:
        """Check names and weights."""
        names = [weighted.plugin.name for weighted in self.plugins]
        for name in names:
            if names.count(name) > 1:
                raise RejectedError(f"profile {self.name!r} has the plugin {name!r} more than once")
        if any(not 1 <= weighted.weight <= MAX_WEIGHT for weighted in self.plugins):
            raise RejectedError(f"profile {self.name!r} has a weight that is not between 1 and {MAX_WEIGHT:,}")
        if not any(isinstance(weighted.plugin, Score) for weighted in self.plugins):
            raise RejectedError(f"profile {self.name!r} has no plugin that scores nodes")

    def with_plugins(self, *plugins: Plugin) -> Profile:
        """Return the same profile with more plugins after its own."""
        return replace(self, plugins=(*self.plugins, *(WeightedPlugin(plugin) for plugin in plugins)))

    def with_version(self, version: str) -> Profile:
        """Return the same profile with a version that distinguishes it from others of its name."""
        return replace(self, version=version)

    def at(self, point: type[Point]) -> tuple[Point, ...]:
        """Return the plugins that take part in an extension point, in order."""
        found = self._by_point.get(point)
        if found is None:
            found = self._by_point[point] = tuple(
                each.plugin for each in self.plugins if isinstance(each.plugin, point)
            )
        return found

    @property
    def draws(self) -> bool:
        """True if a plugin makes random choices, or sorts jobs, so that a decision depends on those made with it."""
        found = self._by_point.get("draws")
        if found is None:
            found = self._by_point["draws"] = tuple(
                each.plugin
                for each in self.plugins
                if isinstance(each.plugin, QueueSort) or getattr(each.plugin, "draws", False)
            )
        return bool(found)

    @property
    def binds(self) -> bool:
        """True if a plugin takes part in binding."""
        return bool(self.at(PreBind) or self.at(Bind))  # type: ignore[type-abstract]

    def scores(self) -> tuple[tuple[Score, int], ...]:
        """Return the plugins that score nodes, with their weights."""
        found = self._by_point.get("weights")
        if found is None:
            scoring = (each for each in self.plugins if isinstance(each.plugin, Score))
            found = self._by_point["weights"] = tuple((each.plugin, each.weight) for each in scoring)
        return found

    def compiled(self, rules_of_fit: tuple[str, ...]) -> Compiled | None:
        """Return the one score that compiled code can replace; None if the plain path is needed.

        Compiled code is used if the filters are exactly `rules_of_fit`, the only score plugin has a compiled form, and
        no other plugin takes part in decisions.
        """
        found = self._by_point.get(rules_of_fit)
        if found is None:
            found = self._by_point[rules_of_fit] = (self._single_compiled_score(rules_of_fit),)
        only: Compiled | None = found[0]
        return only

    def _single_compiled_score(self, rules_of_fit: tuple[str, ...]) -> Compiled | None:
        scores = self.scores()
        busy = (PreFilter, PostFilter, PreScore, Reserve, Permit)
        filters = tuple(each.name for each in self.at(Filter))  # type: ignore[type-abstract]
        if self.plain or len(scores) != 1 or filters != rules_of_fit:
            return None
        only = scores[0][0]
        if any(isinstance(each.plugin, busy) for each in self.plugins):
            return None
        deciders: list[object] = [*self.at(DeviceScore)]  # type: ignore[type-abstract]
        if any(each is not only for each in deciders):
            return None
        return only if isinstance(only, Compiled) else None
