"""Places of jobs on nodes and devices, found by the engine."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from seaway.domain.amounts import held_amounts
from seaway.domain.placement import Placement
from seaway.scheduling.allocations import Allocation, allocations_of
from seaway.scheduling.binding import unreserve
from seaway.scheduling.columns import PLAN_NODE, PLAN_REPLICA
from seaway.scheduling.cycle.deferral import Deferral
from seaway.scheduling.cycle.jobs import Entry
from seaway.scheduling.cycle.reserve import Reservations
from seaway.scheduling.cycle.state import State
from seaway.scheduling.engine import decide
from seaway.scheduling.job_queue import JobQueue
from seaway.scheduling.plan import Plan
from seaway.scheduling.profile import Profile


class Policies(Protocol):
    """Policies of queues."""

    def profile(self, queue: str) -> Profile:
        """Return the profile of a queue's policy."""

    def unready(self, queue: str) -> str:
        """Return the reason why jobs of a queue are not tried yet; empty if they are."""

    def by_rules(self, queue: str) -> bool:
        """Report whether only the filter rules of a queue's policy decide whether a job fits."""


Notes = Callable[[Plan, Sequence[Allocation]], object]
"""Takes the plan of a run and its allocations, and returns what is recorded about it."""

Watch = Callable[[Sequence[Entry]], Notes]
"""Takes a run of jobs before it is tried."""


def watch_nothing(_: Sequence[Entry]) -> Notes:
    """Record nothing."""
    return lambda *_: None


@dataclass(frozen=True, slots=True)
class RunPlan:
    """Jobs of a run that were placed one after another.

    Attributes
    ----------
    plan, profile
        Their placements, and the profile that decided.
    allocated, fits
        Allocation of each, and whether it can start.
    spared
        Indices of the jobs that need nothing reserved: deferred ones, and those that leave models to others.
    noted
        What is recorded about the plan.
    """

    plan: Plan
    profile: Profile
    allocated: Sequence[Allocation]
    fits: Sequence[bool]
    spared: Collection[int]
    noted: object


@dataclass(frozen=True, slots=True)
class Fit:
    """Places for the jobs of a state, found by the engine. What it allocates is kept until it is released.

    Attributes
    ----------
    watch
        Called with each run of jobs before it is tried.
    rehearses
        Whether nothing that it decides is done, so that plugins keep nothing.
    """

    state: State
    policies: Policies
    reservations: Reservations
    deferral: Deferral
    watch: Watch = watch_nothing
    rehearses: bool = False

    def place(self, run: Sequence[Entry], left: Mapping[Entry, frozenset[str]]) -> RunPlan:
        """Place the jobs of a run one after another, with the reservations that all of them may use."""
        snapshot, first = self.state.fleet.snapshot, run[0]
        jobs = [self.state.allowed(entry, left[entry]) for entry in run]
        queue = JobQueue(snapshot, jobs, first=self.state.started)
        profile = self.policies.profile(first.queue)
        with self.reservations.seen_by(first):
            notes = self.watch(run)
            winners = [at for at, entry in enumerate(run) if self.reservations.of_claim(entry.id)]
            overdue = self.deferral.overdue(run).union(winners)
            plan = decide(snapshot, queue, profile, overdue=overdue, dry_run=self.rehearses)
            allocated, placed_jobs = list(allocations_of(plan)), plan.jobs_placed
            noted = notes(plan, allocated)
        fits = [
            fit or (each.job.partial and part.holds_any)
            for fit, each, part in zip(placed_jobs.tolist(), run, allocated, strict=True)
        ]
        spared = {*plan.deferred, *(at for at, entry in enumerate(run) if left[entry])}
        return RunPlan(plan, profile, allocated, fits, spared, noted)

    def places(self, run: Sequence[Entry], tried: RunPlan, end: int) -> list[tuple[Placement, ...]]:
        """Return the placements of the first jobs of a run, as far as limits have room; none for the others."""
        places = [
            _numbered(_placements(tried.plan, at), each, tried.allocated[at]) if at < end and tried.fits[at] else ()
            for at, each in enumerate(run)
        ]
        for at, within in self._within_limits(run, places):
            rows = np.flatnonzero(tried.allocated[at].decisions[:, PLAN_NODE] >= 0)[within:]
            tried.allocated[at].release(self.state.fleet.snapshot, rows)
            self.unreserve(tried.profile, run[at], places[at][within:])
            places[at] = places[at][:within]
        return places

    def undo(self, run: Sequence[Entry], tried: RunPlan, end: int) -> None:
        """Release what the jobs of a run hold that do not start now, the last first."""
        snapshot = self.state.fleet.snapshot
        for at in range(len(run) - 1, -1, -1):
            if at >= end or not tried.fits[at]:
                places = () if self.rehearses else _placements(tried.plan, at)
                tried.allocated[at].release(snapshot)
                self.unreserve(tried.profile, run[at], places)

    def unreserve(self, profile: Profile, entry: Entry, placements: Iterable[Placement]) -> None:
        """Tell the plugins of a profile that a job does not use places."""
        if not self.rehearses:
            unreserve(profile, self.state.fleet.snapshot, entry.job, placements)

    def _within_limits(
        self, batch: Sequence[Entry], places: Sequence[Sequence[Placement]]
    ) -> Iterator[tuple[int, int]]:
        """Yield the jobs of which only some placed replicas have room under the limits, with the number of these."""
        snapshot, tree = self.state.fleet.snapshot, self.state.tree
        for at, entry in enumerate(batch):
            if not entry.job.partial or len(places[at]) < 2:
                continue

            def has_room(number: int, entry: Entry = entry, placed: Sequence[Placement] = places[at]) -> bool:
                wanted = held_amounts(entry.job.demand, placed[:number], snapshot.device)
                return tree.hit(entry.owner, wanted, entry.id) is None

            within = next((each for each in range(len(places[at]), 1, -1) if has_room(each)), 1)
            if within < len(places[at]):
                yield at, within


def _numbered(placements: tuple[Placement, ...], entry: Entry, booking: Allocation) -> tuple[Placement, ...]:
    """Return the placed replicas of a job that starts in part, numbered after the completed ones, as its allocation."""
    if not entry.spec.starts_in_part:
        return placements
    rows = np.flatnonzero(booking.decisions[:, PLAN_NODE] >= 0)
    booking.decisions[rows, PLAN_REPLICA] = entry.completed + np.arange(len(rows))
    return tuple(replace(each, replica=entry.completed + at) for at, each in enumerate(placements))


def _placements(plan: Plan, job: int) -> tuple[Placement, ...]:
    rows = plan.rows_of(job)
    return tuple(map(plan.placement, rows[plan.decisions[rows, PLAN_NODE] >= 0].tolist()))
