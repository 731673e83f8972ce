"""What a run tells whoever watches it, and how they end it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Play:
    """What an episode came to.

    Attributes
    ----------
    instance
        Name of the instance that was played.
    reward
        Sum over the episode.
    jobs, placed, refused, failed
        How many came; how many were placed; not placed when nothing could have held them; not placed although
        something could have.
    fragmentation, gpu_load_variance
        At the end, as `seaway.simulation.outcome` has them; None for a fleet without such resources.
    seconds
        How long it took, learning included.
    figures
        Means over the episode of what the algorithm tells of itself, like losses, by name.
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
class Evaluated:
    """How the policy did without noise on all instances that it learns on.

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
        Its number, from 1.
    evaluated
        How the policy did after it; None where it was not evaluated.
    best
        Whether that is the best of the run until now.
    """

    episode: int
    play: Play
    evaluated: Evaluated | None = None
    best: bool = False


@dataclass(frozen=True, slots=True)
class Plan:
    """What a run is about to do.

    Attributes
    ----------
    folder
        Where it writes.
    algo
        Its algorithm.
    episodes
        How many there will be at most.
    done
        How many there were before, of a run that goes on.
    best
        The best until now, of a run that goes on.
    """

    folder: Path
    algo: str
    episodes: int
    done: int = 0
    best: Evaluated | None = None


@dataclass(frozen=True, slots=True)
class Reached:
    """What a run came to.

    Attributes
    ----------
    episodes
        How many there were in all.
    best
        The best that was evaluated; None where nothing was.
    best_episode
        After which episode.
    why
        Why it ended, a clause: ``all episodes played``, ``no better for 20 evaluations``, ``stopped``.
    unfinished
        Whether it was stopped and can go on.
    policy
        The policy file that was written; None for none.
    """

    episodes: int
    best: Evaluated | None
    best_episode: int
    why: str
    unfinished: bool = False
    policy: Path | None = None


class Listener(Protocol):
    """Whoever watches a run: a progress bar, a table, curves."""

    @property
    def stopping(self) -> bool:
        """True if the run is to end where its state can next be kept."""

    def doing(self, text: str) -> None:
        """Learn what the run is about to do that is not an episode, a clause: ``reading instances``."""

    def begins(self, plan: Plan) -> None:
        """Learn what comes; once, before the first episode."""

    def played(self, row: Row) -> None:
        """Learn of an episode."""

    def saved(self, episode: int) -> None:
        """Learn that a kill would now lose only what comes after this episode."""

    def ends(self, reached: Reached) -> None:
        """Learn what the run came to; once, unless it failed."""


class NullListener:
    """A listener that does not listen."""

    stopping = False

    def doing(self, text: str) -> None:
        """Do nothing."""

    def begins(self, plan: Plan) -> None:
        """Do nothing."""

    def played(self, row: Row) -> None:
        """Do nothing."""

    def saved(self, episode: int) -> None:
        """Do nothing."""

    def ends(self, reached: Reached) -> None:
        """Do nothing."""


class Together:
    """Several listeners as one; any of them ends the run."""

    def __init__(self, listeners: Sequence[Listener]) -> None:
        self._all = tuple(listeners)

    @property
    def stopping(self) -> bool:
        """True if one of them wants the run to end."""
        return any(each.stopping for each in self._all)

    def doing(self, text: str) -> None:
        """Tell each."""
        for each in self._all:
            each.doing(text)

    def begins(self, plan: Plan) -> None:
        """Tell each."""
        for each in self._all:
            each.begins(plan)

    def played(self, row: Row) -> None:
        """Tell each."""
        for each in self._all:
            each.played(row)

    def saved(self, episode: int) -> None:
        """Tell each."""
        for each in self._all:
            each.saved(episode)

    def ends(self, reached: Reached) -> None:
        """Tell each."""
        for each in self._all:
            each.ends(reached)
