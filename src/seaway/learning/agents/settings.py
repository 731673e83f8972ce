"""Settings of EADE-DDPG and DDPG: what is published as it is published, what is not as we chose it."""

from __future__ import annotations

from dataclasses import dataclass


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
