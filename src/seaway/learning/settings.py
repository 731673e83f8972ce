"""Settings of runs and of the algorithms."""

from __future__ import annotations

from dataclasses import dataclass, field

from seaway.learning.episodes.episode import EpisodeOptions


@dataclass(frozen=True, slots=True)
class RunSettings:
    """Settings of a run, independent of its algorithm.

    Attributes
    ----------
    episodes
        Maximum number of episodes.
    seed
        Seed of all random draws.
    evaluate_every
        Number of episodes between two evaluations of the policy without noise.
    patience
        Number of evaluations without an improvement that end the run; 0 for no such end.
    checkpoint_every, checkpoint_s
        Number of episodes, or seconds, between two checkpoints.
    draws, draw_seed
        Number of generated instances of each kind, and their seed. It is separate from `seed`, so that runs with
        several seeds learn on the same instances.
    fitting
        Whether observations of clusters only count free resources on nodes that fit the job; otherwise all.
    threads
        Number of threads of torch. With 1, a run is reproducible to the bit.
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
    """All inputs of a run.

    Attributes
    ----------
    algo
        Name of its algorithm, see `algos`.
    learner
        Settings of the algorithm, a dataclass.
    instances
        Folders of instances, as the user named them.
    draw
        Kinds of generated instances; empty for none.
    episode
        Settings of an episode.
    settings
        Settings of the run.
    """

    algo: str
    learner: object
    instances: tuple[str, ...] = ()
    draw: tuple[str, ...] = ()
    episode: EpisodeOptions = field(default_factory=EpisodeOptions)
    settings: RunSettings = field(default_factory=RunSettings)


@dataclass(frozen=True, slots=True)
class DdpgSettings:
    """Settings of EADE-DDPG.

    Attributes
    ----------
    hidden
        Sizes of the hidden layers after the first one; published 128-64.
    attention
        Width of the layer after the attention heads, published 128; 0 for no attention, which is plain DDPG.
    heads
        Number of attention heads; unpublished.
    candidates
        Number of bins closest to the actor's action, from which the critic chooses the best. With 1 the actor decides
        alone. With 0 these are all bins; the actor is not used, and only trained with a discount. Unpublished.
    figures
        Number of features of a cluster and of the job: 4, or 8 with the network.
    expert_share
        Share beta of demonstrations in each batch, 0-1; published 0.1. 0 is plain DDPG.
    batch
        Size of a batch; published 256.
    actor_rate, critic_rate
        Learning rates; published 1e-4 and 1e-3.
    discount, soft_update
        Gamma and tau; unpublished.
    live_pool, expert_pool
        Capacities of the replay buffers of the agent and of the expert; unpublished.
    noise, noise_end
        Standard deviation of the exploration noise on the action (-1 to 1) in the first and in the last episode;
        unpublished.
    warm_up
        Random steps before the first update; unpublished.
    updates
        Number of updates per step.
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
    """Settings of `pilot`.

    Attributes
    ----------
    width, heads
        Width and number of attention heads of the network.
    pairs
        Pairs of candidates in a generation: a step from the weights in a random direction, and its reverse.
    batch
        Number of instances per generation, drawn from those of the run.
    spread
        Size of a step, in the unit of each weight.
    rate
        Learning rate, in the unit of each weight.
    average
        Share of the previous mean in the running mean of the weights, which is evaluated and stored.
    judged
        Each n-th instance is reserved for evaluation.
    scores
        Whether the scores of nodes are learned. Otherwise scores within a cluster are those of the policy `seaway`, and
        only waiting and the figures that distinguish clusters are learned.
    packings
        Number of instances with a packing to imitate first, the best one found with all jobs known. Requires OR-Tools.
    packing_s
        Approximate CPU time of the search of each packing, seconds.
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


OURS = DdpgSettings()


@dataclass(frozen=True, slots=True)
class PoolSettings:
    """Common settings of off-policy algorithms.

    Attributes
    ----------
    hidden
        Sizes of the hidden layers; published 128-64.
    rate
        Learning rate of all networks.
    batch
        Batch size.
    discount, live_pool
        As in EADE-DDPG.
    soft_update
        Update rate of the target networks.
    warm_up
        Number of random steps before the first update.
    updates
        Number of updates per step.
    """

    hidden: tuple[int, ...] = OURS.hidden
    rate: float = 1e-3
    batch: int = 256
    discount: float = OURS.discount
    live_pool: int = OURS.live_pool
    soft_update: float = 0.005
    warm_up: int = 100
    updates: int = 1


@dataclass(frozen=True, slots=True)
class DdpgBaselineSettings(PoolSettings):
    """Settings of DDPG of Stable-Baselines3.

    Attributes
    ----------
    noise
        Standard deviation of the exploration noise on the action (-1 to 1). Stable-Baselines3 has no default.
    """

    noise: float = 0.1


@dataclass(frozen=True, slots=True)
class Td3Settings(DdpgBaselineSettings):
    """Settings of TD3.

    Attributes
    ----------
    actor_delay
        Number of updates of the critics per update of the actor.
    target_noise, target_clip
        Standard deviation and maximum of the noise on target actions.
    """

    actor_delay: int = 2
    target_noise: float = 0.2
    target_clip: float = 0.5


@dataclass(frozen=True, slots=True)
class SacSettings(PoolSettings):
    """Settings of SAC, with automatic tuning of the entropy coefficient."""

    rate: float = 3e-4


@dataclass(frozen=True, slots=True)
class PpoSettings:
    """Settings of PPO.

    Attributes
    ----------
    hidden, discount
        As in `PoolSettings`.
    rate
        Learning rate.
    steps
        Number of steps per rollout.
    batch, epochs
        Size of a minibatch, and number of passes over a rollout.
    trace_decay
        Lambda of generalised advantage estimation.
    clip
        Clip range of the ratio of probabilities.
    entropy
        Entropy coefficient.
    """

    hidden: tuple[int, ...] = OURS.hidden
    discount: float = OURS.discount
    rate: float = 3e-4
    steps: int = 2048
    batch: int = 64
    epochs: int = 10
    trace_decay: float = 0.95
    clip: float = 0.2
    entropy: float = 0.0
