"""Environment of the node level, for policies that work on any fleet."""

from __future__ import annotations

from typing import Any, NamedTuple
from weakref import WeakKeyDictionary, proxy

import gymnasium
import numpy as np
from gymnasium import spaces

from seaway.learning.environments.cluster_env import Episodes, Source
from seaway.learning.episodes.episode import OFFERED_TWICE, Episode, EpisodeOptions
from seaway.learning.observing.clusters import checked
from seaway.learning.observing.nodes import JOB_FEATURES, NODE_FEATURES, SHORTLIST_SIZE, NodeObserver, NodeView
from seaway.scheduling.columns import DEMAND_GPU_CORE, DEMAND_GPUS
from seaway.scheduling.framework import Mask, Scores
from seaway.scheduling.policies.seaway.plugin import Seaway

Info = dict[str, Any]
Observation = dict[str, Any]

WAIT = SHORTLIST_SIZE
"""Action that waits."""


class NodeRewards(NamedTuple):
    """Rewards of decisions. Their sum over an episode is its objective: placed jobs, or GPU in use.

    Attributes
    ----------
    job
        Reward of a placed job.
    card
        Reward of each GPU of a placed job, counted by cores.
    impossible
        Reward of an action without a node.
    wait_wrong
        Reward of waiting if the job fits somewhere.
    waited_hour
        Added to the reward of a placement for each hour of waiting, with departures.
    """

    job: float = 1.0
    card: float = 0.0
    impossible: float = -1.0
    wait_wrong: float = 0.0
    waited_hour: float = 0.0

    def of_placing(self, episode: Episode) -> float:
        """Return the reward of placing the current job."""
        amounts = episode.snapshot.demands.arrays.amounts[episode.line]
        cards = float(amounts[DEMAND_GPUS] * amounts[DEMAND_GPU_CORE]) / 1000
        return self.job + self.card * cards + self.waited_hour * episode.waited_s / 3600


JOBS_PLACED = NodeRewards()
"""Reward of 1 for each placed job."""


class NodeEnv(gymnasium.Env):
    """Environment of the node level: each step places one job on a node of a shortlist, or lets it wait.

    **Observation**: a ``Dict``. ``nodes`` is a ``Box``, float32, shape (SHORTLIST_SIZE, NODE_FEATURES), with a row per
    node of the shortlist, padded with zeros. ``job`` is a ``Box``, float32, shape (JOB_FEATURES,), of the job and the
    fleet. ``legal`` is ``MultiBinary(SHORTLIST_SIZE + 1)``. `seaway.learning.observing.nodes` defines the shortlist and
    the features, which do not depend on the number of clusters and nodes. At the end all are 0.

    **Action**: ``Discrete(SHORTLIST_SIZE + 1)``: a row of the shortlist, or SHORTLIST_SIZE to wait.

    **Step**: the job is placed on the node, on the devices that the policy `seaway` chooses. An illegal action loses
    the job. All nodes of the shortlist are feasible.

    **Reward**: 1 for a placed job, -1 for a job lost by an illegal action, and 0 for waiting. `rewards` has the
    numbers.

    **Termination**: terminated when all decisions are permanent; never truncated.

    **Info**: ``legal``, bool, shape (SHORTLIST_SIZE + 1,). At the end, ``outcome``, an `Outcome` with all features.

    Parameters
    ----------
    source
        Instances in rotation, or a generator of instances, with any fleets. A reset with a seed begins with the
        instance of that number, modulo their number.
    options
        Offers of deferred jobs.
    rewards
        Rewards of decisions.

    Attributes
    ----------
    episode
        The running episode.
    """

    metadata: dict[str, Any] = {"render_modes": []}  # noqa: RUF012 (so gymnasium declares it)

    def __init__(
        self, source: Source, *, options: EpisodeOptions = OFFERED_TWICE, rewards: NodeRewards = JOBS_PLACED
    ) -> None:
        self._episodes = Episodes(source, options)
        self._rewards = rewards
        self._observers: WeakKeyDictionary[Episode, _EpisodeObserver] = WeakKeyDictionary()
        self.observation_space = spaces.Dict(
            {
                "nodes": spaces.Box(-np.inf, np.inf, (SHORTLIST_SIZE, NODE_FEATURES), np.float32),
                "job": spaces.Box(-np.inf, np.inf, (JOB_FEATURES,), np.float32),
                "legal": spaces.MultiBinary(SHORTLIST_SIZE + 1),
            }
        )
        self.action_space = spaces.Discrete(SHORTLIST_SIZE + 1)

    def reset(self, *, seed: int | None = None, options: Info | None = None) -> tuple[Observation, Info]:
        """Start the next episode. A seed selects the instance, or seeds the generator."""
        super().reset(seed=seed)
        self.episode = self._episodes.begin(self.np_random, seed)
        self._update_view()
        return self._observation(), {"legal": self.action_masks()}

    def step(self, action: int | np.integer[Any]) -> tuple[Observation, float, bool, bool, Info]:
        """Decide about the current job.

        Raises
        ------
        RejectedError
            When the action does not exist.
        """
        episode, at = self.episode, checked(int(action), WAIT)
        if at == WAIT:
            reward = self._rewards.wait_wrong if episode.fits else 0.0
            episode.wait()
        elif at < len(self._view.nodes):
            n = int(self._view.nodes[at])
            reward = self._rewards.of_placing(episode)
            episode.place_on_node(n, self._observers[episode].device_keys(n))
        else:
            reward = self._rewards.impossible
            episode.lose()
        self._update_view()
        info: Info = {"legal": self.action_masks()}
        if episode.done:
            info["outcome"] = episode.outcome("")
        return self._observation(), reward, episode.done, False, info

    def action_masks(self) -> Mask:
        """Return the legal actions, shape (SHORTLIST_SIZE + 1,); none at the end."""
        legal = np.zeros(SHORTLIST_SIZE + 1, np.bool_)
        legal[: len(self._view.nodes)] = True
        legal[WAIT] = not self.episode.done
        return legal

    def _update_view(self) -> None:
        """Compute the shortlist for the current job."""
        if self.episode.done:
            self._view = EMPTY_VIEW
        elif self.episode in self._observers:
            self._view = self._observers[self.episode].view()
        else:
            observer = self._observers[self.episode] = _EpisodeObserver(self.episode)
            self._view = observer.view()

    def _observation(self) -> Observation:
        nodes = np.zeros((SHORTLIST_SIZE, NODE_FEATURES), np.float32)
        nodes[: len(self._view.nodes)] = self._view.features
        return {"nodes": nodes, "job": self._view.job, "legal": self.action_masks().astype(np.int8)}


EMPTY_VIEW = NodeView(
    np.zeros(0, np.int64), np.zeros((0, NODE_FEATURES), np.float32), np.zeros(JOB_FEATURES, np.float32)
)
"""View at the end."""


class _EpisodeObserver:
    """Observer of one episode, which processes the past jobs of its instance once."""

    def __init__(self, episode: Episode) -> None:
        mix = episode.instance.mix
        self._episode = proxy(episode)
        self._observer = NodeObserver(mix)
        self._seaway = Seaway(mix)

    def view(self) -> NodeView:
        """Return the shortlist for the current job."""
        return self._observer.observe(self._episode.snapshot, self._episode.line, self._episode.legal_nodes())

    def device_keys(self, n: int) -> Scores:
        """Rank the devices of a node as Seaway's own policy does."""
        return self._seaway.device_keys(self._episode.cycle(), n)
