"""Reservations: the first job of a queue that does not fit is not starved by smaller ones behind it.

The place where it will fit first is worked out from when running jobs end, and what is free there is
kept for it. Others may still use what it does not need, and those that will be gone in time may use
all of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from seaway.application.control.fleet import Key
from seaway.application.control.live import Live
from seaway.application.control.waiting import Entry, Order
from seaway.domain.placement import Placement
from seaway.scheduling.booking import Booking, book
from seaway.scheduling.engine import decide
from seaway.scheduling.profile import Profile
from seaway.scheduling.queue import JobQueue
from seaway.scheduling.snapshot import Snapshot

FOREVER_NS = 2**62

HOPELESS_NS = 10_000_000_000
"""How long a job for which no place was found is not looked at again."""

MOST_HOPELESS = 3
"""Jobs of one queue that are looked at in that time."""


@dataclass(frozen=True, slots=True)
class Reservation:
    """A place that is kept for a job.

    Attributes
    ----------
    placements
        Where it will go.
    booking
        What is kept there; free amounts may be less than nothing until others end.
    starts_ns
        When it is expected to start, by the monotonic clock; None when nobody knows.
    """

    entry: Entry
    placements: tuple[Placement, ...]
    starts_ns: int | None
    booking: Booking | None = None


class Reservations:
    """At most one reservation for each queue.

    Parameters
    ----------
    live
        The loop's memory.
    profile
        Returns the policy of a queue.
    """

    def __init__(self, live: Live, profile: Callable[[str], Profile]) -> None:
        self._live = live
        self._profile = profile
        self._made: dict[str, Reservation] = {}
        self._snapshot: Snapshot | None = None
        self._hopeless: dict[tuple[str, Order], int] = {}

    def of(self, job_id: str) -> Reservation | None:
        """Return what is kept for a job."""
        return next((each for each in self._made.values() if each.entry.record.id == job_id), None)

    def current(self) -> bool:
        """Tell whether what is kept is kept on the snapshot that there is now, which may have been made anew."""
        return self._snapshot is self._live.fleet.snapshot

    def drop_all(self) -> None:
        """Forget what was kept on a snapshot that is gone."""
        self._made.clear()
        self._hopeless.clear()
        self._snapshot = self._live.fleet.snapshot

    def fulfil(self, job_id: str) -> None:
        """Keep nothing any more for a job that has its place."""
        for queue, reservation in list(self._made.items()):
            if reservation.entry.record.id == job_id:
                self._lift(queue)

    def review(self) -> None:
        """Lift what is kept for jobs that do not wait any more, or that others have gone before."""
        now_ns = self._live.clock.monotonic_ns()
        self._hopeless = {key: until_ns for key, until_ns in self._hopeless.items() if until_ns > now_ns}
        for queue, reservation in list(self._made.items()):
            kept = reservation.entry
            waits = self._live.waiting.get(kept.record.id)
            if waits is None or (waits.kind, waits.order) != (kept.kind, kept.order):
                self._lift(queue)
                continue
            first = self._live.waiting.first(kept.record.spec.tenant, queue)
            if first and first.order < kept.order and (queue, first.order) not in self._hopeless:
                self._lift(queue)

    def own(self, entry: Entry) -> str:
        """Return the queue in which a place is kept for a job; empty when none is."""
        kept = self._made.get(entry.queue)
        return entry.queue if kept and kept.entry.record.id == entry.record.id else ""

    def may_pass(self, entry: Entry) -> bool:
        """Tell whether a job may use what is kept for others: it is what it is kept for, or will be gone in time."""
        for reservation in self._made.values():
            if reservation.entry.record.id == entry.record.id:
                continue
            ends_s = entry.record.spec.ends_within_s
            if reservation.starts_ns is None or ends_s is None:
                return False
            if self._live.clock.monotonic_ns() + ends_s * 1_000_000_000 > reservation.starts_ns:
                return False
        return True

    @contextmanager
    def seen_by(self, entry: Entry) -> Iterator[None]:
        """Keep nothing from a job, and others like it, that may use what is kept; afterwards keep it again."""
        passes = self.may_pass(entry)
        lifted = [queue for queue in self._made if passes or queue == self.own(entry)]
        for queue in lifted:
            self._release(self._made[queue])
        yield
        for queue in lifted:
            self._made[queue] = self._keep(self._made[queue])

    def head_of(self, batch: Sequence[Entry], fits: Sequence[bool]) -> int | None:
        """Find the first job of a batch that does not fit and is to get a reservation; None without one."""
        if not self._live.settings.reserve:
            return None
        for at, entry in enumerate(batch):
            if not fits[at] and entry.queue not in self._made and self._has_hope(entry):
                return at
        return None

    def make(self, entry: Entry) -> None:
        """Work out where a job will fit first, and keep what is free there."""
        copy = self._live.fleet.snapshot.copy()
        placements, starts_ns = self._foresee(copy, entry)
        if not placements:
            self._hopeless[entry.queue, entry.order] = self._live.clock.monotonic_ns() + HOPELESS_NS
            return
        self._made[entry.queue] = self._keep(Reservation(entry, placements, starts_ns))

    def _has_hope(self, entry: Entry) -> bool:
        """Tell whether it is worth looking for a place: not just tried in vain, nor several others of the queue."""
        tried = [order for queue, order in self._hopeless if queue == entry.queue]
        return entry.order not in tried and len(tried) < MOST_HOPELESS

    def _foresee(self, copy: Snapshot, entry: Entry) -> tuple[tuple[Placement, ...], int | None]:
        """Let running jobs end on a copy, twice as many each time, until the job fits."""
        ends = self._ends()
        at, step, latest = 0, 1, 0
        queue = JobQueue(copy, [entry.job])
        while at < len(ends):
            for ends_ns, key in ends[at : at + step]:
                booking = self._live.fleet.booking(key)
                if booking:
                    booking.copy().release(copy)
                latest = ends_ns
            at, step = at + step, step * 2
            plan = decide(copy, queue, self._profile(entry.queue))
            if plan.jobs_placed[0]:
                return tuple(plan.placements()), None if latest >= FOREVER_NS else latest
            copy.release(plan.lines, plan.slices, plan.rows_of(0))
        return (), None

    def _ends(self) -> list[tuple[int, Key]]:
        """Return what runs and when it will have ended, soonest first; what nobody knows goes last, oldest first."""
        now_ns, wall_ns = self._live.clock.monotonic_ns(), self._live.clock.now_ns()
        ends = []
        for key, attempt in self._live.attempts.items():
            seconds = attempt.spec.ends_within_s
            if not attempt.state.live:
                ends.append((now_ns, key))
            elif seconds is None:
                ends.append((FOREVER_NS + attempt.created_ns // 1_000_000_000, key))
            else:
                ran_ns = wall_ns - (attempt.running_ns or wall_ns)
                ends.append((now_ns + max(seconds * 1_000_000_000 - ran_ns, 0), key))
        return sorted(ends)

    def _keep(self, reservation: Reservation) -> Reservation:
        """Book what a reservation keeps; instances of MIG devices by their amounts only, as others still run there."""
        placements = [
            replace(each, slices=tuple(replace(taken, mig_profile="", mig_start=-1) for taken in each.slices))
            for each in reservation.placements
        ]
        self._snapshot = self._live.fleet.snapshot
        return replace(reservation, booking=book(self._snapshot, reservation.entry.job, placements))

    def _lift(self, queue: str) -> None:
        self._release(self._made.pop(queue))
        self._live.fleet.version += 1

    def _release(self, reservation: Reservation) -> None:
        if reservation.booking and self.current():
            reservation.booking.release(self._live.fleet.snapshot)
