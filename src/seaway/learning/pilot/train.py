"""Training of `pilot` by an evolution strategy, with some instances reserved for evaluation."""

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
from seaway.learning.pilot.imitation import Demonstration, demonstrations_of, imitate
from seaway.learning.pilot.network import PilotNetwork, initial_weights, to_vector, trainable_mask, with_vector
from seaway.learning.policies.file import Level
from seaway.learning.settings import PilotSettings, Run
from seaway.learning.training.learner import State, TrainedActor, check_finite
from seaway.learning.training.listener import EpisodeResult, Listener
from seaway.scheduling.arrays import Float64
from seaway.scheduling.framework import Mask
from seaway.scheduling.job_queue import JobQueue
from seaway.scheduling.policies.pilot.kernel import PilotWeights
from seaway.scheduling.snapshot.snapshot import Snapshot

RATE_DECAY = 60.0
"""Number of generations after which the learning rate is half of the initial one."""

Fitness = Callable[[Float64, int], float]
"""Function from weights and the number of an objective to the fitness of the weights."""


class Evolution:
    """Evolution strategy with antithetic sampling.

    Parameters
    ----------
    start
        Initial weights, in units of a step.
    pairs, spread, rate, average
        As in `seaway.learning.settings.PilotSettings`.
    seed
        Seed of the candidates, which depend on it and on the number of the generation only.
    trainable_mask
        Mask of the weights to change, same shape as `start`.

    Attributes
    ----------
    centre
        Mean of the distribution of candidates.
    mean
        Running mean of `centre`, with less noise.
    generation
        Number of completed generations.
    """

    def __init__(
        self, start: Float64, *, pairs: int, spread: float, rate: float, average: float, seed: int, trainable_mask: Mask
    ) -> None:
        self.centre = start.copy()
        self.mean = start.copy()
        self.generation = 0
        self._pairs, self._spread, self._rate, self._average, self._seed = pairs, spread, rate, average, seed
        self._mask = trainable_mask

    def step(self, objectives: Sequence[int], fitness: Fitness) -> None:
        """Run a generation on some objectives."""
        random = np.random.default_rng((self._seed, self.generation))
        steps = random.standard_normal((self._pairs, len(self.centre))) * self._mask
        steps = np.concatenate([steps, -steps])
        results = np.array(
            [[fitness(self.centre + self._spread * step, number) for number in objectives] for step in steps],
            np.float64,
        )
        move = utilities(results) @ steps / len(steps)
        self.centre = self.centre + self._rate / (1 + self.generation / RATE_DECAY) * move
        self.generation += 1
        share = min(self._average, 1 - 1 / (self.generation + 1))
        self.mean = share * self.mean + (1 - share) * self.centre


