"""Learners of TD3, SAC, PPO and DDPG of Stable-Baselines3."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import gymnasium
import numpy as np
import torch
from stable_baselines3 import DDPG, PPO, SAC, TD3
from stable_baselines3.common.logger import Logger
from stable_baselines3.common.noise import NormalActionNoise
from torch import Tensor, nn

from seaway.learning.environments.cluster_env import ClusterEnv
from seaway.learning.instances.instance import Instance
from seaway.learning.settings import (
    DdpgBaselineSettings,
    PoolSettings,
    PpoSettings,
    Run,
    SacSettings,
    Td3Settings,
)
from seaway.learning.training.clusters import ClusterEnvs, episode_result
from seaway.learning.training.learner import State, TrainedActor, check_finite
from seaway.learning.training.listener import EpisodeResult, Listener
from seaway.scheduling.arrays import Float32


class BaselineEnv(gymnasium.Env):
    """`ClusterEnv` that changes the instance with each episode, and records the results.

    Parameters
    ----------
    envs
        Environments of the instances.

    Attributes
    ----------
    episode
        Number of the running episode, from 0.
    results
        Results of completed episodes; the caller removes them.
    """

    def __init__(self, envs: ClusterEnvs) -> None:
        self._envs = envs
        self._env: ClusterEnv = envs.each()[0]
        self.observation_space = self._env.observation_space
        self.action_space = self._env.action_space
        self.episode = 0
        self.results: list[EpisodeResult] = []
        self._actions: list[float] = []
        self._reward = 0.0
        self._start_s = time.perf_counter()

    @property
    def min_steps(self) -> int:
        """Minimum number of remaining steps of the episode: one per job, more for jobs that wait."""
        return max(len(self._env.episode.queue) - len(self._actions), 1)

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Float32, dict[str, Any]]:  # noqa: ANN401
        """Start the next episode; after `restore`, continue the restored one."""
        super().reset(seed=seed)
        self._env, observation = self._envs.begin(self.episode)
        self._reward, self._start_s = 0.0, time.perf_counter()
        for action in self._actions:
            observation, reward, _, _, _ = self._env.step(np.array([action], np.float32))
            self._reward += reward
        return observation, {}

    def step(self, action: Float32) -> tuple[Float32, float, bool, bool, dict[str, Any]]:
        """Decide about the current job."""
        check_finite(float(action[0]))
        observation, reward, ended, _, info = self._env.step(action)
        self._actions.append(float(action[0]))
        self._reward += reward
        if ended:
            seconds = time.perf_counter() - self._start_s
            self.results.append(
                episode_result(self._env.episode.instance.name, self._reward, info["outcome"], seconds, {})
            )
            self.episode += 1
            self._actions = []
        return observation, reward, ended, False, {}

    def state(self) -> State:
        """Return the number of the episode and its actions so far."""
        return {"episode": self.episode, "actions": list(self._actions)}

    def restore(self, state: State) -> None:
        """Continue at the state with the next reset."""
        self.episode, self._actions = state["episode"], list(state["actions"])
        self._env, _ = self._envs.begin(self.episode)


class DeterministicActor(nn.Module):
    """Actor of TD3 and DDPG."""

    def __init__(self, model: Any) -> None:  # noqa: ANN401  # SB3's models
        super().__init__()
        self.actor = model.policy.actor

    def forward(self, observation: Tensor) -> Tensor:
        """Return an action for each observation."""
        return self.actor(observation)


class SquashedMeanActor(nn.Module):
    """Mean of the squashed Gaussian of SAC."""

    def __init__(self, model: Any) -> None:  # noqa: ANN401
        super().__init__()
        actor = model.policy.actor
        self.features, self.latent, self.mean = actor.features_extractor, actor.latent_pi, actor.mu

    def forward(self, observation: Tensor) -> Tensor:
        """Return an action for each observation."""
        return torch.tanh(self.mean(self.latent(self.features(observation))))


class ClippedMeanActor(nn.Module):
    """Mean of the Gaussian of PPO, clipped to the range of actions."""

    def __init__(self, model: Any) -> None:  # noqa: ANN401
        super().__init__()
        policy = model.policy
        self.features, self.mean = policy.pi_features_extractor, policy.action_net
        self.latent = policy.mlp_extractor.policy_net

    def forward(self, observation: Tensor) -> Tensor:
        """Return an action for each observation."""
        return torch.clamp(self.mean(self.latent(self.features(observation))), -1.0, 1.0)


def actor_of(model: Any) -> nn.Module:  # noqa: ANN401
    """Return the deterministic policy of a model. It shares the weights of the model."""
    kind: type[nn.Module] = {"PPO": ClippedMeanActor, "SAC": SquashedMeanActor}.get(
        type(model).__name__, DeterministicActor
    )
    return kind(model).eval()


def make_model(settings: object, env: BaselineEnv, seed: int) -> Any:  # noqa: ANN401  # SB3's models
    """Return a model for settings. It uses the CPU, where runs are reproducible."""
    if isinstance(settings, PpoSettings):
        return _ppo(settings, env, seed)
    if isinstance(settings, Td3Settings):
        later = {
            "policy_delay": settings.actor_delay,
            "target_policy_noise": settings.target_noise,
            "target_noise_clip": settings.target_clip,
        }
        return TD3("MlpPolicy", env, seed=seed, **_pooled(settings), **_noise(settings.noise), **later)
    if isinstance(settings, DdpgBaselineSettings):
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


def _ppo(settings: PpoSettings, env: BaselineEnv, seed: int) -> Any:  # noqa: ANN401
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


def make(run: Run, instances: Sequence[Instance]) -> BaselineLearner:
    """Return the learner of a run; see `algos`."""
    return BaselineLearner(run, ClusterEnvs(run, instances))


class BaselineLearner:
    """Learner with a model of Stable-Baselines3, which calls `learn` for one episode at a time."""

    def __init__(self, run: Run, envs: ClusterEnvs) -> None:
        self._envs = envs
        self._env = BaselineEnv(envs)
        self.model = make_model(run.learner, self._env, run.settings.seed)
        self._logger = Logger(folder=None, output_formats=[])
        self.model.set_logger(self._logger)
        self._actor = actor_of(self.model)
        self._pooled = hasattr(self.model, "replay_buffer")

    def prepare(self, listener: Listener) -> None:
        """Do nothing: there is no expert."""

    def train(self) -> Iterator[Sequence[EpisodeResult]]:
        """Train. Each item has one episode, and with PPO all episodes until its next update."""
        while True:
            steps = self._env.min_steps if self._pooled else 1  # PPO always plays until its next update
            self._learn(steps)
            if self._env.results:
                results, self._env.results = self._env.results, []
                yield [replace(result, figures=self._losses()) for result in results]

    def evaluate(self) -> Sequence[EpisodeResult]:
        """Play every instance once, without noise."""
        return self._envs.evaluate(self._choose)

    def state(self) -> State:
        """Return the state of model and environment."""
        return {"model": state_of(self.model), "env": self._env.state()}

    def restore(self, state: State) -> None:
        """Restore the state of model and environment."""
        restore(self.model, state["model"])
        self._env.restore(state["env"])

    def weights(self) -> State:
        """Return the weights of the actor."""
        return dict(self._actor.state_dict())

    def load_weights(self, weights: State) -> None:
        """Set the weights of the actor."""
        self._actor.load_state_dict(weights)

    def trained_actor(self) -> TrainedActor:
        """Return the actor."""
        return self._envs.trained_actor(self._actor, self._choose)

    def _learn(self, steps: int) -> None:
        try:
            self.model.learn(steps, reset_num_timesteps=False, log_interval=None)
        except ValueError:  # torch cannot sample from NaN
            for weights in self.model.policy.parameters():
                check_finite(float(weights.detach().sum()))
            raise

    def _choose(self, observation: Float32) -> float:
        with torch.inference_mode():
            return float(self._actor(torch.from_numpy(observation)[None])[0, 0])

    def _losses(self) -> Mapping[str, float]:
        """Return the losses of the last update by name."""
        logged = self._logger.name_to_value
        return {name.removeprefix("train/"): float(value) for name, value in logged.items() if "loss" in name}


COUNTS = ("num_timesteps", "_n_updates", "_episode_num")
POOL = ("observations", "next_observations", "actions", "rewards", "dones", "timeouts")


def state_of(model: Any) -> State:  # noqa: ANN401  # SB3's models
    """Return the state of a model between two calls of `learn`."""
    state: State = {
        "networks": model.get_parameters(),
        "counts": {name: getattr(model, name) for name in COUNTS},
        "random": _random(model),
    }
    if (weight := getattr(model, "log_ent_coef", None)) is not None:
        state["entropy"] = weight.detach().clone()
    if (pool := getattr(model, "replay_buffer", None)) is not None:
        filled = pool.buffer_size if pool.full else pool.pos
        state["pool"] = {name: getattr(pool, name)[:filled] for name in POOL} | {"pos": pool.pos, "full": pool.full}
    return state


def restore(model: Any, state: State) -> None:  # noqa: ANN401
    """Restore the state of a model with equal settings."""
    model.set_parameters(state["networks"], exact_match=True, device="cpu")
    for name, count in state["counts"].items():
        setattr(model, name, count)
    if "entropy" in state:
        with torch.no_grad():
            model.log_ent_coef.copy_(state["entropy"])
    if "pool" in state:
        pool = model.replay_buffer
        for name in POOL:
            rows = state["pool"][name]
            getattr(pool, name)[: len(rows)] = rows
        pool.pos, pool.full = state["pool"]["pos"], state["pool"]["full"]
    _set_random(model, state["random"])


def _random(model: Any) -> State:  # noqa: ANN401
    drawn: dict[str, Any] = dict(np.random.get_state(legacy=False))  # noqa: NPY002  # the generator of SB3
    return {
        "torch": torch.get_rng_state(),
        "numpy": drawn,
        "actions": model.action_space.np_random.bit_generator.state,
    }


def _set_random(model: Any, state: State) -> None:  # noqa: ANN401
    torch.set_rng_state(state["torch"])
    np.random.set_state(state["numpy"])  # noqa: NPY002
    model.action_space.np_random.bit_generator.state = state["actions"]
