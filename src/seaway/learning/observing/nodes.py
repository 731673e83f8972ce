"""Observation of `pilot`: a shortlist of feasible nodes, and features of nodes, job and fleet.

`seaway.scheduling.policies.pilot.features` defines the features and their order.
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
    JOB_FEATURES,
    NODE_FEATURES,
    SHORTLIST_SIZE,
    VERSION,
    FeatureParams,
    Float32,
    observe_nodes,
)
from seaway.scheduling.policies.seaway.plugin import Seaway
from seaway.scheduling.snapshot.rule_masks import FleetCache, SnapshotCache
from seaway.scheduling.snapshot.snapshot import Snapshot

__all__ = ["JOB_FEATURES", "NODE_FEATURES", "SHORTLIST_SIZE", "VERSION", "NodeObserver", "NodeView"]


@dataclass(frozen=True, slots=True)
class NodeView:
    """Observation at node level.

    Attributes
    ----------
    nodes
        Feasible nodes, shape (M,), at most `SHORTLIST_SIZE`; ranked by Seaway's own policy, best first.
    features
        Shape (M, NODE_FEATURES).
    job
        Features of the job and the fleet, shape (JOB_FEATURES,).
    """

    nodes: Int64
    features: Float32
    job: Float32


class NodeObserver:
    """Observer of snapshots for a policy.

    Parameters
    ----------
    mix
        Past jobs, for the distribution of requests.
    seaway
        Seaway's own policy for the same jobs; None to create it.
    """

    def __init__(self, mix: Sequence[Job], seaway: Seaway | None = None) -> None:
        self._mix = mix
        self._seaway = seaway or Seaway(mix)
        self._known = SnapshotCache(lambda snapshot: [self.params(snapshot)])
        self._expected = FleetCache(self._expect)

    def ready(self, snapshot: Snapshot) -> None:
        """Compute tables that depend on the fleet only, so that the first observation is fast."""
        self._known(snapshot)

    def observe(self, snapshot: Snapshot, line: int, allowed: Mask | None = None) -> NodeView:
        """Return the observation for a demand.

        Parameters
        ----------
        line
            Index of the demand in ``snapshot.demands``.
        allowed
            Nodes that pass all filters, with links and bandwidth, shape (N,); None for all.
        """
        demands = snapshot.demands.arrays
        tables = self._known(snapshot)
        if snapshot.placers.get(self) is not tables:  # demands were removed, so indices changed
            snapshot.placers[self] = tables
            for table in (
                tables[0].seaway.cache.log_position,
                tables[0].seaway.cache.owner,
                tables[0].seaway.cache.slot,
            ):
                table.fill(-1)
        params = tables[0]
        if (seaway := resized(params.seaway, len(demands.amounts))) is not params.seaway:
            params = tables[0] = params._replace(seaway=seaway)
        may = np.ones(len(snapshot.nodes), np.bool_) if allowed is None else np.ascontiguousarray(allowed, np.bool_)
        nodes, values = np.empty(SHORTLIST_SIZE, np.int64), np.empty(SHORTLIST_SIZE, np.int64)
        features, job = np.zeros((SHORTLIST_SIZE, NODE_FEATURES), np.float32), np.zeros(JOB_FEATURES, np.float32)
        known = fit_cache_of(snapshot).params(snapshot)
        count = observe_nodes(
            params, known, snapshot.arrays, demands, line, may.view(np.uint8), nodes, values, features, job
        )
        return NodeView(nodes[:count], features[:count], job)

    def params(self, snapshot: Snapshot) -> FeatureParams:
        """Return the tables for compiled code."""
        return FeatureParams(self._seaway.tables(snapshot), *self._expected(snapshot))

    def _expect(self, snapshot: Snapshot) -> tuple[Float64, Float64, Float64]:
        """Return the work of past GPU jobs, ascending, means of requests, and the typical device."""
        device = typical_device(snapshot)
        requests = [job.demand.request.filled() for job in self._mix]
        works = np.sort([work(job, device) for job in self._mix if job.demand.request.gpus])
        means = [
            max(np.mean([each.cpu_milli for each in requests]), 1.0) if requests else 1.0,
            max(np.mean([each.memory_mib for each in requests]), 1.0) if requests else 1.0,
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
    """Return the request of a job in typical devices: the larger share of memory and cores, times devices."""
    request = job.demand.request.filled()
    memory = request.gpu_memory_mib / device[0] if request.gpu_memory_mib else request.gpu_memory_percent / 100
    return request.gpus * max(memory, request.gpu_milli / device[1])
