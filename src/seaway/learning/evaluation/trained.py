"""Evaluation of trained policies: as published, where an illegal choice loses the job, and in the engine."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from time import perf_counter
from typing import Protocol

import numpy as np

from seaway.domain.errors import RejectedError
from seaway.learning.episodes.episode import Episode, EpisodeOptions
from seaway.learning.evaluation.contestants import OFFERS, Contestant, Played, TrainingSet, training_set
from seaway.learning.instances.instance import Instance
from seaway.learning.observing.clusters import choice_of, observer
from seaway.learning.policies.check import read_policy
from seaway.learning.policies.file import Level, PolicyFile, Tensors
from seaway.learning.policies.make import make_learned
from seaway.learning.policies.monitor import Limits, Reason
from seaway.learning.policies.session import Session
from seaway.learning.runs.folder import RunFolder
from seaway.scheduling.arrays import Float32
from seaway.scheduling.policies.registry import PolicyOptions
from seaway.scheduling.profile import Profile
from seaway.simulation.outcome import Outcome, Speed, quantile
from seaway.simulation.replay import replay


class Model(Protocol):
    """A model that returns an action between -1 and 1."""

    def run(self, inputs: Tensors) -> Tensors:
        """Return ``action``, shape (1, 1), for ``observation``, float32, shape (1, O)."""


@dataclass(frozen=True, slots=True)
class ActorPlayer:
    """A policy file of level cluster as in its training: it can choose clusters in which the job does not fit.

    Attributes
    ----------
    file
        The policy file.
    """

    file: PolicyFile

    def play(self, instance: Instance, seed: int, offers: int = OFFERS) -> Played:
        """Play one episode. The seed has no effect."""
        manifest = self.file.manifest
        clusters = len(instance.fleet.clusters)
        if manifest.clusters != clusters:
            raise RejectedError(f"it was trained for {manifest.clusters} clusters, but there are {clusters} here")
        see = observer(network=manifest.network, fitting=manifest.fitting)
        episode, model = Episode(instance, EpisodeOptions(offers=offers)), Session(self.file)
        return Played(play(episode, model, lambda at: see(at.snapshot, at.line), manifest.name))


def play(episode: Episode, model: Model, see: Callable[[Episode], Float32], name: str) -> Outcome:
    """Decide all jobs of an episode with a model, and time each decision: observation, choice and placement."""
    clusters = len(episode.snapshot.clusters)
    _choose(model, see(episode), clusters)  # the first call loads compiled code
    episode.place_in_cluster(0)
    episode.reset()
    times_us = []
    while not episode.done:
        begun = perf_counter()
        choice = _choose(model, see(episode), clusters)
        if choice == clusters:
            episode.wait()
        else:
            episode.place_in_cluster(choice)
        times_us.append(1e6 * (perf_counter() - begun))
    times = np.array(times_us)
    return replace(
        episode.outcome(name),
        speed=Speed(1e6 / float(times.mean()), quantile(times, 0.5), quantile(times, 0.99)),
    )


def _choose(model: Model, observation: Float32, clusters: int) -> int:
    return choice_of(model.run({"observation": observation[np.newaxis]})["action"].item(), clusters)


@dataclass(frozen=True, slots=True)
class LearnedPlayer:
    """A policy file of level node in the engine.

    It has no time limit, so that its decisions do not depend on a clock. A heuristic decides if it fails.

    Attributes
    ----------
    file
        The policy file.
    """

    file: PolicyFile

    def play(self, instance: Instance, seed: int, offers: int = OFFERS) -> Played:
        """Replay the instance, and note how often the heuristic decided."""
        options = PolicyOptions(seed=seed, mix=instance.mix)
        watches: list[FallBacks] = []

        def make() -> Profile:
            watches.append(FallBacks())
            return make_learned(self.file, options, Limits(budget_ms=0), watches[-1])

        outcome = replay(instance.fleet, instance.jobs, make, offers=offers)
        return Played(outcome, watches[-1].reported())


class FallBacks:
    """Counter of decisions by the fallback of a trained policy."""

    def __init__(self) -> None:
        self._reasons: Counter[Reason] = Counter()

    def decided(self, policy: str, took_ns: int) -> None:
        """Do nothing."""

    def fell_back(self, policy: str, reason: Reason, why: str) -> None:
        """Count."""
        self._reasons[reason] += 1

    def reported(self) -> str:
        """Return the number of fallbacks as text; empty for none."""
        counts = ", ".join(f"{reason.value}: {count}" for reason, count in self._reasons.most_common())
        return f"the heuristic decided in its place ({counts})" if counts else ""


NO_POLICY = "the run has no policy yet: continue it with seaway train --resume"


def from_file(file: PolicyFile) -> Contestant:
    """Return a trained policy as a contestant: as published at cluster level, in the engine at node level."""
    manifest = file.manifest
    trained_on = training_set(manifest.config)
    if manifest.level is Level.CLUSTER:
        return Contestant(manifest.name, "cluster", ActorPlayer(file), trained_on=trained_on)
    return Contestant(manifest.name, "node", LearnedPlayer(file), trained_on=trained_on)


def from_run(path: Path) -> Contestant:
    """Return the best policy of a run as a contestant with the name of its folder.

    Raises
    ------
    RejectedError
        When there is no run, or it has no policy yet.
    """
    folder = RunFolder(path)
    run, digests = folder.read_config()
    if not folder.policy.is_file():
        raise RejectedError(NO_POLICY, where=str(path))
    made = from_file(read_policy(folder.policy))
    return replace(
        made,
        name=path.resolve().name,
        seed=run.settings.seed,
        trained_on=TrainingSet(frozenset(digests.values())),
        episodes=folder.episodes,
    )


def from_runs(path: Path, tell: Callable[[str], None]) -> list[Contestant]:
    """Return the runs of a folder, each under its algorithm's name, to be evaluated on its training instances.

    Runs without a policy and unreadable runs are skipped.

    Parameters
    ----------
    tell
        Called with a message for each unreadable run.
    """
    found = []
    for each in runs_in(path):
        folder = RunFolder(each)
        if folder.policy.is_file():
            try:
                found.append(replace(from_run(each), name=folder.read_config()[0].algo, own_only=True))
            except RejectedError as error:
                tell(f"without the run {each}: {error}")
    return found


def runs_in(path: Path) -> list[Path]:
    """Return the folders of runs in a folder, sorted by name."""
    return sorted(each for each in path.iterdir() if is_run(each))


def is_run(path: Path) -> bool:
    """Report whether a folder has a run."""
    return RunFolder(path).has_run
