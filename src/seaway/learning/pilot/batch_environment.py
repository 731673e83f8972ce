"""Environments in which compiled code plays whole episodes of `pilot`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from seaway.domain.errors import RejectedError
from seaway.learning.instances.instance import Instance
from seaway.learning.observing.nodes import NodeObserver
from seaway.scheduling.arrays import copy_arrays
from seaway.scheduling.columns import (
    DEMAND_GPU_CORE,
    DEMAND_GPUS,
    DEVICE_CORE,
    JOB_DEMAND,
    PLAN_ROWS,
    SLICE_ROWS,
)
from seaway.scheduling.job_queue import JobQueue
from seaway.scheduling.kernels.score_cache import row_cache
from seaway.scheduling.policies.pilot.kernel import PilotWeights, run_episode
from seaway.scheduling.snapshot.snapshot import Snapshot
from seaway.simulation.outcome import use, used_shares
from seaway.simulation.replay import arrivals_until_requested

MAX_REQUESTED = 1.05
"""Multiple of the fleet's GPUs at which arrivals end if GPU use is the objective."""


@dataclass(frozen=True, slots=True)
class EpisodeScore:
    """Result of an episode.

    Attributes
    ----------
    placed
        Number of placed jobs.
    failed
        Number of jobs that were not placed although they fitted when they waited.
    gpu
        GPU cores in use at the end, percent.
    """

    placed: int
    failed: int
    gpu: float


class BatchEnvironment:
    """An instance, prepared for many episodes.

    Attributes
    ----------
    name
        Name of the instance.
    jobs
        Number of its jobs.

    Raises
    ------
    RejectedError
        When it has jobs with several replicas.
    """

    def __init__(self, instance: Instance) -> None:
        if any(job.replicas > 1 for job in instance.jobs):
            raise RejectedError(f"instance {instance.name!r} has jobs of several replicas; pilot learns on single ones")
        self.name = instance.name
        self.jobs = len(instance.jobs)
        self._until_requested = len(arrivals_until_requested(instance.fleet, instance.jobs, MAX_REQUESTED))
        snapshot = Snapshot(instance.fleet)
        self._lines = JobQueue(snapshot, instance.jobs).rows
        params = NodeObserver(instance.mix).params(snapshot)
        cache = row_cache(len(snapshot.nodes), len(snapshot.demands.arrays.amounts), len(snapshot.demands))
        self._params = params._replace(seaway=params.seaway._replace(cache=cache))
        self._fleet, self._demands = snapshot.arrays, snapshot.demands.arrays
        self._initial: list[Any] = list(zip(self._fleet, copy_arrays(self._fleet), strict=True))
        amounts = self._demands.amounts[self._lines[:, JOB_DEMAND]]
        self._milli = amounts[:, DEMAND_GPUS] * amounts[:, DEMAND_GPU_CORE]
        self._capacity = max(int(self._fleet.devices[DEVICE_CORE].sum()), 1)
        self._line = np.zeros(PLAN_ROWS, np.int64)
        self._slices = np.zeros((max(int(amounts[:, DEMAND_GPUS].max(initial=0)), 1), SLICE_ROWS), np.int32)

    def play(self, weights: PilotWeights, *, waiting: bool) -> EpisodeScore:
        """Play one episode.

        Parameters
        ----------
        waiting
            Whether jobs may wait, and all jobs arrive. Otherwise no job may wait, and arrivals end at `MAX_REQUESTED`.
        """
        for table, empty in self._initial:
            np.copyto(table, empty)
        seaway = self._params.seaway
        seaway.cache.log_position[:] = -1
        seaway.priced[0] = -1
        seaway.node_values.log_position[0] = -1
        lines = self._lines if waiting else self._lines[: self._until_requested]
        nodes, waited = np.full(len(lines), -1, np.int64), np.zeros(len(lines), np.uint8)
        offers = 2 if waiting else 1
        fleet, demands = self._fleet, self._demands
        placed = run_episode(
            self._params, weights, fleet, demands, lines, offers, self._line, self._slices, nodes, waited
        )
        allocated = int(self._milli[: len(lines)][nodes >= 0].sum())
        failed = int((waited.astype(np.bool_) & (nodes < 0)).sum())
        return EpisodeScore(placed, failed, 100 * allocated / self._capacity)

    def load_balance(self) -> tuple[float | None, float | None]:
        """Return fragmentation and GPU load variance at the end of the last episode."""
        result = use(used_shares(self._fleet.clusters))
        return result.fragmentation, result.gpu_load_variance