def utilities(fitness: Float64) -> Float64:
    """Return the utility of each candidate, shape (P,): its mean standardised fitness over instances.

    Parameters
    ----------
    fitness
        Fitness of P candidates on B objectives, shape (P, B).
    """
    deviation = fitness.std(axis=0)
    varies = deviation > 0
    if not varies.any():
        return np.zeros(len(fitness))
    standardised = ((fitness - fitness.mean(axis=0))[:, varies] / deviation[varies]).mean(axis=1)
    utility: Float64 = standardised / max(float(standardised.std()), 1e-12)
    return utility


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

    There are two objectives for each instance: the number of placed jobs, where jobs may wait, and GPU use, where they
    may not. Without learned scores, only the first one is used.

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
        held_out = [number % settings.judged == settings.judged - 1 for number in range(len(instances))]
        training = [each for each, reserved in zip(instances, held_out, strict=True) if not reserved]
        evaluation = [each for each, reserved in zip(instances, held_out, strict=True) if reserved] or training
        self._held_out = any(held_out)
        self._packed_instances = _evenly_spaced(training, settings.packings)
        self._environments = [BatchEnvironment(instance) for instance in training]
        waiting = (True, False) if settings.scores else (True,)
        self._objectives = [_Objective(environment, each) for environment in self._environments for each in waiting]
        self._evaluation_environments = [BatchEnvironment(instance) for instance in evaluation]
        self._views = example_views(instances)
        if not self._views:
            raise RejectedError("no instance has a first job that fits: there is nothing to learn from")
        self._weights = initial_weights(settings.width, settings.heads, seed)
        self._evolution = Evolution(
            to_vector(self._weights),
            pairs=settings.pairs,
            spread=settings.spread,
            rate=settings.rate,
            average=settings.average,
            seed=seed,
            trainable_mask=trainable_mask(self._weights, scores=settings.scores),
        )

    def prepare(self, listener: Listener) -> None:
        """Compile the kernels, and imitate packings."""
        listener.doing("compiling")
        self._environments[0].play(self._weights, waiting=True)
        if not self._packed_instances:
            return
        demonstrations: list[Demonstration] = []
        for at, instance in enumerate(self._packed_instances, 1):
            listener.doing(f"packing {instance.name}, {at} of {len(self._packed_instances)}")
            demonstrations += demonstrations_of(
                instance, best_packing(instance, self._settings.packing_s, seed=self._seed)
            )
            if listener.stopping:
                return  # nothing is stored, so a resumed run starts over
        listener.doing(f"learning from {len(demonstrations):,} decisions of packings")
        learned = imitate(self._weights, demonstrations, scores=self._settings.scores, seed=self._seed)
        self._weights, vector = learned, to_vector(learned)
        self._evolution.centre, self._evolution.mean = vector, vector.copy()

    def train(self) -> Iterator[Sequence[EpisodeResult]]:
        """Run generation after generation, and yield the episodes of the present weights on its instances."""
        while True:
            random = np.random.default_rng((self._seed, self._evolution.generation, 1))
            objectives = len(self._objectives)
            batch = random.choice(objectives, min(self._settings.batch, objectives), replace=False).tolist()
            self._evolution.step(batch, self._fitness)
            check_finite(float(self._evolution.mean.sum()), "give it a lower rate or spread")
            weights = self._current()
            yield [_play(self._objectives[number].environment, weights) for number in batch]

    def evaluate(self) -> Sequence[EpisodeResult]:
        """Play the instances that are reserved for evaluation."""
        weights = self._current()
        return [_play(environment, weights) for environment in self._evaluation_environments]

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
        self.load_weights(state["weights"])
        evolution = self._evolution
        evolution.centre, evolution.mean = state["centre"].copy(), state["mean"].copy()
        evolution.generation = int(state["generation"])

    def weights(self) -> State:
        """Return the weights of the network."""
        return dict(self._current()._asdict())

    def load_weights(self, weights: State) -> None:
        """Set the weights of the network."""
        self._weights = PilotWeights(*(np.asarray(weights[name], np.float32) for name in PilotWeights._fields))
        self._evolution.mean = to_vector(self._weights)

    def trained_actor(self) -> TrainedActor:
        """Return the network as a module."""
        trials = [{"nodes": each.features, "job": each.job} for each in self._views]
        return TrainedActor(
            PilotNetwork(self._current()), Level.NODE, VERSION, trials, network=True, apart=self._held_out
        )

    def _current(self) -> PilotWeights:
        return with_vector(self._weights, self._evolution.mean)

    def _fitness(self, vector: Float64, number: int) -> float:
        """Play an episode, and return its fitness by one of the objectives."""
        objective = self._objectives[number]
        score = objective.environment.play(with_vector(self._weights, vector), waiting=objective.waiting)
        return float(score.placed) if objective.waiting else score.gpu


def _evenly_spaced(instances: Sequence[Instance], count: int) -> list[Instance]:
    """Return up to `count` evenly spaced instances, so that each kind is represented."""
    count = min(count, len(instances))
    return [instances[at * len(instances) // count] for at in range(count)]


@dataclass(frozen=True, slots=True)
class _Objective:
    """Environment, and whether jobs may wait: then fitness is the number of placed jobs, otherwise GPU use."""

    environment: BatchEnvironment
    waiting: bool


def _play(environment: BatchEnvironment, weights: PilotWeights) -> EpisodeResult:
    """Play one episode, and return its result."""
    begun = time.perf_counter()
    score = environment.play(weights, waiting=True)
    seconds = time.perf_counter() - begun
    fragmentation, variance = environment.load_balance()
    placed, failed = score.placed, score.failed
    return EpisodeResult(
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


def example_views(instances: Sequence[Instance]) -> list[NodeView]:
    """Return the views of the first feasible job of each instance, as examples of inputs."""
    views = []
    for instance in instances:
        snapshot = Snapshot(instance.fleet)
        line = int(JobQueue(snapshot, instance.jobs[:1]).rows[0, 0])
        view = NodeObserver(instance.mix).observe(snapshot, line)
        if len(view.nodes):
            views.append(view)
        if len(views) == TRIALS:
            break
    return views
