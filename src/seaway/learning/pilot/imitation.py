"""Imitation: the weights move to where the policy decides as packings do, by gradients."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch.nn import functional

from seaway.learning.observing.nodes import FIGURES, JOB_FIGURES, MOST
from seaway.learning.pilot.lessons import UNLISTED, Lesson
from seaway.learning.pilot.network import PilotNetwork, weights_of
from seaway.scheduling.kernels.features import FLEET_GPU_CORE_FREE, JOB_RANK
from seaway.scheduling.kernels.pilot import LEAST_RANK, MOST_FREE, PilotWeights

PASSES = 30
"""How often all lessons are gone through."""

BATCH = 256
RATE = 3e-3
"""Of Adam."""

WAITING_COUNTS = 2.0
"""How much more a job that waits counts than one that does not: there are ten times fewer."""

SHARP = 3.0
"""Scores times this are what the softmax over nodes is of: they differ by some tenths only."""


def imitate(weights: PilotWeights, taught: Sequence[Lesson], *, scores: bool, seed: int) -> PilotWeights:
    """Return the weights after learning from lessons.

    When to wait is learned from jobs that may wait at all, by cross-entropy. Where scores are learned too, so is which
    node is taken, of those shown; else all that scores nodes stays as it is.

    Parameters
    ----------
    taught
        At least one.
    scores
        Whether scores are learned.
    seed
        Of the order in which lessons are taken.
    """
    network = PilotNetwork(weights)
    nodes, job, listed, node, waits = _tensors(taught)
    may = (job[:, JOB_RANK] > LEAST_RANK) & (job[:, FLEET_GPU_CORE_FREE] < MOST_FREE)
    known = (node != UNLISTED) & scores
    optimiser = torch.optim.Adam(
        [each for name, each in network.named_parameters() if scores or "wait" in name], lr=RATE
    )
    order = torch.Generator().manual_seed(seed)
    counts = torch.tensor(WAITING_COUNTS)
    for _ in range(PASSES):
        for batch in torch.randperm(len(taught), generator=order).split(BATCH):
            found, wish = network.judge(nodes[batch], job[batch], listed[batch])
            own, free = known[batch], may[batch]
            loss = functional.binary_cross_entropy_with_logits(
                wish[free], waits[batch][free], pos_weight=counts, reduction="sum"
            )
            loss = loss + functional.cross_entropy(SHARP * found[own], node[batch][own], reduction="sum")
            optimiser.zero_grad()
            (loss / len(batch)).backward()
            optimiser.step()
    return weights_of(network)


def _tensors(taught: Sequence[Lesson]) -> tuple[torch.Tensor, ...]:
    """Return figures of nodes, filled up to `MOST`, and of jobs; which nodes are there, which is taken; who waits."""
    nodes = np.zeros((len(taught), MOST, FIGURES), np.float32)
    job = np.zeros((len(taught), JOB_FIGURES), np.float32)
    for at, lesson in enumerate(taught):
        nodes[at, : len(lesson.view.nodes)] = lesson.view.figures
        job[at] = lesson.view.job
    counts = np.array([len(lesson.view.nodes) for lesson in taught])
    listed = np.arange(MOST) < counts[:, None]
    node = np.array([lesson.node for lesson in taught], np.int64)
    waits = np.array([lesson.waits for lesson in taught], np.float32)
    return tuple(torch.from_numpy(each) for each in (nodes, job, listed, node, waits))
