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

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace

from seaway.adapters.kubernetes.collect.owned import attempt_of
from seaway.adapters.kubernetes.collect.pod_status import STUCK, PodState, Wait
from seaway.adapters.kubernetes.collect.pods import PodSummary
from seaway.adapters.kubernetes.objects.meta import Condition, Meta, Part
from seaway.adapters.kubernetes.templates.names import PART, REPLICAS, numbers_of
from seaway.domain.deployment import Cause, ReplicaStatus, Workload, WorkloadPhase


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
"""Conditions that say that a workload failed permanently; a Job has the second while its pods are still leaving."""

LOST = "BackoffLimitExceeded"
"""Why a Job fails that may not try again: a pod of it failed, or was deleted."""

RAY_ENDS = {"FAILED": "its Ray job failed", "STOPPED": "its Ray job was stopped"}
"""How a Ray job ends that does not end well."""

RAY_OVER = frozenset({"Complete", "Failed"})
"""KubeRay's word where it leaves it at that; else it may try again, with a new cluster, what Ray says has failed."""

VOLCANO_ENDS = {
    "Completed": PodState(WorkloadPhase.SUCCEEDED),
    "Failed": PodState(WorkloadPhase.FAILED, "Volcano gave its job up"),
    "Terminated": PodState(WorkloadPhase.FAILED, "Volcano ended its job, of which a pod is gone", Cause.INFRASTRUCTURE),
    "Aborted": PodState(WorkloadPhase.FAILED, "its job was aborted in Volcano", Cause.INFRASTRUCTURE),
}
"""How a Job of Volcano's ends. Seaway has it ended when a pod failed, which says so itself, or was evicted."""


@dataclass(frozen=True, slots=True)
class WorkloadPart:
    """A workload of an attempt.

    Attributes
    ----------
    job_id, attempt, part
        What it is of.
    replicas
        The numbers of its replicas; empty for what runs nothing, like a service.
    rejection
        Why it has not all its pods; empty when nothing is known to be wrong.
    uid
        Which object it is.
    ended
        How it ended, by its own word; None while it goes on. Its pods may be gone by then.
    decides
        Whether `ended` counts whatever its pods said before they were gone: Ray's do not end when its job does.
    gate
        Why it is to have no pods for now; empty when it is to have them.
    """

    job_id: str
    attempt: int
    part: str
    replicas: tuple[int, ...]
    rejection: str = ""
    uid: str = ""
    ended: PodState | None = None
    decides: bool = False
    gate: str = ""


def read_workload(written: WorkloadObject, namespace: str) -> WorkloadPart | None:
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
    part, trouble, held = meta.labels.get(PART, ""), _rejection_message(conditions), _gate_reason(written.status)
    return WorkloadPart(*owner, part, replicas, trouble, meta.uid, ended, decides, held)


def _rejection_message(conditions: tuple[Condition, ...]) -> str:
    failed = next((each for each in conditions if each.type in FAILURES and each.status == "True"), None)
    return _condition_text(failed) if failed else ""


def _gate_reason(status: WorkloadStatus) -> str:
    """Say why a workload has no pods while it is suspended; empty for one that is not."""
    found = next((each for each in status.conditions if each.type in HELD and each.status == "True"), None)
    if found:
        return f"it is suspended there: {_condition_text(found)}"
    return "it is suspended there" if status.job_deployment_status == "Suspended" else ""


def _ended(conditions: tuple[Condition, ...]) -> PodState | None:
    """Say how a workload ended; None while it has not."""
    true = {each.type: each for each in conditions if each.status == "True"}
    if SUCCESS & true.keys():
        return PodState(WorkloadPhase.SUCCEEDED)
    failed = next((true[each] for each in sorted(END & true.keys())), None)
    if failed is None:
        return None
    cause = Cause.INFRASTRUCTURE if failed.reason == LOST else Cause.WORKLOAD
    return PodState(WorkloadPhase.FAILED, f"its pods are gone: {_condition_text(failed)}", cause)


