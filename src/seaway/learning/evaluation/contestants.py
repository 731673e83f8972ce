"""Contestants of a comparison."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import msgspec

from seaway.learning.episodes.episode import OFFERED_TWICE
from seaway.learning.instances.instance import Instance
from seaway.learning.instances.wide import KINDS, family_of, generate_one
from seaway.learning.runs.instances import digest_of
from seaway.scheduling.engine import Policy
from seaway.scheduling.policies.registry import BUILT_IN, Level, PolicyFactory, PolicyOptions, make_policy, policy_names
from seaway.scheduling.profile import Profile
from seaway.simulation.outcome import Outcome
from seaway.simulation.replay import replay


@dataclass(frozen=True, slots=True)
class Seen:
    """Instances that something was trained on.

    Attributes
    ----------
    digests
        Of each, see `digest_of`.
    draw, draws, draw_seed
        Kinds of which instances were drawn besides, how many of each, and from which seed. One of them is known by its
        name, and by its content when it is drawn again.
    also
        What others were trained on that decide with it.
    """

    digests: frozenset[str] = frozenset()
    draw: tuple[str, ...] = ()
    draws: int = 0
    draw_seed: int = 0
    also: tuple[Seen, ...] = ()

    def has(self, instance: Instance, digest: str) -> bool:
        """Tell whether an instance is one of them, given its digest."""
        return (
            digest in self.digests
            or any(self._drew(kind, instance, digest) for kind in self.draw)
            or any(each.has(instance, digest) for each in self.also)
        )

    def _drew(self, kind: str, instance: Instance, digest: str) -> bool:
        family, name = family_of(kind, self.draw_seed), instance.name
        number = name.removeprefix(family)
        if kind not in KINDS or not name.startswith(family) or not number.isdecimal() or int(number) >= self.draws:
            return False
        return digest_of(generate_one(kind, int(number), self.draw_seed)) == digest


class _Draws(msgspec.Struct):
    draws: int = 0
    draw_seed: int = 0


class _Stored(msgspec.Struct):
    digests: dict[str, str]
    draw: tuple[str, ...] = ()
    settings: _Draws = msgspec.field(default_factory=_Draws)


def seen_by(config: Mapping[str, Any]) -> Seen | None:
    """Return what the settings in a policy file say it was trained on; None where they do not say."""
    try:
        reported = msgspec.convert(config, _Stored)
    except msgspec.ValidationError:
        return None
    return Seen(
        frozenset(reported.digests.values()), reported.draw, reported.settings.draws, reported.settings.draw_seed
    )


def seen_together(configs: Sequence[Mapping[str, Any]]) -> Seen | None:
    """Return what policies that decide together were trained on; None where one of them, or none, says it."""
    seen = [each for config in configs if (each := seen_by(config))]
    return Seen(also=tuple(seen)) if seen and len(seen) == len(configs) else None


PUBLISHED_HEURISTICS = ("utilization", "random", "bestfit", "greedy")
"""Heuristics of the published comparison; there they choose among clusters."""

BLIND = ("volcano-divided", "volcano-duplicated")
"""Reference modes: they have one form, which chooses among clusters."""

OFFERS = OFFERED_TWICE.offers
"""Default number of offers of a deferred job; the rule is the same for all policies."""

DRAWN = ("random",)
"""Built-in policies that a seed changes. Of those from elsewhere it is not known, so every seed is tried."""


@dataclass(frozen=True, slots=True)
class Played:
    """Outcome of a policy, with a note on it, usually empty."""

    outcome: Outcome
    note: str = ""


class Player(Protocol):
    """A policy that decides. It can be sent to another process."""

    def play(self, instance: Instance, seed: int, offers: int = OFFERS) -> Played:
        """Decide all jobs of an instance on its empty fleet.

        Parameters
        ----------
        offers
            How often a job that it has wait is offered in all: on arrival, and again after the last arrival.

        Raises
        ------
        RejectedError
            When it does not suit the instance; says why.
        """


@dataclass(frozen=True, slots=True)
class Contestant:
    """A policy that is measured.

    Attributes
    ----------
    name
        What tables call it.
    level
        What it chooses among: ``node`` or ``cluster``.
    player
        What decides.
    seeded
        Whether what it does depends on a seed.
    seed
        Which seed its rows bear, where that is settled: the one that it was trained with.
    trained_on
        The instances that it was trained on; None for what was not trained, or does not say.
    own_only
        Whether it is measured on those alone.
    episodes
        The file that tells of each episode of its training; None where there is none.
    """

    name: str
    level: str
    player: Player
    seeded: bool = False
    seed: int | None = None
    trained_on: Seen | None = None
    own_only: bool = False
    episodes: Path | None = None

    def seeds(self, seeds: Sequence[int]) -> Sequence[int]:
        """Return the seeds to measure it with."""
        if self.seed is not None:
            return (self.seed,)
        return seeds if self.seeded else seeds[:1]


@dataclass(frozen=True, slots=True)
class EnginePlayer:
    """A policy in the engine: rules of fit come first, so that it never chooses what does not fit.

    Attributes
    ----------
    make
        Makes the policy, given its options.
    level
        What it is to choose among.
    """

    make: Callable[[PolicyOptions], Profile | Policy]
    level: Level = "node"

    def play(self, instance: Instance, seed: int, offers: int = OFFERS) -> Played:
        """Replay the instance; policies that learn what is likely to come learn it from its mix alone."""
        options = PolicyOptions(self.level, seed, instance.mix)
        return Played(replay(instance.fleet, instance.jobs, partial(self.make, options), offers=offers))


def heuristic(name: str, level: Level, make: PolicyFactory | None = None) -> Contestant:
    """Return a policy of the engine as a contestant.

    Parameters
    ----------
    make
        Makes it; by its name without this.

    Raises
    ------
    RejectedError
        When no policy has that name, or it does not have the level.
    """
    make = make or partial(make_policy, name)
    make(PolicyOptions(level))
    seeded = name in DRAWN or name not in BUILT_IN
    return Contestant(name, "cluster" if name in BLIND else level, EnginePlayer(make, level), seeded)


def heuristics() -> list[Contestant]:
    """Return the published heuristics as published, and every policy of the engine at node level."""
    published = [heuristic(name, "cluster") for name in PUBLISHED_HEURISTICS]
    return published + [heuristic(name, "node") for name in policy_names()]
