"""The whole state of a model of Stable-Baselines3 as tensors and numbers.

Its own `save` pickles Python objects, which run what stands in them when they are read; this state does not, and it
has also what SB3 leaves out: the pool, and where random numbers are.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from seaway.learning.training.learner import State

COUNTS = ("num_timesteps", "_n_updates", "_episode_num")
POOL = ("observations", "next_observations", "actions", "rewards", "dones", "timeouts")


def state_of(model: Any) -> State:  # noqa: ANN401  # SB3's models
    """Return all that a model needs to go on, between two calls of its `learn`."""
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
    """Have a model of the same settings go on there."""
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
    drawn: dict[str, Any] = dict(np.random.get_state(legacy=False))  # noqa: NPY002  # what SB3 draws from
    return {
        "torch": torch.get_rng_state(),
        "numpy": drawn,
        "actions": model.action_space.np_random.bit_generator.state,
    }


def _set_random(model: Any, state: State) -> None:  # noqa: ANN401
    torch.set_rng_state(state["torch"])
    np.random.set_state(state["numpy"])  # noqa: NPY002
    model.action_space.np_random.bit_generator.state = state["actions"]
