"""Lessons for `pilot`: what a packing, made with all jobs known, does with each job as it comes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from seaway.learning.episodes.episode import Episode
from seaway.learning.instances.instance import Instance
from seaway.learning.observing.nodes import NodeObserver, NodeView
from seaway.learning.packing.packing import Packing
from seaway.scheduling.columns import NODE_DEVICE_END, NODE_DEVICE_FIRST

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
