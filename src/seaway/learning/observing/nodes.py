"""Observation of `pilot`: a shortlist of nodes that fit, with figures of each, of the job and of the fleet.

`seaway.scheduling.policies.pilot.features` defines the figures and their order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from seaway.domain.job import Job
from seaway.scheduling.arrays import Float64, Int64
from seaway.scheduling.columns import DEVICE_CORE, DEVICE_MEMORY
from seaway.scheduling.framework import Mask
from seaway.scheduling.kernels.score_cache import resized
from seaway.scheduling.plain import fit_cache_of
from seaway.scheduling.policies.pilot.features import (
    FIGURES,
    JOB_FIGURES,
    SHORTLIST_SIZE,
    VERSION,
    FeatureParams,
    Float32,
    observe_nodes,
)
from seaway.scheduling.policies.seaway.plugin import Seaway
from seaway.scheduling.snapshot.rule_masks import FleetCache, SnapshotCache
from seaway.scheduling.snapshot.snapshot import Snapshot

__all__ = ["FIGURES", "JOB_FIGURES", "SHORTLIST_SIZE", "VERSION", "NodeObserver", "NodeView"]


@dataclass(frozen=True, slots=True)
class NodeView:
    """A decision as a policy for nodes sees it.

    Attributes
    ----------
    nodes
        Nodes that fit, shape (M,), at most `MOST`; ranked by Seaway's own policy, best first.
    figures
        Shape (M, FIGURES).
    job
        Figures of the job and the fleet, shape (JOB_FIGURES,).
    """

    nodes: Int64
    figures: Float32
    job: Float32


class NodeObserver:
    """Looks at snapshots for a policy.

    Parameters
    ----------
    mix
        Jobs of the past, from which it learns what is likely to come.
    seaway
        Has the tables of Seaway's own policy for the same jobs; None to make them.
    """

    def __init__(self, mix: Sequence[Job], seaway: Seaway | None = None) -> None:
        self._mix = mix
        self._seaway = seaway or Seaway(mix)
        self._known = SnapshotCache(lambda snapshot: [self.params(snapshot)])
        self._expected = FleetCache(self._expect)

    def ready(self, snapshot: Snapshot) -> None:
        """Table what hangs on the fleet alone: the first look at one takes long otherwise."""
        self._known(snapshot)

    def observe(self, snapshot: Snapshot, line: int, allowed: Mask | None = None) -> NodeView:
        """Look at the nodes that could take a demand.

        Parameters
        ----------
        line
            Of the demand, in ``snapshot.demands``.
        allowed
            Nodes that may be listed if they fit, shape (N,): what the filters leave, links and bandwidth included;
            None for all.
        """
        demands = snapshot.demands.arrays
        retained = self._known(snapshot)
        if snapshot.placers.get(self) is not retained:  # demands were forgotten, and lines stand for others by now
            snapshot.placers[self] = retained
            for table in (
                retained[0].seaway.cache.log_position,
                retained[0].seaway.cache.owner,
                retained[0].seaway.cache.slot,
            ):
                table.fill(-1)
        params = retained[0]
        if (seaway := resized(params.seaway, len(demands.amounts))) is not params.seaway:
            params = retained[0] = params._replace(seaway=seaway)
        may = np.ones(len(snapshot.nodes), np.bool_) if allowed is None else np.ascontiguousarray(allowed, np.bool_)
        nodes, lost = np.empty(SHORTLIST_SIZE, np.int64), np.empty(SHORTLIST_SIZE, np.int64)
        figures, job = np.zeros((SHORTLIST_SIZE, FIGURES), np.float32), np.zeros(JOB_FIGURES, np.float32)
        known = fit_cache_of(snapshot).params(snapshot)
        count = observe_nodes(
            params, known, snapshot.arrays, demands, line, may.view(np.uint8), nodes, lost, figures, job
        )
        return NodeView(nodes[:count], figures[:count], job)

    def params(self, snapshot: Snapshot) -> FeatureParams:
        """Return the tables for compiled code."""
        return FeatureParams(self._seaway.tables(snapshot), *self._expected(snapshot))

    def _expect(self, snapshot: Snapshot) -> tuple[Float64, Float64, Float64]:
        """Return the work of jobs that are likely to come, rising, their means, and the device that it counts in."""
        device = typical_device(snapshot)
        asked = [job.demand.request.filled() for job in self._mix]
        works = np.sort([work(job, device) for job in self._mix if job.demand.request.gpus])
        means = [
            max(np.mean([each.cpu_milli for each in asked]), 1.0) if asked else 1.0,
            max(np.mean([each.memory_mib for each in asked]), 1.0) if asked else 1.0,
            float(works.mean()) if len(works) else 0.0,
        ]
        return works.astype(np.float64), np.array(means, np.float64), device


def typical_device(snapshot: Snapshot) -> Float64:
    """Return the median memory in MiB and the median cores of a fleet's devices, at least 1."""
    devices = snapshot.arrays.devices
    if not devices.shape[1]:
        return np.ones(2)
    return np.maximum(np.median(devices[[DEVICE_MEMORY, DEVICE_CORE]], axis=1), 1.0)


def work(job: Job, device: Float64) -> float:
    """Return how much of typical devices a job asks for: the larger share of memory and cores, times devices."""
    request = job.demand.request.filled()
    memory = request.gpu_memory_mib / device[0] if request.gpu_memory_mib else request.gpu_memory_percent / 100
    return request.gpus * max(memory, request.gpu_milli / device[1])
