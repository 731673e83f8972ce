"""Settings of the rivals: sizes of layers, discount and pool as EADE-DDPG's, all else as in Stable-Baselines3."""

from __future__ import annotations

from dataclasses import dataclass

from seaway.learning.agents.settings import DdpgSettings

OURS = DdpgSettings()


@dataclass(frozen=True, slots=True)
class PoolSettings:
    """Common settings of algorithms with a pool of transitions.

    Attributes
    ----------
    hidden
        Sizes of the hidden layers; published 128-64.
    rate
        Learning rate of all their networks.
    batch
        Transitions of an update.
    discount, live_pool
        As in EADE-DDPG.
    soft_update
        Update rate of the target networks.
    warm_up
        Random steps before the first update.
    updates
        Updates a step.
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
    """DDPG.

    Attributes
    ----------
    noise
        Standard deviation of the exploration noise on the action (-1 to 1); Stable-Baselines3 itself adds none.
    """

    noise: float = 0.1


@dataclass(frozen=True, slots=True)
class Td3Settings(DdpgBaselineSettings):
    """TD3.

    Attributes
    ----------
    actor_delay
        Updates of the critics for one of the actor.
    target_noise, target_clip
        Standard deviation of the noise on actions of the target, and its most.
    """

    actor_delay: int = 2
    target_noise: float = 0.2
    target_clip: float = 0.5


@dataclass(frozen=True, slots=True)
class SacSettings(PoolSettings):
    """SAC; it works out by itself what entropy is worth."""

    rate: float = 3e-4


@dataclass(frozen=True, slots=True)
class PpoSettings:
    """PPO.

    Attributes
    ----------
    hidden, discount
        As above.
    rate
        Learning rate.
    steps
        Steps that are played between updates.
    batch, epochs
        Steps of a part of them, and how often each is learned from.
    trace_decay
        Lambda of the advantages.
    clip
        How far the chance of an action may change.
    entropy
        What entropy is worth.
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
