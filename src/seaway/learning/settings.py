"""Settings of runs and of the algorithms."""

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


@dataclass(frozen=True, slots=True)
class DdpgSettings:
    """Settings of the method.

    Attributes
    ----------
    hidden
        Sizes of the hidden layers behind the first one; published 128-64.
    attention
        Width of the layer behind the heads of attention, published 128; 0 for no attention, which is plain DDPG.
    heads
        Heads of attention; unpublished.
    candidates
        Number of bins, nearest to the actor's action, from which the critic chooses the best; 1: the
        actor decides alone; 0: all bins, where the actor is not used, and not trained unless there is a
        discount. Unpublished.
    figures
        Numbers of each of the tokens that attention looks at: 4 of each cluster and of the job, 8 with the network's.
    expert_share
        Share beta of each batch from the expert's pool, 0-1; published 0.1. 0 is plain DDPG.
    batch
        Published 256.
    actor_rate, critic_rate
        Learning rates, published 1e-4 and 1e-3.
    discount, soft_update
        Gamma and tau; unpublished.
    live_pool, expert_pool
        Capacity of each pool; unpublished.
    noise, noise_end
        Standard deviation of the exploration noise on the action (-1 to 1) in the first episode and in the last;
        unpublished.
    warm_up
        Random steps before the first update; unpublished.
    updates
        Updates a step.
    """

    hidden: tuple[int, ...] = (128, 64)
    attention: int = 128
    heads: int = 8
    candidates: int = 0
    figures: int = 4
    expert_share: float = 0.1
    batch: int = 256
    actor_rate: float = 1e-4
    critic_rate: float = 1e-3
    discount: float = 0.0
    soft_update: float = 0.005
    live_pool: int = 20_000
    expert_pool: int = 20_000
    noise: float = 0.1
    noise_end: float = 0.02
    warm_up: int = 1_000
    updates: int = 1


@dataclass(frozen=True, slots=True)
class PilotSettings:
    """How `pilot` learns.

    Attributes
    ----------
    width, heads
        Of the network.
    pairs
        Pairs of candidates in a generation: each a step from the weights, there and back.
    batch
        Instances that a generation is played on, drawn from those of the run.
    spread
        Size of such a step, in each weight's own unit.
    rate
        How far the weights move in a generation, likewise.
    average
        Share of the old in the running mean of the weights, which is what is evaluated and kept.
    judged
        Every so many-th instance is kept apart from learning, to be evaluated on.
    scores
        Whether the scores of nodes are learned. Else those within a cluster stay Seaway's own, and what is learned is
        when to wait, and what figures count by which clusters differ.
    packings
        Of how many instances it learns from packings first: from the best that is found with all jobs known. It needs
        OR-Tools.
    packing_s
        How long each of them is searched, seconds of CPU or so.
    """

    width: int = 16
    heads: int = 2
    pairs: int = 12
    batch: int = 24
    spread: float = 1.0
    rate: float = 0.5
    average: float = 0.9
    judged: int = 4
    scores: bool = True
    packings: int = 0
    packing_s: float = 8.0
