"""Actor and critic in plain NumPy and double precision: what networks of torch are held to."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.floating[Any]]
Weights = Mapping[str, NDArray[np.float64]]


def weights_of(network: object) -> dict[str, NDArray[np.float64]]:
    """Copy a torch module's weights."""
    return {name: weight.double().numpy() for name, weight in network.state_dict().items()}  # type: ignore[attr-defined]


def act(weights: Weights, observation: Numbers, figures: int) -> NDArray[np.float64]:
    """Return the actor's actions, (B, O) to (B, 1)."""
    return np.tanh(_layers(weights, _attended(weights, observation, figures)))


def value(weights: Weights, observation: Numbers, action: Numbers, figures: int) -> NDArray[np.float64]:
    """Return the critic's values, (B, O) and (B, 1) to (B, 1)."""
    return _layers(weights, np.hstack([_attended(weights, observation, figures), action], dtype=np.float64))


def _attended(weights: Weights, observation: Numbers, figures: int) -> Numbers:
    if "attend.made.weight" not in weights:
        return observation
    seen = observation.reshape(len(observation), -1, figures)
    query, key, made = np.split(seen @ weights["attend.made.weight"].T + weights["attend.made.bias"], 3, axis=2)
    powers = np.exp(np.einsum("bif,bjf->bij", query, key) / np.sqrt(figures))
    shares = powers / powers.sum(axis=2, keepdims=True)
    return (seen + np.einsum("bij,bjf->bif", shares, made)).reshape(observation.shape)


def _layers(weights: Weights, taken: Numbers) -> NDArray[np.float64]:
    names = sorted({name.rsplit(".", 1)[0] for name in weights if name.startswith("layers.")})
    for name in names:
        taken = taken @ weights[f"{name}.weight"].T + weights[f"{name}.bias"]
        taken = taken if name == names[-1] else np.maximum(taken, 0.0)
    return taken.astype(np.float64)
