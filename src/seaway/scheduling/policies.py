"""Policies by name: what users choose from, our own and those that other packages bring."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.metadata import entry_points
from typing import Literal

from seaway.domain.errors import RejectedError
from seaway.domain.job import Job
from seaway.scheduling.engine import Policy
from seaway.scheduling.framework import Plugin
from seaway.scheduling.plugins import rules_of_fit
from seaway.scheduling.plugins.bestfit import BestFit
from seaway.scheduling.plugins.fgd import Fgd
from seaway.scheduling.profile import Profile, Weighted

ENTRY_POINTS = "seaway.policies"
"""Group of entry points under which other packages offer policies."""

Level = Literal["node", "cluster"]


@dataclass(frozen=True, slots=True)
class PolicyOptions:
    """What a policy may be told.

    Attributes
    ----------
    level
        Whether to choose among all nodes, or first a cluster and then its first fitting node.
    seed
        What random choices hang on.
    mix
        Jobs of the past, from which `fgd` and `seaway` learn what is likely to come.
    plain
        Whether to keep to the plugins' own methods even where machine code would do the same.
    """

    level: Level = "node"
    seed: int = 0
    mix: Sequence[Job] = ()
    plain: bool = False


PolicyFactory = Callable[[PolicyOptions], Profile | Policy]


def profile_of(name: str, options: PolicyOptions, *scores: Plugin) -> Profile:
    """Join the rules of fit and some scores, of equal weight, to a profile."""
    plugins = (*rules_of_fit(), *scores)
    return Profile(name, tuple(Weighted(plugin) for plugin in plugins), seed=options.seed, plain=options.plain)


def _bestfit(options: PolicyOptions) -> Profile | Policy:
    return profile_of("bestfit", options, BestFit())


def _fgd(options: PolicyOptions) -> Profile | Policy:
    return profile_of("fgd", options, Fgd(options.mix))


BUILT_IN: dict[str, PolicyFactory] = {
    "bestfit": _bestfit,
    "fgd": _fgd,
}


def policy_names() -> list[str]:
    """Return the names that `make_policy` knows, our own first."""
    return [*BUILT_IN, *sorted(point.name for point in entry_points(group=ENTRY_POINTS))]


def make_policy(name: str, options: PolicyOptions = PolicyOptions()) -> Profile | Policy:
    """Make a policy.

    Raises
    ------
    RejectedError
        When no policy has that name, or it does not have the asked-for level.
    """
    if name in BUILT_IN:
        return BUILT_IN[name](options)
    for point in entry_points(group=ENTRY_POINTS):
        if point.name == name:
            factory: PolicyFactory = point.load()
            return factory(options)
    raise RejectedError(f"unknown policy {name!r}; there are: {', '.join(policy_names())}")
