"""Workloads of Seaway: their existence, their replicas, and the reasons for missing pods.

References
----------
Kubernetes documentation, "Jobs": conditions, and deleted pods, which count as failed. ray.io/v1 RayJob
(KubeRay 1.0 to 1.7, ``rayjob_types.go``, ``rayjob_controller.go``): ``jobStatus`` of Ray and ``jobDeploymentStatus``
of KubeRay. kubeflow.org/v1 PyTorchJob (training operator 1.9, ``common_types.go``): conditions.
batch.volcano.sh/v1alpha1 Job (Volcano 1.16, ``job.go``): ``state.phase``. jobset.x-k8s.io/v1alpha2 JobSet: conditions.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace

from seaway.adapters.kubernetes.collect.owned import attempt_of
from seaway.adapters.kubernetes.collect.pod_status import UNSTARTABLE, PodState, Wait
from seaway.adapters.kubernetes.collect.pods import PodSummary
from seaway.adapters.kubernetes.objects.core import Condition, OwnedMeta, Part
from seaway.adapters.kubernetes.templates.names import COMPLETED, PART, REPLICAS, numbers_of
from seaway.adapters.kubernetes.templates.namespaces import Namespaces
from seaway.domain.deployment import Cause, Endpoint, ReplicaStatus, Workload, WorkloadPhase
from seaway.domain.reasons import Reason


class VolcanoState(Part, frozen=True):
    """State of a Volcano Job."""

    phase: str = ""
    reason: str = ""
    message: str = ""


class WorkloadStatus(Part, frozen=True):
    """Status of a workload. All fields except the conditions and the state are those of a RayJob.

    The state is a text in RayClusters, which Seaway ignores, and an object in Volcano Jobs.
    """

    conditions: tuple[Condition, ...] = ()
    state: VolcanoState | str = ""
    job_status: str = ""
    job_deployment_status: str = ""
    reason: str = ""
    message: str = ""


class WorkloadObject(Part, frozen=True):
    """A workload of any kind."""

    metadata: OwnedMeta = OwnedMeta()
    status: WorkloadStatus = WorkloadStatus()


FAILURES = frozenset({"ReplicaFailure", "Failed"})
"""Conditions of workloads whose pods could not or will not be created."""

SUCCESS = frozenset({"Complete", "Succeeded", "Completed"})
"""Conditions of successful Jobs of Kubernetes, Kubeflow jobs and JobSets."""

HELD = frozenset({"Suspended", "RayClusterSuspended"})
"""Conditions of suspended workloads, which get no pods yet. A queue such as Kueue has not admitted them."""

END = frozenset({"Failed", "FailureTarget"})
"""Conditions of permanently failed workloads. A Job has the second one while its pods are terminating."""

RETRIES_EXHAUSTED = "BackoffLimitExceeded"
"""Reason of a failed Job without retries: one of its pods failed or was deleted."""

RAY_ENDS = {"FAILED": "ray_failed", "STOPPED": "ray_stopped"}
"""Reasons for unsuccessful ends of a Ray job."""

RAY_OVER = frozenset({"Complete", "Failed"})
"""Final states of KubeRay. In other states, KubeRay may retry a failed Ray job with a new cluster."""

VOLCANO_ENDS = {
    "Completed": PodState(WorkloadPhase.SUCCEEDED),
    "Failed": PodState(WorkloadPhase.FAILED, "volcano_gave_up"),
    "Terminated": PodState(WorkloadPhase.FAILED, "volcano_terminated", Cause.INFRASTRUCTURE),
    "Aborted": PodState(WorkloadPhase.FAILED, "volcano_aborted", Cause.INFRASTRUCTURE),
}
"""Final states of a Volcano Job, with the codes of their reasons.

Seaway configures Volcano to end the Job when a pod is evicted or fails. The pod itself reports its failure.
"""


@dataclass(frozen=True, slots=True)
class WorkloadPart:
    """A workload object of an attempt.

    Attributes
    ----------
    job_id, attempt, part
        Its owner.
    replicas
        Indexes of its replicas; empty for objects that run nothing, such as services.
    rejection
        Reason for missing pods; empty without a known problem.
    uid
        UID of the object.
    ended
        Its reported end; None while it runs. Its pods may be gone by then.
    decides
        True if `ended` takes precedence over the pods: the pods of Ray do not end with the job.
    gate
        Reason why it has no pods yet; empty if it may have pods.
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