def _ended_by_ray(status: WorkloadStatus) -> PodState | None:
    """Say how a RayJob ended; None for one that goes on, and for other kinds."""
    if status.job_status == "SUCCEEDED":
        return PodState(WorkloadPhase.SUCCEEDED)
    said = " ".join(status.message.split())[:500]
    if status.job_deployment_status == "ValidationFailed":  # it never made a pod: another cluster's may know more
        how, cause = "the KubeRay there does not take it", Cause.REJECTED
    elif status.job_deployment_status in RAY_OVER and status.job_status in RAY_ENDS:
        how, cause = RAY_ENDS[status.job_status], Cause.WORKLOAD
    elif status.job_deployment_status == "Failed":
        how, cause = f"KubeRay gave it up, {status.reason}".rstrip(", "), Cause.WORKLOAD
    else:
        return None
    return PodState(WorkloadPhase.FAILED, f"{how}: {said}" if said else how, cause)


def _ended_by_volcano(status: WorkloadStatus) -> PodState | None:
    """Say how a Job of Volcano's ended; None for one that goes on, and for other kinds."""
    state = status.state
    end = VOLCANO_ENDS.get(state.phase) if isinstance(state, VolcanoState) else None
    if end is None or end.phase is WorkloadPhase.SUCCEEDED or isinstance(state, str):
        return end
    said = " ".join((state.message or state.reason).split())[:500]
    return replace(end, reason=f"{end.reason}: {said}") if said else end


def _condition_text(condition: Condition) -> str:
    return " ".join((condition.message or condition.reason).split())[:500]


STARTED = frozenset({WorkloadPhase.RUNNING, WorkloadPhase.SUCCEEDED})
NOT_YET = PodState(WorkloadPhase.STARTING)
RUNS = PodState(WorkloadPhase.RUNNING)


def assemble(
    key: tuple[str, int],
    cluster: str,
    workloads: Iterable[WorkloadPart],
    pods: Iterable[PodSummary],
    *,
    persistent_waits: Mapping[str, Cause],
    lost: AbstractSet[str] = frozenset(),
    address: str = "",
) -> Workload | None:
    """Put an attempt's copy in a cluster together; None when nothing of it is there.

    Parameters
    ----------
    persistent_waits
        Pods, by uid, that have been waiting for so long that they fail, and what that comes from.
    lost
        Workloads, by uid, that failed so long ago that a pod which says better why would have been heard.
    address
        Where a service of it answers.
    """
    workloads = tuple(each for each in workloads if each.replicas)
    seated = list(replica_pods(workloads, pods))
    if not seated:
        return None
    stands = {  # a RayJob's own RayCluster stands for the same, and knows less
        replica: each for each in sorted(workloads, key=lambda one: one.decides) for replica in each.replicas
    }
    found = [(replica, pod, _replica_state(pod, persistent_waits, stands.get(replica))) for _, replica, pod in seated]
    if all(verdict.phase is not WorkloadPhase.FAILED for _, _, verdict in found):  # else a pod says best what happened
        found = [(replica, pod, _final_state(pod, said, stands.get(replica), lost)) for replica, pod, said in found]
    replicas = tuple(_status(*each) for each in sorted(found, key=lambda each: each[0]))
    phase, reason, cause = _summarise([verdict for _, _, verdict in found])
    return Workload(*key, cluster, phase, replicas, reason, address, cause)


def replica_pods(
    workloads: Iterable[WorkloadPart], pods: Iterable[PodSummary]
) -> Iterator[tuple[str, int, PodSummary | None]]:
    """Say which pod is which replica: yield the part, the replica's number, and its pod or None."""
    by_part: defaultdict[str, list[PodSummary]] = defaultdict(list)
    parts: dict[str, tuple[int, ...]] = {}
    for pod in pods:
        by_part[pod.part].append(pod)
        parts.setdefault(pod.part, pod.replicas)
    covered = {replica for replicas in parts.values() for replica in replicas}
    for each in workloads:  # one may stand for several parts of pods, of which some may have none yet
        if each.part not in parts:
            parts[each.part] = tuple(replica for replica in each.replicas if replica not in covered)
    for part, replicas in parts.items():
        for replica, seated in _replica_pods(replicas, by_part[part]):
            yield part, replica, seated


