"""Replay: pools of transitions, and batches from two pools."""

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

    A row is `observation (O), action (1), following (O), reward (1), going on (1)`. Observation and action are
    adjacent, as the critic needs them. Going on is 0 if the episode ended, otherwise 1.
    """

    observation_size: int

    @property
    def action(self) -> int:
        """Column of the action."""
        return self.observation_size

    @property
    def following(self) -> slice:
        """Columns of the observation that followed."""
        return slice(self.observation_size + 1, 2 * self.observation_size + 1)

    @property
    def reward(self) -> int:
        """Column of the reward."""
        return 2 * self.observation_size + 1

    @property
    def going_on(self) -> int:
        """Column of what is left of the future: 0 or 1."""
        return 2 * self.observation_size + 2

    @property
    def width(self) -> int:
        """Numbers in a row."""
        return 2 * self.observation_size + 3


class Pool:
    """The newest transitions, up to a number of them.

    Parameters
    ----------
    size
        How many it keeps; the oldest gives way.
    observation_size
        O, numbers of an observation.

    Attributes
    ----------
    filled
        How many there are.
    """

    def __init__(self, size: int, observation_size: int) -> None:
        self.columns = Columns(observation_size)
        self.filled = 0
        self._next = 0
        self._rows = np.zeros((size, self.columns.width), dtype=np.float32)

    def add(self, observation: Floats, action: float, reward: float, following: Floats, ended: bool) -> None:
        """Keep a transition."""
        row = self._rows[self._next]
        row[: self.columns.observation_size] = observation
        row[self.columns.action] = action
        row[self.columns.following] = following
        row[self.columns.reward] = reward
        row[self.columns.going_on] = 0.0 if ended else 1.0
        self._next = (self._next + 1) % len(self._rows)
        self.filled = min(self.filled + 1, len(self._rows))

    def draw(self, rng: np.random.Generator, out: Floats) -> None:
        """Fill the rows of `out` (B, width) with transitions by lot, each of the same chance, also more than once."""
        if len(out):
            np.take(self._rows, rng.integers(0, self.filled, len(out)), axis=0, out=out, mode="clip")

    def state(self) -> dict[str, Any]:
        """Give what it holds, as a tensor and a number."""
        return {"rows": torch.from_numpy(self._rows[: self.filled].copy()), "next": self._next}

    def restore(self, state: dict[str, Any]) -> None:
        """Hold what `state` gave."""
        rows = state["rows"].numpy()
        self.filled = len(rows)
        self._rows[: self.filled] = rows
        self._next = state["next"]


class Replay:
    """Batches of two pools, a fixed share of each from the expert's.

    Parameters
    ----------
    live, expert
        What was lived, and what an expert would have done.
    expert_share
        Beta, 0-1: `round(beta * batch)` rows of each batch are the expert's, as soon as there are any.
    batch
        Rows of a batch.
    """

    def __init__(self, live: Pool, expert: Pool, expert_share: float, batch: int) -> None:
        self.live = live
        self.expert = expert
        self._taught = round(expert_share * batch)
        self._batch = np.zeros((batch, live.columns.width), dtype=np.float32)

    def draw(self, rng: np.random.Generator) -> Floats:
        """Draw a batch (B, width), the expert's rows first; the next draw overwrites it."""
        taught = self._taught if self.expert.filled else 0
        self.expert.draw(rng, self._batch[:taught])
        self.live.draw(rng, self._batch[taught:])
        return self._batch
