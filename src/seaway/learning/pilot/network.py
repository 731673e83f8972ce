"""The network of `pilot` in torch, for export to a policy file.

Two layers process the features of each node on the shortlist, of the job and of the fleet. Attention heads with a
softmax over the nodes summarise the shortlist. A third layer combines both to a score, and a linear term of the
features is added. Another layer computes the score of waiting from the job and the heads. The network does not depend
on the number of nodes or on their order.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch

from seaway.scheduling.arrays import Float64
from seaway.scheduling.framework import Mask
from seaway.scheduling.policies.pilot.features import (
    FLEET_GPU_CORE_FREE,
    FLEET_GPU_MEMORY_FREE,
    JOB_FEATURES,
    JOB_RANK,
    NODE_CLUSTER_FREE,
    NODE_FEATURES,
    NODE_LINK_CROWDED,
    NODE_LINK_LEFT,
    NODE_LINK_TAKEN,
    NODE_LOST,
    Float32,
)
from seaway.scheduling.policies.pilot.kernel import MAX_FREE, MIN_RANK, STEEP, PilotWeights

MASKED_SCORE = -1e9
"""Score of an absent node."""


class PilotNetwork(torch.nn.Module):
    """The network with given weights.

    Parameters
    ----------
    weights
        Weights in the form of the compiled kernel.
    """

    def __init__(self, weights: PilotWeights) -> None:
        super().__init__()
        for name, values in weights._asdict().items():
            self.register_parameter(name, torch.nn.Parameter(torch.from_numpy(values.copy())))

    def forward(self, nodes: torch.Tensor, job: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return a score of each node, shape (N,), and a score of waiting, shape (1,), which wins if it is the largest.

        Parameters
        ----------
        nodes
            Shape (N, NODE_FEATURES).
        job
            Shape (JOB_FEATURES,).
        """
        scores, wait_score = self.unbounded_scores(nodes, job)
        size = STEEP * (job[JOB_RANK : JOB_RANK + 1] - MIN_RANK)
        room = STEEP * (MAX_FREE - job[FLEET_GPU_CORE_FREE : FLEET_GPU_CORE_FREE + 1])
        return scores, scores.max().reshape(1) + torch.minimum(wait_score.reshape(1), torch.minimum(size, room))

    def unbounded_scores(
        self, nodes: torch.Tensor, job: torch.Tensor, listed: torch.Tensor | None = None
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Return scores, shape (..., N), and scores of waiting, shape (...), without bounds.

        Parameters
        ----------
        nodes, job
            Features of several decisions, shapes (..., N, NODE_FEATURES) and (..., JOB_FEATURES).
        listed
            Present nodes, shape (..., N); absent ones have no influence and the score `MASKED_SCORE`. None for all.
        """
        first = torch.relu(nodes @ self.node_in + (job @ self.job_in + self.bias_in).unsqueeze(-2))
        hidden = torch.relu(first @ self.hidden + self.bias_hidden)
        attention_scores = hidden @ self.attend
        if listed is not None:
            attention_scores = attention_scores.masked_fill(~listed.unsqueeze(-1), MASKED_SCORE)
        heads = torch.softmax(attention_scores, dim=-2).transpose(-1, -2) @ hidden
        pooled = heads.flatten(-2)
        out = torch.relu(hidden @ self.own + (pooled @ self.pooled + self.bias_out).unsqueeze(-2))
        scores = out @ self.last + nodes @ self.skip
        if listed is not None:
            scores = scores.masked_fill(~listed, MASKED_SCORE)
        wait_score = torch.relu(job @ self.wait_job + pooled @ self.wait_pooled + self.bias_wait) @ self.wait_last
        return scores, wait_score + job @ self.wait_skip[:JOB_FEATURES] + self.wait_skip[JOB_FEATURES]


def weights_of(network: PilotNetwork) -> PilotWeights:
    """Return the weights of a network in the form of the compiled kernel."""
    return PilotWeights(*(getattr(network, name).detach().numpy().copy() for name in PilotWeights._fields))


SCORES = ("last", "skip")
"""Weights of the scores of nodes."""

PER_CLUSTER = (NODE_CLUSTER_FREE, NODE_LINK_LEFT, NODE_LINK_TAKEN, NODE_LINK_CROWDED)
"""Features that are equal for all nodes of a cluster. With one cluster, they change no decision."""

UNITS: Mapping[str, float] = {"last": 0.03, "skip": 0.03, "wait_last": 0.3, "wait_skip": 0.3}
"""Weights that evolution changes, which are those of the last layers, and the unit of each."""

WAIT_RANK, WAIT_FREE, WAIT_CONSTANT = 10.0, -2.0, -9.0
"""Initial weights of waiting: for jobs larger than 90 % of the mix, less so with much free capacity."""


def initial_weights(width: int, heads: int, seed: int) -> PilotWeights:
    """Return initial weights: the score of `seaway`, a simple rule for waiting, and random layers without influence."""
    random = np.random.default_rng(seed)

    def random_layer(rows: int, columns: int) -> Float32:
        return (random.standard_normal((rows, columns)) * np.sqrt(2 / rows)).astype(np.float32)

    def zeros(size: int) -> Float32:
        return np.zeros(size, np.float32)

    weights = PilotWeights(
        node_in=random_layer(NODE_FEATURES, width),
        job_in=random_layer(JOB_FEATURES, width),
        bias_in=zeros(width),
        hidden=random_layer(width, width),
        bias_hidden=zeros(width),
        attend=random_layer(width, heads),
        own=random_layer(width, width),
        pooled=random_layer(heads * width, width),
        bias_out=zeros(width),
        last=zeros(width),
        skip=zeros(NODE_FEATURES),
        wait_job=random_layer(JOB_FEATURES, width),
        wait_pooled=random_layer(heads * width, width),
        bias_wait=zeros(width),
        wait_last=zeros(width),
        wait_skip=zeros(JOB_FEATURES + 1),
    )
    weights.skip[NODE_LOST] = 1.0
    weights.wait_skip[[JOB_RANK, FLEET_GPU_MEMORY_FREE, JOB_FEATURES]] = WAIT_RANK, WAIT_FREE, WAIT_CONSTANT
    return weights


def to_vector(weights: PilotWeights) -> Float64:
    """Return the weights that evolution changes as a vector, in their units."""
    parts = [getattr(weights, name).astype(np.float64) / unit for name, unit in UNITS.items()]
    return np.concatenate(parts)


def trainable_mask(weights: PilotWeights, *, scores: bool) -> Mask:
    """Return a mask of the weights to train: all, or without scores those of waiting and of `PER_CLUSTER`."""
    parts = {name: np.full(getattr(weights, name).shape, scores or name not in SCORES) for name in UNITS}
    parts["skip"][list(PER_CLUSTER)] = True
    return np.concatenate(list(parts.values()))


def with_vector(weights: PilotWeights, vector: Float64) -> PilotWeights:
    """Return weights with those of a vector in the form of `to_vector`."""
    parts: dict[str, Float32] = {}
    at = 0
    for name, unit in UNITS.items():
        size = getattr(weights, name).shape[0]
        parts[name] = (vector[at : at + size] * unit).astype(np.float32)
        at += size
    return weights._replace(**parts)
