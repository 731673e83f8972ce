"""Which of the policies that a run came by is its best, and when to stop looking for a better one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from seaway.learning.training.listener import Evaluated, Play


def evaluated(plays: Sequence[Play]) -> Evaluated:
    """Sum up how a policy did on several instances, one play of each."""
    return Evaluated(
        jobs=sum(each.jobs for each in plays),
        placed=sum(each.placed for each in plays),
        refused=sum(each.refused for each in plays),
        gpu_load_variance=sum(each.gpu_load_variance or 0.0 for each in plays) / len(plays),
        reward=sum(each.reward for each in plays) / len(plays),
    )


class Selection:
    """Remembers the best: most jobs placed, of those the lowest GPU load variance, of those the first.

    Parameters
    ----------
    patience
        After how many evaluations without a better one it is tired; 0 for never.

    Attributes
    ----------
    best
        None before anything was evaluated.
    episode
        After which episode it was evaluated.
    """

    def __init__(self, patience: int) -> None:
        self._patience = patience
        self._since = 0
        self.best: Evaluated | None = None
        self.episode = 0

    @property
    def tired(self) -> bool:
        """True if there is nothing better to come, as far as patience goes."""
        return 0 < self._patience <= self._since

    def take(self, found: Evaluated, episode: int) -> bool:
        """Look at what was evaluated after an episode; True when it is the best until now."""
        if self.best is None or _rank(found) > _rank(self.best):
            self.best, self.episode, self._since = found, episode, 0
            return True
        self._since += 1
        return False

    def state(self) -> dict[str, Any]:
        """Return what it needs to go on."""
        return {"best": asdict(self.best) if self.best else None, "episode": self.episode, "since": self._since}

    def restore(self, state: dict[str, Any]) -> None:
        """Take such a state up."""
        self.best = Evaluated(**state["best"]) if state["best"] else None
        self.episode, self._since = state["episode"], state["since"]


def _rank(found: Evaluated) -> tuple[int, float]:
    return found.placed, -found.gpu_load_variance