def read_workload(written: WorkloadObject, namespaces: Namespaces) -> WorkloadPart | None:
    """Decode a workload; return None if it does not belong to Seaway."""
    owner = attempt_of(written.metadata, namespaces)
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
    if meta.annotations.get(COMPLETED) and ended is None:  # Karmada created it again, suspended
        ended, held = PodState(WorkloadPhase.SUCCEEDED), ""
    return WorkloadPart(*owner, part, replicas, trouble, meta.uid, ended, decides, held)


def _rejection_message(conditions: tuple[Condition, ...]) -> str:
    failed = next((each for each in conditions if each.type in FAILURES and each.status == "True"), None)
    return _condition_text(failed) if failed else ""


def _gate_reason(status: WorkloadStatus) -> str:
    """Return the reason of a suspended workload; empty if it is not suspended."""
    found = next((each for each in status.conditions if each.type in HELD and each.status == "True"), None)
    if found or status.job_deployment_status == "Suspended":
        return Reason("suspended_there", why=_condition_text(found) if found else "")
    return ""


def _ended(conditions: tuple[Condition, ...]) -> PodState | None:
    """Return the end of a workload from its conditions; None while it runs."""
    true = {each.type: each for each in conditions if each.status == "True"}
    if SUCCESS & true.keys():
        return PodState(WorkloadPhase.SUCCEEDED)
    failed = next((true[each] for each in sorted(END & true.keys())), None)
    if failed is None:
        return None
    cause = Cause.INFRASTRUCTURE if failed.reason == RETRIES_EXHAUSTED else Cause.WORKLOAD
    return PodState(WorkloadPhase.FAILED, Reason("pods_gone", why=_condition_text(failed)), cause)


def _ended_by_ray(status: WorkloadStatus) -> PodState | None:
    """Return the end of a RayJob; None while it runs, and for other kinds."""
    if status.job_status == "SUCCEEDED":
        return PodState(WorkloadPhase.SUCCEEDED)
    said = " ".join(status.message.split())[:500]
    if status.job_deployment_status == "ValidationFailed":  # it created no pod; another cluster may accept it
        how, cause = Reason("ray_rejects", why=said), Cause.REJECTED
    elif status.job_deployment_status in RAY_OVER and status.job_status in RAY_ENDS:
        how, cause = Reason(RAY_ENDS[status.job_status], why=said), Cause.WORKLOAD
    elif status.job_deployment_status == "Failed":
        how, cause = Reason("ray_gave_up", why=": ".join(filter(None, (status.reason, said)))), Cause.WORKLOAD
    else:
        return None
    return PodState(WorkloadPhase.FAILED, how, cause)


def _ended_by_volcano(status: WorkloadStatus) -> PodState | None:
    """Return the end of a Volcano Job; None while it runs, and for other kinds."""
    state = status.state
    end = VOLCANO_ENDS.get(state.phase) if isinstance(state, VolcanoState) else None
    if end is None or end.phase is WorkloadPhase.SUCCEEDED or isinstance(state, str):
        return end
    said = " ".join((state.message or state.reason).split())[:500]
    return replace(end, reason=Reason(end.reason, why=said))


def _condition_text(condition: Condition) -> str:
    return " ".join((condition.message or condition.reason).split())[:500]


STARTED = frozenset({WorkloadPhase.RUNNING, WorkloadPhase.SUCCEEDED})
STARTING = PodState(WorkloadPhase.STARTING)
RUNS = PodState(WorkloadPhase.RUNNING)


def assemble(
    key: tuple[str, int],
    cluster: str,
    workloads: Iterable[WorkloadPart],
    pods: Iterable[PodSummary],
    *,
    persistent_waits: Mapping[str, Cause],
    lost: AbstractSet[str] = frozenset(),
    endpoints: tuple[Endpoint, ...] = (),
) -> Workload | None:
    """Assemble the workload of an attempt in a cluster; return None if it does not exist.

    Parameters
    ----------
    persistent_waits
        Pods whose wait timed out, by UID, with the cause.
    lost
        UIDs of failed workloads whose pods can no longer report a better reason.
    endpoints
        Addresses of its ports.
    """
    workloads = tuple(each for each in workloads if each.replicas)
    seated = list(replica_pods(workloads, pods))
    if not seated:
        return None
    stands = {  # the RayCluster of a RayJob has the same replicas and less information
        replica: each for each in sorted(workloads, key=lambda one: one.decides) for replica in each.replicas
    }
    found = [(replica, pod, _replica_state(pod, persistent_waits, stands.get(replica))) for _, replica, pod in seated]
    wanted = [verdict for replica, _, verdict in found if not stands or replica in stands]  # others are being removed
    if all(verdict.phase is not WorkloadPhase.FAILED for verdict in wanted):  # else a pod has the best reason
        found = [(replica, pod, _final_state(pod, said, stands.get(replica), lost)) for replica, pod, said in found]
    replicas = tuple(_status(*each) for each in sorted(found, key=lambda each: each[0]))
    phase, reason, cause = _summarise([verdict for replica, _, verdict in found if not stands or replica in stands])
    return Workload(*key, cluster, phase, replicas, reason, endpoints, cause)