def _replica_pods(replicas: tuple[int, ...], pods: list[PodSummary]) -> Iterator[tuple[int, PodSummary | None]]:
    """Say which pod is which replica: by its index where it has one, else in the order in which they were made.

    Of several pods for one replica the latest that is not leaving counts: a controller made it for the others.
    """
    seats: dict[int, PodSummary | None] = dict.fromkeys(replicas)
    rest: list[PodSummary] = []
    for pod in sorted(pods, key=lambda each: (not each.deleting, each.created_at, each.name)):
        if 0 <= pod.index < len(replicas):
            seats[replicas[pod.index]] = pod
        else:
            rest.append(pod)
    free = [replica for replica, pod in seats.items() if pod is None]
    latest = rest[-len(free) :] if free else []
    latest.sort(key=lambda each: (each.created_at, each.name))
    seats.update(zip(free, latest, strict=False))
    return iter(seats.items())


def _replica_state(
    pod: PodSummary | None, persistent_waits: Mapping[str, Cause], workload: WorkloadPart | None
) -> PodState:
    if workload and workload.decides and workload.ended:
        if workload.ended.phase is WorkloadPhase.SUCCEEDED:
            return (
                workload.ended if pod is None or not pod.holds_resources else RUNS
            )  # what still runs still has its devices
        if pod and pod.deleting and not pod.holds_resources:  # it was ended as all is over, and says only that
            return workload.ended
    if pod is None or pod.state is None:
        return PodState(WorkloadPhase.STARTING, workload.rejection) if workload and workload.rejection else NOT_YET
    if pod.state.wait is Wait.SCHEDULER:
        return pod.state if pod.uid in persistent_waits else NOT_YET
    if pod.uid in persistent_waits:
        return PodState(WorkloadPhase.FAILED, pod.state.reason, persistent_waits[pod.uid])
    return pod.state


def _final_state(
    pod: PodSummary | None, state: PodState, workload: WorkloadPart | None, lost: AbstractSet[str]
) -> PodState:
    """Take a workload's word for how a replica ended whose pod is gone, or goes without having ended."""
    if workload is None or workload.ended is None or state.phase is WorkloadPhase.SUCCEEDED:
        return state
    if workload.decides and workload.ended.phase is WorkloadPhase.FAILED:
        return workload.ended if pod is None else state
    if workload.ended.phase is WorkloadPhase.SUCCEEDED:
        return workload.ended if pod is None else state
    goes = pod is None or pod.deleting
    return workload.ended if goes and workload.uid in lost else state


def _status(replica: int, pod: PodSummary | None, verdict: PodState) -> ReplicaStatus:
    if pod is None:
        return ReplicaStatus(replica, verdict.phase, "", (), verdict.reason)
    taken = (pod.slices, verdict.reason, pod.cpu_milli, pod.memory_mib, pod.full_name, pod.holders, pod.containers)
    stuck = pod.state is not None and pod.state.wait in STUCK  # it holds its devices, whatever is made of that
    return ReplicaStatus(replica, WorkloadPhase.STARTING if stuck else verdict.phase, pod.node, *taken)


def _summarise(states: list[PodState]) -> tuple[WorkloadPhase, str, Cause]:
    """Say how a copy does as a whole."""
    failed = [each for each in states if each.phase is WorkloadPhase.FAILED]
    if failed:
        by_weight = {Cause.REJECTED: 0, Cause.UNSCHEDULABLE: 0, Cause.INFRASTRUCTURE: 1, Cause.WORKLOAD: 2}
        first = min(failed, key=lambda each: by_weight[each.cause])
        return WorkloadPhase.FAILED, first.reason, first.cause
    phases = {each.phase for each in states}
    if phases == {WorkloadPhase.SUCCEEDED}:
        return WorkloadPhase.SUCCEEDED, "", Cause.WORKLOAD
    if phases <= STARTED:
        return WorkloadPhase.RUNNING, "", Cause.WORKLOAD
    reason = next((each.reason for each in states if each.phase is WorkloadPhase.STARTING and each.reason), "")
    return WorkloadPhase.STARTING, reason, Cause.WORKLOAD
