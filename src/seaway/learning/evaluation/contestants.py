"""Policies to compare."""

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
class TrainingSet:
    """Instances that a policy was trained on.

    Attributes
    ----------
    digests
        Digests, see `digest_of`.
    draw, draws, draw_seed
        Kinds of generated instances, the number of each, and their seed. A generated instance is identified by its name
        and, when it is generated again, by its content.
    also
        Training instances of other policies that decide with it.
    """

    digests: frozenset[str] = frozenset()
    draw: tuple[str, ...] = ()
    draws: int = 0
    draw_seed: int = 0
    also: tuple[TrainingSet, ...] = ()

    def has(self, instance: Instance, digest: str) -> bool:
        """Report whether an instance with this digest is one of them."""
        return (
            digest in self.digests
            or any(self._generated(kind, instance, digest) for kind in self.draw)
            or any(each.has(instance, digest) for each in self.also)
        )

    def _generated(self, kind: str, instance: Instance, digest: str) -> bool:
        family, name = family_of(kind, self.draw_seed), instance.name
        number = name.removeprefix(family)
        if kind not in KINDS or not name.startswith(family) or not number.isdecimal() or int(number) >= self.draws:
            return False
        return digest_of(generate_one(kind, int(number), self.draw_seed)) == digest


class _Settings(msgspec.Struct):
    draws: int = 0
    draw_seed: int = 0


class _Config(msgspec.Struct):
    digests: dict[str, str]
    draw: tuple[str, ...] = ()
    settings: _Settings = msgspec.field(default_factory=_Settings)


def training_set(config: Mapping[str, Any]) -> TrainingSet | None:
    """Return the training instances according to the settings in a policy file; None if they are not recorded."""
    try:
        stored = msgspec.convert(config, _Config)
    except msgspec.ValidationError:
        return None
    return TrainingSet(
        frozenset(stored.digests.values()), stored.draw, stored.settings.draws, stored.settings.draw_seed
    )


def joint_training_set(configs: Sequence[Mapping[str, Any]]) -> TrainingSet | None:
    """Return the training instances of policies that decide together; None if any of them is unknown."""
    seen = [each for config in configs if (each := training_set(config))]
    return TrainingSet(also=tuple(seen)) if seen and len(seen) == len(configs) else None


PUBLISHED_HEURISTICS = ("utilization", "random", "bestfit", "greedy")
"""Heuristics of the published comparison, which choose clusters there."""

CLUSTER_LEVEL = ("volcano-divided", "volcano-duplicated")
"""Reference modes, which only choose clusters."""

OFFERS = OFFERED_TWICE.offers
"""Default number of offers of a deferred job; the rule is the same for all policies."""

SEEDED = ("random",)
"""Built-in policies with random choices. Policies from other packages are evaluated with all seeds."""


@dataclass(frozen=True, slots=True)
class Played:
    """Outcome of a policy, with an optional note."""

    outcome: Outcome
    note: str = ""


class Player(Protocol):
    """A policy that decides jobs of an instance. It can be sent to another process."""

    def play(self, instance: Instance, seed: int, offers: int = OFFERS) -> Played:
        """Decide all jobs of an instance on its empty fleet.

        Parameters
        ----------
        offers
            Total number of offers of a deferred job: on arrival, and again after the last arrival.

        Raises
        ------
        RejectedError
            When the policy does not support the instance.
        """


@dataclass(frozen=True, slots=True)
class Contestant:
    """A policy to compare.

    Attributes
    ----------
    name
        Name in tables.
    level
        Level of its choices: ``node`` or ``cluster``.
    player
        The policy.
    seeded
        Whether its decisions depend on a seed.
    seed
        Seed of its rows if it is fixed: the one that it was trained with.
    trained_on
        Training instances; None for an untrained policy, or if they are unknown.
    own_only
        Whether it is evaluated on these only.
    episodes
        Table of the episodes of its training; None without one.
    """

    name: str
    level: str
    player: Player
    seeded: bool = False
    seed: int | None = None
    trained_on: TrainingSet | None = None
    own_only: bool = False
    episodes: Path | None = None

    def seeds(self, seeds: Sequence[int]) -> Sequence[int]:
        """Return the seeds of its evaluation."""
        if self.seed is not None:
            return (self.seed,)
        return seeds if self.seeded else seeds[:1]


@dataclass(frozen=True, slots=True)
class EnginePlayer:
    """A policy in the engine, which never chooses infeasible places.

    Attributes
    ----------
    make
        Creates the policy from its options.
    level
        Level of its choices.
    """

    make: Callable[[PolicyOptions], Profile | Policy]
    level: Level = "node"

    def play(self, instance: Instance, seed: int, offers: int = OFFERS) -> Played:
        """Replay the instance. Policies that use a job mix get the past jobs of the instance."""
        options = PolicyOptions(self.level, seed, instance.mix)
        return Played(replay(instance.fleet, instance.jobs, partial(self.make, options), offers=offers))


def heuristic(name: str, level: Level, make: PolicyFactory | None = None) -> Contestant:
    """Return a policy of the engine as a contestant.

    Parameters
    ----------
    make
        Creates the policy; None for the registered one of this name.

    Raises
    ------
    RejectedError
        When there is no such policy, or it does not have the level.
    """
    make = make or partial(make_policy, name)
    make(PolicyOptions(level))
    seeded = name in SEEDED or name not in BUILT_IN
    return Contestant(name, "cluster" if name in CLUSTER_LEVEL else level, EnginePlayer(make, level), seeded)


def heuristics() -> list[Contestant]:
    """Return the published heuristics at cluster level, and all policies of the engine at node level."""
    published = [heuristic(name, "cluster") for name in PUBLISHED_HEURISTICS]
    return published + [heuristic(name, "node") for name in policy_names()]
