"""Resizes of running jobs: more replicas where there is room, and fewer where their number was lowered.

New replicas follow the rules of the old ones: their demand, the links to the user, the policy and the limits of their
queue. Leaving ones hold their devices until their pods are gone.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Collection, Hashable, Iterator, Sequence, Set
from dataclasses import dataclass, replace
from itertools import count, islice
from typing import Protocol

import numpy as np

from seaway.domain.amounts import held_amounts, requested_amounts, total_of
from seaway.domain.attempt import Attempt
from seaway.domain.errors import RejectedError
from seaway.domain.job import Job
from seaway.domain.job_record import JobRecord
from seaway.domain.job_spec import HEADED, NO_CLUSTER, ONE_TEMPLATE
from seaway.domain.job_state import JobState
from seaway.domain.placement import Placement
from seaway.domain.queues import Backfill
from seaway.scheduling.allocations import Allocation, allocations_of
from seaway.scheduling.binding import bind, post_bind, unreserve
from seaway.scheduling.columns import (
    NODE_CPU,
    NODE_CPU_FREE,
    NODE_GPU_MEMORY,
    NODE_GPU_MEMORY_FREE,
    PLAN_NODE,
)
from seaway.scheduling.cycle.state import State
from seaway.scheduling.engine import decide
from seaway.scheduling.job_queue import JobQueue
from seaway.scheduling.profile import Profile
from seaway.scheduling.queueing.model_shares import without_models
from seaway.scheduling.queueing.tree import Owner
from seaway.scheduling.snapshot.snapshot import Snapshot

LONGEST_NS = 25_000_000
"""Nanoseconds after which no further resize begins in a cycle."""

AGAIN_NS = 2_000_000_000
"""Time after which more replicas are tried although nothing was released: a limit may have room."""


@dataclass(frozen=True, slots=True)
class Resize:
    """Other number of replicas of a running job.

    Attributes
    ----------
    before, after
        Its attempt.
    added
        New replicas, what was asked of the engine for them, the profile that placed them and their allocation; empty
        for a job that gets fewer.
    """

    job: JobRecord
    before: Attempt
    after: Attempt
    owner: Owner
    added: tuple[Placement, ...] = ()
    asked: Job | None = None
    profile: Profile | None = None
    booking: Allocation | None = None


class Sizes(Protocol):
    """Requests and completed replicas of running jobs."""

    def more(self, job: JobRecord, attempt: Attempt) -> Job | None:
        """Return what is asked of the engine for more replicas of a running job; None without its queue or pool."""

    def completed_replicas(self, attempt: Attempt) -> Set[int]:
        """Return the replicas of a running job that completed."""


class Resizer:
    """Resizes of running jobs.

    Parameters
    ----------
    sizes
        Requests and completed replicas of these jobs.
    profile
        Returns the profile of the policy of a queue.
    unready
        Returns the reason why jobs of a queue are not tried yet; empty if they are.
    rehearses
        Whether nothing that it decides is done, so that plugins keep nothing.
    """

    def __init__(
        self,
        state: State,
        sizes: Sizes,
        profile: Callable[[str], Profile],
        unready: Callable[[str], str],
        *,
        rehearses: bool = False,
    ) -> None:
        self._state = state
        self._sizes = sizes
        self._profile = profile
        self._unready = unready
        self._rehearses = rehearses
        self._tried: dict[str, tuple[int, int]] = {}

    def next(self, *, grows: bool) -> list[Resize]:
        """Return the resizes that are due, a limited number per call. Devices of new replicas are allocated.

        Parameters
        ----------
        grows
            Whether jobs may get more replicas, because no waiting job fits, also once others have made room.
        """
        live, found = self._state, list[Resize]()
        until_ns = live.clock.monotonic_ns() + LONGEST_NS
        for job_id, key in list(live.resizing.items()):
            if live.clock.monotonic_ns() > until_ns:
                break
            job, attempt = live.current(key) or (None, None)
            if job is None or attempt is None:
                continue
            more = job.spec.replicas - job.completed - len(attempt.remaining)
            if more < 0:
                resize = self._shrink(job, attempt, -more)
            elif more and grows and self._may_grow(job, attempt):
                self._tried[job_id] = (live.fleet.version, live.clock.monotonic_ns() + AGAIN_NS)
                resize = self._grow(job, attempt, more)
            else:
                continue
            found += [resize] if resize else []
        self._tried = {job_id: tried for job_id, tried in self._tried.items() if job_id in live.resizing}
        return found

    def bind(self, resize: Resize) -> bool:
        """Call the PreBind and Bind plugins for new replicas, and report whether all accept them; needs no lock."""
        return resize.profile is None or not resize.profile.binds or bind(resize.profile, resize.added).passes

    def settle(self, resizes: Sequence[Resize], bound: Sequence[Resize], stored: Sequence[bool]) -> None:
        """Release the devices of new replicas that a plugin refused, or of jobs that a user changed meanwhile."""
        settled = {id(each) for each, is_stored in zip(bound, stored, strict=True) if is_stored}
        for each in resizes:
            if id(each) in settled:
                if each.before.spec.elastic and (job := self._state.jobs.get(each.before.job_id)):
                    self._state.rest_from_resizes(job)
                if each.profile:
                    post_bind(each.profile, each.added)
            elif each.booking:
                self._give_back(each, each.booking)

    def _give_back(self, resize: Resize, booking: Allocation) -> None:
        key, snapshot = (resize.before.job_id, resize.before.number), self._state.fleet.snapshot
        self._state.bookings.pop(key, None)
        booking.release(snapshot)
        self._state.tree.hold(key, resize.owner, resize.before.amounts)
        self._state.tree.note_fall(resize.owner)
        if resize.profile and resize.asked:
            unreserve(resize.profile, snapshot, resize.asked, resize.added)
        self._state.fleet.version += 1

    # More replicas.

    def _may_grow(self, job: JobRecord, attempt: Attempt) -> bool:
        """Report whether a job may get more replicas now: it runs, and nothing that matters failed a moment ago."""
        live, now_ns = self._state, self._state.clock.monotonic_ns()
        version, again_ns = self._tried.get(job.id, (-1, 0))
        if job.state is not JobState.RUNNING or now_ns < live.resize_after_ns.get(job.id, 0):
            return False
        if version == live.fleet.version and now_ns < again_ns:
            return False
        queue = job.spec.queue
        if live.backfill_of(queue) in (Backfill.NONE, Backfill.CONSERVATIVE) and live.waiting.passes_over(queue):
            return False
        completed = self._sizes.completed_replicas(attempt) or attempt.holding is not attempt.placements
        return job.spec.starts_in_part or not completed

    def _grow(self, job: JobRecord, attempt: Attempt, most: int) -> Resize | None:
        """Place up to `most` more replicas of a job; return None if none fits."""
        asked = self._sizes.more(job, attempt)
        if asked is None or self._unready(job.spec.queue):
            return None
        profile = self._profile(job.spec.queue)
        owner = Owner(job.spec.queue, job.spec.tenant, job.submitted_by)
        for wanted in self._wanted(replace(asked, replicas=most), job, attempt, owner):
            if placed := self._place(wanted, profile, owner):
                return self._added(job, attempt, wanted, profile, owner, *placed)
        return None

    def _wanted(self, wanted: Job, job: JobRecord, attempt: Attempt, owner: Owner) -> Iterator[Job]:
        """Yield the new replicas as jobs for the engine: in the clusters of the others, then anywhere.

        In their clusters, their bandwidth to the user is already reserved. Replicas with bounds between them, or with
        one controller, stay there.
        """
        live, spec = self._state, job.spec
        wanted = replace(wanted, gang=False, single_cluster=False, ring=False, partial=True)
        demand = wanted.demand
        requested = requested_amounts(demand, 1)
        hits = live.tree.model_hits(owner, requested, (), job.id) if demand.request.gpus else {}
        wanted = without_models(wanted, hits.keys(), live.fleet.snapshot)
        wanted = live.advance.narrow(wanted, spec)
        demand, stays = wanted.demand, spec.in_one_cluster or spec.between_replicas.any
        if stays or demand.network.min_bandwidth_mbps:
            own = frozenset(attempt.clusters)
            allowed = demand.nodes.clusters & own if demand.nodes.clusters else own
            nodes = replace(demand.nodes, clusters=allowed or NO_CLUSTER)
            here = replace(demand, nodes=nodes, network=replace(demand.network, min_bandwidth_mbps=0))
            yield replace(wanted, demand=here)
        if not stays:
            yield wanted

    def _place(self, wanted: Job, profile: Profile, owner: Owner) -> tuple[tuple[Placement, ...], Allocation] | None:
        """Allocate as many replicas as fit and as the limits of queues allow; return None for none."""
        snapshot, tree = self._state.fleet.snapshot, self._state.tree
        try:
            snapshot.demands.index(wanted.demand)
        except RejectedError:  # for example after the removal of its gateway
            return None
        plan = decide(snapshot, JobQueue(snapshot, [wanted]), profile, overdue={0}, dry_run=self._rehearses)
        booking = next(allocations_of(plan))
        placed = tuple(plan.placement(int(row)) for row in plan.rows_of(0) if plan.placed[row])

        def has_room(number: int) -> bool:
            amounts = held_amounts(wanted.demand, placed[:number], snapshot.device)
            return tree.hit(owner, amounts, wanted.name) is None

        within = next((number for number in range(len(placed), 0, -1) if has_room(number)), 0)
        if within < len(placed):
            booking.release(snapshot, np.flatnonzero(booking.decisions[:, PLAN_NODE] >= 0)[within:])
            if not self._rehearses:
                unreserve(profile, snapshot, wanted, placed[within:])
        return (placed[:within], booking) if within else None

    def _added(
        self,
        job: JobRecord,
        attempt: Attempt,
        wanted: Job,
        profile: Profile,
        owner: Owner,
        placements: tuple[Placement, ...],
        booking: Allocation,
    ) -> Resize:
        key = (attempt.job_id, attempt.number)
        taken = {each.replica for each in attempt.placements}
        numbers = islice((each for each in count(job.completed) if each not in taken), len(placements))
        wave = job.version + 1  # no two resizes have the same version of their job
        added = tuple(replace(each, replica=at, wave=wave) for each, at in zip(placements, numbers, strict=True))
        more = held_amounts(wanted.demand, added, self._state.fleet.snapshot.device)
        amounts = total_of((attempt.amounts, more))
        every = tuple(sorted((*attempt.placements, *added), key=lambda each: each.replica))
        after = replace(attempt, placements=every, amounts=amounts).sized()
        self._state.tree.hold(key, owner, amounts)
        self._state.bookings[key] = booking
        return Resize(job, attempt, after, owner, added, wanted, profile, booking)

    # Fewer replicas.

    def _shrink(self, job: JobRecord, attempt: Attempt, number: int) -> Resize | None:
        ended = self._sizes.completed_replicas(attempt)
        number = min(number, len(attempt.remaining) - 1)
        chosen = chosen_to_leave(attempt, number, self._state.fleet.snapshot, ended)
        if not chosen:
            return None
        return Resize(job, attempt, attempt.leaving(chosen), Owner(job.spec.queue, job.spec.tenant, job.submitted_by))


def chosen_to_leave(
    attempt: Attempt, number: int, snapshot: Snapshot, retained: Collection[int] = ()
) -> frozenset[int]:
    """Return the replicas to remove: those on the nodes that are the emptiest then, so that whole nodes become free.

    Those of one workload leave in the order of `leaving_order`.

    Parameters
    ----------
    retained
        Replicas that do not leave.
    """
    left = [deque(workload) for workload in leaving_order(attempt)]
    freed: defaultdict[int, int] = defaultdict(int)
    chosen: set[int] = set()
    for _ in range(number):
        tails = [each for each in left if each and each[0].replica not in retained]
        if not tails:
            break
        best = max(tails, key=lambda each: (_free_share(each[0], attempt, snapshot, freed), each[0].replica)).popleft()
        freed[snapshot.node_index.get((best.cluster, best.node), -1)] += _size(best, attempt)
        chosen.add(best.replica)
    return frozenset(chosen)


def leaving_order(attempt: Attempt) -> list[list[Placement]]:
    """Return the replicas that may leave, those of each workload from the last one on, as its controller needs it."""
    headed, one_template = attempt.spec.template in HEADED, attempt.spec.template in ONE_TEMPLATE
    workloads = defaultdict[Hashable, list[Placement]](list)
    for each in sorted(attempt.remaining, key=lambda each: each.replica, reverse=True):
        if each.replica or not headed:
            workloads["" if one_template else each.place].append(each)
    return list(workloads.values())


def _free_share(leaves: Placement, attempt: Attempt, snapshot: Snapshot, freed: defaultdict[int, int]) -> float:
    """Return the free share of a node after a replica left; 1 for a node that is gone."""
    n = snapshot.node_index.get((leaves.cluster, leaves.node), -1)
    if n < 0:
        return 1.0
    total, free = (NODE_GPU_MEMORY, NODE_GPU_MEMORY_FREE) if leaves.slices else (NODE_CPU, NODE_CPU_FREE)
    whole = int(snapshot.arrays.nodes[total, n])
    then = int(snapshot.arrays.nodes[free, n]) + freed[n] + _size(leaves, attempt)
    return then / whole if whole else 1.0


def _size(placement: Placement, attempt: Attempt) -> int:
    """Return the memory of the devices of a replica, or its CPU without devices."""
    return sum(each.memory_mib for each in placement.slices) or attempt.spec.demand.request.cpu_milli
