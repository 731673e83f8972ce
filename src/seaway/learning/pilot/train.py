"""How `pilot` learns in a run: in generations, on instances of which some are kept apart to judge by."""

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
"""Generations after which the weights move half as far as at the beginning."""

Played = Callable[[Float64, int], float]
"""Plays an instance, named by its number, with some weights and returns what that is worth."""


class Evolution:
    """Weights on their way.

    Parameters
    ----------
    start
        The weights at first, in units that are worth a step.
    pairs, spread, rate, average
        As in `seaway.learning.settings.PilotSettings`.
    seed
        Seed of the candidates; they depend on it and on the number of the generation alone.
    moving
        Which weights move, shape as `start`; the others stay.

    Attributes
    ----------
    centre
        Around which candidates are drawn.
    mean
        Running mean of the centre: less of the noise.
    generation
        How many there were.
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
        """Play a generation on some instances."""
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
    """Return what each candidate is worth: its gains on each instance against those of the others, shape (P,).

    Parameters
    ----------
    gains
        Shape (P, B), of P candidates on B instances.
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
    """Make what learns in a run.

    Raises
    ------
    RejectedError
        When its settings are of another algorithm, or jobs have several replicas.
    """
    if not isinstance(run.learner, PilotSettings):
        raise RejectedError(f"pilot does not have these settings: {run.learner}")
    return PilotLearner(run.learner, instances, run.settings.seed)


class PilotLearner:
    """Learns to place on nodes, see `seaway.learning.training.learner.Learner`.

    On each instance it plays in two ways: jobs may wait and their number counts, or none may and GPU in use counts.
    Where scores are not learned there is only the first.

    Parameters
    ----------
    instances
        One at least; of more, every `judged`-th is only evaluated on.

    Raises
    ------
    RejectedError
        When the first job of none of them fits: nothing could show what the policy file is to answer.
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
        """Have the kernels compiled, and learn from packings."""
        listener.doing("compiling")
        self._environments[0].play(self._weights, waiting=True)
        if not self._taught_by:
            return
        taught: list[Lesson] = []
        for at, instance in enumerate(self._taught_by, 1):
            listener.doing(f"packing {instance.name}, {at} of {len(self._taught_by)}")
            taught += lessons(instance, best_packing(instance, self._settings.packing_s, seed=self._seed))
            if listener.stopping:
                return  # nothing is kept: who goes on starts over
        listener.doing(f"learning from {len(taught):,} decisions of packings")
        learned = imitate(self._weights, taught, scores=self._settings.scores, seed=self._seed)
        self._weights, vector = learned, changing(learned)
        self._evolution.centre, self._evolution.mean = vector, vector.copy()

    def plays(self) -> Iterator[Sequence[Play]]:
        """Learn generation after generation; the weights as they are then play on its instances."""
        while True:
            random = np.random.default_rng((self._seed, self._evolution.generation, 1))
            ways = len(self._ways)
            batch = random.choice(ways, min(self._settings.batch, ways), replace=False).tolist()
            self._evolution.step(batch, self._worth)
            check_finite(float(self._evolution.mean.sum()), "give it a lower rate or spread")
            weights = self._current()
            yield [_played(self._ways[number].environment, weights) for number in batch]

    def evaluate(self) -> Sequence[Play]:
        """Play the instances that were kept apart."""
        weights = self._current()
        return [_played(environment, weights) for environment in self._judged]

    def state(self) -> State:
        """Return all that it needs to go on."""
        evolution = self._evolution
        return {
            "weights": self.weights(),
            "centre": evolution.centre,
            "mean": evolution.mean,
            "generation": evolution.generation,
        }

    def restore(self, state: State) -> None:
        """Take such a state up."""
        self.wear(state["weights"])
        evolution = self._evolution
        evolution.centre, evolution.mean = state["centre"].copy(), state["mean"].copy()
        evolution.generation = int(state["generation"])

    def weights(self) -> State:
        """Return the network."""
        return dict(self._current()._asdict())

    def wear(self, weights: State) -> None:
        """Take such a network."""
        self._weights = PilotWeights(*(np.asarray(weights[name], np.float32) for name in PilotWeights._fields))
        self._evolution.mean = changing(self._weights)

    def decider(self) -> Decider:
        """Return the network as a module."""
        trials = [{"nodes": each.figures, "job": each.job} for each in self._views]
        return Decider(PilotNetwork(self._current()), Level.NODE, VERSION, trials, network=True, apart=self._apart)

    def _current(self) -> PilotWeights:
        return changed(self._weights, self._evolution.mean)

    def _worth(self, vector: Float64, number: int) -> float:
        """Play one of the ways."""
        way = self._ways[number]
        score = way.environment.play(changed(self._weights, vector), waiting=way.waiting)
        return float(score.placed) if way.waiting else score.gpu


def _spread(instances: Sequence[Instance], count: int) -> list[Instance]:
    """Return so many of them, or all, evenly from first to last: where several kinds are drawn, of each kind some."""
    count = min(count, len(instances))
    return [instances[at * len(instances) // count] for at in range(count)]


@dataclass(frozen=True, slots=True)
class _Way:
    """A board, and whether jobs may wait there and their number counts, or none may and GPU in use counts."""

    environment: BatchEnvironment
    waiting: bool


def _played(environment: BatchEnvironment, weights: PilotWeights) -> Play:
    """Play one episode with what was learned and tell of it."""
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
    """Look at the first job of some instances that fits: what the network is really shown."""
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
