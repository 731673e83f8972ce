"""Training steps per second, compared with Stable-Baselines3 on the same environment with the same batch size."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from benchmarks.record import Result, SkippedError

ROUNDS = 5
WARM_UP = 256
STEPS = 220
EPISODES, MAX_MINUTES = 1_000, 30
MIN_RATIO = 1.0
CANDIDATES, DISCOUNT = 5, 0.9
"""Settings that use the actor, the critic and both targets, as Stable-Baselines3 does; the defaults use only the
critic."""

EADE, ASKED, PLAIN, THEIRS = "eade-ddpg", "eade-ddpg, whole", "ddpg, whole", "Stable-Baselines3 DDPG"
RUN = "seaway train --algo eade-ddpg"
FEW, MORE = 5, 15
"""Episodes of two runs; their difference is the cost of episodes, including evaluations and files."""


def learn(seed: int) -> Result:
    """Measure training steps per second of EADE-DDPG and of Stable-Baselines3's DDPG, in turns."""
    if not all(find_spec(name) for name in ("torch", "stable_baselines3")):
        raise SkippedError("needs seaway[learn]")
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        seconds = _seconds(_contestants(seed))
        run_s = (_run_s(MORE, seed) - _run_s(FEW, seed)) / (MORE - FEW)
    finally:
        torch.set_num_threads(threads)
    return _result(seconds, run_s)


def _contestants(seed: int) -> dict[str, Callable[[int], None]]:
    """Return functions that run a number of steps, by name, each with its own environment of the same instance."""
    from seaway.learning.settings import DdpgSettings

    settings = DdpgSettings(warm_up=WARM_UP)
    whole = replace(settings, candidates=CANDIDATES, discount=DISCOUNT)
    return {
        EADE: _ours(settings, seed),
        ASKED: _ours(whole, seed),
        PLAIN: _ours(replace(whole, attention=0, expert_share=0.0), seed),
        THEIRS: _theirs(whole, seed),
    }


def _run_s(episodes: int, seed: int) -> float:
    """Return the CPU time of a run of a number of episodes on one instance, seconds."""
    from seaway.learning.runs.assemble import new_run
    from seaway.learning.runs.run import train

    given = {"episodes": episodes, "seed": seed, "draws": 1, "warm_up": WARM_UP}
    with TemporaryDirectory() as folder:
        start_s = time.process_time()
        train(new_run("eade-ddpg", [], ["placement"], given), Path(folder) / "run")
        return time.process_time() - start_s


def _ours(settings: Any, seed: int) -> Callable[[int], None]:  # noqa: ANN401  # the type needs torch
    from seaway.learning.agents.eade import EadeDdpg

    env = _env(seed)
    agent = EadeDdpg(settings, env.observation_space.shape[0], seed)
    observation = env.reset()[0]

    def step(count: int) -> None:
        nonlocal observation
        action = np.zeros(1, np.float32)
        for _ in range(count):
            if settings.expert_share:
                agent.add_demonstration(observation, *env.expert())
            action[0] = agent.act(observation, settings.noise)
            following, reward, ended, _, _ = env.step(action)
            agent.add_transition(observation, float(action[0]), reward, following, ended)
            agent.learn()
            observation = env.reset()[0] if ended else following

    step(settings.warm_up)
    return step


def _theirs(settings: Any, seed: int) -> Callable[[int], None]:  # noqa: ANN401  # the type needs torch
    from stable_baselines3 import DDPG
    from stable_baselines3.common.noise import NormalActionNoise

    model = DDPG(
        "MlpPolicy",
        _env(seed),
        seed=seed,
        learning_rate=settings.critic_rate,
        buffer_size=settings.live_pool,
        learning_starts=settings.warm_up,
        batch_size=settings.batch,
        tau=settings.soft_update,
        gamma=settings.discount,
        train_freq=1,
        gradient_steps=1,
        action_noise=NormalActionNoise(np.zeros(1), np.full(1, settings.noise)),
        policy_kwargs={"net_arch": list(settings.hidden)},
        device="cpu",
    )
    model.learn(settings.warm_up)
    return lambda count: model.learn(count, reset_num_timesteps=False)


def _env(seed: int) -> Any:  # noqa: ANN401  # the type needs gymnasium
    from seaway.learning.environments.cluster_env import ClusterEnv
    from seaway.learning.instances.wide import drawn

    return ClusterEnv(drawn("placement", 1, seed), fitting=True)


def _seconds(contestants: dict[str, Callable[[int], None]]) -> dict[str, list[float]]:
    """Run the same number of steps of each in turns, and return the CPU seconds of each round."""
    for step in contestants.values():
        step(STEPS // 4)  # compile, and fill the caches
    seconds: dict[str, list[float]] = {name: [] for name in contestants}
    for _ in range(ROUNDS):
        for name, step in contestants.items():
            start_s = time.process_time()
            step(STEPS)
            seconds[name].append(time.process_time() - start_s)
    return seconds


def _result(seconds: dict[str, list[float]], run_s: float) -> Result:
    """Return rates, ratios and projections, with the missed bounds."""
    rows: list[dict[str, Any]] = []
    for name, own in seconds.items():
        ratio = median(theirs / ours for theirs, ours in zip(seconds[THEIRS], own, strict=True))
        minutes = median(own) * EPISODES / 60  # a round is as long as an episode
        rows.append(
            {
                "policy": name,
                "steps_per_s": round(STEPS / median(own), 1),
                "times_theirs": round(ratio, 2),
                "minutes_per_1000_episodes": round(minutes, 1),
            }
        )
    run_minutes = round(run_s * EPISODES / 60, 1)
    rows.append({"policy": RUN, "minutes_per_1000_episodes": run_minutes})
    missed = [f"{RUN}: {EPISODES} episodes take {run_minutes} minutes"] if run_minutes > MAX_MINUTES else []
    for ours in (row for row in rows if row["policy"] in {EADE, ASKED}):
        name, ratio, minutes = ours["policy"], ours["times_theirs"], ours["minutes_per_1000_episodes"]
        if ratio < MIN_RATIO:
            missed.append(f"{name}: {ratio} times the steps/s of {THEIRS}, not {MIN_RATIO}")
        if minutes > MAX_MINUTES:
            missed.append(f"{name}: {EPISODES} episodes take {minutes} minutes, not {MAX_MINUTES}")
    return Result(
        "learn",
        rows,
        [
            f"{ROUNDS} rounds of {STEPS} steps each, in turn, on one drawn instance of 16 clusters; one thread;",
            "medians of the processor's seconds, acting, environment and an update at each step included;",
            "theirs has layers 128-64 without attention, as ddpg has; all have batches of 256;",
            f"whole: {CANDIDATES} candidates, discount {DISCOUNT}, so that actor and targets work as theirs do;",
            f"the last line is a run with its evaluations and files, its episodes {FEW} to {MORE}",
        ],
        missed,
    )
