"""Queue of commands for one cluster."""

from __future__ import annotations

from collections.abc import Sequence

from seaway.application.control.reports import Answered
from seaway.application.ports.backend import Answer, Command, Removal
from seaway.application.records import PendingCommand
from seaway.domain.backoff import backoff

TOGETHER = 256
"""Maximum number of commands in flight to one cluster."""

RETRY_NS = 500_000_000
"""Delay before a command that was neither done nor rejected is sent again. It doubles up to `MAX_RETRY_NS`."""

MAX_RETRY_NS = 10_000_000_000

Key = tuple[str, int]
"""Job ID and attempt number."""


def retry_ns(tries: int) -> int:
    """Return the delay after a number of failed tries."""
    return int(backoff(tries, RETRY_NS, MAX_RETRY_NS))


class CommandQueue:
    """Commands for one cluster, only the latest for each attempt.

    A command that `take` returned is in flight until `settle`. No other command for its attempt is sent before that. A
    failed command returns to the queue, unless it was dropped in the meantime.
    """

    def __init__(self) -> None:
        self._waiting: dict[Key, tuple[PendingCommand, Command, int]] = {}
        self._under_way: set[Key] = set()
        self._wanted: dict[Key, PendingCommand] = {}
        self.tries: dict[tuple[str, int, str], tuple[int, str]] = {}

    def __len__(self) -> int:
        return len(self._waiting)

    def emptied(self) -> CommandQueue:
        """Return an empty queue that shares the commands in flight."""
        box = CommandQueue()
        box._under_way = self._under_way  # shared, so that answers apply to both queues
        return box

    def give(self, pending_commands: PendingCommand, command: Command, due_ns: int = 0) -> None:
        """Add a command, due at `due_ns` of the monotonic clock."""
        key = (pending_commands.job_id, pending_commands.attempt)
        self._waiting.pop(key, None)
        self._waiting[key] = (pending_commands, command, due_ns)

    def settle(
        self, sent: Sequence[tuple[PendingCommand, Command]], answers: Sequence[Answer], now_ns: int
    ) -> list[Answered]:
        """Record the answers to commands in flight; return the new ones. Retry commands without a final answer.

        A removal is retried indefinitely, since its objects occupy devices until they are removed.
        """
        news = []
        for (pending_commands, command), answer in zip(sent, answers, strict=True):
            key = (pending_commands.job_id, pending_commands.attempt, pending_commands.cluster)
            self._under_way.discard(key[:2])
            wanted = self._wanted.pop(key[:2], None) is not None
            if answer.done or (answer.refused and not isinstance(command, Removal)):
                self.tries.pop(key, None)
                news.append(Answered(pending_commands, answer))
            elif wanted:
                if answer.underway:
                    news.append(Answered(pending_commands, answer))
                tries = self.tries.get(key, (0, ""))[0] + 1
                self.tries[key] = (tries, answer.reason)
                self._waiting.setdefault(key[:2], (pending_commands, command, now_ns + retry_ns(tries)))
        return news

    def drop(self, pending_commands: PendingCommand) -> None:
        """Remove exactly this command, if it is still queued."""
        key = (pending_commands.job_id, pending_commands.attempt)
        if key in self._waiting and self._waiting[key][0].verb is pending_commands.verb:
            del self._waiting[key]
        if key in self._wanted and self._wanted[key].verb is pending_commands.verb:
            del self._wanted[key]
        self.tries.pop((*key, pending_commands.cluster), None)

    def take(self, now_ns: int) -> list[tuple[PendingCommand, Command]]:
        """Return the due commands, up to the limit of commands in flight."""
        room = TOGETHER - len(self._under_way)
        due: list[tuple[PendingCommand, Command]] = []
        for key, (pending_commands, command, due_ns) in self._waiting.items():
            if len(due) >= room:
                break
            if due_ns <= now_ns and key not in self._under_way:
                due.append((pending_commands, command))
        for pending_commands, _ in due:
            key = (pending_commands.job_id, pending_commands.attempt)
            del self._waiting[key]
            self._under_way.add(key)
            self._wanted[key] = pending_commands
        return due

    def awaits(self, pending_commands: PendingCommand) -> bool:
        """Report whether this command has no answer yet, queued or in flight."""
        key = (pending_commands.job_id, pending_commands.attempt)
        found = self._waiting[key][0] if key in self._waiting else self._wanted.get(key)
        return found == pending_commands and (*key, pending_commands.cluster) not in self.tries

    def next_due_ns(self) -> int | None:
        """Return the time of the next due command; None if it depends on an answer or a new command."""
        if len(self._under_way) >= TOGETHER:
            return None
        return min(
            (due_ns for key, (_, _, due_ns) in self._waiting.items() if key not in self._under_way), default=None
        )
