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
from seaway.adapters.kubernetes.collect.pod_status import STUCK, Verdict, Wait
from seaway.adapters.kubernetes.collect.pods import Seen
from seaway.adapters.kubernetes.objects.meta import Condition, Meta, Part
from seaway.adapters.kubernetes.templates.names import PART, REPLICAS, numbers_of
from seaway.domain.deployment import Cause, Copy, CopyPhase, ReplicaStatus


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


STARTED = frozenset({CopyPhase.RUNNING, CopyPhase.SUCCEEDED})
NOT_YET = Verdict(CopyPhase.STARTING)
RUNS = Verdict(CopyPhase.RUNNING)


def assemble(
    key: tuple[str, int],
    cluster: str,
    workloads: Iterable[Workload],
    pods: Iterable[Seen],
    *,
    lasting: Mapping[str, Cause],
    lost: AbstractSet[str] = frozenset(),
    address: str = "",
) -> Copy | None:
    """Put an attempt's copy in a cluster together; None when nothing of it is there.

    Parameters
    ----------
    lasting
        Pods, by uid, that have been waiting for so long that they fail, and what that comes from.
    lost
        Workloads, by uid, that failed so long ago that a pod which says better why would have been heard.
    address
        Where a service of it answers.
    """
    workloads = tuple(each for each in workloads if each.replicas)
    seated = list(seats(workloads, pods))
    if not seated:
        return None
    stands = {  # a RayJob's own RayCluster stands for the same, and knows less
        replica: each for each in sorted(workloads, key=lambda one: one.decides) for replica in each.replicas
    }
    found = [(replica, pod, _verdict(pod, lasting, stands.get(replica))) for _, replica, pod in seated]
    if all(verdict.phase is not CopyPhase.FAILED for _, _, verdict in found):  # else a pod says best what happened
        found = [(replica, pod, _in_the_end(pod, said, stands.get(replica), lost)) for replica, pod, said in found]
    replicas = tuple(_status(*each) for each in sorted(found, key=lambda each: each[0]))
    phase, reason, cause = _sum_up([verdict for _, _, verdict in found])
    return Copy(*key, cluster, phase, replicas, reason, address, cause)


def seats(workloads: Iterable[Workload], pods: Iterable[Seen]) -> Iterator[tuple[str, int, Seen | None]]:
    """Say which pod is which replica: yield the part, the replica's number, and its pod or None."""
    by_part: defaultdict[str, list[Seen]] = defaultdict(list)
    parts: dict[str, tuple[int, ...]] = {}
    for pod in pods:
        by_part[pod.part].append(pod)
        parts.setdefault(pod.part, pod.replicas)
    covered = {replica for replicas in parts.values() for replica in replicas}
    for each in workloads:  # one may stand for several parts of pods, of which some may have none yet
        if each.part not in parts:
            parts[each.part] = tuple(replica for replica in each.replicas if replica not in covered)
    for part, replicas in parts.items():
        for replica, seated in _seats(replicas, by_part[part]):
            yield part, replica, seated


def _seats(replicas: tuple[int, ...], pods: list[Seen]) -> Iterator[tuple[int, Seen | None]]:
    """Say which pod is which replica: by its index where it has one, else in the order in which they were made.

    Of several pods for one replica the latest that is not leaving counts: a controller made it for the others.
    """
    seats: dict[int, Seen | None] = dict.fromkeys(replicas)
    rest: list[Seen] = []
    for pod in sorted(pods, key=lambda each: (not each.leaves, each.created_at, each.name)):
        if 0 <= pod.index < len(replicas):
            seats[replicas[pod.index]] = pod
        else:
            rest.append(pod)
    free = [replica for replica, pod in seats.items() if pod is None]
    latest = rest[-len(free) :] if free else []
    latest.sort(key=lambda each: (each.created_at, each.name))
    seats.update(zip(free, latest, strict=False))
    return iter(seats.items())


def _verdict(pod: Seen | None, lasting: Mapping[str, Cause], workload: Workload | None) -> Verdict:
    if workload and workload.decides and workload.ended:
        if workload.ended.phase is CopyPhase.SUCCEEDED:
            return workload.ended if pod is None or not pod.holds else RUNS  # what still runs still has its devices
        if pod and pod.leaves and not pod.holds:  # it was ended as all is over, and says only that
            return workload.ended
    if pod is None or pod.verdict is None:
        return Verdict(CopyPhase.STARTING, workload.trouble) if workload and workload.trouble else NOT_YET
    if pod.verdict.wait is Wait.TURN:
        return pod.verdict if pod.uid in lasting else NOT_YET
    if pod.uid in lasting:
        return Verdict(CopyPhase.FAILED, pod.verdict.reason, lasting[pod.uid])
    return pod.verdict


def _in_the_end(pod: Seen | None, said: Verdict, workload: Workload | None, lost: AbstractSet[str]) -> Verdict:
    """Take a workload's word for how a replica ended whose pod is gone, or goes without having ended."""
    if workload is None or workload.ended is None or said.phase is CopyPhase.SUCCEEDED:
        return said
    if workload.decides and workload.ended.phase is CopyPhase.FAILED:
        return workload.ended if pod is None else said
    if workload.ended.phase is CopyPhase.SUCCEEDED:
        return workload.ended if pod is None else said
    goes = pod is None or pod.leaves
    return workload.ended if goes and workload.uid in lost else said


def _status(replica: int, pod: Seen | None, verdict: Verdict) -> ReplicaStatus:
    if pod is None:
        return ReplicaStatus(replica, verdict.phase, "", (), verdict.reason)
    taken = (pod.slices, verdict.reason, pod.cpu_milli, pod.memory_mib, pod.full_name, pod.holders, pod.containers)
    stuck = pod.verdict is not None and pod.verdict.wait in STUCK  # it holds its devices, whatever is made of that
    return ReplicaStatus(replica, CopyPhase.STARTING if stuck else verdict.phase, pod.node, *taken)


def _sum_up(verdicts: list[Verdict]) -> tuple[CopyPhase, str, Cause]:
    """Say how a copy does as a whole."""
    failed = [each for each in verdicts if each.phase is CopyPhase.FAILED]
    if failed:
        by_weight = {Cause.DENIED: 0, Cause.REFUSED: 0, Cause.INFRASTRUCTURE: 1, Cause.WORKLOAD: 2}
        first = min(failed, key=lambda each: by_weight[each.cause])
        return CopyPhase.FAILED, first.reason, first.cause
    phases = {each.phase for each in verdicts}
    if phases == {CopyPhase.SUCCEEDED}:
        return CopyPhase.SUCCEEDED, "", Cause.WORKLOAD
    if phases <= STARTED:
        return CopyPhase.RUNNING, "", Cause.WORKLOAD
    reason = next((each.reason for each in verdicts if each.phase is CopyPhase.STARTING and each.reason), "")
    return CopyPhase.STARTING, reason, Cause.WORKLOAD
