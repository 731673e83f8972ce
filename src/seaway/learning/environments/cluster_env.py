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
    FIGURES,
    NETWORK_FIGURES,
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
    """Rewards of a decision; the defaults are the published ones.

    Attributes
    ----------
    scale
        A placement earns ``(score - 1) * scale`` with the score of its cluster, see `cluster_scores`.
    impossible
        For a cluster or node where the job does not fit.
    wait_wrong, wait_right
        For waiting although, and because, there is something that fits, and nothing.
    waited_hour
        Added to a placement for each hour that the job waited before it, with departures; unpublished.
    """

    scale: float = 10.0
    impossible: float = -50.0
    wait_wrong: float = -50.0
    wait_right: float = 0.0
    waited_hour: float = 0.0

    def of_cluster(self, episode: Episode, c: int) -> float:
        """Return what placing the job at hand in cluster `c` earns; to be asked before it is placed."""
        score = float(cluster_scores(episode)[c])
        if score < 0:
            return self.impossible
        return (score - 1.0) * self.scale + self.waited_hour * episode.waited_s / SECONDS_PER_HOUR

    def of_wait(self, episode: Episode) -> float:
        """Return what waiting with the job at hand earns; to be asked before it waits."""
        return self.wait_wrong if episode.fits else self.wait_right


PUBLISHED = Rewards()
"""Rewards of the study."""


def cluster_scores(episode: Episode) -> Float64:
    """Score each cluster for the current job.

    The score is the share of the cluster in use with the job: the mean over those of CPU, memory, GPU memory and GPU
    cores that it has. Scores of clusters where the job fits are scaled to 0 for the lowest and 1 for the highest.

    Returns
    -------
    Float64
        Shape (C,): -1 where the job does not fit; 1 for all others if they are equal.
    """
    scores = np.empty(len(episode.snapshot.clusters), np.float64)
    _rank(episode, scores)
    return scores


def expert_choice(episode: Episode) -> int:
    """Return the choice that earns most at once: the first of the clusters with score 1; C to wait when none fits."""
    scores = np.empty(len(episode.snapshot.clusters), np.float64)
    best = _rank(episode, scores)
    return best if best >= 0 else len(scores)


def _rank(episode: Episode, scores: Float64) -> int:
    arrays, demands = episode.snapshot.arrays, episode.snapshot.demands.arrays
    return rank_clusters(arrays, demands, episode.line, episode.first_nodes(), scores)


Source = Sequence[Instance] | Draw
"""Some instances, taken in turn, or what draws a new one for each episode."""


class Episodes:
    """Begins one episode after the other.

    Parameters
    ----------
    source
        Where the instances come from.
    options
        Of every episode.
    """

    def __init__(self, source: Source, options: EpisodeOptions) -> None:
        self._source = source
        self._options = options
        self._made: dict[int, Episode] = {}
        self._turn = 0

    def begin(self, random: np.random.Generator, seed: int | None) -> Episode:
        """Return the next episode, at its first job; episodes of given instances are used again.

        Parameters
        ----------
        random
            What a new instance is drawn from.
        seed
            Which of the given instances comes next, modulo their number; None for the one after the last.

        Raises
        ------
        RejectedError
            When there are none.
        """
        if not isinstance(self._source, Sequence):
            return Episode(self._source(random), self._options)
        if not self._source:
            raise RejectedError("no instances")
        at = (self._turn if seed is None else seed) % len(self._source)
        self._turn = at + 1
        if at not in self._made:
            self._made[at] = Episode(self._source[at], self._options)
        else:
            self._made[at].reset()
        return self._made[at]


Info = dict[str, Any]

Action = int | np.integer[Any] | Float32 | Float64
"""The number of a bin, or an array with the one number that falls into a bin, shape (1,)."""


class ClusterEnv(gymnasium.Env):
    """Environment in which each step decides one job: its cluster, or to wait.

    **Observation**: ``Box``, float32, shape (4 C + 4,): the free shares of CPU, memory, GPU memory and GPU cores of
    each cluster, then the job's request of the four, see `observe`. With `network` shape (8 C + 8,), see
    `observe_network`. With `fitting` a cluster's shares are those of its nodes that fit the job. At the end the
    figures are those of no job.

    **Action**: ``Box(-1, 1, (1,))``, float32, one number in C + 1 bins of equal width. Bin c is cluster c, and the last
    one waits. With `discrete` it is ``Discrete(C + 1)``, the number of the bin.

    **Step**: in a cluster the job takes the first node and devices that fit. A cluster where it does not fit loses
    the job. A job that waits is offered again after the last arrival, `offers` times in all; waiting at the last
    offer refuses it.

    **Reward**: ``(score - 1) * 10`` for a placement, with the score of `cluster_scores`. It is -50 for a cluster where
    the job does not fit, and for waiting although a cluster fits, and 0 for other waiting. `rewards` has the numbers.

    **Ends**: terminated when every job has been decided permanently; never truncated.

    **Info**: ``legal``, bool, shape (C + 1,): where the job fits; to wait is always legal. Once at the end,
    ``outcome``, an `Outcome` with all figures.

    Parameters
    ----------
    source
        Instances, used in turn (a reset with a seed starts with that one, modulo their number), or their generator.
        All have the same number of clusters.
    discrete
        Whether actions are numbers of bins.
    network
        Whether link figures and bounds are shown.
    fitting
        Whether only free resources on nodes that fit the job are shown.
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
        """Begin the next episode; with a seed, the first of those that it stands for."""
        super().reset(seed=seed)
        self.episode = self._episodes.begin(self.np_random, seed)
        if len(self.episode.snapshot.clusters) != self.clusters:
            raise RejectedError(
                f"has {len(self.episode.snapshot.clusters)} clusters, the first instance {self.clusters}; "
                "train on instances with the same number",
                where=self.episode.instance.name,
            )
        return self._shown(), {"legal": self.action_masks()}

    def step(self, action: Action) -> tuple[Float32, float, bool, bool, Info]:
        """Decide the job at hand.

        Raises
        ------
        RejectedError
            When there is no such action: a number that none has, or, not `discrete`, one that is not finite. What lies
            beyond -1 and 1 counts as these.
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
        return self._shown(), reward, episode.done, False, info

    def action_masks(self) -> Mask:
        """Tell which choices are legal now, shape (C + 1,)."""
        legal = np.ones(self.clusters + 1, np.bool_)
        np.greater_equal(self.episode.first_nodes(), 0, out=legal[:-1])
        return legal

    def expert(self) -> tuple[float, float]:
        """Return the action, a number of a bin or within one, that earns most at once, and what it earns."""
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

    def _shown(self) -> Float32:
        return self._observe(self.episode.snapshot, self.episode.line)


def _box(clusters: int, *, network: bool) -> spaces.Box:
    """Return the space of observations: shares, and what a job asks for, which is C at most."""
    high = np.ones(observation_size(clusters, network=network), np.float32)
    job = clusters * (NETWORK_FIGURES if network else FIGURES)
    high[job : job + FIGURES] = clusters
    return spaces.Box(0.0, high, dtype=np.float32)
