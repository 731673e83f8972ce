"""Settings of a run."""

from __future__ import annotations

from dataclasses import dataclass, field

from seaway.learning.episodes.episode import EpisodeOptions


@dataclass(frozen=True, slots=True)
class RunSettings:
    """How a run goes, whatever learns in it.

    Attributes
    ----------
    episodes
        How many at most.
    seed
        The seed of everything that is drawn.
    evaluate_every
        After how many episodes the policy is evaluated without noise.
    patience
        After how many evaluations without a better one the run ends; 0: it never does before its time.
    checkpoint_every, checkpoint_s
        After how many episodes, or how many seconds, all that is needed to go on is written down.
    draws, draw_seed
        How many instances are drawn of each kind that is to be drawn, and their seed: another than `seed`, so that
        runs of several seeds learn on the same.
    fitting
        Whether those that choose among clusters are shown, of what clusters have free, only what is on nodes that fit
        the job; otherwise all of it.
    threads
        Of torch. With 1 a run is the same each time, to the bit.
    """

    episodes: int = 1000
    seed: int = 0
    evaluate_every: int = 5
    patience: int = 0
    checkpoint_every: int = 50
    checkpoint_s: float = 60.0
    draws: int = 8
    draw_seed: int = 0
    fitting: bool = True
    threads: int = 1


@dataclass(frozen=True, slots=True)
class Run:
    """All that a run depends on.

    Attributes
    ----------
    algo
        Its algorithm, see `algos`.
    learner
        Settings of the algorithm, a dataclass of its own.
    instances
        Folders that it learns on, as the user named them.
    draw
        Kinds of instances that are drawn; empty for none.
    episode
        How an episode goes.
    settings
        How the run goes.
    """

    algo: str
    learner: object
    instances: tuple[str, ...] = ()
    draw: tuple[str, ...] = ()
    episode: EpisodeOptions = field(default_factory=EpisodeOptions)
    settings: RunSettings = field(default_factory=RunSettings)
