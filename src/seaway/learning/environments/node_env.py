"""Choosing among nodes: the environment of policies that work on any fleet."""

from __future__ import annotations

from typing import Any, NamedTuple
from weakref import WeakKeyDictionary, proxy

import gymnasium
import numpy as np
from gymnasium import spaces

from seaway.learning.environments.cluster_env import Episodes, Source
from seaway.learning.episodes.episode import OFFERED_TWICE, Episode, EpisodeOptions
from seaway.learning.observing.clusters import checked
from seaway.learning.observing.nodes import FIGURES, JOB_FIGURES, SHORTLIST_SIZE, NodeObserver, NodeView
from seaway.scheduling.columns import DEMAND_GPU_CORE, DEMAND_GPUS
from seaway.scheduling.framework import Mask, Scores
from seaway.scheduling.policies.seaway.plugin import Seaway

Info = dict[str, Any]
Shown = dict[str, Any]

WAIT = SHORTLIST_SIZE
"""The action that waits."""


class NodeRewards(NamedTuple):
    """Rewards of decisions. Their sum over an episode is its objective: placed jobs, or GPU in use.

    Attributes
    ----------
    job
        For each job that is placed.
    card
        For each whole card's worth of cores that it takes.
    impossible
        For an action without a node.
    wait_wrong
        For waiting although something fits.
    waited_hour
        Added to a placement for each hour that the job waited before it, with departures.
    """

    job: float = 1.0
    card: float = 0.0
    impossible: float = -1.0
    wait_wrong: float = 0.0
    waited_hour: float = 0.0

    def of_placing(self, episode: Episode) -> float:
        """Return what placing the job at hand earns."""
        amounts = episode.snapshot.demands.arrays.amounts[episode.line]
        cards = float(amounts[DEMAND_GPUS] * amounts[DEMAND_GPU_CORE]) / 1000
        return self.job + self.card * cards + self.waited_hour * episode.waited_s / 3600


JOBS_PLACED = NodeRewards()
"""One for each job that is placed."""


class NodeEnv(gymnasium.Env):
    """Environment of the node level: each step places one job on a node of a shortlist, or lets it wait.

    **Observation**: a ``Dict``. ``nodes`` is a ``Box``, float32, shape (MOST, FIGURES), with a row per node of the
    shortlist, padded with zeros. ``job`` is a ``Box``, float32, shape (JOB_FIGURES,), of the job and the fleet.
    ``legal`` is ``MultiBinary(MOST + 1)``. `seaway.learning.observing.nodes` defines the shortlist and the figures,
    which do not depend on the number of clusters and nodes. At the end all are 0.

    **Action**: ``Discrete(MOST + 1)``: a row of the shortlist, or MOST to wait.

    **Step**: the job is placed on the node, on the devices that the policy `seaway` chooses. An illegal action loses
    the job. All nodes of the shortlist are feasible.

    **Reward**: 1 for a placed job, -1 for a job lost by an illegal action, and 0 for waiting. `rewards` has the
    numbers.

    **Ends**: terminated when every job has been decided permanently; never truncated.

    **Info**: ``legal``, bool, shape (MOST + 1,). Once at the end, ``outcome``, an `Outcome` with all figures.

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
        The episode that runs.
    """

    metadata: dict[str, Any] = {"render_modes": []}  # noqa: RUF012 (so gymnasium declares it)

    def __init__(
        self, source: Source, *, options: EpisodeOptions = OFFERED_TWICE, rewards: NodeRewards = JOBS_PLACED
    ) -> None:
        self._episodes = Episodes(source, options)
        self._rewards = rewards
        self._eyes: WeakKeyDictionary[Episode, _Eyes] = WeakKeyDictionary()
        self.observation_space = spaces.Dict(
            {
                "nodes": spaces.Box(-np.inf, np.inf, (SHORTLIST_SIZE, FIGURES), np.float32),
                "job": spaces.Box(-np.inf, np.inf, (JOB_FIGURES,), np.float32),
                "legal": spaces.MultiBinary(SHORTLIST_SIZE + 1),
            }
        )
        self.action_space = spaces.Discrete(SHORTLIST_SIZE + 1)

    def reset(self, *, seed: int | None = None, options: Info | None = None) -> tuple[Shown, Info]:
        """Begin the next episode; with a seed, the first of those that it stands for."""
        super().reset(seed=seed)
        self.episode = self._episodes.begin(self.np_random, seed)
        self._look()
        return self._shown(), {"legal": self.action_masks()}

    def step(self, action: int | np.integer[Any]) -> tuple[Shown, float, bool, bool, Info]:
        """Decide the job at hand.

        Raises
        ------
        RejectedError
            When there is no action of that number.
        """
        episode, at = self.episode, checked(int(action), WAIT)
        if at == WAIT:
            reward = self._rewards.wait_wrong if episode.fits else 0.0
            episode.wait()
        elif at < len(self._view.nodes):
            n = int(self._view.nodes[at])
            reward = self._rewards.of_placing(episode)
            episode.place_on_node(n, self._eyes[episode].device_keys(n))
        else:
            reward = self._rewards.impossible
            episode.lose()
        self._look()
        info: Info = {"legal": self.action_masks()}
        if episode.done:
            info["outcome"] = episode.outcome("")
        return self._shown(), reward, episode.done, False, info

    def action_masks(self) -> Mask:
        """Tell which actions stand for something now, shape (MOST + 1,); at the end none does."""
        legal = np.zeros(SHORTLIST_SIZE + 1, np.bool_)
        legal[: len(self._view.nodes)] = True
        legal[WAIT] = not self.episode.done
        return legal

    def _look(self) -> None:
        """Make the shortlist for the job at hand."""
        if self.episode.done:
            self._view = NOTHING
        elif self.episode in self._eyes:
            self._view = self._eyes[self.episode].view()
        else:
            eyes = self._eyes[self.episode] = _Eyes(self.episode)
            self._view = eyes.view()

    def _shown(self) -> Shown:
        nodes = np.zeros((SHORTLIST_SIZE, FIGURES), np.float32)
        nodes[: len(self._view.nodes)] = self._view.figures
        return {"nodes": nodes, "job": self._view.job, "legal": self.action_masks().astype(np.int8)}


NOTHING = NodeView(np.zeros(0, np.int64), np.zeros((0, FIGURES), np.float32), np.zeros(JOB_FIGURES, np.float32))
"""Observation at the end."""


class _Eyes:
    """Observer of one episode, which processes the past jobs of its instance once."""

    def __init__(self, episode: Episode) -> None:
        mix = episode.instance.mix
        self._episode = proxy(episode)
        self._observer = NodeObserver(mix)
        self._seaway = Seaway(mix)

    def view(self) -> NodeView:
        """Return the shortlist for the job at hand."""
        return self._observer.observe(self._episode.snapshot, self._episode.line, self._episode.legal_nodes())

    def device_keys(self, n: int) -> Scores:
        """Rank the devices of a node as Seaway's own policy does."""
        return self._seaway.device_keys(self._episode.cycle(), n)
