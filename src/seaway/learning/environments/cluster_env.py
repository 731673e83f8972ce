"""Environment of the cluster level, as in the study of EADE-DDPG, with its rewards."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import gymnasium
import numpy as np
from gymnasium import spaces

from seaway.domain.errors import RejectedError
from seaway.learning.episodes.episode import OFFERED_TWICE, Episode, EpisodeOptions
from seaway.learning.instances.instance import Instance
from seaway.learning.instances.wide import Draw
from seaway.learning.observing.clusters import (
    CLUSTER_FEATURES,
    NETWORK_FEATURES,
    action_of,
    checked,
    choice_of,
    observation_size,
    observer,
)
from seaway.scheduling.arrays import Float32, Float64
from seaway.scheduling.framework import Mask
from seaway.scheduling.kernels.candidates import rank_clusters

SECONDS_PER_HOUR = 3600


class Rewards(NamedTuple):
    """Rewards of decisions. The defaults are the published ones.

    Attributes
    ----------
    scale
        The reward of a placement is ``(score - 1) * scale`` with the score of its cluster, see `cluster_scores`.
    impossible
        Reward of a cluster where the job does not fit.
    wait_wrong, wait_right
        Rewards of waiting if the job fits somewhere, and if it fits nowhere.
    waited_hour
        Added to the reward of a placement for each hour of waiting, with departures; unpublished.
    """

    scale: float = 10.0
    impossible: float = -50.0
    wait_wrong: float = -50.0
    wait_right: float = 0.0
    waited_hour: float = 0.0

    def of_cluster(self, episode: Episode, c: int) -> float:
        """Return the reward of placing the current job in cluster `c`. Call it before the placement."""
        score = float(cluster_scores(episode)[c])
        if score < 0:
            return self.impossible
        return (score - 1.0) * self.scale + self.waited_hour * episode.waited_s / SECONDS_PER_HOUR

    def of_wait(self, episode: Episode) -> float:
        """Return the reward of letting the current job wait. Call it before the decision."""
        return self.wait_wrong if episode.fits else self.wait_right


PUBLISHED = Rewards()
"""Rewards of the study."""


def cluster_scores(episode: Episode) -> Float64:
    """Score each cluster for the current job.

    The score is the used share of the cluster with the job: the mean over CPU, memory, GPU memory and GPU cores, as far
    as the cluster has them. Scores of feasible clusters are scaled to 0 for the lowest and 1 for the highest.

    Returns
    -------
    Float64
        Shape (C,): -1 for infeasible clusters; 1 for all others if they are equal.
    """
    scores = np.empty(len(episode.snapshot.clusters), np.float64)
    _rank(episode, scores)
    return scores


def expert_choice(episode: Episode) -> int:
    """Return the choice with the highest immediate reward: the first cluster with score 1; C to wait."""
    scores = np.empty(len(episode.snapshot.clusters), np.float64)
    best = _rank(episode, scores)
    return best if best >= 0 else len(scores)


def _rank(episode: Episode, scores: Float64) -> int:
    arrays, demands = episode.snapshot.arrays, episode.snapshot.demands.arrays
    return rank_clusters(arrays, demands, episode.line, episode.first_nodes(), scores)


Source = Sequence[Instance] | Draw
"""Instances in rotation, or a generator that returns a new one for each episode."""


class Episodes:
    """Sequence of episodes.

    Parameters
    ----------
    source
        Instances, or their generator.
    options
        Options of all episodes.
    """

    def __init__(self, source: Source, options: EpisodeOptions) -> None:
        self._source = source
        self._options = options
        self._episodes: dict[int, Episode] = {}
        self._next = 0

    def begin(self, random: np.random.Generator, seed: int | None) -> Episode:
        """Return the next episode, reset. Episodes of given instances are reused.

        Parameters
        ----------
        random
            Random generator for new instances.
        seed
            Number of the next given instance, modulo their number; None for the one after the last.

        Raises
        ------
        RejectedError
            When there are no instances.
        """
        if not isinstance(self._source, Sequence):
            return Episode(self._source(random), self._options)
        if not self._source:
            raise RejectedError("no instances")
        at = (self._next if seed is None else seed) % len(self._source)
        self._next = at + 1
        if at not in self._episodes:
            self._episodes[at] = Episode(self._source[at], self._options)
        else:
            self._episodes[at].reset()
        return self._episodes[at]


Info = dict[str, Any]

Action = int | np.integer[Any] | Float32 | Float64
"""Number of a bin, or an array with one number within a bin, shape (1,)."""


class ClusterEnv(gymnasium.Env):
    """Environment in which each step decides one job: its cluster, or to wait.

    **Observation**: ``Box``, float32, shape (4 C + 4,): the free shares of CPU, memory, GPU memory and GPU cores of
    each cluster, then the job's requests of the four, see `observe`. With `network` the shape is (8 C + 8,), see
    `observe_network`. With `fitting`, the shares of a cluster count only nodes that fit the job. After the last job,
    the features of the job are 0.

    **Action**: ``Box(-1, 1, (1,))``, float32, one number in C + 1 bins of equal width. Bin c is cluster c, and the last
    bin waits. With `discrete` it is ``Discrete(C + 1)``, the number of the bin.

    **Step**: in a cluster, the job gets the first node and devices that fit. A cluster where it does not fit loses
    the job. A job that waits is offered again after the last arrival, up to `offers` times. Waiting at the last
    offer refuses it.

    **Reward**: ``(score - 1) * 10`` for a placement, with the score of `cluster_scores`. It is -50 for a cluster where
    the job does not fit, and for waiting although a cluster fits, and 0 for other waiting. `rewards` has the numbers.

    **Termination**: terminated when all decisions are permanent; never truncated.

    **Info**: ``legal``, bool, shape (C + 1,): the feasible clusters; waiting is always legal. At the end, ``outcome``,
    an `Outcome` with all figures.

    Parameters
    ----------
    source
        Instances, used in turn (a reset with a seed starts with that one, modulo their number), or their generator.
        All have the same number of clusters.
    discrete
        Whether actions are numbers of bins.
    network
        Whether observations include links and the job's bounds on them.
    fitting
        Whether observations count only free resources of nodes that fit the job.
    options
        Offers of jobs.
    rewards
        Rewards of decisions.

    Attributes
    ----------
    episode
        The running episode.

    Raises
    ------
    RejectedError
        When a source has no instances, or its instances have different numbers of clusters.
    """

    metadata: dict[str, Any] = {"render_modes": []}  # noqa: RUF012 (so gymnasium declares it)

    def __init__(
        self,
        source: Source,
        *,
        discrete: bool = False,
        network: bool = False,
        fitting: bool = False,
        options: EpisodeOptions = OFFERED_TWICE,
        rewards: Rewards = PUBLISHED,
    ) -> None:
        self._episodes = Episodes(source, options)
        self._observe = observer(network=network, fitting=fitting)
        self._rewards = rewards
        self._discrete = discrete
        self.episode: Episode = self._episodes.begin(np.random.default_rng(0), 0)
        self.clusters = len(self.episode.snapshot.clusters)
        self.observation_space = _box(self.clusters, network=network)
        count = self.clusters + 1
        self.action_space = spaces.Discrete(count) if discrete else spaces.Box(-1.0, 1.0, (1,), np.float32)

    def reset(self, *, seed: int | None = None, options: Info | None = None) -> tuple[Float32, Info]:
        """Start the next episode. A seed selects the instance, or seeds the generator."""
        super().reset(seed=seed)
        self.episode = self._episodes.begin(self.np_random, seed)
        if len(self.episode.snapshot.clusters) != self.clusters:
            raise RejectedError(
                f"has {len(self.episode.snapshot.clusters)} clusters, the first instance {self.clusters}; "
                "train on instances with the same number",
                where=self.episode.instance.name,
            )
        return self._observation(), {"legal": self.action_masks()}

    def step(self, action: Action) -> tuple[Float32, float, bool, bool, Info]:
        """Decide about the current job. Continuous actions are clipped to -1 and 1.

        Raises
        ------
        RejectedError
            When a discrete action does not exist, or a continuous one is not finite.
        """
        episode, choice = self.episode, self._choice(action)
        reward = self._reward(choice)
        if choice == self.clusters:
            episode.wait()
        else:
            episode.place_in_cluster(choice)
        info: Info = {"legal": self.action_masks()}
        if episode.done:
            info["outcome"] = episode.outcome("")
        return self._observation(), reward, episode.done, False, info

    def action_masks(self) -> Mask:
        """Return the legal choices for the current job, shape (C + 1,)."""
        legal = np.ones(self.clusters + 1, np.bool_)
        np.greater_equal(self.episode.first_nodes(), 0, out=legal[:-1])
        return legal

    def expert(self) -> tuple[float, float]:
        """Return the action with the highest immediate reward, and that reward."""
        choice = expert_choice(self.episode)
        return (choice if self._discrete else action_of(choice, self.clusters)), self._reward(choice)

    def _reward(self, choice: int) -> float:
        if choice == self.clusters:
            return self._rewards.of_wait(self.episode)
        return self._rewards.of_cluster(self.episode, choice)

    def _choice(self, action: Action) -> int:
        if self._discrete:
            return checked(int(action), self.clusters)
        return choice_of(float(action[0]), self.clusters)  # type: ignore[index]

    def _observation(self) -> Float32:
        return self._observe(self.episode.snapshot, self.episode.line)


def _box(clusters: int, *, network: bool) -> spaces.Box:
    """Return the observation space: shares up to 1, and requests of the job up to C."""
    high = np.ones(observation_size(clusters, network=network), np.float32)
    job = clusters * (NETWORK_FEATURES if network else CLUSTER_FEATURES)
    high[job : job + CLUSTER_FEATURES] = clusters
    return spaces.Box(0.0, high, dtype=np.float32)
