"""Reservations for the first jobs of queues, and for jobs for which others make room.

The earliest possible placement is computed from the expected ends of running jobs, and the free capacity there is
reserved. Other jobs can use the rest, and jobs that end in time can use all of it. If the ends of the running jobs are
unknown, the reservation alternates with a pause of the same length, so that it does not block other jobs forever. Jobs
without an end are not considered.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass, replace
from itertools import chain

from seaway.domain.amounts import (
    CPU,
    GPU_CORES,
    GPUS,
    MEMORY,
    NO_AMOUNTS,
    Amounts,
    held_amounts,
    requested_amounts,
    total_of,
)
from seaway.domain.job import Job
from seaway.domain.placement import Placement
from seaway.domain.queues import Backfill
from seaway.scheduling.allocations import Allocation, allocate, allocations_of, join
from seaway.scheduling.columns import CLUSTERS_ALLOWED, NODE_CLUSTER, NODE_OPEN, SLICE_MIG, SLICE_START
from seaway.scheduling.cycle.jobs import Entry, Kind
from seaway.scheduling.cycle.shares import ModelShares
from seaway.scheduling.cycle.state import State
from seaway.scheduling.engine import decide
from seaway.scheduling.job_queue import JobQueue
from seaway.scheduling.kernels.queries import all_open, most_free
from seaway.scheduling.plan import Plan
from seaway.scheduling.profile import Profile
from seaway.scheduling.queueing.lanes import LaneName
from seaway.scheduling.queueing.tree import Key
from seaway.scheduling.snapshot.snapshot import Snapshot

NEVER_NS = 2**62
NS_PER_S = 1_000_000_000

INFEASIBLE_NS = 60_000_000_000
"""Time during which no new search is made for a tenant's jobs of a kind without a possible placement."""

OVERDUE_NS = 10_000_000_000
"""Maximum delay of a job behind its reservation before another place is searched."""


@dataclass(frozen=True, slots=True)
class Reservation:
    """Capacity that is reserved for a job.

    Attributes
    ----------
    nodes
        Clusters and nodes of its future placements.
    booking
        Reserved amounts. Free amounts can be negative until other jobs end.
    starts_ns
        Expected monotonic start time; None if unknown.
    until_ns
        End of the reservation.
    """

    entry: Entry
    nodes: frozenset[tuple[str, str]]
    starts_ns: int | None
    until_ns: int
    booking: Allocation | None = None


