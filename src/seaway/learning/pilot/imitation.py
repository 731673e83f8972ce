"""Imitation: the weights move to where the policy decides as packings do, by gradients."""

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
"""In place of a node that is not on the shortlist: among equal nodes packings choose others than `seaway` would."""


@dataclass(frozen=True, slots=True)
class Lesson:
    """A decision as the packing makes it.

    Attributes
    ----------
    view
        What the policy is shown: at least one node.
    waits
        Whether the packing leaves the job out, though it fits.
    node
        Which of the nodes shown the packing takes; `UNLISTED` for another one, or where the job waits.
    """

    view: NodeView
    waits: bool
    node: int


def lessons(instance: Instance, packing: Packing) -> list[Lesson]:
    """Go through the jobs in order of arrival, and do with each what the packing does.

    The fleet is shown as it is then: with what the packing holds of the jobs that came until now. Jobs that fit
    nowhere teach nothing.

    Parameters
    ----------
    packing
        Of the same instance.
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
    """Return figures of nodes, filled up to `MOST`, and of jobs; which nodes are there, which is taken; who waits."""
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
