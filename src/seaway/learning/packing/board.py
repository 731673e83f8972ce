"""Jobs packed into a fleet on the engine: tried in any order, taken out, put back."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from seaway.learning.episodes.episode import Episode
from seaway.learning.instances.instance import Instance
from seaway.learning.packing.packing import Seat
from seaway.scheduling.aggregates import asked_sums
from seaway.scheduling.booking import Booking, bookings
from seaway.scheduling.columns import (
    CLUSTER_CPU,
    CLUSTER_GPU_CORE,
    CLUSTER_GPU_MEMORY,
    CLUSTER_MEMORY,
    DEMAND_BANDWIDTH,
    JOB_DEMAND,
    PLAN_NODE,
    SLICE_DEVICE,
)
from seaway.scheduling.engine import decide
from seaway.scheduling.kernels.book import retake_rows
from seaway.scheduling.policies import make_policy
from seaway.scheduling.state import Float64

TIGHTEST = "bestfit"
"""The policy that says where a job goes that is tried: where least is left."""


class Board:
    """A fleet that jobs are packed into.

    Parameters
    ----------
    instance
        Fleet and jobs; of one replica each.

    Attributes
    ----------
    snapshot, queue
        The fleet as it is now, and its jobs.
    shares
        What each job asks for of all that there is of CPU, memory, device memory, device cores and bandwidth,
        shape (J, 5).

    Raises
    ------
    RejectedError
        As `seaway.learning.episodes.episode.Episode` does.
    """

    def __init__(self, instance: Instance) -> None:
        episode = Episode(instance)
        self.snapshot = episode.snapshot
        self.queue = episode.queue
        self.shares = self._shares()
        self._policy = make_policy(TIGHTEST)
        self._held: dict[int, Booking] = {}

    @property
    def held(self) -> list[int]:
        """Numbers of the jobs that are in."""
        return list(self._held)

    @property
    def waiting(self) -> list[int]:
        """Numbers of the jobs that are not, in order."""
        return [j for j in range(len(self.queue)) if j not in self._held]

    def put(self, order: Sequence[int]) -> list[int]:
        """Try jobs one after the other; return those that found room."""
        plan = decide(self.snapshot, self.queue.take(np.array(order, np.int64)), self._policy)
        new = {j: booking for j, booking in zip(order, bookings(plan), strict=True) if booking.holds}
        self._held.update(new)
        return list(new)

    def take_out(self, jobs: Iterable[int]) -> dict[int, Booking]:
        """Take jobs out; return what they held, for `put_back`."""
        out = {}
        for j in jobs:
            booking = self._held.pop(j)
            out[j] = booking.copy()
            booking.release(self.snapshot)
        return out

    def put_back(self, out: dict[int, Booking]) -> None:
        """Put jobs back where they were, which has to be free again."""
        for booking in out.values():
            retake_rows(self.snapshot.arrays, self.snapshot.demands.arrays, booking.lines, booking.slices)
        self._held.update(out)

    def kept(self) -> dict[int, Booking]:
        """Return copies of what all jobs hold."""
        return {j: booking.copy() for j, booking in self._held.items()}

    def on_nodes(self, nodes: Iterable[int]) -> list[int]:
        """Return the jobs that are on some nodes."""
        wanted = set(nodes)
        return [j for j, booking in self._held.items() if int(booking.lines[0, PLAN_NODE]) in wanted]

    def seats(self) -> dict[int, Seat]:
        """Say where each job is."""
        return {
            j: Seat(int(booking.lines[0, PLAN_NODE]), tuple(booking.slices[:, SLICE_DEVICE].tolist()))
            for j, booking in self._held.items()
        }

    def _shares(self) -> Float64:
        snapshot, lines = self.snapshot, self.queue.lines[:, JOB_DEMAND]
        rows = [CLUSTER_CPU, CLUSTER_MEMORY, CLUSTER_GPU_MEMORY, CLUSTER_GPU_CORE]
        there = [*snapshot.arrays.clusters[rows].sum(axis=1), snapshot.arrays.bandwidth.sum()]
        mbps = snapshot.demands.arrays.amounts[lines, DEMAND_BANDWIDTH]
        asked = np.array([asked_sums(snapshot, int(k)).mean(axis=1) for k in lines])
        shares: Float64 = np.column_stack([asked, mbps]) / np.maximum(there, 1)
        return shares
