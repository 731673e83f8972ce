"""Communication with clusters, two threads per cluster, so that a slow cluster does not delay others."""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from functools import partial
from random import Random

from seaway.application.control.command_queue import CommandQueue
from seaway.application.control.reports import Answered, Observation, Report, Unreachable, retained, retry_after
from seaway.application.ports.backend import Answer, Answers, Backend, Command
from seaway.application.ports.clock import Clock
from seaway.application.records import PendingCommand
from seaway.domain.backoff import backoff
from seaway.domain.errors import InvariantError, UnavailableError
from seaway.domain.reasons import reason_of

log = logging.getLogger(__name__)

WATCH_S = 5.0
"""Maximum time that a cluster may wait for a change before it responds, seconds."""

WATCHES = 3
"""Minimum number of responses of an idle cluster within the time after which it counts as unreachable."""

GATHER_S = 0.03
"""Pause after each exchange, which collects further commands or changes, seconds."""

MAX_UNREAD = 32
"""Maximum number of unread reports of a cluster, for example while the database does not respond."""

MIN_PAUSE_S = 0.2
MAX_PAUSE_S = 5.0


class Threads:
    """Two threads per cluster: one sends commands, one receives changes.

    Parameters
    ----------
    clock
        Clock for delays.
    random
        Jitter of delays, so that clusters that failed together are not retried together.
    stale_after_s
        Seconds without a response after which a cluster counts as unreachable. Idle clusters have to respond well
        before that.
    """

    def __init__(self, clock: Clock, random: Random, stale_after_s: float = WATCH_S * WATCHES) -> None:
        self._clock = clock
        self._random = random
        self._watch_s = min(WATCH_S, stale_after_s / WATCHES)
        self._stopping = threading.Event()
        self._using = threading.Lock()
        self._lines: dict[str, _Connection] = {}
        self._reports: deque[Report] = deque()
        self.on_report: Callable[[], None] = lambda: None

    def use(self, backends: Sequence[Backend]) -> None:
        """See `Dispatcher`."""
        there = {backend.cluster: backend for backend in backends}
        with self._using:
            if self._stopping.is_set():
                return
            for name, line in list(self._lines.items()):
                if there.get(name) != line.backend:
                    self._lines.pop(name).stop()
            for backend in backends:
                if backend.cluster not in self._lines:
                    line = _Connection(backend, self._clock, self._random, self._report, self._watch_s)
                    self._lines[backend.cluster] = line

    def give(self, pending_commands: PendingCommand, command: Command, due_ns: int = 0) -> None:
        """See `Dispatcher`."""
        if pending_commands.cluster in self._lines:
            self._lines[pending_commands.cluster].give(pending_commands, command, due_ns)

    def drop(self, pending_commands: PendingCommand) -> None:
        """See `Dispatcher`."""
        if pending_commands.cluster in self._lines:
            self._lines[pending_commands.cluster].drop(pending_commands)

    def forget(self) -> None:
        """See `Dispatcher`."""
        for line in self._lines.values():
            line.forget()
        self._reports.clear()
        for line in self._lines.values():
            line.was_read()

    def collect(self) -> list[Report]:
        """See `Dispatcher`."""
        reports = []
        while self._reports:
            reports.append(self._reports.popleft())
        for name in {each.cluster for each in reports if not isinstance(each, Answered)}:
            if line := self._lines.get(name):
                line.was_read()
        return reports

    def delays(self) -> dict[tuple[str, int, str], str]:
        """See `Dispatcher`."""
        return {key: reason for line in list(self._lines.values()) for key, (_, reason) in line.delays().items()}

    def awaits(self, pending_commands: PendingCommand) -> bool:
        """See `Dispatcher`."""
        return pending_commands.cluster in self._lines and self._lines[pending_commands.cluster].awaits(
            pending_commands
        )

    def stop(self) -> None:
        """Stop all threads. Unsent commands stay in the store.

        A thread that waits for a cluster ends after the response and drops it. The caller does not wait for these
        threads.
        """
        with self._using:
            self._stopping.set()
            for line in self._lines.values():
                line.stop()

    def _report(self, reports: Sequence[Report]) -> None:
        self._reports.extend(reports)
        self.on_report()


_Sent = tuple[PendingCommand, Command]


