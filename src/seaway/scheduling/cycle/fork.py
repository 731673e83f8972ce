"""States of the scheduling cycle without clusters: copies, on which decisions are tried, and those of replays."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from seaway.domain.amounts import held_amounts
from seaway.domain.attempt import Attempt
from seaway.domain.job import Job
from seaway.domain.job_record import JobRecord
from seaway.domain.job_spec import JobSpec
from seaway.domain.job_state import AttemptState, JobState
from seaway.domain.node import Node
from seaway.domain.queues import Queue
from seaway.domain.reservations import AdvanceReservation
from seaway.domain.tenancy import Tenant
from seaway.scheduling.allocations import Allocation, allocate
from seaway.scheduling.columns import CLUSTERS_ALLOWED
from seaway.scheduling.cycle.jobs import Entry
from seaway.scheduling.cycle.state import FutureRules, Settings, State
from seaway.scheduling.cycle.waiting import Waiting
from seaway.scheduling.cycle.work import ElasticWork
from seaway.scheduling.queueing.past_durations import PastRuns
from seaway.scheduling.queueing.tree import Key
from seaway.scheduling.snapshot.snapshot import Snapshot
from seaway.scheduling.snapshot.update import put_node


@dataclass(slots=True)
class SetClock:
    """A clock that stands still until it is set.

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

    def advance(self, by_ns: int) -> None:
        """Let time pass."""
        self.wall_ns += by_ns
        self.elapsed_ns += by_ns


@dataclass(slots=True)
class FleetCopy:
    """Copy of a fleet, which changes on its own.

    Attributes
    ----------
    held
        Attempts that held something when it was made, with their allocations.
    names
        Clusters that answer.
    awaits
        Whether a cluster has not reported since the start, and is not lost.
    """

    snapshot: Snapshot
    version: int
    held: Mapping[Key, tuple[Attempt, Job, Allocation]]
    names: frozenset[str]
    awaits: bool = False
    _cordoned: dict[tuple[str, str], tuple[int, Node | None]] = field(default_factory=dict)
    _own: dict[Key, Allocation | None] = field(default_factory=dict)  # of attempts that changed in the copy

    def booking(self, key: Key) -> Allocation | None:
        """Return the allocation of an attempt."""
        if key in self._own:
            return self._own[key]
        held = self.held.get(key)
        return held[2] if held else None

    def hold(self, key: Key, booking: Allocation) -> None:
        """Note the allocation of an attempt that starts."""
        self._own[key] = booking

    def resize(self, attempt: Attempt, booking: Allocation | None = None) -> None:
        """Set the allocation of an attempt with other replicas than before; `booking` of new ones is released."""
        key, job = (attempt.job_id, attempt.number), attempt.spec.job(attempt.job_id)
        for each in filter(None, (self.booking(key), booking)):
            each.copy().release(self.snapshot)
        self._own[key] = allocate(self.snapshot, job, attempt.placements)

    def give_back(self, key: Key) -> None:
        """Release what an attempt holds."""
        if booking := self.booking(key):
            booking.copy().release(self.snapshot)  # others share it
        self._own[key] = None
        self.version += 1

    def reopen(self, now_ns: int) -> None:
        """Open the clusters and nodes whose cordon has ended at a time, nanoseconds since 1970."""
        for (cluster, name), (at_ns, node) in list(self._cordoned.items()):
            if at_ns > now_ns:
                continue
            del self._cordoned[cluster, name]
            if node:
                put_node(self.snapshot, cluster, node)
            elif not name and cluster in self.names:
                self.snapshot.arrays.clusters_open[CLUSTERS_ALLOWED, self.snapshot.cluster_index(cluster)] = 1
            self.version += 1

    def up(self) -> frozenset[str]:
        """Return the names of the clusters that answer."""
        return self.names

    def awaits_reports(self) -> bool:
        """Report whether a cluster has not reported since the start, and is not lost."""
        return self.awaits


class NoAdvance:
    """No advance reservations."""

    times_ns: Sequence[int] = ()

    def narrow(self, job: Job, spec: JobSpec) -> Job:  # see `FutureRules`
        """Return a job as it is."""
        return job

    def closed_to(self, spec: JobSpec) -> Iterator[AdvanceReservation]:  # see `FutureRules`
        """Yield nothing."""
        return iter(())

    def at(self, now_ns: int) -> FutureRules:  # see `FutureRules`
        """Return the same rules."""
        return self


