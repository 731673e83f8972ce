"""Job mix: the frequencies of kinds of jobs, from past jobs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from seaway.domain.errors import RejectedError
from seaway.domain.job import Demand, Job
from seaway.scheduling.columns import (
    DEMAND_GPU_CORE,
    DEMAND_GPU_MEMORY,
    DEMAND_GPU_PERCENT,
    DEMAND_GPUS,
    DEMAND_MASK,
    DEVICE_CORE,
    DEVICE_MEMORY,
    NODE_DEVICE_END,
    NODE_DEVICE_FIRST,
)
from seaway.scheduling.kernels.fit import WHOLE_MILLI, WHOLE_PERCENT
from seaway.scheduling.snapshot.snapshot import Snapshot

TYPICAL_SHARE = 0.95
"""Share of all jobs that typical jobs cover, as published for fgd."""

UNFIT = WHOLE_MILLI + 1
"""Marks a request that does not fit any device."""


@dataclass(frozen=True, slots=True)
class TypicalJob:
    """A frequent kind of job.

    Attributes
    ----------
    demand
        Demand of its jobs. Host memory may differ.
    count
        Number of replicas.
    """

    demand: Demand
    count: int


def typical_jobs(jobs: Iterable[Job], share: float = TYPICAL_SHARE) -> list[TypicalJob]:
    """Return the most frequent kinds of jobs that together cover `share` of all.

    As published, host memory is ignored. Ties are broken by the larger request.
    """
    groups: Counter[tuple[object, ...]] = Counter()
    demands: dict[tuple[object, ...], Demand] = {}
    for job in jobs:
        request = job.demand.request.filled()
        memory = (request.gpu_memory_mib, request.gpu_memory_percent)
        key = (request.cpu_milli, request.gpu_milli, *memory, request.gpus, *_rules_of(job.demand))
        groups[key] += job.replicas
        demands.setdefault(key, job.demand)
    ranked: list[tuple[Any, int]] = list(groups.items())
    ranked.sort(key=lambda entry: (entry[1], entry[0]), reverse=True)
    total, covered = sum(groups.values()), 0
    typical: list[TypicalJob] = []
    for key, count in ranked:
        if covered >= share * total:
            break
        typical.append(TypicalJob(demands[key], count))
        covered += count
    return typical


def indexed(snapshot: Snapshot, typical: Iterable[TypicalJob]) -> tuple[list[TypicalJob], list[int]]:
    """Return typical jobs with the rows of their demands, without those that the engine cannot take.

    Those name a gateway that is gone, or have too large amounts, and they cannot run.
    """
    known: list[TypicalJob] = []
    rows: list[int] = []
    for each in typical:
        try:
            rows.append(snapshot.demands.index(each.demand))
        except RejectedError:
            continue
        known.append(each)
    return known, rows


def _rules_of(demand: Demand) -> tuple[str, ...]:
    """Return a sortable key of a demand's rules."""
    devices, nodes = demand.devices, demand.nodes
    names = (devices.models, devices.use_types, devices.avoid_types, devices.vendors, devices.use_uuids)
    places = (nodes.clusters, nodes.regions, nodes.hardware)
    network = f"{demand.gateway} {demand.network}" if demand.network.any else ""
    others = (str(nodes.node_labels), str(nodes.cluster_labels), str(nodes.max_microprice))
    return (*("|".join(sorted(each)) for each in (*names, *places)), *others, network)


@dataclass(frozen=True, slots=True)
class NodeKinds:
    """Groups of nodes that are equal for all typical jobs.

    Attributes
    ----------
    kind
        Kind of each node, shape (N,), int32.
    example
        One node of each kind, shape (kinds,).
    share
        Thousandths of a device that each typical job requests on each kind; `UNFIT` if the rules or the device's size
        do not allow it; shape (kinds, T), int64.
    """

    kind: NDArray[np.int32]
    example: NDArray[np.intp]
    share: NDArray[np.int64]


def node_kinds(snapshot: Snapshot, typical: Iterable[TypicalJob]) -> NodeKinds:
    """Group nodes by the share of their devices that each typical job would use.

    A node is classified by its first device.
    """
    arrays = snapshot.arrays
    lines = [snapshot.demands.index(each.demand) for each in typical]
    amounts = snapshot.demands.arrays.amounts[lines]
    nodes = arrays.nodes
    has_device = nodes[NODE_DEVICE_END] > nodes[NODE_DEVICE_FIRST]
    first = np.where(has_device, nodes[NODE_DEVICE_FIRST], 0)
    shares = np.full((nodes.shape[1], len(lines)), UNFIT, np.int64)
    if arrays.devices.shape[1]:
        memory = np.maximum(arrays.devices[DEVICE_MEMORY, first].astype(np.int64), 1)
        core = np.maximum(arrays.devices[DEVICE_CORE, first].astype(np.int64), 1)
        for t, line in enumerate(amounts):
            mask = line[DEMAND_MASK]
            allowed = snapshot.demands.arrays.node_ok[mask] & snapshot.demands.arrays.device_ok[mask, first]
            asked = np.maximum(
                -(-line[DEMAND_GPU_CORE] * WHOLE_MILLI // core),
                -(-line[DEMAND_GPU_MEMORY] * WHOLE_MILLI // memory)
                if line[DEMAND_GPU_MEMORY]
                else line[DEMAND_GPU_PERCENT] * WHOLE_MILLI // WHOLE_PERCENT,
            )
            usable = has_device & (allowed != 0) & (asked <= WHOLE_MILLI) & (line[DEMAND_GPUS] > 0)
            shares[:, t] = np.where(usable, asked, UNFIT)
    share, example, kind = np.unique(shares, axis=0, return_index=True, return_inverse=True)
    return NodeKinds(kind.reshape(-1).astype(np.int32), example, share)
