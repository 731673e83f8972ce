"""Progress of a run, its listeners, and its result."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol


@dataclass(frozen=True, slots=True)
class EpisodeResult:
    """Result of an episode.

    Attributes
    ----------
    instance
        Name of the instance.
    reward
        Sum of rewards.
    jobs, placed, refused, failed
        Number of jobs that arrived, were placed, were infeasible, and were not placed although they fitted.
    fragmentation, gpu_load_variance
        Values at the end, see `seaway.simulation.outcome`; None for a fleet without such resources.
    seconds
        Duration, including training.
    figures
        Means over the episode of figures of the algorithm, such as losses, by name.
    """

    instance: str
    reward: float
    jobs: int
    placed: int
    refused: int
    failed: int
    fragmentation: float | None
    gpu_load_variance: float | None
    seconds: float = 0.0
    figures: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Evaluation:
    """Result of the policy without noise on all training instances.

    Attributes
    ----------
    jobs, placed, refused
        Sums over the instances.
    gpu_load_variance, reward
        Means over the instances.
    """

    jobs: int
    placed: int
    refused: int
    gpu_load_variance: float
    reward: float


@dataclass(frozen=True, slots=True)
class Row:
    """An episode of a run.

    Attributes
    ----------
    episode
        Number, from 1.
    evaluated
        Evaluation after the episode; None without one.
    best
        Whether this is the best evaluation so far.
    """

    episode: int
    play: EpisodeResult
    evaluated: Evaluation | None = None
    best: bool = False


@dataclass(frozen=True, slots=True)
class Plan:
    """Plan of a run before its first episode.

    Attributes
    ----------
    folder
        Output folder.
    algo
        Name of the algorithm.
    episodes
        Maximum number of episodes.
    done
        Number of completed episodes of a resumed run.
    best
        Best evaluation of a resumed run.
    """

    folder: Path
    algo: str
    episodes: int
    done: int = 0
    best: Evaluation | None = None


@dataclass(frozen=True, slots=True)
class TrainingResult:
    """Result of a run.

    Attributes
    ----------
    episodes
        Number of all episodes.
    best
        Best evaluation; None without one.
    best_episode
        Number of its episode.
    why
        Reason for the end, one clause: ``all episodes played``, ``no better for 20 evaluations``, ``stopped``.
    unfinished
        Whether it was stopped and can be resumed.
    policy
        Path of the policy file; None for none.
    """

    episodes: int
    best: Evaluation | None
    best_episode: int
    why: str
    unfinished: bool = False
    policy: Path | None = None


class Listener(Protocol):
    """Receiver of the progress of a run: a progress bar, a table, curves."""

    @property
    def stopping(self) -> bool:
        """True to end the run at the next checkpoint."""

    def doing(self, text: str) -> None:
        """Receive a step besides episodes, one clause: ``reading instances``."""

    def begins(self, plan: Plan) -> None:
        """Receive the plan, before the first episode."""

    def played(self, row: Row) -> None:
        """Receive an episode."""

    def saved(self, episode: int) -> None:
        """Receive the number of the last episode in a checkpoint."""

    def ends(self, result: TrainingResult) -> None:
        """Receive the result, unless the run failed."""


class NullListener:
    """Listener that ignores everything."""

    stopping = False

    def doing(self, text: str) -> None:
        """Do nothing."""

    def begins(self, plan: Plan) -> None:
        """Do nothing."""

    def played(self, row: Row) -> None:
        """Do nothing."""

    def saved(self, episode: int) -> None:
        """Do nothing."""

    def ends(self, result: TrainingResult) -> None:
        """Do nothing."""


class CombinedListener:
    """Several listeners as one. Any of them can end the run."""

    def __init__(self, listeners: Sequence[Listener]) -> None:
        self._all = tuple(listeners)

    @property
    def stopping(self) -> bool:
        """True if a listener wants to end the run."""
        return any(each.stopping for each in self._all)

    def doing(self, text: str) -> None:
        """Forward the step."""
        for each in self._all:
            each.doing(text)

    def begins(self, plan: Plan) -> None:
        """Forward the plan."""
        for each in self._all:
            each.begins(plan)

    def played(self, row: Row) -> None:
        """Forward the episode."""
        for each in self._all:
            each.played(row)

    def saved(self, episode: int) -> None:
        """Forward the checkpoint."""
        for each in self._all:
            each.saved(episode)

    def ends(self, result: TrainingResult) -> None:
        """Forward the result."""
        for each in self._all:
            each.ends(result)
