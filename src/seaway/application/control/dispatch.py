"""Telling clusters what to do, and hearing from them: what the loop needs, and one that does it in place."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from seaway.application.ports.backend import Answer, Backend, Changes, Command, Removal
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
        """Have a cluster told something, in place of what it has not been told of the same attempt.

        What is for a cluster that nobody talks to may be forgotten: it is given again when the cluster joins.
        """

    def drop(self, outgoing: Outgoing) -> None:
        """Do not tell a cluster something any more, if it has not been told yet."""

    def forget(self) -> None:
        """Drop everything that is still to be told."""

    def collect(self) -> list[Report]:
        """Return what came in since the last call."""

    def delays(self) -> dict[tuple[str, int, str], str]:
        """Return what has been tried in vain so far, by job, attempt and cluster, with the last reason."""

    def stop(self) -> None:
        """Talk to no cluster any more, whatever comes."""


class Outbox:
    """What one cluster is still to be told: of each attempt only the latest.

    What was taken is on its way until it is settled, or given back because it was told in vain. What was
    dropped while it was on its way is not given back: it may be of an attempt that is over.
    """

    def __init__(self) -> None:
        self._waiting: dict[tuple[str, int], tuple[Outgoing, Command, int]] = {}
        self._under_way: dict[tuple[str, int], Outgoing] = {}
        self.tries: dict[tuple[str, int, str], tuple[int, str]] = {}

    def __len__(self) -> int:
        return len(self._waiting)

    def give(self, outgoing: Outgoing, command: Command, due_ns: int = 0) -> None:
        """Add what is to be told, not before `due_ns` by the monotonic clock."""
        key = (outgoing.job_id, outgoing.attempt)
        self._waiting.pop(key, None)
        self._waiting[key] = (outgoing, command, due_ns)

    def settle(
        self, told: Sequence[tuple[Outgoing, Command]], answers: Sequence[Answer], now_ns: int
    ) -> list[Answered]:
        """Take answers to what was taken; return those that are for good, the rest is told again after a delay.

        A removal is never given up: what it is to remove holds devices until it is gone.
        """
        for_good = []
        for (outgoing, command), answer in zip(told, answers, strict=True):
            key = (outgoing.job_id, outgoing.attempt, outgoing.cluster)
            if answer.done or (answer.refused and not isinstance(command, Removal)):
                self._under_way.pop(key[:2], None)
                self.tries.pop(key, None)
                for_good.append(Answered(outgoing, answer))
            elif self._under_way.pop(key[:2], None) is not None:
                tries = self.tries.get(key, (0, ""))[0] + 1
                self.tries[key] = (tries, answer.reason)
                self._waiting.setdefault(key[:2], (outgoing, command, now_ns + retry_ns(tries)))
        return for_good

    def drop(self, outgoing: Outgoing) -> None:
        """Remove what is to be told, if it is that."""
        key = (outgoing.job_id, outgoing.attempt)
        if key in self._waiting and self._waiting[key][0].verb is outgoing.verb:
            del self._waiting[key]
        if key in self._under_way and self._under_way[key].verb is outgoing.verb:
            del self._under_way[key]
        self.tries.pop((*key, outgoing.cluster), None)

    def take(self, now_ns: int) -> list[tuple[Outgoing, Command]]:
        """Take what is due."""
        due = []
        for key, (outgoing, command, due_ns) in self._waiting.items():
            if due_ns <= now_ns:
                due.append((key, outgoing, command))
                if len(due) >= TOGETHER:
                    break
        for key, outgoing, _ in due:
            del self._waiting[key]
            self._under_way[key] = outgoing
        return [(outgoing, command) for _, outgoing, command in due]

    def next_due_ns(self) -> int | None:
        """Return when something is due; None when nothing is to be told."""
        return min((due_ns for _, _, due_ns in self._waiting.values()), default=None)


RETRY_NS = 500_000_000
"""Delay before a command that was neither done nor refused is sent again; it doubles up to `MOST_RETRY_NS`."""

MOST_RETRY_NS = 10_000_000_000


def retry_ns(tries: int) -> int:
    """Return the delay after so many tries in vain."""
    return min(RETRY_NS << min(tries - 1, 10), MOST_RETRY_NS)


class InPlace:
    """Talks to clusters when reports are asked for, one after the other: for a virtual clock and for tests."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._backends: dict[str, Backend] = {}
        self._outboxes: dict[str, Outbox] = {}
        self._cursors: dict[str, str] = {}
        self._stopped = False

    def use(self, backends: Sequence[Backend]) -> None:
        """See `Dispatcher`."""
        if self._stopped:
            return
        self._backends = {backend.cluster: backend for backend in backends}
        self._cursors = {name: cursor for name, cursor in self._cursors.items() if name in self._backends}

    def stop(self) -> None:
        """See `Dispatcher`."""
        self._stopped = True
        self._backends = {}

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
        return {key: reason for box in self._outboxes.values() for key, (_, reason) in box.tries.items()}

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

    def _tell(self, backend: Backend, outbox: Outbox | None) -> Sequence[Report]:
        now_ns = self._clock.monotonic_ns()
        due = outbox.take(now_ns) if outbox else []
        if outbox is None or not due:
            return []
        try:
            answers = backend.send([command for _, command in due])
        except UnavailableError as error:
            answers = [Answer(done=False, reason=str(error))] * len(due)
        return outbox.settle(due, answers, now_ns)
