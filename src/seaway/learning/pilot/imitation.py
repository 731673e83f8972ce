"""Imitation of packings: supervised training of the weights with gradients."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch.nn import functional

from seaway.learning.episodes.episode import Episode
from seaway.learning.instances.instance import Instance
from seaway.learning.observing.nodes import FIGURES, JOB_FIGURES, SHORTLIST_SIZE, NodeObserver, NodeView
from seaway.learning.packing.packing import Packing
from seaway.learning.pilot.network import PilotNetwork, weights_of
from seaway.scheduling.columns import NODE_DEVICE_END, NODE_DEVICE_FIRST
from seaway.scheduling.policies.pilot.features import FLEET_GPU_CORE_FREE, JOB_RANK
from seaway.scheduling.policies.pilot.kernel import MAX_FREE, MIN_RANK, PilotWeights

UNLISTED = -1
"""Index of a node outside the shortlist, since packings choose other nodes among equal ones."""


@dataclass(frozen=True, slots=True)
class Lesson:
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


def lessons(instance: Instance, packing: Packing) -> list[Lesson]:
    """Return the decisions of a packing for the jobs in order of arrival.

    Each observation shows the fleet with the packed jobs that arrived before. Jobs that fit nowhere give no lesson.

    Parameters
    ----------
    packing
        A packing of the same instance.
    """
    return list(_lessons(instance, packing))


def _lessons(instance: Instance, packing: Packing) -> Iterator[Lesson]:
    episode, observer = Episode(instance), NodeObserver(instance.mix)
    snapshot = episode.snapshot
    seats = {each.job: each for each in packing.placed}
    for job in episode.queue.jobs:
        seat = seats.get(job.name)
        n = snapshot.node_index[seat.cluster, seat.node] if seat else UNLISTED
        view = observer.observe(snapshot, episode.line)
        if len(view.nodes):
            yield Lesson(view, waits=seat is None, node=next(iter(np.flatnonzero(view.nodes == n).tolist()), UNLISTED))
        if seat is None:
            episode.wait()
        else:
            first, end = snapshot.arrays.nodes[[NODE_DEVICE_FIRST, NODE_DEVICE_END], n]
            taken = {snapshot.device_index[each.uuid] for each in seat.slices}
            episode.place_on_node(n, [d not in taken for d in range(first, end)])


PASSES = 30
"""Number of passes over all lessons."""

BATCH = 256
RATE = 3e-3
"""Learning rate of Adam."""

WAITING_COUNTS = 2.0
"""Weight of a lesson in which the job waits; there are ten times fewer of these."""

SHARP = 3.0
"""Factor of scores before the softmax over nodes, because scores differ by only some tenths."""


def imitate(weights: PilotWeights, taught: Sequence[Lesson], *, scores: bool, seed: int) -> PilotWeights:
    """Return the weights after training on lessons.

    Waiting is learned by cross-entropy from jobs that may wait. If scores are learned, so is the choice among the
    listed nodes; otherwise the weights of scores stay unchanged.

    Parameters
    ----------
    taught
        At least one lesson.
    scores
        Whether scores are learned.
    seed
        Seed of the order of lessons.
    """
    network = PilotNetwork(weights)
    nodes, job, listed, node, waits = _tensors(taught)
    may = (job[:, JOB_RANK] > MIN_RANK) & (job[:, FLEET_GPU_CORE_FREE] < MAX_FREE)
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
    """Return figures of nodes, padded to `MOST`, figures of jobs, present nodes, chosen nodes, and waiting jobs."""
    nodes = np.zeros((len(taught), SHORTLIST_SIZE, FIGURES), np.float32)
    job = np.zeros((len(taught), JOB_FIGURES), np.float32)
    for at, lesson in enumerate(taught):
        nodes[at, : len(lesson.view.nodes)] = lesson.view.figures
        job[at] = lesson.view.job
    counts = np.array([len(lesson.view.nodes) for lesson in taught])
    listed = np.arange(SHORTLIST_SIZE) < counts[:, None]
    node = np.array([lesson.node for lesson in taught], np.int64)
    waits = np.array([lesson.waits for lesson in taught], np.float32)
    return tuple(torch.from_numpy(each) for each in (nodes, job, listed, node, waits))
