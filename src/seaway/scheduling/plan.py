"""Plans: decisions as arrays and as placements."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from seaway.domain.amounts import CPU, GPU_CORES, GPU_MEMORY, GPUS, MEMORY, Amounts, model_resource
from seaway.domain.device import WHOLE_DEVICE_MILLI
from seaway.domain.job import ResourceRequest
from seaway.domain.placement import DeviceSlice, Explanation, Placement
from seaway.scheduling.arrays import Int32, Int64
from seaway.scheduling.columns import (
    DEVICE_MEMORY,
    NODE_CLUSTER,
    PLAN_DUPLICATE,
    PLAN_JOB,
    PLAN_LINK_MISSED,
    PLAN_NODE,
    PLAN_REPLICA,
    PLAN_SLICE_END,
    PLAN_SLICE_FIRST,
    SLICE_CORE,
    SLICE_DEVICE,
    SLICE_MEMORY,
    SLICE_MIG,
    SLICE_START,
)
from seaway.scheduling.framework import Decider
from seaway.scheduling.job_queue import JobQueue
from seaway.scheduling.snapshot.encode import smallest_first
from seaway.scheduling.snapshot.snapshot import Snapshot

T = TypeVar("T")


class Plan:
    """Decisions for the replicas of a queue.

    Attributes
    ----------
    queue
        Decided jobs.
    decisions
        One row per decision, shape (R, PLAN_ROWS); see `seaway.scheduling.columns`. Rows are sorted by job.
    order
        Numbers of the queue's jobs in the order of decision, shape (J,); None for the order of the queue.
    slices
        Slices of devices, shape (S, SLICE_ROWS).
    explanations
        Explanations by number of job in the queue, for the requested jobs.
    pulls
        Transfer time of the data of jobs to each cluster, ms, shape (C,), by number of job in the queue.
    messages
        Messages of plugins by number of job in the queue; that of the last replica with a message.
    deciders
        Authors of decisions by number of job in the queue, for policies with a fallback; that of the first replica that
        the policy did not decide itself, if any.
    deferred
        Reasons of deferrals by number of job in the queue.
    """

    def __init__(self, snapshot: Snapshot, queue: JobQueue, decisions: Int64, slices: Int32) -> None:
        self.snapshot = snapshot
        self.queue = queue
        self.decisions = decisions
        self.slices = slices
        self.order: Int64 | None = None
        self.explanations: dict[int, Explanation] = {}
        self.pulls: dict[int, Int64] = {}
        self.messages: dict[int, str] = {}
        self.deciders: dict[int, Decider] = {}
        self.deferred: dict[int, str] = {}

    def numbered_as(self, queue: JobQueue, order: Int64) -> Plan:
        """Return the plan for the original queue, of which this plan's queue is a permutation.

        Parameters
        ----------
        queue
            Original queue.
        order
            Numbers of the original queue's jobs in the order of decision, shape (J,).
        """
        lines = self.decisions.copy()
        lines[:, PLAN_JOB] = order[lines[:, PLAN_JOB]]
        plan = Plan(self.snapshot, queue, lines[np.argsort(lines[:, PLAN_JOB], kind="stable")], self.slices)
        plan.order = order
        plan.explanations = _renumbered(self.explanations, order)
        plan.pulls = _renumbered(self.pulls, order)
        plan.messages = _renumbered(self.messages, order)
        plan.deciders = _renumbered(self.deciders, order)
        plan.deferred = _renumbered(self.deferred, order)
        return plan

    @property
    def decision_order(self) -> Int64:
        """Numbers of the queue's jobs in the order of decision, shape (J,)."""
        return np.arange(len(self.queue)) if self.order is None else self.order

    @property
    def placed(self) -> NDArray[np.bool_]:
        """Decisions with a node, shape (R,)."""
        return self.decisions[:, PLAN_NODE] >= 0

    @property
    def jobs_placed(self) -> NDArray[np.bool_]:
        """Jobs with a duplicate whose replicas are all placed, with links within their bounds, shape (J,)."""
        good = self.placed & (self.decisions[:, PLAN_LINK_MISSED] == 0)
        copies = int(self.decisions[:, PLAN_DUPLICATE].max(initial=0)) + 1
        if len(self.queue) == copies == 1:  # as below, in a fraction of the time
            return np.array([len(good) > 0 and good.all()])
        copy_of = self.decisions[:, PLAN_JOB] * copies + self.decisions[:, PLAN_DUPLICATE]
        lines = np.bincount(copy_of, minlength=len(self.queue) * copies)
        placed = np.bincount(copy_of[good], minlength=len(lines))
        complete: NDArray[np.bool_] = ((lines > 0) & (placed == lines)).reshape(-1, copies).any(axis=1)
        return complete

    def rows_of(self, job: int) -> NDArray[np.intp]:
        """Return the rows of the queue's job number `job`."""
        return np.flatnonzero(self.decisions[:, PLAN_JOB] == job)

    def amounts(self, request: ResourceRequest) -> Amounts:
        """Return the amounts that the placed replicas hold, like `held_amounts` of the placements, but much faster.

        Parameters
        ----------
        request
            Request of each replica.
        """
        count, slices = int(self.placed.sum()), self.slices.astype(np.int64)
        core_milli, held_mib = slices[:, SLICE_CORE], slices[:, SLICE_MEMORY]
        memory_mib = self.snapshot.arrays.devices[DEVICE_MEMORY, slices[:, SLICE_DEVICE]].astype(np.int64)
        of_memory = -(-held_mib * WHOLE_DEVICE_MILLI // np.maximum(memory_mib, 1))
        gpus_milli = np.maximum(core_milli, np.where(memory_mib > 0, of_memory, 0))
        of_models = Counter[str]()
        for d, milli in zip(slices[:, SLICE_DEVICE].tolist(), gpus_milli.tolist(), strict=True):
            of_models[self.snapshot.devices[d].model] += milli
        amounts = {
            CPU: request.cpu_milli * count,
            MEMORY: request.memory_mib * count,
            GPUS: int(gpus_milli.sum()),
            GPU_CORES: int(core_milli.sum()),
            GPU_MEMORY: int(held_mib.sum()),
        }
        for model, milli in of_models.items():
            resource = model_resource(model)
            amounts[resource] = amounts.get(resource, 0) + milli
        return {name: amount for name, amount in amounts.items() if amount}

    def placements(self) -> Iterator[Placement]:
        """Yield the placements of all decisions with a node."""
        for row in np.flatnonzero(self.placed):
            yield self.placement(int(row))

    def placement(self, row: int) -> Placement:
        """Return the placement of a decision with a node."""
        line = self.decisions[row].tolist()  # Python integers, because access to array elements is slower
        n = line[PLAN_NODE]
        return Placement(
            job=self.queue.jobs[line[PLAN_JOB]].name,
            replica=line[PLAN_REPLICA],
            cluster=self.snapshot.clusters[int(self.snapshot.arrays.nodes[NODE_CLUSTER, n])].name,
            node=self.snapshot.nodes[n].name,
            slices=tuple(map(self._slice, self.slices[line[PLAN_SLICE_FIRST] : line[PLAN_SLICE_END]].tolist())),
        )

    def _slice(self, line: list[int]) -> DeviceSlice:
        device, profile = self.snapshot.devices[line[SLICE_DEVICE]], line[SLICE_MIG]
        name = ""
        if profile >= 0:
            geometry = self.snapshot.geometries[smallest_first(device)]
            name = smallest_first(device)[profile - int(self.snapshot.arrays.mig_first[geometry])].name
        return DeviceSlice(
            uuid=device.uuid,
            memory_mib=line[SLICE_MEMORY],
            core_milli=line[SLICE_CORE],
            mig_profile=name,
            mig_start=line[SLICE_START],
        )


def _renumbered(by_job: dict[int, T], order: Int64) -> dict[int, T]:
    return {int(order[job]): note for job, note in by_job.items()}
