"""What one cluster is still to be told."""

from __future__ import annotations

from collections.abc import Sequence

from seaway.application.control.reports import Answered
from seaway.application.ports.backend import Answer, Command, Removal
from seaway.application.records import PendingCommand

TOGETHER = 256
"""Commands that one cluster is told at the same time."""

RETRY_NS = 500_000_000
"""Delay before a command that was neither done nor refused is sent again; it doubles up to `MAX_RETRY_NS`."""

MAX_RETRY_NS = 10_000_000_000

Key = tuple[str, int]
"""A job and the number of an attempt."""


def retry_ns(tries: int) -> int:
    """Return the delay after so many tries in vain."""
    return min(RETRY_NS << min(tries - 1, 10), MAX_RETRY_NS)


class CommandQueue:
    """What one cluster is still to be told: of each attempt only the latest.

    What was taken is on its way until it is settled; nothing else is told of its attempt meanwhile. Told in vain, it
    waits again, unless it was dropped: it may be of an attempt that is over.
    """

    def __init__(self) -> None:
        self._waiting: dict[Key, tuple[PendingCommand, Command, int]] = {}
        self._under_way: set[Key] = set()
        self._wanted: dict[Key, PendingCommand] = {}
        self.tries: dict[tuple[str, int, str], tuple[int, str]] = {}

    def __len__(self) -> int:
        return len(self._waiting)

    def emptied(self) -> CommandQueue:
        """Return an outbox with nothing to tell, which knows what is on its way from this one."""
        box = CommandQueue()
        box._under_way = self._under_way  # shared: what is settled there is settled here
        return box

    def give(self, pending_commands: PendingCommand, command: Command, due_ns: int = 0) -> None:
        """Add what is to be told, not before `due_ns` by the monotonic clock."""
        key = (pending_commands.job_id, pending_commands.attempt)
        self._waiting.pop(key, None)
        self._waiting[key] = (pending_commands, command, due_ns)

    def settle(
        self, sent: Sequence[tuple[PendingCommand, Command]], answers: Sequence[Answer], now_ns: int
    ) -> list[Answered]:
        """Take answers to what was taken; return those that are news. What is not answered permanently is told again.

        A removal is never given up: what it is to remove holds devices until it is gone.
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
        """Remove what is to be told, if it is that."""
        key = (pending_commands.job_id, pending_commands.attempt)
        if key in self._waiting and self._waiting[key][0].verb is pending_commands.verb:
            del self._waiting[key]
        if key in self._wanted and self._wanted[key].verb is pending_commands.verb:
            del self._wanted[key]
        self.tries.pop((*key, pending_commands.cluster), None)

    def take(self, now_ns: int) -> list[tuple[PendingCommand, Command]]:
        """Take what is due, as much as may be on its way at the same time."""
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
        """Tell whether nothing was answered yet to what is to be told, be it that others come first."""
        key = (pending_commands.job_id, pending_commands.attempt)
        found = self._waiting[key][0] if key in self._waiting else self._wanted.get(key)
        return found == pending_commands and (*key, pending_commands.cluster) not in self.tries

    def next_due_ns(self) -> int | None:
        """Return when something is due; None when nothing may be told before something is settled or given."""
        if len(self._under_way) >= TOGETHER:
            return None
        return min(
            (due_ns for key, (_, _, due_ns) in self._waiting.items() if key not in self._under_way), default=None
        )