class Rehearsal(State):
    """State in which all that is decided happens at once, without clusters. At first, no job waits or runs.

    Parameters
    ----------
    waiting
        Waiting jobs over the tree of queues.
    queues
        The queues, by name.
    """

    clock: SetClock
    fleet: FleetCopy
    advance: FutureRules

    def __init__(
        self, clock: SetClock, settings: Settings, fleet: FleetCopy, waiting: Waiting, queues: Mapping[str, Queue]
    ) -> None:
        self.clock, self.settings, self.fleet, self.advance = clock, settings, fleet, NoAdvance()
        self.waiting, self.tree = waiting, waiting.tree
        self.jobs, self.attempts, self.assumed, self.bookings, self.began_ns = {}, {}, {}, {}, {}
        self.started, self.seen_version = 0, -1
        self.awaiting_victims, self.moves = set(), {}
        self.resizing, self.extended, self.resize_after_ns, self.changed = {}, {}, {}, set()
        self.work = ElasticWork(clock.monotonic_ns)
        self._queues = queues
        self._learned: dict[Key, PastRuns] = {}

    @property
    def queues(self) -> Mapping[str, Queue]:
        """The queues, by name."""
        return self._queues

    def use_queues(self, queues: Iterable[Queue], tenants: Iterable[Tenant]) -> None:
        """Use queues and tenants that the state does not have yet."""
        self._queues = {each.name: each for each in queues}
        self.tree.set_queues(self._queues.values(), tenants)

    def entry(self, job: JobRecord) -> Entry:
        """Return a job that an operator moves. There is none."""
        raise KeyError(job.id)

    def end_move(self, job_id: str) -> None:
        """Record that the move of a job is done."""
        self.moves.pop(job_id, None)

    def ends_soon(self, attempt: Attempt) -> bool:  # see `State`
        """Report that no attempt is being removed."""
        return False

    def learned_s(self, key: Key) -> int | None:
        """Return the learned duration of an attempt, seconds; None if it is unknown."""
        past = self._learned.get(key)
        return past.expected_s if past else None

    def assume(self, entry: Entry, attempt: Attempt, booking: Allocation) -> None:
        """Record the attempt of a job that starts, and what it is expected to take."""
        super().assume(entry, attempt, booking)
        if entry.past:
            self._learned[entry.next_attempt] = entry.past

    def pass_time(self, by_ns: int) -> None:
        """Let time pass. Attempts neither begin nor end by themselves."""
        before_ns = self.clock.now_ns()
        self.clock.advance(by_ns)
        self.advance = self.advance.at(self.clock.now_ns())
        self.fleet.reopen(self.clock.now_ns())
        if any(before_ns < at_ns <= self.clock.now_ns() for at_ns in self.advance.times_ns):
            self.fleet.version += 1  # more jobs may fit

    def submit(self, record: JobRecord, entry: Entry) -> None:
        """Add a job that waits, or let a known one wait again."""
        self.jobs[record.id] = record
        self.waiting.put(entry)

    def run(self, attempt: Attempt) -> None:
        """Hold what an assumed attempt got, as if it were stored."""
        key = attempt.job_id, attempt.number
        del self.assumed[key]
        self.attempts[key] = attempt
        self.fleet.hold(key, self.bookings.pop(key))
        self.jobs[key[0]] = replace(self.jobs[key[0]], state=JobState.SCHEDULED, attempt=attempt.number)
        self.note_size(key[0])

    def begin(self, key: Key) -> None:
        """Let an attempt run from now on."""
        self.attempts[key] = attempt = replace(
            self.attempts[key], state=AttemptState.RUNNING, running_ns=self.clock.now_ns()
        )
        self.began_ns[key] = self.clock.monotonic_ns()
        self.work.note(key, attempt, self.began_ns[key])
        self.jobs[key[0]] = replace(self.jobs[key[0]], state=JobState.RUNNING)
        self.changed.add(key)

    def end(self, key: Key) -> Attempt:
        """End an attempt, and release all that it holds."""
        attempt = self.attempts.pop(key)
        self.work.drop(key)
        self.fleet.give_back(key)
        self.tree.release(key)
        self.began_ns.pop(key, None)
        self.changed.add(key)
        self.note_size(key[0])
        return attempt

    def resize(self, attempt: Attempt) -> None:
        """Set the replicas of a running attempt. Those that are leaving are gone."""
        key = attempt.job_id, attempt.number
        amounts = held_amounts(attempt.spec.demand, attempt.remaining, self.fleet.snapshot.device)
        shrinks = len(attempt.remaining) < len(self.attempts[key].placements)
        self.attempts[key] = now = replace(attempt, placements=attempt.remaining, amounts=amounts)
        self.fleet.resize(now, self.bookings.pop(key, None))
        self.hold(now)
        self.work.note(key, now, self.began_ns.get(key))
        if shrinks:
            self.fleet.version += 1
            self.tree.note_fall(self.owner(now))
        self.note_size(key[0])


class Fork(Rehearsal):
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
        self, state: State, fleet: FleetCopy, advance: FutureRules, unsent: Collection[tuple[str, int, str]]
    ) -> None:
        clock = SetClock(state.clock.now_ns(), state.clock.monotonic_ns())
        waiting = state.waiting.fork(state.tree.fork())
        super().__init__(clock, state.settings, fleet, waiting, dict(state.queues))
        self.advance = advance
        self.jobs, self.attempts, self.assumed = state.jobs.copy(), state.attempts.copy(), state.assumed.copy()
        self.bookings, self.began_ns = state.bookings.copy(), state.began_ns.copy()
        self.started, self.seen_version = state.started, state.seen_version
        self.awaiting_victims, self.moves = state.awaiting_victims.copy(), state.moves.copy()
        self.resizing, self.extended = state.resizing.copy(), state.extended.copy()
        self.resize_after_ns, self.changed = state.resize_after_ns.copy(), state.changed.copy()
        self.work = state.work.fork(clock.monotonic_ns)
        self._moved = {job_id: state.entry(job) for job_id in state.moves if (job := state.jobs.get(job_id))}
        self._unsent = frozenset(unsent)
        self._from = state

    def entry(self, job: JobRecord) -> Entry:
        """Return a job that an operator moves as it waits, or would wait."""
        return self._moved[job.id]

    def ends_soon(self, attempt: Attempt) -> bool:
        """Report whether an attempt is being removed, and all clusters that still have a part of it respond."""
        key, up = (attempt.job_id, attempt.number), self.fleet.up()
        return not attempt.state.live and all(each in up for each in attempt.clusters if (*key, each) in self._unsent)

    def learned_s(self, key: Key) -> int | None:
        """Return the learned duration of an attempt, seconds; None if it is unknown."""
        return super().learned_s(key) if key in self._learned else self._from.learned_s(key)
