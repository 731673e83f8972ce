"""Telling clusters what to do, and hearing from them: what the loop needs, and one that does it in place."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from seaway.application.ports.backend import Answer, Backend, Changes, Command
from seaway.application.ports.clock import Clock
from seaway.application.records import Outgoing
from seaway.domain.errors import UnavailableError

TOGETHER = 256
"""Commands that one cluster is sent at once."""


@dataclass(frozen=True, slots=True)
class Answered:
    """A cluster's answer to a command."""

    outgoing: Outgoing
    answer: Answer


@dataclass(frozen=True, slots=True)
class Heard:
    """A cluster told what changed.

    Attributes
    ----------
    asked_ns
        When it was asked, by the monotonic clock: it cannot know of what was sent later.
    """

    cluster: str
    changes: Changes
    asked_ns: int


@dataclass(frozen=True, slots=True)
class Silent:
    """A cluster did not answer."""

    cluster: str
    reason: str


Report = Answered | Heard | Silent


class Dispatcher(Protocol):
    """Carries commands to clusters, each until it is answered for good, and brings reports."""

    def use(self, backends: Sequence[Backend]) -> None:
        """Talk to these clusters from now on."""

    def give(self, outgoing: Outgoing, command: Command) -> None:
        """Have a cluster told something, in place of what it has not been told of the same attempt."""

    def drop(self, outgoing: Outgoing) -> None:
        """Do not tell a cluster something any more, if it has not been told yet."""

    def forget(self) -> None:
        """Drop everything that is still to be told."""

    def collect(self) -> list[Report]:
        """Return what came in since the last call."""

    def delays(self) -> dict[tuple[str, int, str], str]:
        """Return what has been tried in vain so far, by job, attempt and cluster, with the last reason."""


class Outbox:
    """What one cluster is still to be told: of each attempt only the latest."""

    def __init__(self) -> None:
        self._waiting: dict[tuple[str, int], tuple[Outgoing, Command, int]] = {}

    def __len__(self) -> int:
        return len(self._waiting)

    def give(self, outgoing: Outgoing, command: Command, due_ns: int = 0) -> None:
        """Add what is to be told, not before `due_ns` by the monotonic clock."""
        key = (outgoing.job_id, outgoing.attempt)
        self._waiting.pop(key, None)
        self._waiting[key] = (outgoing, command, due_ns)

    def give_back(self, outgoing: Outgoing, command: Command, due_ns: int) -> None:
        """Add what was told in vain, unless something newer is to be told of the same attempt."""
        if (outgoing.job_id, outgoing.attempt) not in self._waiting:
            self.give(outgoing, command, due_ns)

    def drop(self, outgoing: Outgoing) -> None:
        """Remove what is to be told, if it is that."""
        key = (outgoing.job_id, outgoing.attempt)
        if key in self._waiting and self._waiting[key][0].verb is outgoing.verb:
            del self._waiting[key]

    def take(self, now_ns: int) -> list[tuple[Outgoing, Command]]:
        """Take what is due."""
        due = []
        for key, (outgoing, command, due_ns) in self._waiting.items():
            if due_ns <= now_ns:
                due.append((key, outgoing, command))
                if len(due) >= TOGETHER:
                    break
        for key, _, _ in due:
            del self._waiting[key]
        return [(outgoing, command) for _, outgoing, command in due]

    def take_all(self) -> list[tuple[Outgoing, Command]]:
        """Take everything, due or not."""
        taken = [(outgoing, command) for outgoing, command, _ in self._waiting.values()]
        self._waiting.clear()
        return taken

    def next_due_ns(self) -> int | None:
        """Return when something is due; None when nothing is to be told."""
        return min((due_ns for _, _, due_ns in self._waiting.values()), default=None)


RETRY_NS = 500_000_000
"""Delay before a command that was neither done nor refused is sent again; it doubles up to `MOST_RETRY_NS`."""

MOST_RETRY_NS = 10_000_000_000


def retry_ns(tries: int) -> int:
    """Return the delay after so many tries in vain."""
    return min(RETRY_NS << min(tries, 10), MOST_RETRY_NS)


class InPlace:
    """Talks to clusters when reports are asked for, one after the other: for a virtual clock and for tests."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._backends: dict[str, Backend] = {}
        self._outboxes: dict[str, Outbox] = {}
        self._cursors: dict[str, str] = {}
        self._tries: dict[tuple[str, int, str], tuple[int, str]] = {}

    def use(self, backends: Sequence[Backend]) -> None:
        """See `Dispatcher`."""
        self._backends = {backend.cluster: backend for backend in backends}

    def give(self, outgoing: Outgoing, command: Command) -> None:
        """See `Dispatcher`."""
        self._outboxes.setdefault(outgoing.cluster, Outbox()).give(outgoing, command)

    def drop(self, outgoing: Outgoing) -> None:
        """See `Dispatcher`."""
        if outgoing.cluster in self._outboxes:
            self._outboxes[outgoing.cluster].drop(outgoing)

    def forget(self) -> None:
        """See `Dispatcher`."""
        self._outboxes.clear()
        self._cursors.clear()

    def delays(self) -> dict[tuple[str, int, str], str]:
        """See `Dispatcher`."""
        return {key: reason for key, (_, reason) in self._tries.items()}

    def collect(self) -> list[Report]:
        """See `Dispatcher`."""
        reports: list[Report] = []
        for name, backend in self._backends.items():
            try:
                reports += self._tell(backend, self._outboxes.get(name))
                asked_ns = self._clock.monotonic_ns()
                changes = backend.changes(self._cursors.get(name, ""), 0)
            except UnavailableError as error:
                reports.append(Silent(name, str(error)))
                continue
            self._cursors[name] = changes.cursor
            reports.append(Heard(name, changes, asked_ns))
        return reports

    def _tell(self, backend: Backend, outbox: Outbox | None) -> list[Report]:
        now_ns = self._clock.monotonic_ns()
        due = outbox.take(now_ns) if outbox else []
        if outbox is None or not due:
            return []
        try:
            answers = backend.send([command for _, command in due])
        except UnavailableError as error:
            answers = [Answer(done=False, reason=str(error))] * len(due)
        reports: list[Report] = []
        for (outgoing, command), answer in zip(due, answers, strict=True):
            key = (outgoing.job_id, outgoing.attempt, outgoing.cluster)
            if answer.done or answer.refused:
                self._tries.pop(key, None)
                reports.append(Answered(outgoing, answer))
                continue
            tries = self._tries.get(key, (0, ""))[0] + 1
            self._tries[key] = (tries, answer.reason)
            outbox.give_back(outgoing, command, now_ns + retry_ns(tries))
        return reports
