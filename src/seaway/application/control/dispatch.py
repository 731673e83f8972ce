"""Interface that sends commands to clusters and collects reports, and a synchronous implementation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from seaway.application.control.command_queue import CommandQueue
from seaway.application.control.reports import Observation, Report, Unreachable, retained, retry_after
from seaway.application.ports.backend import Backend, Command
from seaway.application.ports.clock import Clock
from seaway.application.records import PendingCommand
from seaway.domain.errors import UnavailableError
from seaway.domain.reasons import reason_of


class Dispatcher(Protocol):
    """Delivery of commands to clusters until a final answer, and collection of reports."""

    def use(self, backends: Sequence[Backend]) -> None:
        """Connect to these clusters from now on.

        A backend replaces a connected one of the same name, for example with another kubeconfig. It is queried from the
        start and needs its commands again.
        """

    def give(self, pending_commands: PendingCommand, command: Command, due_ns: int = 0) -> None:
        """Queue a command, due at `due_ns` of the monotonic clock; replace an unsent command of the same attempt.

        Commands for disconnected clusters may be dropped. They are queued again when the cluster joins.
        """

    def drop(self, pending_commands: PendingCommand) -> None:
        """Cancel a command that was not sent yet."""

    def forget(self) -> None:
        """Cancel all commands."""

    def collect(self) -> list[Report]:
        """Return the reports since the last call."""

    def delays(self) -> dict[tuple[str, int, str], str]:
        """Return the failed commands, by job, attempt and cluster, with the last reason."""

    def awaits(self, pending_commands: PendingCommand) -> bool:
        """Report whether a command has no answer yet, queued or in flight."""

    def stop(self) -> None:
        """Stop all communication with clusters."""


class InPlace:
    """Synchronous dispatcher for virtual clocks and tests. `collect` contacts the clusters one by one."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._backends: dict[str, Backend] = {}
        self._outboxes: dict[str, CommandQueue] = {}
        self._cursors: dict[str, str] = {}
        self._stopped = False

    def use(self, backends: Sequence[Backend]) -> None:
        """See `Dispatcher`."""
        if self._stopped:
            return
        before, self._backends = self._backends, {backend.cluster: backend for backend in backends}
        same = {name for name, backend in self._backends.items() if before.get(name) == backend}
        self._cursors = {name: cursor for name, cursor in self._cursors.items() if name in same}

    def stop(self) -> None:
        """See `Dispatcher`."""
        self._stopped = True
        self._backends = {}

    def give(self, pending_commands: PendingCommand, command: Command, due_ns: int = 0) -> None:
        """See `Dispatcher`."""
        self._outboxes.setdefault(pending_commands.cluster, CommandQueue()).give(pending_commands, command, due_ns)

    def drop(self, pending_commands: PendingCommand) -> None:
        """See `Dispatcher`."""
        if pending_commands.cluster in self._outboxes:
            self._outboxes[pending_commands.cluster].drop(pending_commands)

    def forget(self) -> None:
        """See `Dispatcher`."""
        self._outboxes.clear()
        self._cursors.clear()

    def delays(self) -> dict[tuple[str, int, str], str]:
        """See `Dispatcher`."""
        return {key: reason for box in self._outboxes.values() for key, (_, reason) in box.tries.items()}

    def awaits(self, pending_commands: PendingCommand) -> bool:
        """See `Dispatcher`."""
        return pending_commands.cluster in self._outboxes and self._outboxes[pending_commands.cluster].awaits(
            pending_commands
        )

    def collect(self) -> list[Report]:
        """See `Dispatcher`."""
        reports: list[Report] = []
        for name, backend in self._backends.items():
            try:
                reports += self._send_commands(backend, self._outboxes.get(name))
                asked_ns = self._clock.monotonic_ns()
                changes = backend.changes(self._cursors.get(name, ""), 0)
            except UnavailableError as error:
                reports.append(Unreachable(name, reason_of(error)))
                continue
            self._cursors[name] = changes.cursor
            reports.append(Observation(name, changes, asked_ns))
        return reports

    def _send_commands(self, backend: Backend, command_queue: CommandQueue | None) -> Sequence[Report]:
        now_ns = self._clock.monotonic_ns()
        due = command_queue.take(now_ns) if command_queue else []
        if command_queue is None or not due:
            return []
        try:
            sent = backend.send([command for _, command in due])
        except UnavailableError as error:
            sent = [retry_after(error, backend.cluster)] * len(due)
        return command_queue.settle(due, [retained(each, backend.cluster) for each in sent], now_ns)
