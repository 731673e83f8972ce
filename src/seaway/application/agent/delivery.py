"""Communication between an agent and the controller: fetch targets, and send results in order, exactly once."""

from __future__ import annotations

import logging
import re
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from random import Random
from threading import Lock

from seaway.application.agent.settings import Duty
from seaway.application.ports.agent import Controller, Report, Reported
from seaway.application.ports.clock import Clock
from seaway.domain.backoff import backoff
from seaway.domain.errors import (
    ConflictError,
    ForbiddenError,
    RejectedError,
    SeawayError,
    UnauthenticatedError,
    UnavailableError,
    UnknownError,
)

ROUND_BYTES = 176
"""Maximum size of a result in a report, without its names, bytes."""


def size_bytes(result: Reported) -> int:
    """Return the maximum size of a result in a report, for names that JSON does not escape."""
    return ROUND_BYTES + len(result.target.encode()) + len(result.path.encode())


class ResultQueue:
    """Queue of results, oldest first. A full queue drops the oldest. Thread-safe.

    Parameters
    ----------
    most, most_bytes
        Maximum number and size of the results.
    """

    def __init__(self, most: int, most_bytes: int) -> None:
        self._most = most
        self._most_bytes = most_bytes
        self._waiting: deque[Reported] = deque()
        self._bytes = 0
        self._dropped = 0
        self._lock = Lock()

    def __len__(self) -> int:
        return len(self._waiting)

    @property
    def bytes(self) -> int:
        """Size of the queued results in reports."""
        return self._bytes

    def put(self, results: Iterable[Reported]) -> None:
        """Add results; count the dropped ones."""
        with self._lock:
            for each in results:
                self._waiting.append(each)
                self._bytes += size_bytes(each)
            while self._waiting and (len(self._waiting) > self._most or self._bytes > self._most_bytes):
                self._bytes -= size_bytes(self._waiting.popleft())
                self._dropped += 1

    def take(self, most: int, most_bytes: int) -> tuple[tuple[Reported, ...], int]:
        """Remove and return the oldest results, up to a number and a size, but at least one if the queue is not empty.

        Also returns the number of results dropped since the last call.
        """
        with self._lock:
            taken: list[Reported] = []
            while self._waiting and len(taken) < most:
                size = size_bytes(self._waiting[0])
                if taken and size > most_bytes:
                    break
                taken.append(self._waiting.popleft())
                most_bytes -= size
                self._bytes -= size
            dropped, self._dropped = self._dropped, 0
            return tuple(taken), dropped


log = logging.getLogger(__name__)

NS_PER_S = 1_000_000_000
FIRST_S, MAX_S = 1.0, 60.0
"""First and maximum retry delay, seconds. The delay doubles with each failure, and jitter reduces it by up to half."""
SET_NS = NS_PER_S
"""Minimum jump of the system time that counts as a clock change."""

FETCH, BRING = "fetching the targets", "sending results, which stay queued"

BATCH, BATCH_BYTES = 1000, 262_144
"""Maximum size of a report."""
GAP_S = 0.6
"""Pause between reports while many results are queued. Controllers accept two reports per second."""

NAMED = re.compile(r"rounds[.\[]+(\d+)")
"""Pattern of a round in an error of the controller."""


@dataclass(slots=True)
class Delivered:
    """Delivery statistics of an agent since its start.

    Attributes
    ----------
    rounds, reports
        Number accepted by the controller.
    dropped
        Number of results dropped because the queue was full.
    refused
        Number of results that the controller rejected.
    replayed
        Number of reports that the controller already had, or that are older than those of a later agent of the gateway.
    """

    rounds: int = 0
    reports: int = 0
    dropped: int = 0
    refused: int = 0
    replayed: int = 0


