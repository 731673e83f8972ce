"""Seaway's workloads: that a copy is there at all, which replicas it is to have, and why it has no pods.

References
----------
Kubernetes documentation, "Jobs": conditions, and pods that are deleted, which count as failed. ray.io/v1 RayJob
(KubeRay 1.0 to 1.7, ``rayjob_types.go``, ``rayjob_controller.go``): ``jobStatus``, which is Ray's word, and
``jobDeploymentStatus``, which is KubeRay's. kubeflow.org/v1 PyTorchJob (training operator 1.9, ``common_types.go``):
conditions. batch.volcano.sh/v1alpha1 Job (Volcano 1.16, ``job.go``): ``state.phase``. jobset.x-k8s.io/v1alpha2 JobSet:
conditions.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from seaway.adapters.kubernetes.collect.feedback import Verdict
from seaway.adapters.kubernetes.collect.ours import attempt_of
from seaway.adapters.kubernetes.objects.meta import Condition, Meta
from seaway.adapters.kubernetes.objects.part import Part
from seaway.adapters.kubernetes.templates.labels import PART, REPLICAS
from seaway.adapters.kubernetes.templates.names import numbers_of
from seaway.domain.deployment import Cause, CopyPhase


class VolcanoState(Part, frozen=True):
    """How a Job of Volcano's does."""

    phase: str = ""
    reason: str = ""
    message: str = ""


class WorkloadStatus(Part, frozen=True):
    """What is seen of a workload; all but the conditions and the state is a RayJob's.

    The state is a word of RayClusters, which Seaway does not read, and more of Volcano's Jobs.
    """

    conditions: tuple[Condition, ...] = ()
    state: VolcanoState | str = ""
    job_status: str = ""
    job_deployment_status: str = ""
    reason: str = ""
    message: str = ""


class WorkloadObject(Part, frozen=True):
    """A workload of any kind."""

    metadata: Meta = Meta()
    status: WorkloadStatus = WorkloadStatus()


FAILURES = frozenset({"ReplicaFailure", "Failed"})
"""Conditions that say that pods could not be made, or that no more will be."""

SUCCESS = frozenset({"Complete", "Succeeded", "Completed"})
"""Conditions that say that all of a workload ended well, of Kubernetes' Jobs, of Kubeflow's, and of JobSets."""

HELD = frozenset({"Suspended", "RayClusterSuspended"})
"""Conditions that say that pods are not to be made for now: somebody, like Kueue, has not let it in yet."""

END = frozenset({"Failed", "FailureTarget"})
"""Conditions that say that a workload failed for good; a Job has the second while its pods are still leaving."""

LOST = "BackoffLimitExceeded"
"""Why a Job fails that may not try again: a pod of it failed, or was deleted."""

RAY_ENDS = {"FAILED": "its Ray job failed", "STOPPED": "its Ray job was stopped"}
"""How a Ray job ends that does not end well."""

RAY_OVER = frozenset({"Complete", "Failed"})
"""KubeRay's word where it leaves it at that; else it may try again, with a new cluster, what Ray says has failed."""

VOLCANO_ENDS = {
    "Completed": Verdict(CopyPhase.SUCCEEDED),
    "Failed": Verdict(CopyPhase.FAILED, "Volcano gave its job up"),
    "Terminated": Verdict(CopyPhase.FAILED, "Volcano ended its job, of which a pod is gone", Cause.INFRASTRUCTURE),
    "Aborted": Verdict(CopyPhase.FAILED, "its job was aborted in Volcano", Cause.INFRASTRUCTURE),
}
"""How a Job of Volcano's ends. Seaway has it ended when a pod failed, which says so itself, or was evicted."""


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
    uid
        Which object it is.
    ended
        How it ended, by its own word; None while it goes on. Its pods may be gone by then.
    decides
        Whether `ended` counts whatever its pods said before they were gone: Ray's do not end when its job does.
    held
        Why it is to have no pods for now; empty when it is to have them.
    """

    job_id: str
    attempt: int
    part: str
    replicas: tuple[int, ...]
    trouble: str = ""
    uid: str = ""
    ended: Verdict | None = None
    decides: bool = False
    held: str = ""


def read_workload(written: WorkloadObject, namespace: str) -> Workload | None:
    """Read a workload; None for one that is not Seaway's."""
    owner = attempt_of(written.metadata, namespace)
    try:
        replicas = numbers_of(written.metadata.annotations.get(REPLICAS, ""))
    except ValueError:
        replicas = ()
    if owner is None:
        return None
    meta, conditions = written.metadata, written.status.conditions
    by_ray = _ended_by_ray(written.status)
    ended, decides = by_ray or _ended_by_volcano(written.status) or _ended(conditions), by_ray is not None
    part, trouble, held = meta.labels.get(PART, ""), _trouble(conditions), _held(written.status)
    return Workload(*owner, part, replicas, trouble, meta.uid, ended, decides, held)


def _trouble(conditions: tuple[Condition, ...]) -> str:
    failed = next((each for each in conditions if each.type in FAILURES and each.status == "True"), None)
    return _said(failed) if failed else ""


def _held(status: WorkloadStatus) -> str:
    """Say why a workload has no pods while it is suspended; empty for one that is not."""
    found = next((each for each in status.conditions if each.type in HELD and each.status == "True"), None)
    if found:
        return f"it is suspended there: {_said(found)}"
    return "it is suspended there" if status.job_deployment_status == "Suspended" else ""


def _ended(conditions: tuple[Condition, ...]) -> Verdict | None:
    """Say how a workload ended; None while it has not."""
    true = {each.type: each for each in conditions if each.status == "True"}
    if SUCCESS & true.keys():
        return Verdict(CopyPhase.SUCCEEDED)
    failed = next((true[each] for each in sorted(END & true.keys())), None)
    if failed is None:
        return None
    cause = Cause.INFRASTRUCTURE if failed.reason == LOST else Cause.WORKLOAD
    return Verdict(CopyPhase.FAILED, f"its pods are gone: {_said(failed)}", cause)


def _ended_by_ray(status: WorkloadStatus) -> Verdict | None:
    """Say how a RayJob ended; None for one that goes on, and for other kinds."""
    if status.job_status == "SUCCEEDED":
        return Verdict(CopyPhase.SUCCEEDED)
    said = " ".join(status.message.split())[:500]
    if status.job_deployment_status == "ValidationFailed":  # it never made a pod: another cluster's may know more
        how, cause = "the KubeRay there does not take it", Cause.DENIED
    elif status.job_deployment_status in RAY_OVER and status.job_status in RAY_ENDS:
        how, cause = RAY_ENDS[status.job_status], Cause.WORKLOAD
    elif status.job_deployment_status == "Failed":
        how, cause = f"KubeRay gave it up, {status.reason}".rstrip(", "), Cause.WORKLOAD
    else:
        return None
    return Verdict(CopyPhase.FAILED, f"{how}: {said}" if said else how, cause)


def _ended_by_volcano(status: WorkloadStatus) -> Verdict | None:
    """Say how a Job of Volcano's ended; None for one that goes on, and for other kinds."""
    state = status.state
    end = VOLCANO_ENDS.get(state.phase) if isinstance(state, VolcanoState) else None
    if end is None or end.phase is CopyPhase.SUCCEEDED or isinstance(state, str):
        return end
    said = " ".join((state.message or state.reason).split())[:500]
    return replace(end, reason=f"{end.reason}: {said}") if said else end


def _said(condition: Condition) -> str:
    return " ".join((condition.message or condition.reason).split())[:500]
