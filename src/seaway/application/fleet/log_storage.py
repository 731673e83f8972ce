"""Storage of the logs of jobs that ended, before their cluster removes the pods."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from time import monotonic, thread_time

from seaway.application.control.loop import Controller
from seaway.application.fleet.overview import MAX_LINES, Overview
from seaway.application.ports.logs import LogArchive
from seaway.application.ports.store import MAX_ROWS, Store
from seaway.domain.attempt import Attempt
from seaway.domain.errors import ConflictError, SeawayError, UnavailableError
from seaway.domain.job_state import JobState
from seaway.domain.runtime import FETCHER, Runtime

INTERVAL_S = 5.0
"""Time between two runs, seconds. Pods that are stopped exist for their grace period, 30 s by default."""

RUN_S = 2.0
"""Maximum time of a run, seconds. Further logs are read by the next one."""

RUN_CPU_S = 0.25
"""Maximum CPU time of a run, seconds: 5 % of a core, also while hundreds of jobs end each second."""

WAIT_S = 15.0
"""Time for which the pods of a failed program stay until their log is read, seconds."""

MAX_REPLICAS = 16
"""Maximum number of replicas of a job whose logs are stored."""

MAX_QUEUED = 10_000
"""Maximum number of jobs whose logs are still to be read. The oldest are dropped."""

ENDS = frozenset(
    each.value
    for each in (
        JobState.COMPLETED,
        JobState.FAILED,
        JobState.CANCELLED,
        JobState.PREEMPTED,
        JobState.SUSPENDED,
        JobState.QUEUED,  # for another attempt
    )
)


def side_containers(runtime: Runtime) -> list[str]:
    """Return the names of the containers beside the program, and before it."""
    fetcher = [FETCHER] if runtime.workdir else []
    return fetcher + [each.name for each in (*runtime.init_containers, *runtime.containers)]


class LogStorage:
    """Scheduled task that follows the events of jobs, and stores the logs of attempts that ended.

    The first start begins with later events, and a restart with those since the last run. Logs that a cluster does not
    return are not retried. The pods of a program that failed wait for it, so that it also reads the log of an attempt
    that is retried at once.
    """

    def __init__(self, overview: Overview, store: Store, archive: LogArchive, controller: Controller) -> None:
        self._controller = controller
        controller.wait_for_logs(WAIT_S)
        self._overview, self._store, self._archive = overview, store, archive
        self._ended: deque[tuple[str, int]] = deque(maxlen=MAX_QUEUED)
        self._unreachable: set[str] = set()
        known = archive.position
        self._position = store.last_event() if known is None else known  # jobs may end before the first run

    def run(self) -> None:
        """Read the logs of jobs that ended since the last run."""
        self._follow()
        self._unreachable.clear()
        until_s, until_cpu_s = monotonic() + RUN_S, thread_time() + RUN_CPU_S
        while self._ended and monotonic() < until_s and thread_time() < until_cpu_s:
            job_id, attempt = self._ended.popleft()
            self._put(job_id, attempt)
            self._controller.logs_read(job_id, attempt)

    def _follow(self) -> None:
        position = self._position
        while rows := self._store.events(position, MAX_ROWS):
            position = rows[-1].id
            self._ended.extend((each.job_id, each.attempt) for each in rows if each.state in ENDS and each.attempt)
            for each in rows:
                if each.state == JobState.DELETED.value:
                    self._archive.drop(each.job_id)
        if position != self._archive.position:
            self._archive.advance(position)
        self._position = position

    def _put(self, job_id: str, attempt: int) -> None:
        job = self._store.job(job_id)
        if job is None or job.state is JobState.DELETED:
            return
        try:
            placed = self._overview.attempt(job, attempt)
        except ConflictError:
            return  # it was never placed
        for placement in placed.placements:
            if placement.replica < min(job.spec.replicas, MAX_REPLICAS) and placement.cluster not in self._unreachable:
                try:
                    self._put_replica(placed, placement.replica, side_containers(job.spec.runtime))
                except UnavailableError:
                    self._unreachable.add(placement.cluster)  # the other logs of this run do not wait for it

    def _put_replica(self, attempt: Attempt, replica: int, others: Sequence[str]) -> None:
        for container in ("", *others):
            try:
                log = self._overview.log_of(attempt, replica, container)
                if lines := log.read(MAX_LINES, times=True):
                    self._archive.put(attempt.spec.tenant, log.copy, replica, container, lines)
            except UnavailableError:
                raise
            except SeawayError:
                if not container:
                    return  # it never ran, or its pod is gone
