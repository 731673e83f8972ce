"""Copies of the state of the scheduling cycle, on which decisions are tried without effect."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from seaway.domain.attempt import Attempt
from seaway.domain.job_record import JobRecord
from seaway.domain.queues import Queue
from seaway.domain.tenancy import Tenant
from seaway.scheduling.allocations import Allocation
from seaway.scheduling.cycle.jobs import Entry
from seaway.scheduling.cycle.state import AdvanceRules, Fleet, State
from seaway.scheduling.queueing.past_durations import PastRuns
from seaway.scheduling.queueing.tree import Key


@dataclass(slots=True)
class FixedClock:
    """A time at which many decisions are made.

    Attributes
    ----------
    wall_ns, elapsed_ns
        Wall-clock and monotonic time, nanoseconds.
    """

    wall_ns: int
    elapsed_ns: int

    def now_ns(self) -> int:
        """Return the wall-clock time, nanoseconds since 1970."""
        return self.wall_ns

    def monotonic_ns(self) -> int:
        """Return the monotonic time, nanoseconds since an arbitrary start."""
        return self.elapsed_ns


class Fork(State):
    """Copy of a state, which changes on its own.

    Making it takes a time that grows with the number of queues and lanes. Jobs, attempts and allocations are shared,
    since they do not change.

    Parameters
    ----------
    state
        The state. The caller holds its lock, if it has one.
    fleet, advance
        Copies of its fleet and of its rules.
    unsent
        Attempts, each with a cluster that has not confirmed its removal.
    """

    def __init__(
        self, state: State, fleet: Fleet, advance: AdvanceRules, unsent: Collection[tuple[str, int, str]]
    ) -> None:
        self.clock = FixedClock(state.clock.now_ns(), state.clock.monotonic_ns())
        self.settings = state.settings
        self.fleet, self.advance = fleet, advance
        self.tree = state.tree.fork()
        self.waiting = state.waiting.fork(self.tree)
        self.jobs, self.attempts, self.assumed = state.jobs.copy(), state.attempts.copy(), state.assumed.copy()
        self.bookings, self.began_ns = state.bookings.copy(), state.began_ns.copy()
        self.started, self.seen_version = state.started, state.seen_version
        self.awaiting_victims, self.moves = state.awaiting_victims.copy(), state.moves.copy()
        self.resizing, self.extended = state.resizing.copy(), state.extended.copy()
        self.resize_after_ns = state.resize_after_ns.copy()
        self._queues: Mapping[str, Queue] = dict(state.queues)
        self._moved = {job_id: state.entry(job) for job_id in state.moves if (job := state.jobs.get(job_id))}
        self._unsent = frozenset(unsent)
        self._learned: dict[Key, PastRuns] = {}
        self._from = state

    def use_queues(self, queues: Iterable[Queue], tenants: Iterable[Tenant]) -> None:
        """Use queues and tenants that the state does not have yet."""
        self._queues = {each.name: each for each in queues}
        self.tree.set_queues(self._queues.values(), tenants)

    @property
    def queues(self) -> Mapping[str, Queue]:
        """The queues, by name."""
        return self._queues

    def entry(self, job: JobRecord) -> Entry:
        """Return a job that an operator moves as it waits, or would wait."""
        return self._moved[job.id]

    def end_move(self, job_id: str) -> None:
        """Record that the move of a job is done."""
        self.moves.pop(job_id, None)

    def ends_soon(self, attempt: Attempt) -> bool:
        """Report whether an attempt is being removed, and all clusters that still have a part of it respond."""
        key, up = (attempt.job_id, attempt.number), self.fleet.up()
        return not attempt.state.live and all(each in up for each in attempt.clusters if (*key, each) in self._unsent)

    def learned_s(self, key: Key) -> int | None:
        """Return the learned duration of an attempt, seconds; None if it is unknown."""
        past = self._learned.get(key)
        return past.expected_s if past else self._from.learned_s(key)

    def shared_rest_ns(self, key: Key, attempt: Attempt) -> int | None:
        """Return the nanoseconds until the expected end of an elastic attempt; None if it is unknown, or for others."""
        return self._from.shared_rest_ns(key, attempt)

    def assume(self, entry: Entry, attempt: Attempt, booking: Allocation) -> None:
        """Record the attempt of a job that starts, and what it is expected to take."""
        super().assume(entry, attempt, booking)
        if entry.past:
            self._learned[entry.next_attempt] = entry.past