class Reservations:
    """Reservations: at most one for the first job of each queue, and one for each job whose victims are ending.

    The key of the former is the name of the queue, that of the latter has a slash. So has that of a job that an
    operator moves.
    """

    def __init__(self, state: State, profile: Callable[[str], Profile], model_shares: ModelShares) -> None:
        self._state = state
        self._model_shares = model_shares
        self._profile = profile
        self._made: dict[str, Reservation] = {}
        self._amounts: dict[str, Amounts] | None = {}  # of all reservations, by pool; None if some have changed
        self._joined: Allocation | None = None  # all reservations, if none has changed
        self._snapshot: Snapshot | None = None
        self._infeasible: dict[tuple[LaneName, Kind], int] = {}
        self._paused: dict[Kind, int] = {}
        self._heads: dict[str, Entry] | None = None  # by job ID; None to find them again

    def fork(self, state: State, model_shares: ModelShares, profile: Callable[[str], Profile]) -> Reservations:
        """Return the same reservations in a copy of the state."""
        twin = copy(self)
        twin._unshare(state, model_shares, profile)  # noqa: SLF001  # of this class
        return twin

    def _unshare(self, state: State, model_shares: ModelShares, profile: Callable[[str], Profile]) -> None:
        self._snapshot = state.fleet.snapshot if self.current() else None
        self._state, self._model_shares, self._profile = state, model_shares, profile
        self._infeasible, self._paused = self._infeasible.copy(), self._paused.copy()
        self._made = {
            key: replace(each, booking=each.booking.copy()) if each.booking else each
            for key, each in self._made.items()
        }

    def made(self) -> Collection[Reservation]:
        """Return all reservations."""
        return self._made.values()

    def bookings(self) -> list[Allocation]:
        """Return the allocations of all reservations."""
        return [each.booking for each in self._made.values() if each.booking]

    def of(self, job_id: str) -> Reservation | None:
        """Return the reservation of a job."""
        return next((each for each in self._made.values() if each.entry.id == job_id), None)

    def due_ns(self) -> Iterator[int]:
        """Yield monotonic times at which reservations without a known start, and the pauses after them, have ended."""
        yield from (each.until_ns + 1 for each in self._made.values() if each.starts_ns is None)
        yield from self._paused.values()

    def claims(self) -> Iterator[Entry]:
        """Yield the jobs whose victims are ending."""
        return (each.entry for key, each in self._made.items() if "/" in key)

    def of_claim(self, job_id: str) -> Reservation | None:
        """Return the reservation of a job whose victims are ending."""
        return self._made.get(_claim_key(job_id))

    def current(self) -> bool:
        """Report whether the reservations belong to the current snapshot, which may have been created again."""
        return self._snapshot is self._state.fleet.snapshot

    def drop_all(self) -> None:
        """Drop the reservations on a replaced snapshot."""
        for reservation in self._made.values():
            self._state.tree.drop_claim(reservation.entry.id)
        self._made.clear()
        self._amounts = self._joined = None
        self._infeasible.clear()
        self._paused.clear()
        self._snapshot = self._state.fleet.snapshot

    def release_placed(self, job_id: str) -> None:
        """Release the reservation of a placed job."""
        for queue, reservation in list(self._made.items()):
            if reservation.entry.id == job_id:
                self._lift(queue)

    def review(self) -> None:
        """Release reservations that are expired or invalid, or whose job is behind another job."""
        now_ns = self._state.clock.monotonic_ns()
        self._infeasible = {kind: until_ns for kind, until_ns in self._infeasible.items() if until_ns > now_ns}
        self._paused = {kind: until_ns for kind, until_ns in self._paused.items() if until_ns > now_ns}
        self._review_moves(now_ns)
        for queue, reservation in list(self._made.items()):
            if reservation.starts_ns is None and now_ns > reservation.until_ns:
                self._paused[reservation.entry.kind] = now_ns + self._hold_ns()
                self._lift(queue)
            elif not self._is_valid(queue, reservation, now_ns) or (
                "/" not in queue and self._is_behind(reservation.entry)
            ):
                self._lift(queue)
                self._state.end_move(reservation.entry.id)
            elif "/" in queue:
                self._hand_over(queue, reservation)

    def _review_moves(self, now_ns: int) -> None:
        """Reserve the places of jobs that operators move, and end moves that are done, or late."""
        snapshot = self._state.fleet.snapshot
        for job_id, move in list(self._state.moves.items()):
            job = self._state.jobs.get(job_id)
            done = job is None or job.attempt != move.attempt or not (job.state.waits or job.state.placed)
            if done or now_ns > move.until_ns or not all(_open(snapshot, *node) for node in move.nodes):
                self._state.end_move(job_id)
            elif job and job.state.waits and not self.of_claim(job_id):
                for queue, other in list(self._made.items()):  # the first jobs of queues get other places
                    if "/" not in queue and other.nodes & move.nodes:
                        self._lift(queue)
                self.claim(self._state.entry(job), move.placements, move.grace_s)

    def _hand_over(self, key: str, reservation: Reservation) -> None:
        """Let an equal job that goes before a winner have its place. It is tried first, and would block the winner."""
        first, tree = self._state.waiting.first_alike(reservation.entry), self._state.tree
        if first is None or first.id == reservation.entry.id or self.of_claim(first.id):
            return
        del self._made[key]
        self._made[_claim_key(first.id)] = replace(reservation, entry=first)
        if claim := tree.drop_claim(reservation.entry.id):
            tree.claim(first.next_attempt, first.owner, claim[2])
        self._state.fleet.version += 1

    def _is_valid(self, key: str, reservation: Reservation, now_ns: int) -> bool:
        """Report whether the job still waits, the reservation is in time, and its nodes still accept work.

        A limit that has no room does not matter while victims are ending, since they may count under it. A job that an
        operator moves does not wait before its own objects are removed.
        """
        retained, snapshot, booking = reservation.entry, self._state.fleet.snapshot, reservation.booking
        waits = self._state.waiting.get(retained.id)
        if waits is None and retained.id in self._state.moves:
            waits = retained
        return (
            waits is not None
            and (waits.kind, waits.order) == (retained.kind, retained.order)
            and ("/" in key or self._state.waiting.hit(retained) is None)
            and now_ns <= reservation.until_ns
            and (booking is None or all_open(snapshot.arrays, booking.decisions))
        )

    def _is_behind(self, retained: Entry) -> bool:
        """Report whether another job that a reservation would delay goes first, since the order has changed."""
        waiting = self._state.waiting
        first = next(filter(self._may_reserve, waiting.in_turn(retained.queue)), None)
        if first and (first.lane != retained.lane or first.order < retained.order):
            return True
        return any(waiting.ahead(retained, self._competes))

    def _may_reserve(self, entry: Entry) -> bool:
        """Report whether a reservation makes sense: the last search found a place, no pause is due, and it is owed.

        The limits of a tenant matter for a search. Pauses are for all tenants, since an equal job of another tenant
        would reserve the same place.
        """
        searched = (entry.lane, entry.kind) not in self._infeasible and entry.kind not in self._paused
        return searched and self._model_shares.is_below_share(entry)

    def own(self, entry: Entry) -> str:
        """Return the key of the reservation that belongs to a job; empty if none does."""
        claim = _claim_key(entry.id)
        if claim in self._made:
            return claim
        retained = self._made.get(entry.queue)
        return entry.queue if retained and retained.entry.id == entry.id else ""

    def has_equal(self, entry: Entry) -> bool:
        """Report whether a job of the same kind and another tenant has a reservation."""
        reserved = (each.entry for each in self._made.values())
        return any(each.kind is entry.kind and each.lane != entry.lane for each in reserved)

    def may_pass(self, entry: Entry) -> bool:
        """Report whether a job may use reserved capacity: its own, or that of others if it ends in time."""
        return self.lets_pass(entry.max_duration_s, entry.id)

    def passed_by(self, entry: Entry) -> Sequence[Reservation]:
        """Return the reservations of first jobs that a job may use since it ends in time."""
        passes, own = self.may_pass(entry), self.own(entry)
        return [each for key, each in self._made.items() if passes and "/" not in key and key != own]

    def lets_pass(self, ends_within_s: int | None, job_id: str = "") -> bool:
        """Report whether a job that ends within some seconds, None if unknown, may use reserved capacity."""
        now_ns = self._state.clock.monotonic_ns() if self._made else 0
        for reservation in self._made.values():
            if reservation.entry.id == job_id:
                continue
            if reservation.starts_ns is None or ends_within_s is None:
                return False
            if now_ns + ends_within_s * NS_PER_S > reservation.starts_ns:
                return False
        return True

    def lift_from(self, twin: Snapshot) -> None:
        """Release all reservations on a copy of the live snapshot, so that only running jobs have allocations."""
        for reservation in self._made.values():
            if reservation.booking and self.current():
                reservation.booking.copy().release(twin)

    def release_own(self, entry: Entry, twin: Snapshot) -> None:
        """Release the reservation of a job, if it has one, on a copy of the live snapshot."""
        own = self._made.get(self.own(entry))
        if own and own.booking and self.current():
            own.booking.copy().release(twin)

    def most_free(self, *, by_all: bool) -> tuple[int, int, int]:
        """Return upper bounds of what jobs can get now, see `most_free`; `by_all` with all that is reserved."""
        arrays = self._state.fleet.snapshot.arrays
        if not by_all or not self._made:
            return most_free(arrays)
        with self.all_lifted():
            return most_free(arrays)

    @contextmanager
    def all_lifted(self) -> Iterator[None]:
        """Release all reservations, and restore them afterwards."""
        if self._joined is None:
            self._joined, _ = join(self.bookings())
        everything, snapshot = self._joined, self._state.fleet.snapshot
        everything.copy().release(snapshot)
        yield
        everything.restore(snapshot)

    @contextmanager
    def seen_by(self, entry: Entry) -> Iterator[None]:
        """Release the reservations that a job may use, and restore them afterwards."""
        passes, own, snapshot = self.may_pass(entry), self.own(entry), self._state.fleet.snapshot
        lifted = [each.booking for key, each in self._made.items() if each.booking and (passes or key == own)]
        for each in lifted:
            each.copy().release(snapshot)
        yield
        for each in lifted:
            each.restore(snapshot)

    def head_of(self, batch: Sequence[Entry], fits: Sequence[bool]) -> int | None:
        """Return the index of the first job of a batch that does not fit and needs a reservation; None without one."""
        return next((at for at, entry in enumerate(batch) if not fits[at] and self.awaits(entry)), None)

    def awaits(self, entry: Entry) -> bool:
        """Report whether a job gets a reservation if it does not fit."""
        return self._heads is not None and entry.id in self._heads

    def renew_heads(self) -> Iterable[Entry]:
        """Find the first job of each pool again, if it has been decided. Yield those that may get a reservation.

        Until then, starts of jobs before it do not matter. All jobs are waiting meanwhile, none is being tried.
        """
        if self._heads is None:
            heads = self._state.waiting.heads(self._competes_in, self._may_lead)
            self._heads = {each.id: each for each in heads if self.may_reserve_more(each.queue)}
        return self._heads.values()

    def _may_lead(self, entry: Entry) -> bool:
        """Report whether a job that does not fit keeps others from a reservation, or gets one."""
        if not self._competes(entry):
            return False
        return not self.may_reserve_more(entry.queue) or self._has_room_beside_others(entry)

    def may_reserve_more(self, queue: str) -> bool:
        """Report whether a job of a queue can get a reservation."""
        return queue not in self._made and self._competes_in(queue)

    def _competes_in(self, queue: str) -> bool:
        """Report whether jobs of a queue compete for reservations."""
        return self._state.settings.reservations and self._state.backfill_of(queue) is not Backfill.GREEDY

    def drop_heads(self) -> None:
        """Let the first job of each pool be found again."""
        self._heads = None

    def _competes(self, entry: Entry) -> bool:
        """Report whether a job that does not fit needs capacity that a reservation of a later job would take."""
        return self._may_reserve(entry) and self._competes_in(entry.queue) and self.of(entry.id) is None

    def make(self, entry: Entry) -> None:
        """Compute the earliest possible placement of a job, and reserve the free capacity there."""
        found = self._project(entry)
        if found is None:
            self._note_infeasible(entry)
            return
        booking, starts_ns = found
        until_ns = (
            starts_ns + OVERDUE_NS if starts_ns is not None else self._state.clock.monotonic_ns() + self._hold_ns()
        )
        booking.restore(self._state.fleet.snapshot)
        self._made[entry.queue] = self._keep(entry, booking, starts_ns, until_ns)

    def claim(self, entry: Entry, placements: tuple[Placement, ...], grace_s: float) -> None:
        """Reserve a place, and room under all limits, for a job whose victims are ending.

        Both are reserved until some time after their grace period.
        """
        self.release_placed(entry.id)
        amounts = held_amounts(entry.job.demand, placements, self._state.fleet.snapshot.device)
        self._state.tree.claim(entry.next_attempt, entry.owner, amounts)
        starts_ns = self._state.clock.monotonic_ns() + int(grace_s * NS_PER_S)
        booking = hold_place(self._state.fleet.snapshot, entry.job, placements)
        self._made[_claim_key(entry.id)] = self._keep(entry, booking, starts_ns, starts_ns + self._hold_ns())

    def _hold_ns(self) -> int:
        return int(self._state.settings.reservation_timeout_s * NS_PER_S)

    def _has_room_beside_others(self, entry: Entry) -> bool:
        """Report whether its pool may have room for a job beside all reservations, once running jobs have ended.

        If it has none, no search is made for jobs of its kind until a reservation is released.
        """
        tree, wanted = self._state.tree, entry.kind.requested
        node = tree.node(entry.queue)
        if self._amounts is None:
            of_pool = defaultdict[str, list[Amounts]](list)
            for each in self._made.values():
                of_pool[tree.node(each.entry.queue).queue.pool].append(each.entry.kind.requested)
            self._amounts = {pool: total_of(amounts) for pool, amounts in of_pool.items()}
        others = self._amounts.get(node.queue.pool, NO_AMOUNTS)
        if all(
            wanted[name] + others.get(name, 0) <= node.capacity.get(name, 0)
            for name in (CPU, MEMORY, GPUS)
            if name in wanted
        ):
            return True
        self._note_infeasible(entry)
        return False

    def _note_infeasible(self, entry: Entry) -> None:
        self._infeasible[entry.lane, entry.kind] = self._state.clock.monotonic_ns() + INFEASIBLE_NS

    def _project(self, entry: Entry) -> tuple[Allocation, int | None] | None:
        """Return the earliest place of a job once running ones have ended, with its time; None if there is none."""
        live = self._state
        found = (
            (ends_ns, live.bookings[key] if key in live.assumed else live.fleet.booking(key))
            for ends_ns, key in self.ends()
        )
        ends = [(ends_ns, booking) for ends_ns, booking in found if booking]
        job = self._state.allowed(entry, self._model_shares.models_for_others(entry))
        return earliest_place(self._state.fleet.snapshot.copy(), job, self._profile(entry.queue), ends)

    def ends(self) -> list[tuple[int, Key]]:
        """Return attempts with their expected end, soonest first; unknown ends last, oldest first.

        Attempts that are about to be stored are among them. Jobs without an end are omitted.
        """
        now_ns, wall_ns = self._state.clock.monotonic_ns(), self._state.clock.now_ns()
        ends = []
        for key, attempt in chain(self._state.attempts.items(), self._state.assumed.items()):
            rest_ns = self._state.expected_rest_ns(key, wall_ns)
            if rest_ns is not None:
                ends.append((now_ns + rest_ns, key))
            elif not attempt.spec.restarts:
                ends.append((NEVER_NS + attempt.created_ns // NS_PER_S, key))
        return sorted(ends)

    def _keep(self, entry: Entry, booking: Allocation, starts_ns: int | None, until_ns: int) -> Reservation:
        """Return the reservation of what is allocated for a job."""
        self._snapshot = snapshot = self._state.fleet.snapshot
        self._amounts = self._joined = None
        nodes = frozenset(map(snapshot.node_name, booking.nodes))
        return Reservation(entry, nodes, starts_ns, until_ns, booking)

    def _lift(self, queue: str) -> None:
        reservation = self._made.pop(queue)
        self._amounts = self._joined = None
        self._infeasible.clear()  # jobs without a place beside it may have one now
        self._heads = None
        self._release(reservation)
        if "/" in queue:
            self._state.tree.drop_claim(reservation.entry.id)
        self._state.fleet.version += 1

    def _release(self, reservation: Reservation) -> None:
        if reservation.booking and self.current():
            reservation.booking.release(self._state.fleet.snapshot)


def earliest_place(
    snapshot: Snapshot, job: Job, profile: Profile, ends: Sequence[tuple[int, Allocation]]
) -> tuple[Allocation, int | None] | None:
    """End running jobs on a copy of the fleet until a job fits.

    Steps of doubling size find an interval of ends, and halving it finds the first end from which on the job fits.

    Parameters
    ----------
    ends
        Expected end of each running job with its allocation, soonest first; `NEVER_NS` or later if it is unknown. The
        allocations stay as they are.

    Returns
    -------
    tuple
        What the job gets, see `hold_place`, and the end of the last job that has to end, None if unknown; None if it
        fits nowhere.
    """
    queue = JobQueue(snapshot, [job])
    running, rows = join(allocation for _, allocation in ends)
    requested = requested_amounts(job.demand, 1 if job.partial else job.replicas)

    def part(first: int, end: int) -> Allocation:
        return Allocation(running.decisions[rows[first] : rows[end]].copy(), running.slices)

    def place() -> Plan | None:
        if exceeds(requested, most_free(snapshot.arrays)):
            return None
        plan = decide(snapshot, queue, profile, overdue={0}, dry_run=True)
        placed = Plan(snapshot, queue, plan.decisions.copy(), plan.slices) if plan.jobs_placed[0] else None
        snapshot.release(plan.decisions, plan.slices, plan.rows_of(0))
        return placed

    before, ended = 0, 0
    found: Plan | None = None
    while found is None and ended < len(ends):
        before, ended = ended, min(2 * ended + 1, len(ends))
        part(before, ended).release(snapshot)
        found = place()
    while found and ends[before][0] < ends[ended - 1][0]:
        middle = (before + ended) // 2
        part(middle, ended).restore(snapshot)
        if earlier := place():
            found, ended = earlier, middle
        else:
            part(middle, ended).release(snapshot)
            before = middle
    if found is None:
        return None
    latest_ns = ends[ended - 1][0]
    return _amounts_of(next(allocations_of(found))), None if latest_ns >= NEVER_NS else latest_ns


def exceeds(requested: Amounts, free: tuple[int, int, int]) -> bool:
    """Report whether a job requests more than all nodes have free together, see `most_free`."""
    cpu_milli, memory_mib, core_milli = free
    return (
        requested.get(GPU_CORES, 0) > core_milli
        or requested.get(CPU, 0) > cpu_milli
        or requested.get(MEMORY, 0) > memory_mib
    )


def hold_place(snapshot: Snapshot, job: Job, placements: Sequence[Placement]) -> Allocation:
    """Allocate a reservation. MIG instances count only by their amounts, since other jobs still run there."""
    return allocate(snapshot, job, [_without_instances(each) for each in placements])


def _without_instances(placement: Placement) -> Placement:
    if not any(each.mig_profile for each in placement.slices):
        return placement
    slices = tuple(replace(each, mig_profile="", mig_start=-1) for each in placement.slices)
    return replace(placement, slices=slices)


def _amounts_of(booking: Allocation) -> Allocation:
    """Return an allocation without MIG instances."""
    if not (booking.slices[:, SLICE_MIG] >= 0).any():
        return booking
    slices = booking.slices.copy()
    slices[:, [SLICE_MIG, SLICE_START]] = -1
    return Allocation(booking.decisions, slices)


def _claim_key(job_id: str) -> str:
    return f"job/{job_id}"  # names of queues have no slash


def _open(snapshot: Snapshot, cluster: str, node: str) -> bool:
    n = snapshot.node_index.get((cluster, node))
    if n is None:
        return False
    usable = snapshot.arrays.clusters_open[CLUSTERS_ALLOWED, snapshot.arrays.nodes[NODE_CLUSTER, n]]
    return bool(usable and snapshot.arrays.nodes[NODE_OPEN, n])
