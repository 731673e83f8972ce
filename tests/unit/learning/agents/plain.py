"""Reference implementation of actor and critic in NumPy and double precision."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.floating[Any]]
Weights = Mapping[str, NDArray[np.float64]]


def weights_of(network: object) -> dict[str, NDArray[np.float64]]:
    """Return the weights of a torch module."""
    return {name: weight.double().numpy() for name, weight in network.state_dict().items()}  # type: ignore[attr-defined]


def act(weights: Weights, observation: Numbers, figures: int) -> NDArray[np.float64]:
    """Return the actor's actions, (B, O) to (B, 1)."""
    return np.tanh(_layers(weights, _seen(weights, observation, None, figures)))


def value(weights: Weights, observation: Numbers, action: Numbers, figures: int) -> NDArray[np.float64]:
    """Return the critic's values, (B, O) and (B, 1) to (B, 1)."""
    return _layers(weights, np.hstack([_seen(weights, observation, action, figures), action], dtype=np.float64))


def _seen(weights: Weights, observation: Numbers, action: Numbers | None, figures: int) -> Numbers:
    if "attend.queries.weight" not in weights:
        return observation
    seen = [
        _looked(weights, row, None if action is None else action[at], figures) for at, row in enumerate(observation)
    ]
    return np.array(seen)


def _looked(weights: Weights, row: Numbers, action: Numbers | None, figures: int) -> Numbers:
    """Return the outputs of the heads for one observation, then the features of the job."""
    job, clusters = row[-figures:], row[:-figures].reshape(-1, figures)
    question = np.concatenate([job, clusters.mean(axis=0), *([] if action is None else [action])])
    asked = weights["attend.queries.weight"] @ question + weights["attend.queries.bias"]
    count = len(clusters) + 1
    places = [(2 * t + 1) / count - 1 for t in range(count)]
    tokens = [[*cluster, place, place**2, 0.0] for cluster, place in zip(clusters, places, strict=False)]
    tokens.append([*[0.0] * figures, places[-1], places[-1] ** 2, 1.0])
    found = []
    for head in asked.reshape(-1, figures + 3):
        powers = np.exp(np.array(tokens) @ head)
        found.append(powers / powers.sum() @ np.array(tokens))
    return np.concatenate([*found, job])


def _layers(weights: Weights, taken: Numbers) -> NDArray[np.float64]:
    names = sorted({name.rsplit(".", 1)[0] for name in weights if name.startswith("layers.")})
    for name in names:
        taken = taken @ weights[f"{name}.weight"].T + weights[f"{name}.bias"]
        taken = taken if name == names[-1] else np.maximum(taken, 0.0)
    return taken.astype(np.float64)