class _Connection:
    """Connection to one cluster: a sending and a receiving thread."""

    def __init__(
        self,
        backend: Backend,
        clock: Clock,
        random: Random,
        report: Callable[[Sequence[Report]], None],
        watch_s: float,
    ) -> None:
        self.backend = backend
        self._clock = clock
        self._random = random
        self._report = report
        self._watch_s = watch_s
        self._command_queue = CommandQueue()
        self._some = threading.Condition()
        self._stopping = threading.Event()
        self._cursor = ""
        self._round = 0
        self._unread = 0
        self._read = threading.Event()
        self._threads = [
            threading.Thread(target=self._send_commands, name=f"tell {backend.cluster}", daemon=True),
            threading.Thread(target=self._listen, name=f"listen {backend.cluster}", daemon=True),
        ]
        for thread in self._threads:
            thread.start()

    def give(self, pending_commands: PendingCommand, command: Command, due_ns: int) -> None:
        with self._some:
            self._command_queue.give(pending_commands, command, due_ns)
            self._some.notify()

    def drop(self, pending_commands: PendingCommand) -> None:
        with self._some:
            self._command_queue.drop(pending_commands)

    def forget(self) -> None:
        """Drop all queued commands, and request a complete listing."""
        with self._some:
            self._command_queue = self._command_queue.emptied()
            self._cursor = ""
            self._round += 1

    def was_read(self) -> None:
        """Continue to receive after the last changes were processed or dropped."""
        with self._some:
            self._unread = 0
            self._read.set()

    def delays(self) -> dict[tuple[str, int, str], tuple[int, str]]:
        with self._some:
            return dict(self._command_queue.tries)

    def awaits(self, pending_commands: PendingCommand) -> bool:
        with self._some:
            return self._command_queue.awaits(pending_commands)

    def stop(self) -> None:
        self._stopping.set()
        self._read.set()
        with self._some:
            self._some.notify_all()

    # Sending.

    def _send_commands(self) -> None:
        failures = 0
        while not self._stopping.is_set():
            command_queue, due = self._await_due()
            if not due or self._stopping.is_set():
                continue
            try:
                answers = self.backend.send([command for _, command in due])
                if len(answers) != len(due):
                    raise InvariantError(f"{len(answers)} answers to {len(due)} commands")
            except Exception as error:  # noqa: BLE001  # `retry_after` logs what is not expected
                failures += 1
                self._settle(command_queue, due, [retry_after(error, self.backend.cluster)] * len(due))
                self._stopping.wait(self._pause_s(failures))
            else:
                failures = 0
                self._take_in(command_queue, due, answers)
                self._stopping.wait(GATHER_S)

    def _await_due(self) -> tuple[CommandQueue, list[_Sent]]:
        """Wait until a command is due; return the queue and the due commands."""
        with self._some:
            if self._stopping.is_set():
                return self._command_queue, []
            due_ns = self._command_queue.next_due_ns()
            now_ns = self._clock.monotonic_ns()
            if due_ns is None or due_ns > now_ns:
                self._some.wait(None if due_ns is None else (due_ns - now_ns) / 1e9)
            return self._command_queue, self._command_queue.take(self._clock.monotonic_ns())

    def _take_in(self, command_queue: CommandQueue, due: Sequence[_Sent], answers: Answers) -> None:
        """Process the available answers now, and the others when they arrive."""
        at_once = [(sent, each) for sent, each in zip(due, answers, strict=True) if isinstance(each, Answer)]
        self._settle(command_queue, [sent for sent, _ in at_once], [answer for _, answer in at_once])
        for sent, each in zip(due, answers, strict=True):
            if isinstance(each, Future):
                each.add_done_callback(partial(self._answered, command_queue, sent))

    def _answered(self, command_queue: CommandQueue, sent: _Sent, future: Future[Answer]) -> None:
        self._settle(command_queue, [sent], [retained(future, self.backend.cluster)])

    def _settle(self, command_queue: CommandQueue, due: Sequence[_Sent], answers: Sequence[Answer]) -> None:
        with self._some:
            news = command_queue.settle(due, answers, self._clock.monotonic_ns())
            self._some.notify()
        if news:
            self._publish(news)

    def _publish(self, reports: Sequence[Report]) -> None:
        if not self._stopping.is_set():
            self._report(reports)

    # Receiving.

    def _listen(self) -> None:
        failures = 0
        while not self._stopping.is_set():
            if self._unread >= MAX_UNREAD:  # later changes are combined into one report
                self._read.wait()
                continue
            asked_ns = self._clock.monotonic_ns()
            with self._some:
                cursor, this_round = self._cursor, self._round
            try:
                changes = self.backend.changes(cursor, self._watch_s)
            except UnavailableError as error:
                failures += 1
                self._publish_report(Unreachable(self.backend.cluster, reason_of(error)))
                self._stopping.wait(self._pause_s(failures))
                continue
            except Exception:
                failures += 1
                log.exception("receiving changes of %s failed", self.backend.cluster)
                self._stopping.wait(self._pause_s(failures))
                continue
            failures = 0
            with self._some:
                if this_round != self._round:
                    continue  # everything is requested again
                self._cursor = changes.cursor
            self._publish_report(Observation(self.backend.cluster, changes, asked_ns))
            self._stopping.wait(GATHER_S)

    def _publish_report(self, report: Report) -> None:
        """Publish a report, and count it as unread."""
        with self._some:
            self._unread += 1
            if self._unread >= MAX_UNREAD:
                self._read.clear()
        self._publish([report])

    def _pause_s(self, failures: int) -> float:
        """Return the pause after a number of failures in seconds: exponential, with jitter of up to half."""
        return backoff(failures, MIN_PAUSE_S, MAX_PAUSE_S, self._random)
