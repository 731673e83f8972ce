"""Imitation of packings: supervised training with gradients."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch.nn import functional

from seaway.learning.episodes.episode import Episode
from seaway.learning.instances.instance import Instance
from seaway.learning.observing.nodes import JOB_FEATURES, NODE_FEATURES, SHORTLIST_SIZE, NodeObserver, NodeView
from seaway.learning.packing.packing import Packing
from seaway.learning.pilot.network import PilotNetwork, weights_of
from seaway.scheduling.columns import NODE_DEVICE_END, NODE_DEVICE_FIRST
from seaway.scheduling.policies.pilot.features import FLEET_GPU_CORE_FREE, JOB_RANK
from seaway.scheduling.policies.pilot.kernel import MAX_FREE, MIN_RANK, PilotWeights

UNLISTED = -1
"""Index of a node outside the shortlist, since packings choose other nodes among equal ones."""


@dataclass(frozen=True, slots=True)
class Demonstration:
    """A decision of a packing.

    Attributes
    ----------
    view
        Observation of the policy, with at least one node.
    waits
        Whether the packing omits the job although it fits.
    node
        Index of the node that the packing chooses; `UNLISTED` for another node, or if the job waits.
    """

    view: NodeView
    waits: bool
    node: int


def demonstrations_of(instance: Instance, packing: Packing) -> list[Demonstration]:
    """Return the decisions of a packing for the jobs in order of arrival.

    Each observation shows the fleet with the packed jobs that arrived before. There is none for
    infeasible jobs.

    Parameters
    ----------
    packing
        A packing of the same instance.
    """
    return list(_demonstrations(instance, packing))


def _demonstrations(instance: Instance, packing: Packing) -> Iterator[Demonstration]:
    episode, observer = Episode(instance), NodeObserver(instance.mix)
    snapshot = episode.snapshot
    placements = {each.job: each for each in packing.placed}
    for job in episode.queue.jobs:
        placement = placements.get(job.name)
        n = snapshot.node_index[placement.cluster, placement.node] if placement else UNLISTED
        view = observer.observe(snapshot, episode.line)
        if len(view.nodes):
            at = next(iter(np.flatnonzero(view.nodes == n).tolist()), UNLISTED)
            yield Demonstration(view, waits=placement is None, node=at)
        if placement is None:
            episode.wait()
        else:
            first, end = snapshot.arrays.nodes[[NODE_DEVICE_FIRST, NODE_DEVICE_END], n]
            used = {snapshot.device_index[each.uuid] for each in placement.slices}
            episode.place_on_node(n, [d not in used for d in range(first, end)])


EPOCHS = 30
"""Number of passes over all demonstrations."""

BATCH_SIZE = 256
LEARNING_RATE = 3e-3
"""Learning rate of Adam."""

WAIT_WEIGHT = 2.0
"""Weight of demonstrations in which the job waits. They are ten times fewer."""

SCORE_SCALE = 3.0
"""Factor of scores before the softmax, because scores differ by some tenths only."""


def imitate(weights: PilotWeights, demonstrations: Sequence[Demonstration], *, scores: bool, seed: int) -> PilotWeights:
    """Return the weights after training on demonstrations.

    Waiting is learned by cross-entropy from jobs that may wait. If scores are learned, so is the choice among the
    listed nodes; otherwise the weights of scores stay unchanged.

    Parameters
    ----------
    demonstrations
        At least one demonstration.
    scores
        Whether scores are learned.
    seed
        Seed of the order of demonstrations.
    """
    network = PilotNetwork(weights)
    nodes, job, listed, node, waits = _tensors(demonstrations)
    may_wait = (job[:, JOB_RANK] > MIN_RANK) & (job[:, FLEET_GPU_CORE_FREE] < MAX_FREE)
    has_label = (node != UNLISTED) & scores
    optimiser = torch.optim.Adam(
        [each for name, each in network.named_parameters() if scores or "wait" in name], lr=LEARNING_RATE
    )
    order = torch.Generator().manual_seed(seed)
    pos_weight = torch.tensor(WAIT_WEIGHT)
    for _ in range(EPOCHS):
        for batch in torch.randperm(len(demonstrations), generator=order).split(BATCH_SIZE):
            node_scores, wait_score = network.unbounded_scores(nodes[batch], job[batch], listed[batch])
            labelled, free = has_label[batch], may_wait[batch]
            loss = functional.binary_cross_entropy_with_logits(
                wait_score[free], waits[batch][free], pos_weight=pos_weight, reduction="sum"
            )
            loss = loss + functional.cross_entropy(
                SCORE_SCALE * node_scores[labelled], node[batch][labelled], reduction="sum"
            )
            optimiser.zero_grad()
            (loss / len(batch)).backward()
            optimiser.step()
    return weights_of(network)


def _tensors(demonstrations: Sequence[Demonstration]) -> tuple[torch.Tensor, ...]:
    """Return features of nodes, padded, features of jobs, masks of nodes, chosen nodes, and waiting jobs."""
    nodes = np.zeros((len(demonstrations), SHORTLIST_SIZE, NODE_FEATURES), np.float32)
    job = np.zeros((len(demonstrations), JOB_FEATURES), np.float32)
    for at, demonstration in enumerate(demonstrations):
        nodes[at, : len(demonstration.view.nodes)] = demonstration.view.features
        job[at] = demonstration.view.job
    counts = np.array([len(demonstration.view.nodes) for demonstration in demonstrations])
    listed = np.arange(SHORTLIST_SIZE) < counts[:, None]
    node = np.array([demonstration.node for demonstration in demonstrations], np.int64)
    waits = np.array([demonstration.waits for demonstration in demonstrations], np.float32)
    return tuple(torch.from_numpy(each) for each in (nodes, job, listed, node, waits))
