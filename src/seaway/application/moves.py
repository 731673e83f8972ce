"""Moves of running jobs to certain nodes, as in the answer to a what-if question."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from seaway.application.changes import Change
from seaway.application.control.loop import Controller
from seaway.application.operations import MAX_NAMED, Operations
from seaway.application.ports.clock import Clock
from seaway.application.transitions import nodes_text, stopped
from seaway.application.writer import Writer
from seaway.domain.attempt import Attempt
from seaway.domain.errors import ConflictError, RejectedError, StaleError
from seaway.domain.job import Job
from seaway.domain.job_record import JobRecord
from seaway.domain.job_state import JobState
from seaway.domain.placement import Placement
from seaway.domain.reasons import Reason
from seaway.scheduling.allocations import Allocation
from seaway.scheduling.cycle.displace import grace_s
from seaway.scheduling.cycle.state import PlannedMove
from seaway.scheduling.engine import decide
from seaway.scheduling.job_queue import JobQueue
from seaway.scheduling.snapshot.snapshot import Snapshot

MAX_MOVES = 200
"""Maximum number of jobs that one call moves."""

NS_PER_S = 1_000_000_000


@dataclass(frozen=True, slots=True)
class JobMove:
    """Move of a running job.

    Attributes
    ----------
    attempt
        Number of its present attempt.
    to
        Nodes for its replicas, by cluster and name; empty if the job only stops, and waits in its queue.
    """

    job_id: str
    attempt: int
    to: frozenset[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class _Leaving:
    """A job that leaves its nodes, its allocation there, and the job as it may be placed."""

    move: JobMove
    job: JobRecord
    attempt: Attempt
    booking: Allocation
    wanted: Job


class Moves:
    """Moves of running jobs.

    Parameters
    ----------
    operations
        Drains of clusters and nodes.
    """

    def __init__(self, controller: Controller, operations: Operations, writer: Writer, clock: Clock) -> None:
        self._controller = controller
        self._operations = operations
        self._writer = writer
        self._clock = clock

    def apply(
        self, moves: Sequence[JobMove], drained: Sequence[tuple[str, str]], actor: str, reason: str
    ) -> tuple[int, int]:
        """Drain clusters and nodes, and restart running jobs on other nodes, all or none.

        The nodes are reserved for the jobs until these start there. If that takes too long, jobs may start anywhere.
        Jobs on drained nodes that are not named move as with any drain.

        Parameters
        ----------
        drained
            Clusters with an empty name, or with a node.

        Returns
        -------
        tuple of int and int
            Number of moved jobs, and of those that only stop.

        Raises
        ------
        UnknownError
            If a cluster or node to drain does not exist.
        RejectedError
            If a job is named twice.
        StaleError
            If a job has changed, or does not fit on its nodes any more.
        UnavailableError
            While the policy of a queue is being compiled, or the state is being reloaded.
        """
        if len({each.job_id for each in moves}) < len(moves):
            raise RejectedError(Reason("moved_twice"), where="moves")
        change = Change()
        for cluster, node in drained:
            change.add(self._operations.cordoned(cluster, node, actor, reason, drain=True)[1])
        leaving, copy, wrong = self._leaving(moves)
        if not wrong:
            places = self._placed(leaving, copy)
            wrong += [each.job for each in leaving if each.move.to and each.job.id not in places]
        if wrong:
            raise StaleError(_stale(wrong, len(moves)))
        now_ns, planned = self._clock.now_ns(), {}
        for each in leaving:
            text = Reason("stopped_by", who=actor)
            if each.move.to:
                where = places[each.job.id]
                text, planned[each.job.id] = self._planned(each, where, actor)
            change.add(stopped(each.job, each.attempt, JobState.QUEUED, text, actor, now_ns)[1])
        self._store(change, planned)
        return len(planned), len(leaving) - len(planned)

    def _leaving(self, moves: Sequence[JobMove]) -> tuple[list[_Leaving], Snapshot, list[JobRecord | str]]:
        """Return the jobs with a copy of the fleet, and those that have changed or ended."""
        found, wrong = list[_Leaving](), list[JobRecord | str]()
        with self._controller.lock:
            self._controller.require_read()
            live = self._controller.live
            copy = live.fleet.snapshot.copy()
            copy.unshare_demands()  # the loop continues to write into its own
            self._controller.scheduler.reservations.lift_from(copy)
            for move in moves:
                current, booking = live.current((move.job_id, move.attempt)), None
                if current:
                    booking = live.fleet.booking((move.job_id, move.attempt))
                if current is None or booking is None or move.job_id in live.paired:
                    wrong.append(live.jobs.get(move.job_id, move.job_id))
                    continue
                wanted = live.allowed(live.entry(current[0]))
                nodes = replace(wanted.demand.nodes, only=move.to)
                wanted = replace(wanted, demand=replace(wanted.demand, nodes=nodes))
                found.append(_Leaving(move, *current, booking.copy(), wanted))
        return found, copy, wrong

    def _placed(self, leaving: Sequence[_Leaving], copy: Snapshot) -> Mapping[str, tuple[Placement, ...]]:
        """Place the jobs on a copy of the fleet that they have left; return the places of those that fit."""
        scheduler, found = self._controller.scheduler, {}
        moving = [each for each in leaving if each.move.to]
        scheduler.readiness.require(*sorted({scheduler.policy_of(each.job.spec.queue) for each in moving}))
        for each in leaving:
            each.booking.release(copy)
        for each in moving:
            profile = scheduler.profile(each.job.spec.queue)
            plan = decide(copy, JobQueue(copy, [each.wanted]), profile, overdue={0}, dry_run=True)
            if plan.jobs_placed[0]:
                found[each.job.id] = tuple(plan.placements())
        return found

    def _planned(self, leaving: _Leaving, placements: tuple[Placement, ...], actor: str) -> tuple[Reason, PlannedMove]:
        wait_s = grace_s(leaving.attempt)
        rest_ns = int((wait_s + self._controller.live.settings.reservation_timeout_s) * NS_PER_S)
        until_ns = self._clock.monotonic_ns() + rest_ns
        text = Reason("moved_by", who=actor, where=nodes_text(placements))
        return text, PlannedMove(leaving.attempt.number, placements, wait_s, until_ns)

    def _store(self, change: Change, planned: Mapping[str, PlannedMove]) -> None:
        """Store the change. The loop knows the moves before, so that it tries no job elsewhere."""
        with self._controller.lock:
            self._controller.live.moves |= planned
        try:
            self._writer.require(change)
        except BaseException as error:
            with self._controller.lock:
                for job_id in planned:
                    self._controller.live.end_move(job_id)
            if isinstance(error, ConflictError):
                raise StaleError(Reason("moves_stale")) from None
            raise


def _stale(wrong: Sequence[JobRecord | str], count: int) -> Reason:
    names = [each if isinstance(each, str) else f"{each.spec.name} ({each.id})" for each in wrong]
    jobs: str = ", ".join(names[:MAX_NAMED])
    if len(names) > MAX_NAMED:
        jobs = Reason("and_more", what=jobs, count=len(names) - MAX_NAMED)
    return Reason("moves_stale_for", wrong=len(wrong), count=count, jobs=jobs)
