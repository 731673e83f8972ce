"""Seaway's workloads: that a copy is there at all, which replicas it is to have, and why it has no pods."""

from __future__ import annotations

from dataclasses import dataclass

from seaway.adapters.kubernetes.collect.ours import attempt_of
from seaway.adapters.kubernetes.objects import Condition, Meta, Part
from seaway.adapters.kubernetes.templates.labels import PART, REPLICAS
from seaway.adapters.kubernetes.templates.names import numbers_of


class WorkloadStatus(Part, frozen=True):
    """What is seen of a workload."""

    conditions: tuple[Condition, ...] = ()


class WorkloadObject(Part, frozen=True):
    """A workload of any kind."""

    metadata: Meta = Meta()
    status: WorkloadStatus = WorkloadStatus()


KINDS = {
    "/apis/apps/v1/deployments": False,
    "/apis/batch/v1/jobs": False,
    "/apis/kubeflow.org/v1/pytorchjobs": True,
    "/apis/ray.io/v1/rayclusters": True,
    "/apis/ray.io/v1/rayjobs": True,
    "/apis/batch.volcano.sh/v1alpha1/jobs": True,
}
"""Where the workloads of templates are, and whether a cluster may do without."""

FAILURES = frozenset({"ReplicaFailure", "Failed"})
"""Conditions that say that pods could not be made, or that no more will be."""


@dataclass(frozen=True, slots=True)
class Workload:
    """A workload of an attempt.

    Attributes
    ----------
    job_id, attempt, part
        What it is of.
    replicas
        The numbers of its replicas; empty for what runs nothing, like a service.
    trouble
        Why it has not all its pods; empty when nothing is known to be wrong.
    """

    job_id: str
    attempt: int
    part: str
    replicas: tuple[int, ...]
    trouble: str = ""


def read_workload(written: WorkloadObject, namespace: str) -> Workload | None:
    """Read a workload; None for one that is not Seaway's."""
    owner = attempt_of(written.metadata, namespace)
    try:
        replicas = numbers_of(written.metadata.annotations.get(REPLICAS, ""))
    except ValueError:
        replicas = ()
    if owner is None:
        return None
    return Workload(*owner, written.metadata.labels.get(PART, ""), replicas, _trouble(written.status.conditions))


def _trouble(conditions: tuple[Condition, ...]) -> str:
    failed = next((each for each in conditions if each.type in FAILURES and each.status == "True"), None)
    return " ".join((failed.message or failed.reason).split())[:500] if failed else ""
