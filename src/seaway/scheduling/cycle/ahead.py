"""Decisions of a cycle that take effect on a fork, now or as time passes. Jobs that make room are gone at once."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from heapq import heappop, heappush

from seaway.domain.attempt import Attempt
from seaway.domain.job_record import JobRecord
from seaway.domain.job_state import JobState
from seaway.scheduling.cycle.cycle import Cycle
from seaway.scheduling.cycle.displace import Claim
from seaway.scheduling.cycle.fork import Rehearsal
from seaway.scheduling.cycle.jobs import Entry
from seaway.scheduling.cycle.plan import PlanState, planned, running
from seaway.scheduling.cycle.resize import Resizer
from seaway.scheduling.queueing.tree import Key

MAX_CLAIMS = 100
"""Maximum number of jobs for which others make room at a time. One call of `Preemptor.claims` may exceed it."""

MAX_PASSES = 4
"""Maximum number of passes over the waiting jobs at a time, if each lets reservations go."""

MAX_IDLE = 300
"""Maximum number of moments since the last start."""


@dataclass(frozen=True, slots=True)
class Ended:
    """Attempt that was displaced.

    Attributes
    ----------
    winner
        Job that takes its place.
    ran_ns
        Nanoseconds that it ran.
    """

    attempt: Attempt
    winner: Entry
    ran_ns: int


@dataclass(slots=True)
class Ahead:
    """A cycle on a fork, and what it has done.

    Attributes
    ----------
    resizer
        Resizes of jobs in the fork.
    waits
        Returns a job whose attempt ended as it waits again.
    plan
        Inputs of plans for queues with conservative backfill, with the duration that stands for unknown ones.
    arrivals
        Jobs that are submitted later, soonest first.
    later
        Tasks of arrays that begin to wait when another task of their array ends, by array.
    starts_ns
        First start of each job by the wall clock.
    ended
        Attempts that were displaced.
    shrunk
        Replicas that left, each with the job that takes its place, by attempt.
    """

    fork: Rehearsal
    cycle: Cycle
    resizer: Resizer
    waits: Callable[[JobRecord], Entry]
    plan: PlanState
    arrivals: deque[JobRecord] = field(default_factory=deque)
    later: dict[str, deque[tuple[JobRecord, Entry]]] = field(default_factory=dict)
    starts_ns: dict[str, int] = field(default_factory=dict)
    ended: dict[Key, Ended] = field(default_factory=dict)
    shrunk: defaultdict[Key, dict[int, Entry]] = field(default_factory=lambda: defaultdict(dict))
    _fresh: list[Key] = field(default_factory=list)
    _leaving: list[Key] = field(default_factory=list)  # attempts that are leaving, or of which replicas are
    _gone_ns: int = 0
    _ends: list[tuple[int, Key]] = field(default_factory=list)  # also outdated ones
    _ends_ns: dict[Key, int] = field(default_factory=dict)

    # Now.

    def decide(self) -> None:
        """Decide until no more jobs start now, nor displace others, and no running ones are resized."""
        self.cycle.preemptor.retry()
        self.start_all()
        claimed = 0
        while claimed < MAX_CLAIMS:
            claims = self.cycle.claims()
            self._apply(claims)
            claimed += len(claims)
            if claims:
                self.start_all()
            elif not self.cycle.preemptor.searches:
                break
        self._resize()

    def _resize(self) -> None:
        """Let elastic jobs get more replicas if no waiting job fits, or fewer."""
        grows = self.fork.waiting.idle and not self.cycle.preemptor.awaited
        while resizes := self.resizer.next(grows=grows):
            for each in resizes:
                self.fork.resize(each.after)
                self._note_end((each.after.job_id, each.after.number))
                if each.before.spec.elastic:
                    self.fork.rest_from_resizes(each.job)

    def start_all(self) -> None:
        """Start all jobs that fit, in passes until the last one has seen the fleet as it is."""
        fork = self.fork
        is_planned = self.use_plan()
        for _ in range(MAX_PASSES):
            self.cycle.begin()
            while True:
                for each in self.cycle.next():
                    fork.run(each.attempt)
                    self._fresh.append(each.entry.next_attempt)
                    self.starts_ns.setdefault(each.entry.id, fork.clock.now_ns())
                if fork.waiting.idle and (is_planned or not (is_planned := self.use_plan())):
                    break
            if fork.seen_version == fork.fleet.version:
                break

    def use_plan(self) -> bool:
        """Plan the starts in queues with conservative backfill, if a job there was passed over; report that."""
        cycle, queues = self.cycle, self.plan.planned
        if not any(map(cycle.is_planned, queues)):
            return False
        state = self.plan.of_jobs(self.fork, cycle.reservations, cycle.preemptor)
        found = planned(state, running(state))
        cycle.use_plan({job_id: each.starts_ns for job_id, each in found.items()}, queues)
        return True

    def stop(self, key: Key) -> None:
        """End an attempt. Its job waits again."""
        attempt = self.fork.end(key)
        self._ends_ns.pop(key, None)
        job = self.fork.jobs[key[0]]
        if job.attempt == attempt.number and job.state.placed:
            record = replace(job, state=JobState.PREEMPTED)
            self.fork.submit(record, self.waits(record))

    def _apply(self, claims: Sequence[Claim]) -> None:
        self.cycle.preemptor.settle(claims, [True] * len(claims))
        for claim in claims:
            for before, after in claim.shrinks:
                self.fork.resize(after)
                self._note_end((before.job_id, before.number))
            for victim in claim.victims:
                if victim.whole:
                    self.shrunk[victim.job_key].update(dict.fromkeys(victim.replicas, claim.entry))
        for claim in claims:
            for victim in claim.ends:
                attempt, now_ns = self.fork.attempts[victim.key], self.fork.clock.now_ns()
                self.ended[victim.key] = Ended(attempt, claim.entry, now_ns - (attempt.running_ns or now_ns))
                self.shrunk.pop(victim.key, None)
                self.stop(victim.key)

    # Later.

    def look(self, most: int, late: Callable[[], bool] = lambda: False) -> bool:
        """Let time pass until `most` jobs have started, or nothing ends any more. Report whether that was reached.

        Parameters
        ----------
        late
            Report whether to stop before that.
        """
        idle, started = 0, -1
        for _ in self.moments():
            idle, started = idle + 1 if len(self.starts_ns) == started else 0, len(self.starts_ns)
            waits = len(self.fork.waiting) or any(self.later.values())
            if not waits or started >= most or idle >= MAX_IDLE:
                break
            if late():
                return False
        return True

    def moments(self) -> Iterator[None]:
        """Decide, and let time pass to the next moment at which something ends, arrives, or is decided otherwise.

        Yield after the decisions of each moment, until nothing more happens.
        """
        self._note_ends()
        self._admit()
        quiet = 0
        while quiet < MAX_IDLE:
            before = len(self._fresh), len(self.fork.attempts), len(self.arrivals)
            self.decide()
            quiet = quiet + 1 if before == (len(self._fresh), len(self.fork.attempts), len(self.arrivals)) else 0
            if self._let_run():
                self._resize()
            yield
            if (at_ns := self._next_ns()) is None:
                break
            self._pass_to(at_ns)

    def _admit(self) -> None:
        """Submit the jobs that have arrived by now."""
        while self.arrivals and self.arrivals[0].submitted_ns <= self.fork.clock.now_ns():
            record = self.arrivals.popleft()
            self.fork.submit(record, self.waits(record))

    def _note_ends(self) -> None:
        """Note when attempts end. What is leaving already does so when the last grace time has passed."""
        fork, reservations = self.fork, self.cycle.reservations
        claims = filter(None, (reservations.of_claim(each.id) for each in reservations.claims()))
        self._gone_ns = max((each.starts_ns or 0 for each in claims), default=0)
        self._leaving = [
            key
            for key, each in fork.attempts.items()
            if (each.remaining is not each.placements if each.state.live else fork.ends_soon(each))
        ]
        self._let_go()
        for key in fork.attempts:
            self._note_end(key)

    def _let_go(self) -> None:
        """Release what has left by now."""
        if self._gone_ns > self.fork.clock.monotonic_ns():
            return
        for key in self._leaving:
            attempt = self.fork.attempts.get(key)
            if attempt and attempt.state.live:
                self.fork.resize(attempt)
                self._note_end(key)
            elif attempt:
                self.fork.end(key)
        self._leaving.clear()

    def _note_end(self, key: Key) -> None:
        """Note when an attempt ends, unless that is unknown."""
        rest_ns = self.fork.expected_rest_ns(key, self.fork.clock.now_ns(), self.plan.typical_s)
        self._ends_ns.pop(key, None)
        if rest_ns is not None and self.fork.attempts[key].state.live:
            self._ends_ns[key] = at_ns = self.fork.clock.monotonic_ns() + rest_ns
            heappush(self._ends, (at_ns, key))

    def _next_ns(self) -> int | None:
        """Return the next monotonic time at which something ends, or is decided otherwise; None if there is none."""
        fork = self.fork
        while self._ends and self._ends_ns.get(self._ends[0][1]) != self._ends[0][0]:
            heappop(self._ends)
        now_ns = fork.clock.monotonic_ns()
        shift_ns = now_ns - fork.clock.now_ns()
        times_ns = [*(at_ns + shift_ns for at_ns in fork.advance.times_ns), *self.cycle.due_ns()]
        times_ns += [fork.resize_after_ns.get(job_id, 0) for job_id in fork.resizing]
        times_ns += [self._gone_ns] if self._leaving else []
        times_ns += [self.arrivals[0].submitted_ns + shift_ns] if self.arrivals else []
        ends_ns = [self._ends[0][0]] if self._ends else []
        return min([*ends_ns, *(at_ns for at_ns in times_ns if at_ns > now_ns)], default=None)

    def _let_run(self) -> bool:
        """Let the jobs that have just started run; report whether there are any."""
        began = [key for key in self._fresh if key in self.fork.attempts]
        for key in began:
            self.fork.begin(key)
            self._note_end(key)
        self._fresh.clear()
        return bool(began)

    def _pass_to(self, at_ns: int) -> None:
        """End what ends until a monotonic time."""
        self.fork.pass_time(at_ns - self.fork.clock.monotonic_ns())
        while self._ends and self._ends[0][0] <= at_ns:
            ends_ns, key = heappop(self._ends)
            if self._ends_ns.get(key) == ends_ns:
                self._complete(key)
        self._let_go()
        self._admit()

    def _complete(self, key: Key) -> None:
        """End an attempt that has done its work. Replicas that have not started yet wait."""
        attempt, job = self.fork.end(key), self.fork.jobs.get(key[0])
        del self._ends_ns[key]
        if job is None or job.attempt != attempt.number:
            return
        completed = job.completed + len(attempt.remaining)
        if job.spec.starts_in_part and completed < job.spec.replicas:
            record = replace(job, state=JobState.QUEUED, completed=completed)
            self.fork.submit(record, self.waits(record))
            return
        del self.fork.jobs[job.id]
        if following := self.later.get(job.array):
            self.fork.submit(*following.popleft())
