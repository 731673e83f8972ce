"""The rivals' models, as Stable-Baselines3 makes them."""

from __future__ import annotations

from typing import Any

import numpy as np
from stable_baselines3 import DDPG, PPO, SAC, TD3
from stable_baselines3.common.noise import NormalActionNoise

from seaway.learning.rivals.env import RivalEnv
from seaway.learning.rivals.settings import DdpgRivalSettings, PoolSettings, PpoSettings, SacSettings, Td3Settings


def make_model(settings: object, env: RivalEnv, seed: int) -> Any:  # noqa: ANN401  # SB3's models
    """Make a model by the kind of its settings; it runs on the CPU, where runs can be repeated."""
    if isinstance(settings, PpoSettings):
        return _ppo(settings, env, seed)
    if isinstance(settings, Td3Settings):
        later = {
            "policy_delay": settings.actor_delay,
            "target_policy_noise": settings.target_noise,
            "target_noise_clip": settings.target_clip,
        }
        return TD3("MlpPolicy", env, seed=seed, **_pooled(settings), **_noise(settings.noise), **later)
    if isinstance(settings, DdpgRivalSettings):
        return DDPG("MlpPolicy", env, seed=seed, **_pooled(settings), **_noise(settings.noise))
    assert isinstance(settings, SacSettings), settings
    return SAC("MlpPolicy", env, seed=seed, **_pooled(settings))


def _pooled(settings: PoolSettings) -> dict[str, Any]:
    return {
        "learning_rate": settings.rate,
        "buffer_size": settings.live_pool,
        "learning_starts": settings.warm_up,
        "batch_size": settings.batch,
        "tau": settings.soft_update,
        "gamma": settings.discount,
        "gradient_steps": settings.updates,
        "policy_kwargs": {"net_arch": list(settings.hidden)},
        "device": "cpu",
    }


def _noise(deviation: float) -> dict[str, Any]:
    return {"action_noise": NormalActionNoise(np.zeros(1), np.full(1, deviation))} if deviation else {}


def _ppo(settings: PpoSettings, env: RivalEnv, seed: int) -> Any:  # noqa: ANN401
    return PPO(
        "MlpPolicy",
        env,
        seed=seed,
        learning_rate=settings.rate,
        n_steps=settings.steps,
        batch_size=settings.batch,
        n_epochs=settings.epochs,
        gamma=settings.discount,
        gae_lambda=settings.trace_decay,
        clip_range=settings.clip,
        ent_coef=settings.entropy,
        policy_kwargs={"net_arch": list(settings.hidden)},
        device="cpu",
    )
