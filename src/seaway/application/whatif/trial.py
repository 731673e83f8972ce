"""A copy of the control loop on which a what-if question is tried."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from seaway.application.control.advance_reservations import closed_places
from seaway.application.control.loop import Controller
from seaway.application.control.scheduler.forecast import expected_starts
from seaway.application.control.scheduler.forks import copy_of
from seaway.application.control.scheduler.waiting_reasons import BEHIND, DELAYS
from seaway.application.control.tenancy import Names
from seaway.application.transitions import without_lost
from seaway.application.whatif.limitations import RESERVED, reserved_text
from seaway.application.whatif.queues import QueueChanges
from seaway.application.whatif.waits import Side
from seaway.domain.amounts import GPUS, Amounts, capacity_of, total_of
from seaway.domain.attempt import NS_PER_S, Attempt
from seaway.domain.cluster import Cluster, Fleet
from seaway.domain.device import Device
from seaway.domain.errors import RejectedError
from seaway.domain.job_record import JobRecord
from seaway.domain.job_spec import JobSpec
from seaway.domain.job_state import JobState
from seaway.domain.node import Node
from seaway.domain.placement import Placement
from seaway.domain.queues import Backfill
from seaway.domain.reasons import Reason, also
from seaway.scheduling.cycle.ahead import Ahead
from seaway.scheduling.cycle.jobs import Entry
from seaway.scheduling.cycle.plan import PlanState, in_order, planned, running
from seaway.scheduling.cycle.waiting import Waiting
from seaway.scheduling.engine import trial_placements
from seaway.scheduling.explain import Keeper, explain, summary
from seaway.scheduling.queueing.lanes import LaneName
from seaway.scheduling.shortage import shortage
from seaway.scheduling.snapshot.snapshot import Snapshot
from seaway.scheduling.snapshot.update import put_node

ASKED = "asked-"
"""Prefix of the names of jobs in a question. Job IDs have no hyphen."""

MAX_FOLLOWED = 200
"""Maximum number of running and waiting jobs of which each is followed, on both sides. With more, amounts count."""

MAX_NODES = 1000
"""Maximum number of nodes that a question can add."""

MAX_PLANNED = 10_000
"""Maximum number of jobs with a planned start on each side."""

MAX_EXPLAINED = 20
"""Maximum number of explained kinds of waiting jobs."""


@dataclass(frozen=True, slots=True)
class NewNodes:
    """Nodes to add to a cluster, each a copy of an existing node."""

    cluster: str
    like: str
    count: int


class Trial:
    """A fork of the control loop's state with its cycle, and changes to it.

    Parameters
    ----------
    names
        Queues, pools and tenants of the question.
    policy
        Policy of all queues; empty for that of each.

    Attributes
    ----------
    held
        Live attempts before all changes, oldest first.
    later
        Number of tasks that wait until others of their array start or end.
    off
        Attempts of elastic jobs that continue without their replicas on drained nodes, by job.
    """

    def __init__(self, controller: Controller, names: Names, policy: str = "") -> None:
        self.names = names
        with controller.lock:
            live = controller.live
            # Plans count amounts only: which jobs do not fit is known for the present fleet, and not for another.
            self.before: PlanState = replace(controller.forecast.state(), refused=frozenset())
            self._unchanged = controller.forecast.ahead(self.before, MAX_FOLLOWED)
            copy = copy_of(live, controller.scheduler, controller.lock, names, policy)
            self._tenants = {**live.tenants}
            self._closed = closed_places(live.fleet, controller.names.reservations)
            self.later = sum(each.count for each in live.arrays.later())
        self.ahead, self._entries, self._policies = copy.ahead, copy.entries, copy.policies
        self.fork, self.cycle = self.ahead.fork, self.ahead.cycle
        self.held = sorted(
            (each for each in self.fork.attempts.values() if each.state.live), key=lambda each: each.created_ns
        )
        self.off: dict[str, Attempt] = {}
        self._began_ns = self.fork.began_ns.copy()
        self._state = self.before
        self._drained: set[tuple[str, str]] = set()
        self._added: Sequence[tuple[str, Node]] = ()

    @property
    def snapshot(self) -> Snapshot:
        """The fleet, with what waiting jobs reserve."""
        return self.fork.fleet.snapshot

    def free(self) -> Snapshot:
        """Return a copy of the fleet without what waiting jobs reserve."""
        copy = self.snapshot.copy()
        self.cycle.reservations.lift_from(copy)
        return copy

    # Changes.

    def use(self, changes: QueueChanges) -> None:
        """Use the queues and tenants of the question. Jobs count in the queues in which they would be."""
        names, fork = self.names, self.fork
        changed = _differing(fork.queues, names.queues) | _differing(self._tenants, names.tenants)
        if not (changed or changes.moved):
            return
        fork.use_queues(names.queues.values(), names.tenants.values())
        if changes.moved:
            self._move(changes)
        for entry in list(fork.waiting.entries()):
            queue = changes.queue_of(*entry.lane)
            if queue != entry.queue or not changed.isdisjoint(entry.lane):
                fork.waiting.remove(entry.id)
                fork.waiting.put(self._entries.again(entry, queue))
        fork.waiting.try_all()
        self._state = replace(
            self._state, queues=list(names.queues.values()), tenants=list(names.tenants.values()), past=fork.tree.past
        )

    def _move(self, changes: QueueChanges) -> None:
        """Let jobs and their past use count in other queues."""
        fork = self.fork
        past: dict[LaneName, Amounts] = {}
        for (queue, tenant), amounts in fork.tree.past.items():
            lane = changes.queue_of(queue, tenant), tenant
            past[lane] = total_of([past.get(lane, {}), amounts])
        fork.tree.set_past(past)
        for job in list(fork.jobs.values()):
            if (queue := changes.queue_of(job.spec.queue, job.spec.tenant)) != job.spec.queue:
                fork.jobs[job.id] = replace(job, spec=replace(job.spec, queue=queue))
        for key, attempt in list(fork.attempts.items()):
            if (queue := changes.queue_of(attempt.spec.queue, attempt.spec.tenant)) != attempt.spec.queue:
                fork.attempts[key] = moved = replace(attempt, spec=replace(attempt.spec, queue=queue))
                fork.changed.add(key)
                if fork.tree.withdraw(key):
                    fork.hold(moved)

    def change_nodes(self, drain: Iterable[str], wanted: Iterable[NewNodes]) -> set[tuple[str, str]]:
        """Add nodes, and close clusters and nodes to all jobs; return the closed ones.

        Raises
        ------
        RejectedError
            If a place or the node to copy is unknown, or the number of nodes is too large.
        """
        added, drained = _add_nodes(self.snapshot, wanted), _close(self.snapshot, drain)
        if added or drained:
            state = self._state
            new, capacities = [Cluster(cluster, (node,)) for cluster, node in added], dict(state.capacities)
            for pool in self.names.pools.values():
                more = [capacity_of(each) for each in new if not pool.clusters or each.name in pool.clusters]
                capacities[pool.name] = total_of([capacities.get(pool.name, {}), *more])
            self._state = replace(
                state, capacities=capacities, clusters=[_with_nodes(each, drained, added) for each in state.clusters]
            )
            self.fork.tree.set_capacities(capacities)
            self.fork.fleet.version += 1
            self.fork.waiting.try_all()
            self._closed = [*self._closed, Keeper("is_cordoned", {}, drained)]
        self._drained, self._added = drained, added
        return drained

    def grown(self, fleet: Fleet) -> tuple[Fleet, Fleet]:
        """Return a fleet without clusters that accept no new work, before and after the changes of nodes."""
        usable = {each.name for each in self._state.clusters}
        empty = replace(fleet, clusters=tuple(each for each in fleet.clusters if each.name in usable))
        after = tuple(_with_nodes(each, self._drained, self._added) for each in empty.clusters)
        return empty, replace(empty, clusters=after)

    def clear(self, *, everything: bool) -> list[Attempt]:
        """Send the jobs on drained nodes, or all, back to their queues; return their attempts, oldest first.

        Elastic jobs shrink if they can continue without the replicas on drained nodes.
        """
        leaving = []
        for attempt in self.held:
            key = attempt.job_id, attempt.number
            lost = {each.replica for each in attempt.remaining if (each.cluster, each.node) in self._drained}
            job = self.fork.jobs[attempt.job_id]
            whole = job.attempt == attempt.number and not any(each.completed for each in attempt.placements)
            if lost and whole and not everything and (after := without_lost(job, self.fork.attempts[key], lost)):
                self.fork.resize(after)
                self.off[job.id] = after
            elif everything or any((each.cluster, each.node) in self._drained for each in attempt.holding):
                self.ahead.stop(key)
                leaving.append(attempt)
        return leaving

    def submit(self, jobs: Iterable[JobSpec]) -> None:
        """Submit the jobs of the question."""
        for at, spec in enumerate(jobs):
            now_ns = self.fork.clock.now_ns() + at  # in the order of the question
            record = JobRecord(f"{ASKED}{at}", spec, JobState.PENDING, now_ns, now_ns, "")
            self.fork.submit(record, self._entries.of(record))

    # Decisions.

    def place_first(self, attempts: Iterable[Attempt]) -> None:
        """Place the jobs of ended attempts before all other jobs, without reservations."""
        reservations, waiting = self.cycle.reservations, self.fork.waiting
        for each in list(reservations.made()):
            reservations.release_placed(each.entry.id)
        self.fork.waiting = Waiting(waiting.discipline, self.fork.tree)
        for job_id in dict.fromkeys(each.job_id for each in attempts):
            if entry := waiting.get(job_id):
                waiting.remove(job_id)
                self.fork.waiting.put(entry)
        self.ahead.start_all()
        for entry in self.fork.waiting.entries():
            waiting.put(entry)
        self.fork.waiting = waiting
        waiting.try_all()

    def start(self) -> None:
        """Start all jobs that fit, without that others make room."""
        strict = [each.name for each in self._state.queues if each.backfill is Backfill.CONSERVATIVE]
        if strict:
            state = self.state()
            plan = planned(state, running(state), MAX_PLANNED)
            self.cycle.use_plan({job_id: each.starts_ns for job_id, each in plan.items()}, strict)
        self.ahead.start_all()

    def placements(self, job_id: str) -> tuple[Placement, ...]:
        """Return the places of a job; none while it waits."""
        job = self.fork.jobs[job_id]
        attempt = self.fork.attempts.get((job_id, job.attempt))
        return attempt.placements if attempt and attempt.state.live and job.state.placed else ()

    def in_order(self, without: Collection[str]) -> list[Entry]:
        """Return waiting jobs, without those of some IDs, in the order in which they are tried, as if each started."""
        waiting = self.fork.waiting
        entries = [each for each in waiting.entries() if each.id not in without]
        return list(in_order(waiting.discipline, self.fork.tree.fork(), entries))

    def state(self) -> PlanState:
        """Return the inputs of a plan of what follows."""
        return self._state.of_jobs(self.fork, self.cycle.reservations, self.cycle.preemptor)

    def sides(self, started: Sequence[Entry]) -> tuple[Side, Side]:
        """Return the waits before and after the changes. Afterwards, time has passed in the copy.

        Parameters
        ----------
        started
            Jobs that have waited and start now.
        """
        after = self.state()
        followed = self.ahead if after.follows(MAX_FOLLOWED) else None
        return _side(self.before, self._unchanged), _side(after, followed, started)

    # What became of jobs.

    def lost_gpu_hours(self, jobs: Collection[str]) -> float:
        """Return the GPU-hours since their starts of some running jobs that have no checkpoints."""
        now_ns = self.fork.clock.monotonic_ns()
        lost = 0.0
        for each in self.held:
            if each.job_id in jobs and each.running_ns and not each.spec.checkpoint:
                ran_ns = now_ns - self._began_ns.get((each.job_id, each.number), now_ns)
                lost += each.amounts.get(GPUS, 0) / 1000 * ran_ns / (3600 * NS_PER_S)
        return lost

    def reasons(self, snapshot: Snapshot) -> dict[str, str]:
        """Return why jobs wait, end or shrink, by ID, for a limited number of kinds; jobs of the question are first.

        Parameters
        ----------
        snapshot
            The fleet without reservations.
        """
        known: dict[Hashable, str] = {}
        explained, why, waiting = 0, dict[str, str](), self.fork.waiting
        strict = (each.name for each in self._state.queues if each.backfill is Backfill.NONE)
        heads = {head.id for queue in strict if (head := next(waiting.in_turn(queue), None))}
        for entry in sorted(waiting.entries(), key=lambda each: not each.id.startswith(ASKED)):
            kind = entry.lane, entry.kind, entry.user, entry.id in heads
            if kind not in known:
                if hit := waiting.limit_of(entry):
                    known[kind] = hit.message
                elif explained < MAX_EXPLAINED:
                    known[kind] = self._explain(entry, snapshot)
                    explained += 1
            why[entry.id] = known.get(kind, "")
        for (job_id, _), ended in self.ahead.ended.items():
            why[job_id] = Reason("displaced", winner=_named(ended.winner))
        for (job_id, _), gone in self.ahead.shrunk.items():
            first, *others = dict.fromkeys(_named(each) for each in gone.values())
            taker = Reason("and_more", what=first, count=len(others)) if others else first
            why[job_id] = Reason("shrinks_by", count=len(gone), winner=taker)
        return why

    def _explain(self, entry: Entry, snapshot: Snapshot) -> str:
        """Return why a job that has room under all limits waits."""
        job, profile = entry.job, self._policies.profile(entry.queue)
        reserved, made = reserved_text(self.fork.advance.closed_to(entry.spec)), bool(self.cycle.reservations.made())
        admits = None if reserved or made else partial(trial_placements, policy=profile)
        explanation = explain(snapshot, job, profile, admits=admits, closed=self._closed)
        short = shortage(snapshot, job, profile)
        if explanation.fits and not short:
            if self.fork.waiting.is_behind(entry):
                return BEHIND
            if self.cycle.delays_others(entry):
                return DELAYS
            return also(summary(explanation, short), reserved or (RESERVED if made else ""))
        return summary(explanation, short)


def _side(state: PlanState, ahead: Ahead | None, started: Sequence[Entry] = ()) -> Side:
    runs = running(state)
    return Side(state, runs, expected_starts(state, runs, ahead, MAX_PLANNED), started)


def _differing(before: Mapping[str, object], after: Mapping[str, object]) -> set[str]:
    return {name for name in before.keys() | after.keys() if before.get(name) != after.get(name)}


def _named(winner: Entry) -> Reason:
    return Reason("named_job", job=winner.display_name, queue=winner.queue)


def _with_nodes(cluster: Cluster, drained: Collection[tuple[str, str]], added: Sequence[tuple[str, Node]]) -> Cluster:
    left = [node for node in cluster.nodes if (cluster.name, node.name) not in drained]
    return replace(cluster, nodes=(*left, *(node for name, node in added if name == cluster.name)))


def _close(snapshot: Snapshot, places: Iterable[str]) -> set[tuple[str, str]]:
    drained: set[tuple[str, str]] = set()
    for place in places:
        cluster, _, node = place.partition("/")
        found = {key for key in snapshot.node_index if key[0] == cluster and node in {"", key[1]}}
        if not found:
            there = tuple(sorted({key[0] for key in snapshot.node_index}))
            missing = Reason("not_found", kind="node" if node else "cluster", name=place)
            raise RejectedError(also(missing, "" if node else Reason("available", names=there)), where="drain")
        drained |= found
    for key in drained:
        put_node(snapshot, key[0], replace(snapshot.nodes[snapshot.node_index[key]], ready=False))
    return drained


def _add_nodes(snapshot: Snapshot, wanted: Iterable[NewNodes]) -> list[tuple[str, Node]]:
    added: list[tuple[str, Node]] = []
    for each in wanted:
        index = snapshot.node_index.get((each.cluster, each.like))
        if index is None:
            raise RejectedError(Reason("node_not_found", place=f"{each.cluster}/{each.like}"), where="add_nodes")
        if not 1 <= each.count <= MAX_NODES:
            raise RejectedError(Reason("count_out_of_range", count=each.count, most=MAX_NODES), where="add_nodes")
        first = sum(cluster == each.cluster for cluster, _ in added)
        for number in range(first, first + each.count):
            node = _like(snapshot.nodes[index], each.cluster, f"new-{each.like}-{number}")
            put_node(snapshot, each.cluster, node)
            added.append((each.cluster, node))
    return added


def _like(node: Node, cluster: str, name: str) -> Node:
    devices = tuple(_fresh(device, f"{cluster}/{name}") for device in node.devices)
    return replace(node, name=name, devices=devices, ready=True, reason="")


def _fresh(device: Device, node: str) -> Device:
    return replace(device, uuid=f"{node}/{device.index}", healthy=True, cordoned=False, reason="")
