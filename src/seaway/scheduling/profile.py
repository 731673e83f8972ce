"""Profiles: an ordered, weighted set of plugins under a name. Users call them policies."""

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
    Reserve,
    Score,
)

Point = TypeVar("Point")

MAX_WEIGHT = 1_000_000
"""The largest weight of a plugin."""


@dataclass(frozen=True, slots=True, eq=False)
class WeightedPlugin:
    """A plugin and the weight of its score, at least 1."""

    plugin: Plugin
    weight: int = 1


@dataclass(frozen=True, slots=True, weakref_slot=True, eq=False)
class Profile:
    """An ordered, weighted set of plugins. Two that were made apart are two, as their plugins may remember.

    Attributes
    ----------
    name
        What users call the policy.
    plugins
        In the order in which they are asked at each extension point.
    seed
        What random choices hang on.
    plain
        Whether to keep to the plugins' own methods even where machine code would do the same.
    version
        What tells it from others of its name that decide otherwise, as the digest of a model; empty for none.

    Raises
    ------
    RejectedError
        When two plugins share a name, a weight is below 1 or no plugin scores nodes.
    """

    name: str
    plugins: tuple[WeightedPlugin, ...]
    seed: int = 0
    plain: bool = False
    version: str = ""
    _by_point: dict[object, tuple[Any, ...]] = field(default_factory=dict, init=False, repr=False)
    """Plugins by extension point, since checking whether an object follows a protocol is slow."""

    @property
    def title(self) -> str:
        """Name and edition."""
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

        Compiled code is used if the filters are exactly the engine's rules of fit, one plugin with a compiled form
        scores, and nothing else takes part.
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
