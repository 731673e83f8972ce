"""Copies, put together from an attempt's workloads and pods."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet

from seaway.adapters.kubernetes.collect.feedback import STUCK, Verdict, Wait
from seaway.adapters.kubernetes.collect.pods import Seen
from seaway.adapters.kubernetes.collect.workloads import Workload
from seaway.domain.deployment import Cause, Copy, CopyPhase, ReplicaStatus

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