def replica_pods(
    workloads: Iterable[WorkloadPart], pods: Iterable[PodSummary]
) -> Iterator[tuple[str, int, PodSummary | None]]:
    """Yield the part, the index and the pod, or None, of each replica; of one that was removed, while it has a pod."""
    workloads = tuple(workloads)
    wanted = {replica for each in workloads for replica in each.replicas}
    by_part: defaultdict[str, list[PodSummary]] = defaultdict(list)
    parts: dict[str, tuple[int, ...]] = {}
    for pod in pods:
        by_part[pod.part].append(pod)
        parts.setdefault(pod.part, pod.replicas)
    covered = {replica for replicas in parts.values() for replica in replicas}
    for each in workloads:  # a workload may have several parts, some without pods yet
        if each.part not in parts:
            parts[each.part] = tuple(replica for replica in each.replicas if replica not in covered)
    for part, replicas in parts.items():
        removed = frozenset(replicas) - wanted if wanted else frozenset()
        for replica, seated in _replica_pods(replicas, removed, by_part[part]):
            if seated or replica not in removed:
                yield part, replica, seated


def _replica_pods(
    replicas: tuple[int, ...], removed: AbstractSet[int], pods: list[PodSummary]
) -> Iterator[tuple[int, PodSummary | None]]:
    """Assign pods to replicas, by index or else in order of creation.

    If a replica has several pods, use the newest that is not terminating: a controller created it to replace the
    others. Pods that are terminating are those of removed replicas, if there are any.
    """
    seats: dict[int, PodSummary | None] = dict.fromkeys(replicas)
    rest: list[PodSummary] = []
    for pod in sorted(pods, key=lambda each: (not each.deleting, each.created_at, each.name)):
        if 0 <= pod.index < len(replicas):
            seats[replicas[pod.index]] = pod
        else:
            rest.append(pod)
    free = sorted((replica for replica, pod in seats.items() if pod is None), key=lambda each: each in removed)
    latest = rest[-len(free) :] if free else []
    latest.sort(key=lambda each: (bool(removed) and each.deleting, each.created_at, each.name))
    seats.update(zip(free, latest, strict=False))
    return iter(seats.items())


def _replica_state(
    pod: PodSummary | None, persistent_waits: Mapping[str, Cause], workload: WorkloadPart | None
) -> PodState:
    if workload and workload.decides and workload.ended:
        if workload.ended.phase is WorkloadPhase.SUCCEEDED:
            return workload.ended if pod is None or not pod.holds_resources else RUNS  # running pods hold devices
        if pod and pod.deleting and not pod.holds_resources:  # deleted after the end; its state adds nothing
            return workload.ended
    if pod is None or pod.state is None:
        return PodState(WorkloadPhase.STARTING, workload.rejection) if workload and workload.rejection else STARTING
    if pod.state.wait is Wait.SCHEDULER:
        return pod.state if pod.uid in persistent_waits else STARTING
    if pod.uid in persistent_waits:
        return PodState(WorkloadPhase.FAILED, pod.state.reason, persistent_waits[pod.uid])
    return pod.state


def _final_state(
    pod: PodSummary | None, state: PodState, workload: WorkloadPart | None, lost: AbstractSet[str]
) -> PodState:
    """Return the workload's reported end if the pod is gone or was deleted before it ended, else `state`."""
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
        return ReplicaStatus(replica, verdict.phase, "", (), verdict.reason, cause=verdict.cause)
    taken = (pod.slices, verdict.reason, pod.cpu_milli, pod.memory_mib, pod.full_name, pod.holders, pod.containers)
    stuck = pod.state is not None and pod.state.wait in UNSTARTABLE  # it holds its devices in any state
    phase = WorkloadPhase.STARTING if stuck else verdict.phase
    return ReplicaStatus(replica, phase, pod.node, *taken, cause=verdict.cause)


def _summarise(states: list[PodState]) -> tuple[WorkloadPhase, str, Cause]:
    """Return the phase, reason and cause of the workload."""
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
