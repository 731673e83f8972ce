"""Training of `pilot`: evolution in generations, with some instances reserved for evaluation."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from seaway.domain.errors import RejectedError
from seaway.learning.instances.instance import Instance
from seaway.learning.observing.nodes import VERSION, NodeObserver, NodeView
from seaway.learning.packing.search import best_packing
from seaway.learning.pilot.batch_environment import BatchEnvironment
from seaway.learning.pilot.imitation import Lesson, imitate, lessons
from seaway.learning.pilot.network import PilotNetwork, changed, changing, first_weights, moving
from seaway.learning.policies.file import Level
from seaway.learning.settings import PilotSettings, Run
from seaway.learning.training.learner import Decider, State, check_finite
from seaway.learning.training.listener import Listener, Play
from seaway.scheduling.arrays import Float64
from seaway.scheduling.framework import Mask
from seaway.scheduling.job_queue import JobQueue
from seaway.scheduling.policies.pilot.kernel import PilotWeights
from seaway.scheduling.snapshot.snapshot import Snapshot

COOLING = 60.0
"""Number of generations after which the learning rate is half of the initial one."""

Played = Callable[[Float64, int], float]
"""Function that plays an instance by number with some weights, and returns the result."""


class Evolution:
    """State of an evolution of weights.

    Parameters
    ----------
    start
        Initial weights, in units of a step.
    pairs, spread, rate, average
        As in `seaway.learning.settings.PilotSettings`.
    seed
        Seed of the candidates, which depend on it and on the number of the generation only.
    moving
        Mask of the weights to change, shape as `start`.

    Attributes
    ----------
    centre
        Centre of the candidates.
    mean
        Running mean of the centre, with less noise.
    generation
        Number of completed generations.
    """

    def __init__(
        self, start: Float64, *, pairs: int, spread: float, rate: float, average: float, seed: int, moving: Mask
    ) -> None:
        self.centre = start.copy()
        self.mean = start.copy()
        self.generation = 0
        self._pairs, self._spread, self._rate, self._average, self._seed = pairs, spread, rate, average, seed
        self._moving = moving

    def step(self, instances: Sequence[int], play: Played) -> None:
        """Run a generation on some instances."""
        random = np.random.default_rng((self._seed, self.generation))
        steps = random.standard_normal((self._pairs, len(self.centre))) * self._moving
        steps = np.concatenate([steps, -steps])
        gains = np.array(
            [[play(self.centre + self._spread * step, number) for number in instances] for step in steps], np.float64
        )
        move = utilities(gains) @ steps / len(steps)
        self.centre = self.centre + self._rate / (1 + self.generation / COOLING) * move
        self.generation += 1
        share = min(self._average, 1 - 1 / (self.generation + 1))
        self.mean = share * self.mean + (1 - share) * self.centre


def utilities(gains: Float64) -> Float64:
    """Return the utility of each candidate, shape (P,): its rank in gain on each instance among the candidates.

    Parameters
    ----------
    gains
        Gains of P candidates on B instances, shape (P, B).
    """
    deviation = gains.std(axis=0)
    telling = deviation > 0
    if not telling.any():
        return np.zeros(len(gains))
    standing = ((gains - gains.mean(axis=0))[:, telling] / deviation[telling]).mean(axis=1)
    worth: Float64 = standing / max(float(standing.std()), 1e-12)
    return worth


TRIALS = 6


def make(run: Run, instances: Sequence[Instance]) -> PilotLearner:
    """Return the learner of a run.

    Raises
    ------
    RejectedError
        When its settings are those of another algorithm, or jobs have several replicas.
    """
    if not isinstance(run.learner, PilotSettings):
        raise RejectedError(f"pilot does not have these settings: {run.learner}")
    return PilotLearner(run.learner, instances, run.settings.seed)


class PilotLearner:
    """Learner at the level of nodes, see `seaway.learning.training.learner.Learner`.

    It plays each instance in two ways: jobs may wait, and their number counts; or no job may wait, and GPU in use
    counts. Without learned scores there is only the first way.

    Parameters
    ----------
    instances
        At least one. Of several, each `judged`-th is only for evaluation.

    Raises
    ------
    RejectedError
        When the first job of no instance fits, so that there is no example for the policy file.
    """

    def __init__(self, settings: PilotSettings, instances: Sequence[Instance], seed: int) -> None:
        self._settings, self._seed = settings, seed
        apart = [number % settings.judged == settings.judged - 1 for number in range(len(instances))]
        own = [each for each, judged in zip(instances, apart, strict=True) if not judged]
        judged = [each for each, judged in zip(instances, apart, strict=True) if judged] or own
        self._apart = any(apart)
        self._taught_by = _spread(own, settings.packings)
        self._environments = [BatchEnvironment(instance) for instance in own]
        waiting = (True, False) if settings.scores else (True,)
        self._ways = [_Way(environment, each) for environment in self._environments for each in waiting]
        self._judged = [BatchEnvironment(instance) for instance in judged]
        self._views = views(instances)
        if not self._views:
            raise RejectedError("no instance has a first job that fits: there is nothing to learn from")
        self._weights = first_weights(settings.width, settings.heads, seed)
        self._evolution = Evolution(
            changing(self._weights),
            pairs=settings.pairs,
            spread=settings.spread,
            rate=settings.rate,
            average=settings.average,
            seed=seed,
            moving=moving(self._weights, scores=settings.scores),
        )

    def prepare(self, listener: Listener) -> None:
        """Compile the kernels, and imitate packings."""
        listener.doing("compiling")
        self._environments[0].play(self._weights, waiting=True)
        if not self._taught_by:
            return
        taught: list[Lesson] = []
        for at, instance in enumerate(self._taught_by, 1):
            listener.doing(f"packing {instance.name}, {at} of {len(self._taught_by)}")
            taught += lessons(instance, best_packing(instance, self._settings.packing_s, seed=self._seed))
            if listener.stopping:
                return  # nothing is stored, so a resumed run starts over
        listener.doing(f"learning from {len(taught):,} decisions of packings")
        learned = imitate(self._weights, taught, scores=self._settings.scores, seed=self._seed)
        self._weights, vector = learned, changing(learned)
        self._evolution.centre, self._evolution.mean = vector, vector.copy()

    def plays(self) -> Iterator[Sequence[Play]]:
        """Run generation after generation, and yield the episodes of the present weights on its instances."""
        while True:
            random = np.random.default_rng((self._seed, self._evolution.generation, 1))
            ways = len(self._ways)
            batch = random.choice(ways, min(self._settings.batch, ways), replace=False).tolist()
            self._evolution.step(batch, self._worth)
            check_finite(float(self._evolution.mean.sum()), "give it a lower rate or spread")
            weights = self._current()
            yield [_played(self._ways[number].environment, weights) for number in batch]

    def evaluate(self) -> Sequence[Play]:
        """Play the instances that are reserved for evaluation."""
        weights = self._current()
        return [_played(environment, weights) for environment in self._judged]

    def state(self) -> State:
        """Return the state for a checkpoint."""
        evolution = self._evolution
        return {
            "weights": self.weights(),
            "centre": evolution.centre,
            "mean": evolution.mean,
            "generation": evolution.generation,
        }

    def restore(self, state: State) -> None:
        """Restore the state of a checkpoint."""
        self.wear(state["weights"])
        evolution = self._evolution
        evolution.centre, evolution.mean = state["centre"].copy(), state["mean"].copy()
        evolution.generation = int(state["generation"])

    def weights(self) -> State:
        """Return the weights of the network."""
        return dict(self._current()._asdict())

    def wear(self, weights: State) -> None:
        """Set the weights of the network."""
        self._weights = PilotWeights(*(np.asarray(weights[name], np.float32) for name in PilotWeights._fields))
        self._evolution.mean = changing(self._weights)

    def decider(self) -> Decider:
        """Return the network as a module."""
        trials = [{"nodes": each.figures, "job": each.job} for each in self._views]
        return Decider(PilotNetwork(self._current()), Level.NODE, VERSION, trials, network=True, apart=self._apart)

    def _current(self) -> PilotWeights:
        return changed(self._weights, self._evolution.mean)

    def _worth(self, vector: Float64, number: int) -> float:
        """Play an instance in one of the ways, and return the result."""
        way = self._ways[number]
        score = way.environment.play(changed(self._weights, vector), waiting=way.waiting)
        return float(score.placed) if way.waiting else score.gpu


def _spread(instances: Sequence[Instance], count: int) -> list[Instance]:
    """Return up to `count` evenly spaced instances, so that each kind is represented."""
    count = min(count, len(instances))
    return [instances[at * len(instances) // count] for at in range(count)]


@dataclass(frozen=True, slots=True)
class _Way:
    """An environment, and whether jobs may wait in it."""

    environment: BatchEnvironment
    waiting: bool


def _played(environment: BatchEnvironment, weights: PilotWeights) -> Play:
    """Play one episode, and return its record."""
    begun = time.perf_counter()
    score = environment.play(weights, waiting=True)
    seconds = time.perf_counter() - begun
    fragmentation, variance = environment.shape()
    placed, failed = score.placed, score.failed
    return Play(
        instance=environment.name,
        reward=float(placed),
        jobs=environment.jobs,
        placed=placed,
        refused=environment.jobs - placed - failed,
        failed=failed,
        fragmentation=fragmentation,
        gpu_load_variance=variance,
        seconds=seconds,
    )


def views(instances: Sequence[Instance]) -> list[NodeView]:
    """Return the observation of the first feasible job of each instance, as examples of real inputs."""
    found = []
    for instance in instances:
        snapshot = Snapshot(instance.fleet)
        line = int(JobQueue(snapshot, instance.jobs[:1]).rows[0, 0])
        view = NodeObserver(instance.mix).observe(snapshot, line)
        if len(view.nodes):
            found.append(view)
        if len(found) == TRIALS:
            break
    return found
