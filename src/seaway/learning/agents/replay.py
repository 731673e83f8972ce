"""Replay buffers, and batches with a fixed share of demonstrations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

Floats = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Columns:
    """Positions of the parts of a transition in its row.

    A row is `observation (O), action (1), next observation (O), reward (1), not done (1)`. Observation and action are
    adjacent, as the critic needs them.
    """

    observation_size: int

    @property
    def action(self) -> int:
        """Column of the action."""
        return self.observation_size

    @property
    def next_observation(self) -> slice:
        """Columns of the next observation."""
        return slice(self.observation_size + 1, 2 * self.observation_size + 1)

    @property
    def reward(self) -> int:
        """Column of the reward."""
        return 2 * self.observation_size + 1

    @property
    def not_done(self) -> int:
        """Column of the mask of the next value: 0 if the episode terminated, otherwise 1."""
        return 2 * self.observation_size + 2

    @property
    def width(self) -> int:
        """Length of a row."""
        return 2 * self.observation_size + 3


class ReplayBuffer:
    """Ring buffer of the latest transitions.

    Parameters
    ----------
    capacity
        Maximum number of transitions; a new one then overwrites the oldest.
    observation_size
        O, length of an observation.
    """

    def __init__(self, capacity: int, observation_size: int) -> None:
        self.columns = Columns(observation_size)
        self._size = 0
        self._next = 0
        self._rows = np.zeros((capacity, self.columns.width), dtype=np.float32)

    def __len__(self) -> int:
        return self._size

    def add(self, observation: Floats, action: float, reward: float, following: Floats, terminated: bool) -> None:
        """Store a transition. `following` is the next observation."""
        row = self._rows[self._next]
        row[: self.columns.observation_size] = observation
        row[self.columns.action] = action
        row[self.columns.next_observation] = following
        row[self.columns.reward] = reward
        row[self.columns.not_done] = 0.0 if terminated else 1.0
        self._next = (self._next + 1) % len(self._rows)
        self._size = min(self._size + 1, len(self._rows))

    def sample(self, rng: np.random.Generator, out: Floats) -> None:
        """Fill `out` (B, width) with transitions, drawn uniformly with replacement."""
        if len(out):
            np.take(self._rows, rng.integers(0, self._size, len(out)), axis=0, out=out, mode="clip")

    def state(self) -> dict[str, Any]:
        """Return the transitions and the position of the next one."""
        return {"rows": torch.from_numpy(self._rows[: self._size].copy()), "next": self._next}

    def restore(self, state: dict[str, Any]) -> None:
        """Restore a result of `state`."""
        rows = state["rows"].numpy()
        self._size = len(rows)
        self._rows[: self._size] = rows
        self._next = state["next"]


class MixedReplay:
    """Batches from two replay buffers, with a fixed share of demonstrations.

    Parameters
    ----------
    live, expert
        Transitions of the agent, and demonstrations of the expert.
    expert_share
        Beta, 0-1: `round(beta * batch)` rows of each batch are demonstrations, as soon as there are any.
    batch
        Rows of a batch.
    """

    def __init__(self, live: ReplayBuffer, expert: ReplayBuffer, expert_share: float, batch: int) -> None:
        self.live = live
        self.expert = expert
        self._demonstrations = round(expert_share * batch)
        self._batch = np.zeros((batch, live.columns.width), dtype=np.float32)

    def sample(self, rng: np.random.Generator) -> Floats:
        """Sample a batch (B, width), demonstrations first. The next call overwrites it."""
        demonstrations = self._demonstrations if len(self.expert) else 0
        self.expert.sample(rng, self._batch[:demonstrations])
        self.live.sample(rng, self._batch[demonstrations:])
        return self._batch
