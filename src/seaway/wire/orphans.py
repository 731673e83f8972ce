"""Views of orphaned workloads: workloads in clusters that belong to no job of Seaway."""

from __future__ import annotations

from typing import Any, Literal

from seaway.domain.deployment import FINISHED_PHASES, Workload
from seaway.wire.message import Shown, fields_of


class OrphanOut(Shown):
    """An orphaned workload and its allocations. A finished workload has none."""

    cluster: str
    name: str
    job_id: str
    """Job ID on the workload; no job with this ID is stored."""
    attempt: int
    phase: Literal["starting", "running", "succeeded", "failed"]
    nodes: list[str]
    gpus: list[str]
    """UUIDs of the allocated devices."""
    gpu_milli: int
    gpu_memory_mib: int
    cpu_milli: int
    memory_mib: int


class OrphanList(Shown):
    """Orphaned workloads, by cluster and name."""

    orphans: list[OrphanOut]


class OrphansRemoved(Shown):
    """Orphaned workloads that a cluster removes. They stay listed until their removal is complete."""

    removed: list[str]


def orphan_fields(copy: Workload) -> dict[str, Any]:
    """Return the fields of `OrphanOut` for an orphaned workload."""
    holding = () if copy.phase in FINISHED_PHASES else copy.replicas
    slices = [taken for each in holding for taken in each.slices]
    return fields_of(
        OrphanOut,
        copy,
        nodes=list(dict.fromkeys(each.node for each in copy.replicas)),
        gpus=list(dict.fromkeys(taken.uuid for taken in slices)),
        gpu_milli=sum(taken.core_milli for taken in slices),
        gpu_memory_mib=sum(taken.memory_mib for taken in slices),
        cpu_milli=sum(each.cpu_milli for each in holding),
        memory_mib=sum(each.memory_mib for each in holding),
    )