class Delivery:
    """Calls to the controller, one at a time, with back-off while it does not respond.

    A report that may have arrived is sent again unchanged, with the same number, until the controller responds. So no
    result is counted twice or lost.

    Parameters
    ----------
    gateway
        Gateway of the agent.
    controller
        Receives reports and returns the targets.
    queue
        Queue of results.
    duty
        Receives the targets.
    clock
        Provides the start time, which distinguishes the reports of this agent from those of earlier agents.
    random
        Jitter of the back-off.
    refresh_s
        Seconds between two requests for the targets.
    """

    def __init__(
        self,
        gateway: str,
        controller: Controller,
        queue: ResultQueue,
        duty: Duty,
        clock: Clock,
        random: Random,
        refresh_s: float,
    ) -> None:
        self._gateway = gateway
        self._controller = controller
        self._queue = queue
        self._duty = duty
        self._clock = clock
        self._random = random
        self._refresh_s = refresh_s
        self._start()
        self._overtaken = False  # whether the rejection of repeated reports was logged
        self._report: Report | None = None
        self._sent = False  # whether it may have arrived already
        self._lost = 0  # number of dropped results for the next report
        self._failures = {FETCH: 0, BRING: 0}
        self._due_ns = dict.fromkeys((FETCH, BRING), clock.monotonic_ns())
        self._problems: dict[str, str] = {}
        self.delivered = Delivered()
        """Delivery statistics."""

    @property
    def waiting(self) -> int:
        """Number of results that the controller has not accepted yet."""
        return len(self._queue) + (len(self._report.rounds) if self._report else 0)

    @property
    def trouble(self) -> str:
        """Reason why the controller accepts no results or returns no targets; empty if it does both."""
        return self._problems.get(BRING) or self._problems.get(FETCH, "")

    def step(self) -> float:
        """Make at most one due call; return the seconds to the next check, unless results arrive earlier."""
        now_ns = self._clock.monotonic_ns()
        if now_ns >= self._due_ns[FETCH]:
            self._try(FETCH, self._fetch)
            return 0.0
        if now_ns >= self._due_ns[BRING] and self._next() is not None:
            self._try(BRING, self._bring)
            return 0.0
        next_ns = min(self._due_ns.values()) if self.waiting else self._due_ns[FETCH]
        return (next_ns - now_ns) / NS_PER_S

    def finish(self, within_s: float) -> None:
        """Send all queued results without pauses, until a failure or the time limit."""
        until_ns = self._after_ns(within_s)
        self._problems.clear()
        while not self._problems and self._clock.monotonic_ns() < until_ns and self._next() is not None:
            self._try(BRING, self._bring)

    def _next(self) -> Report | None:
        """Return the next report. It stays the same until the controller responds."""
        if self._report is None:
            rounds, dropped = self._queue.take(BATCH, BATCH_BYTES)
            self.delivered.dropped += dropped
            self._lost += dropped
            if rounds:
                self._make(rounds)
        return self._report

    def _make(self, rounds: tuple[Reported, ...]) -> None:
        self._number += 1
        self._report = Report(self._gateway, self._started_ns, self._number, self._lost, rounds)
        self._lost, self._sent = 0, False

    def _fetch(self) -> None:
        assignment = self._controller.assignment()
        self._due_ns[FETCH] = self._after_ns(self._refresh_s)
        if self._duty.set(assignment):
            log.info("%d targets to probe, network version %s", len(assignment.targets), assignment.version)

    def _bring(self) -> None:
        """Send the current report. It is finished unless this raises."""
        report = self._report
        if report is None:
            return
        before, self._sent = self._sent, True
        try:
            self._controller.take(report)
        except ConflictError as error:
            self._replayed(report, before, error)
        except UnknownError:
            raise
        except RejectedError as error:
            self._refused(report, error)
        else:
            self.delivered.reports += 1
            self.delivered.rounds += len(report.rounds)
            self._report, self._overtaken = None, False
            self._due_ns[BRING] = self._after_ns(GAP_S)

    def _replayed(self, report: Report, before: bool, error: ConflictError) -> None:
        """Drop a report that the controller already has or no longer accepts."""
        self._report = None
        if not before and self._clock_was_set():
            self._start()
            self._lost = report.dropped
            self._make(report.rounds)
            return
        self.delivered.replayed += 1
        if not before and not self._overtaken:
            log.error(
                "reports are refused as repetitions though they are none, and are lost: another agent reports for %s, "
                "or this machine's clock was behind when this one started: %s",
                report.gateway,
                error,
            )
        self._overtaken = not before

    def _start(self) -> None:
        """Start a new numbering of reports, later than all earlier ones."""
        self._started_ns = self._clock.now_ns()
        self._began_ns = self._clock.monotonic_ns()
        self._number = 0

    def _clock_was_set(self) -> bool:
        """Report whether the wall clock jumped ahead since the start, as on a machine without a clock battery."""
        passed_ns = self._clock.monotonic_ns() - self._began_ns
        return self._clock.now_ns() - self._started_ns > passed_ns + SET_NS

    def _refused(self, report: Report, error: RejectedError) -> None:
        """Drop the rejected rounds, or all if the error names none, and send the others."""
        self._due_ns[FETCH] = self._clock.monotonic_ns()  # the targets may have changed
        named = {int(found[1]) for each in (error, *error.also) if (found := NAMED.search(each.where))}
        good = tuple(each for index, each in enumerate(report.rounds) if named and index not in named)
        if len(good) == len(report.rounds):
            good = ()
        bad = len(report.rounds) - len(good)
        self.delivered.refused += bad
        self._lost = report.dropped + bad
        self._report = None
        log.error("%d of %d results are refused and dropped: %s", bad, len(report.rounds), error)
        if good:
            self._make(good)

    def _try(self, what: str, call: Callable[[], None]) -> None:
        try:
            call()
        except SeawayError as error:
            self._failed(what, error)
            return
        if self._problems.pop(what, ""):
            log.warning("%s: works again; %d results wait", what, self.waiting)
        self._failures[what] = 0

    def _failed(self, what: str, error: SeawayError) -> None:
        self._failures[what] += 1
        permanent = isinstance(error, UnauthenticatedError | ForbiddenError | UnknownError)  # an operator has to fix it
        pause = backoff(self._failures[what], MAX_S if permanent else FIRST_S, MAX_S, self._random)
        if isinstance(error, UnavailableError):
            pause = max(pause, error.retry_after_s)
        self._due_ns[what] = self._after_ns(pause)
        if self._problems.get(what) != (trouble := str(error)):
            log.warning("%s: %s; tried again", what, trouble)
            self._problems[what] = trouble

    def _after_ns(self, seconds: float) -> int:
        return self._clock.monotonic_ns() + round(seconds * NS_PER_S)
