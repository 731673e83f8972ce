"""Workloads without an attempt: late, left over, or of another user."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from seaway.application.control.rejections import Due
from seaway.application.control.reports import Observation, Report
from seaway.application.control.state import ControlState
from seaway.application.ports.backend import Removal
from seaway.application.ports.store import Store
from seaway.application.records import PendingCommand, Verb
from seaway.domain.attempt import Attempt
from seaway.domain.deployment import FINISHED_PHASES, Workload, WorkloadPhase
from seaway.domain.reasons import Reason

Known = Mapping[str, int | None]
"""IDs of stored jobs with their end times; None for an unfinished job."""


class Orphans:
    """Removal of leftover workloads of known jobs, and allocations for workloads of unknown jobs."""

    def __init__(self, live: ControlState, store: Store) -> None:
        self._state = live
        self._store = store

    def look_up(self, reports: Iterable[Report]) -> Known:
        """Query the store once for the reported jobs that the loop does not have in memory.

        Raises
        ------
        UnavailableError
            If the database does not respond.
        """
        unknown = {
            copy.job_id
            for report in reports
            if isinstance(report, Observation)
            for copy in report.changes.workloads
            if (copy.phase is not WorkloadPhase.GONE or report.changes.complete) and copy.job_id not in self._state.jobs
        }
        return self._store.known(sorted(unknown)) if unknown else {}

    def saw(self, copy: Workload, known: Known, *, complete: bool = False) -> None:
        """Handle a workload whose attempt has no allocation.

        A live workload of a known job is removed. An ended workload of a known job is removed some time after the end
        of the job, so that its logs remain readable. A live workload of an unknown job stays, and its resources are
        allocated. A complete listing (`complete`) also reports objects of workloads that never ran; those of known jobs
        are removed.
        """
        key = (copy.job_id, copy.attempt, copy.cluster)
        job = self._state.jobs.get(copy.job_id)
        if copy.phase is WorkloadPhase.GONE:
            self._state.fleet.drop_orphan(copy.cluster, copy.name)
            if complete and (job or copy.job_id in known):
                self.remove(*key)
        elif job is None and copy.job_id not in known:
            self._state.fleet.put_orphan(copy)
            if copy.phase in FINISHED_PHASES:
                self.collect_later(*key)
        elif copy.phase in FINISHED_PHASES:
            self.collect_later(*key, job.ended_ns if job else known[copy.job_id])
        else:
            self.remove(*key)

    def collect_later(self, job_id: str, attempt: int, cluster: str, ended_ns: int | None = None) -> None:
        """Remove the objects of a workload after their time to live, which starts at `ended_ns`; None for now."""
        left_s = keep_s = self._state.settings.ttl_after_finished_s
        if ended_ns is not None:
            left_s = min(max(keep_s - (self._state.clock.now_ns() - ended_ns) / 1e9, 0), keep_s)
        self._state.deadlines.in_seconds(left_s, Due.COLLECT, (job_id, attempt, cluster))

    def remove(self, job_id: str, attempt: int, cluster: str) -> None:
        """Command a cluster to remove an unneeded workload."""
        pending_commands = PendingCommand(job_id, attempt, cluster, Verb.DELETE, self._state.clock.now_ns())
        self._state.dispatcher.give(pending_commands, Removal(job_id, attempt, cluster))


STARTED = frozenset({WorkloadPhase.RUNNING, WorkloadPhase.SUCCEEDED})
NONE: frozenset[int] = frozenset()


def lacking(copy: Workload, attempt: Attempt) -> frozenset[int]:
    """Return the replicas that an attempt placed in the workload's cluster and that the workload lacks.

    Those that have completed are not lacking. A workload that reports no replicas counts as complete.
    """
    stay = (each for each in attempt.remaining if each.cluster == copy.cluster)
    placed = [each.replica for each in stay if not each.completed]
    complete = attempt.remaining is attempt.placements is attempt.holding and len(copy.replicas) >= len(placed)
    return NONE if complete or not copy.replicas else frozenset(placed) - _replicas(copy)


def lost(copy: Workload, before: Workload | None, attempt: Attempt) -> frozenset[int]:
    """Return the replicas that the workload had before and lacks now."""
    return lacking(copy, attempt) & _replicas(before) if before else NONE


def with_ended_replicas(copy: Workload, before: Workload | None, attempt: Attempt) -> Workload:
    """Return a workload including its replicas that had succeeded, and whose objects or pods are gone now."""
    if copy.phase is WorkloadPhase.STARTING and attempt.spec.releases_early:
        copy = _with_ended_pods(copy, before, attempt)
    gone = lost(copy, before, attempt)
    if not gone or not before:
        return copy
    ended = [each for each in before.replicas if each.replica in gone and each.phase is WorkloadPhase.SUCCEEDED]
    return replace(copy, replicas=tuple(sorted((*copy.replicas, *ended), key=lambda each: each.replica)))


def _with_ended_pods(copy: Workload, before: Workload | None, attempt: Attempt) -> Workload:
    """Return a workload in which replicas that had succeeded stay so without a pod. Their pods may be deleted."""
    ended = {each.replica for each in before.replicas if each.phase is WorkloadPhase.SUCCEEDED} if before else set()
    ended |= {each.replica for each in attempt.placements if each.completed}
    if not any(each.replica in ended and not each.pod for each in copy.replicas):
        return copy
    replicas = tuple(
        replace(each, phase=WorkloadPhase.SUCCEEDED, reason="") if each.replica in ended and not each.pod else each
        for each in copy.replicas
    )
    phases = {each.phase for each in replicas}
    if not phases <= STARTED:
        return replace(copy, replicas=replicas)
    phase = WorkloadPhase.RUNNING if WorkloadPhase.RUNNING in phases else WorkloadPhase.SUCCEEDED
    return replace(copy, replicas=replicas, phase=phase, reason="")


def run_again(workloads: Iterable[Workload], attempt: Attempt) -> bool:
    """Report whether a pod of a replica that has released its devices was created again, and has not ended."""
    if attempt.holding is attempt.placements:
        return False
    over = {each.replica for each in attempt.placements if each.completed}
    return any(
        one.replica in over and one.pod and one.phase not in FINISHED_PHASES
        for copy in workloads
        for one in copy.replicas
    )


def phase_of(copy: Workload | None, attempt: Attempt) -> WorkloadPhase | None:
    """Return the phase of a workload, without replicas that leave it. An incomplete workload has not started."""
    if copy and copy.phase is WorkloadPhase.FAILED and attempt.remaining is not attempt.placements:
        leave = {each.replica for each in attempt.placements if each.leaving}
        phases = {each.phase for each in copy.replicas if each.replica not in leave}
        if phases and WorkloadPhase.FAILED not in phases and leave & _replicas(copy):
            succeeded = phases == {WorkloadPhase.SUCCEEDED}
            phase = WorkloadPhase.SUCCEEDED if succeeded else WorkloadPhase.RUNNING
            copy = replace(copy, phase=phase if phases <= STARTED else WorkloadPhase.STARTING)
    if copy and copy.phase in STARTED and lacking(copy, attempt):
        return WorkloadPhase.STARTING
    return copy.phase if copy else None


def loss_text(cluster: str, copy: Workload | None, attempt: Attempt) -> str:
    """Return a message on the missing part of an attempt in a cluster, given the remaining workload."""
    number = len(lacking(copy, attempt)) if copy else 0
    if not number:
        return Reason("workloads_gone", cluster=cluster)
    placed = sum(each.cluster == cluster for each in attempt.remaining)
    return Reason("replica_gone" if number == 1 else "replicas_gone", count=number, placed=placed, cluster=cluster)


def _replicas(copy: Workload) -> frozenset[int]:
    return frozenset(each.replica for each in copy.replicas)
