"""The weights of `pilot` as arrays: how they begin, and as one vector of those that evolution changes."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from seaway.scheduling.framework import Mask
from seaway.scheduling.kernels.features import (
    FIGURES,
    FLEET_GPU_MEMORY_FREE,
    JOB_FIGURES,
    JOB_RANK,
    NODE_CLUSTER_FREE,
    NODE_LINK_CROWDED,
    NODE_LINK_LEFT,
    NODE_LINK_TAKEN,
    NODE_LOST,
    Float32,
)
from seaway.scheduling.kernels.pilot import PilotWeights
from seaway.scheduling.state import Float64

SCORES = ("last", "skip")
"""The weights by which nodes are scored."""

OF_CLUSTERS = (NODE_CLUSTER_FREE, NODE_LINK_LEFT, NODE_LINK_TAKEN, NODE_LINK_CROWDED)
"""Figures that are the same for all nodes of a cluster: where there is but one, they change no decision."""

UNITS: Mapping[str, float] = {"last": 0.03, "skip": 0.03, "wait_last": 0.3, "wait_skip": 0.3}
"""The weights that evolution changes, and a step in each that is worth trying: the last layers."""

WAIT_RANK, WAIT_FREE, WAIT_CONSTANT = 10.0, -2.0, -9.0
"""The wish to wait at the beginning: for jobs larger than nine in ten of the mix, less while much is free."""


def first_weights(width: int, heads: int, seed: int) -> PilotWeights:
    """Begin with Seaway's own score, a plain rule to wait, and random layers whose answers count for nothing."""
    random = np.random.default_rng(seed)

    def drawn(rows: int, columns: int) -> Float32:
        return (random.standard_normal((rows, columns)) * np.sqrt(2 / rows)).astype(np.float32)

    def zeros(size: int) -> Float32:
        return np.zeros(size, np.float32)

    weights = PilotWeights(
        node_in=drawn(FIGURES, width),
        job_in=drawn(JOB_FIGURES, width),
        bias_in=zeros(width),
        hidden=drawn(width, width),
        bias_hidden=zeros(width),
        attend=drawn(width, heads),
        own=drawn(width, width),
        pooled=drawn(heads * width, width),
        bias_out=zeros(width),
        last=zeros(width),
        skip=zeros(FIGURES),
        wait_job=drawn(JOB_FIGURES, width),
        wait_pooled=drawn(heads * width, width),
        bias_wait=zeros(width),
        wait_last=zeros(width),
        wait_skip=zeros(JOB_FIGURES + 1),
    )
    weights.skip[NODE_LOST] = 1.0
    weights.wait_skip[[JOB_RANK, FLEET_GPU_MEMORY_FREE, JOB_FIGURES]] = WAIT_RANK, WAIT_FREE, WAIT_CONSTANT
    return weights


def never_waiting(weights: PilotWeights) -> PilotWeights:
    """Return the same network without a wish to wait."""
    wait_skip = np.zeros_like(weights.wait_skip)
    wait_skip[-1] = -1.0
    return weights._replace(wait_last=np.zeros_like(weights.wait_last), wait_skip=wait_skip)


def changing(weights: PilotWeights) -> Float64:
    """Return the weights that evolution changes as one vector, in their units."""
    parts = [getattr(weights, name).astype(np.float64) / unit for name, unit in UNITS.items()]
    return np.concatenate(parts)


def moving(weights: PilotWeights, *, scores: bool) -> Mask:
    """Tell which weights evolution moves: all, or without scores those for waiting and for `OF_CLUSTERS`."""
    parts = {name: np.full(getattr(weights, name).shape, scores or name not in SCORES) for name in UNITS}
    parts["skip"][list(OF_CLUSTERS)] = True
    return np.concatenate(list(parts.values()))


def changed(weights: PilotWeights, vector: Float64) -> PilotWeights:
    """Return the network with such a vector in it."""
    parts: dict[str, Float32] = {}
    at = 0
    for name, unit in UNITS.items():
        size = getattr(weights, name).shape[0]
        parts[name] = (vector[at : at + size] * unit).astype(np.float32)
        at += size
    return weights._replace(**parts)
