"""What-if questions, answered on a copy of the live fleet."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from seaway.application.admission import Admission
from seaway.application.control import pending
from seaway.application.control.loop import Controller
from seaway.application.control.pending import Entry
from seaway.application.control.rejections import NEVER_REFUSED, Refusals
from seaway.application.control.scheduler.forecast import PlanState, Running, in_order, running
from seaway.application.control.scheduler.reservations import NEVER_NS
from seaway.application.control.tenancy import Names
from seaway.application.operations import require_policy
from seaway.application.ports.store import Store
from seaway.application.records import Attempt, JobRecord
from seaway.application.whatif.clusters import ClusterChange, ClusterSums, sums_of
from seaway.application.whatif.dry_run import reserved_text
from seaway.application.whatif.place import ASKED, Placed, Placer, Reserved, Task, where
from seaway.application.whatif.queues import QueueChanges
from seaway.application.whatif.trace import InTurn, Spread, TraceChanges, TraceJob, past_jobs, replay_trace
from seaway.application.whatif.waits import Side, WaitChanges, compare
from seaway.domain.amounts import Amounts, capacity_of, total_of
from seaway.domain.cluster import Cluster, Fleet
from seaway.domain.device import Device
from seaway.domain.errors import RejectedError
from seaway.domain.job import Demand
from seaway.domain.job_spec import JobSpec
from seaway.domain.job_state import JobState
from seaway.domain.node import Node
from seaway.domain.queues import Queue
from seaway.scheduling.allocations import Allocation
from seaway.scheduling.columns import CLUSTER_GPU_CORE, CLUSTER_GPU_CORE_FREE
from seaway.scheduling.profile import Profile
from seaway.scheduling.queueing.backfill import NEVER_S
from seaway.scheduling.queueing.lanes import LaneName
from seaway.scheduling.queueing.past_durations import PastRuns
from seaway.scheduling.queueing.tree import Key, Owner, QueueTree
from seaway.scheduling.snapshot.snapshot import Snapshot
from seaway.scheduling.snapshot.update import put_node
from seaway.simulation.outcome import use, used_shares

TOO_LARGE = "resources"
"""Field of the admission error for a job that exceeds the fleet."""

MAX_NODES = 1000
"""Maximum number of nodes that a question can add."""


@dataclass(frozen=True, slots=True)
class NewNodes:
    """Nodes to add to a cluster, each a copy of an existing node."""

    cluster: str
    like: str
    count: int


@dataclass(frozen=True, slots=True)
class Question:
    """What-if question. All parts that are set apply together.

    Attributes
    ----------
    drain
        Clusters, or ``cluster/node``, to drain.
    add_nodes
        Nodes to add.
    policy
        Policy that places all live jobs again; empty leaves running jobs in place.
    jobs
        Jobs to submit.
    replan
        Whether the policies of the queues place all live jobs again.
    changes
        Changes of queues and tenants.
    window_s
        Time from now that shares of GPUs cover, seconds.
    trace
        Jobs to replay on a copy of the empty fleet, beside the answer for the present jobs.
    last_s
        Time in which the submitted jobs are replayed in place of `trace`, seconds; 0 for none.
    """

    drain: tuple[str, ...] = ()
    add_nodes: tuple[NewNodes, ...] = ()
    policy: str = ""
    jobs: tuple[JobSpec, ...] = ()
    replan: bool = False
    changes: QueueChanges = field(default_factory=QueueChanges)
    window_s: int = 3600
    trace: tuple[TraceJob, ...] = ()
    last_s: int = 0

    @property
    def replays(self) -> bool:
        """True if a trace is replayed."""
        return bool(self.trace or self.last_s)

    @property
    def everything(self) -> bool:
        """True if all live jobs are placed again."""
        return self.replan or bool(self.policy)


@dataclass(frozen=True, slots=True)
class Sums:
    """Totals of a fleet.

    Attributes
    ----------
    placed, waiting
        Number of jobs.
    allocation_percent
        Allocated share of the GPU cores on nodes that accept new work; None without GPUs.
    fragmentation
        See `seaway.simulation.outcome.Use`.
    """

    placed: int
    waiting: int
    allocation_percent: float | None
    fragmentation: float | None


@dataclass(frozen=True, slots=True)
class Move:
    """Placement of a job before and after: cluster and node of each replica; empty without a placement.

    Attributes
    ----------
    why
        Reason why the job would wait; empty if it would not, or if the limit of explained kinds is reached.
    starts_ns
        Expected start of a waiting job after the change, by the wall clock; None if it is unknown.
    """

    job_id: str
    job: str
    before: tuple[str, ...]
    after: tuple[str, ...]
    why: str = ""
    starts_ns: int | None = None

    @property
    def asked(self) -> bool:
        """True if the job is part of the question and was never submitted."""
        return self.job_id.startswith(ASKED)


@dataclass(frozen=True, slots=True)
class Consequences:
    """Answer to a question.

    Attributes
    ----------
    moved
        Jobs that would move.
    started
        Waiting or submitted jobs that would run.
    stopped
        Running jobs that would have to wait.
    waiting
        Waiting or submitted jobs that would wait.
    message
        The answer in one sentence.
    clusters
        Totals of each cluster, before and after.
    waits
        Waits of jobs until their expected starts, before and after.
    trace
        Replays of the trace before and after; None without one.
    """

    before: Sums
    after: Sums
    moved: tuple[Move, ...]
    started: tuple[Move, ...]
    stopped: tuple[Move, ...]
    waiting: tuple[Move, ...]
    message: str
    clusters: tuple[ClusterChange, ...]
    waits: WaitChanges
    trace: TraceChanges | None = None


@dataclass(frozen=True, slots=True)
class _Copy:
    """Copy of the live state.

    Attributes
    ----------
    held
        Live attempts with their allocations.
    ends
        Allocations of attempts with their expected ends, for `Placer.ends`.
    reserved
        Reservations of waiting jobs, by the key of `Reservations`.
    jobs
        Their jobs, by ID, each with the past runs from which its duration is learned.
    fleet
        All inventories, for a replay.
    """

    snapshot: Snapshot
    tree: QueueTree
    state: PlanState
    held: Sequence[tuple[Attempt, Allocation]]
    ends: list[tuple[int, Allocation]] | None
    reserved: Sequence[tuple[str, Entry, Reserved]]
    jobs: Mapping[str, tuple[JobRecord, PastRuns | None]]
    refusals: Mapping[str, Refusals]
    fleet: Fleet


class WhatIf:
    """Answers to what-if questions.

    Parameters
    ----------
    controller
        Controller with the fleet and the queues.
    admission
        Rejects the jobs that a submit would reject, and adds the traits of their templates.
    store
        Past jobs.
    spread
        Execution of replays, which take long; None for the calling thread.
    """

    def __init__(
        self, controller: Controller, admission: Admission, store: Store, spread: Spread | None = None
    ) -> None:
        self._controller = controller
        self._admission = admission
        self._store = store
        self.spread = spread or InTurn()

    def ask(self, question: Question) -> Consequences:
        """Return the consequences of a question.

        Raises
        ------
        RejectedError
            If the question names an unknown object, or admission rejects a job.
        UnavailableError
            While the state is being reloaded, or a policy is being compiled.
        """
        question = self._with_traits(question)
        with self._controller.lock:
            self._controller.require_read()
        present = self._controller.names
        names = question.changes.applied(present) if question.changes else present
        self._check(question, names)
        copy = self._copy(replays=question.replays)
        snapshot, changes = copy.snapshot, question.changes
        lanes = [each.lane for each in copy.state.entries]
        lanes += [(attempt.spec.queue, attempt.spec.tenant) for attempt, *_ in copy.state.attempts]
        changes.require_leaves(present, names, lanes)
        before = _sums(snapshot, len(copy.held), len(copy.state.entries))
        clusters = sums_of(snapshot, [where(attempt.placements) for attempt, _ in copy.held])
        added = _add(snapshot, question.add_nodes)
        drained = _close(snapshot, question.drain)
        state = _changed(copy.state, changes, names, drained, added)
        tree = copy.tree
        tree.set_queues(state.queues, state.tenants)
        tree.set_capacities(state.capacities)
        _move_use(tree, copy.state, changes)
        make = _Entries(names, tree, state, copy.refusals)
        entries = [make.again(each, changes) for each in state.entries] if changes else list(state.entries)
        asked = [make.asked(at, spec) for at, spec in enumerate(question.jobs)]
        leaving = _leaving(question, drained, copy.held)
        for attempt, booking in leaving:
            booking.release(snapshot)
            tree.release((attempt.job_id, attempt.number))
        left = {attempt.job_id: make.moved(*copy.jobs[attempt.job_id], changes) for attempt, _ in leaving}
        others = in_order(state.discipline, tree.copy(), [*entries, *asked])
        moving = ((left[attempt.job_id], where(attempt.placements)) for attempt, _ in leaving)
        tasks = self._tasks([*moving, *((each, ()) for each in others)])
        policies = {name: self._policy(question.policy, name, names) for name in {task.queue for task in tasks}}
        placer = Placer(snapshot, policies, tree, copy.ends, _left_reserved(question, drained, copy.reserved))
        placer.place(tasks)
        stopped = [each for job_id, each in left.items() if job_id not in placer.placed]
        state = replace(state, entries=[*stopped, *entries, *asked])
        after = Side(state, _still_running(state, left, placer.placed, changes))
        waits = compare(Side(copy.state, running(copy.state)), after, question.window_s)
        stayed = [where(attempt.placements) for attempt, _ in copy.held if attempt.job_id not in left]
        places = [each.where for each in placer.placed.values()]
        answer = _consequences(
            _moves(tasks, placer, waits),
            (before, _sums(snapshot, len(stayed) + len(places), len(tasks) - len(places))),
            _changes(clusters, sums_of(snapshot, [*stayed, *places])),
            waits,
        )
        if not question.replays:
            return answer
        usable = {each.name for each in copy.state.clusters}
        empty = replace(copy.fleet, clusters=tuple(each for each in copy.fleet.clusters if each.name in usable))
        grown = replace(empty, clusters=tuple(_with_nodes(each, drained, added) for each in empty.clusters))
        return self._with_trace(answer, question, (present, names), (empty, grown))

    def _with_trace(
        self, answer: Consequences, question: Question, names: tuple[Names, Names], fleets: tuple[Fleet, Fleet]
    ) -> Consequences:
        """Add the replays of a trace."""
        jobs: Sequence[TraceJob] = question.trace
        skipped = 0
        if question.last_s:
            now_ns = self._controller.live.clock.now_ns()
            jobs, skipped = past_jobs(self._store, question.last_s, now_ns)
        trace = replay_trace(jobs, question.changes, names, fleets, question.policy, self.spread)
        trace = replace(trace, skipped=skipped)
        return replace(answer, message=f"{answer.message}, {trace.message}", trace=trace)

    def _with_traits(self, question: Question) -> Question:
        """Add the traits of templates to all jobs. Jobs of one kind share a spec."""
        specs = {id(each): each for each in (*question.jobs, *(each.spec for each in question.trace))}
        known = {key: self._admission.with_template_traits(each) for key, each in specs.items()}
        jobs = tuple(known[id(each)] for each in question.jobs)
        return replace(
            question, jobs=jobs, trace=tuple(replace(each, spec=known[id(each.spec)]) for each in question.trace)
        )

    def _copy(self, *, replays: bool) -> _Copy:
        """Copy the live state, without reservations."""
        with self._controller.lock:
            live = self._controller.live
            snapshot = live.fleet.snapshot.copy()
            snapshot.unshare_demands()  # the loop continues to write into its own
            reservations, now_ns = self._controller.scheduler.reservations, live.clock.monotonic_ns()
            reservations.lift_from(snapshot)
            bookings = {key: booking.copy() for key in live.attempts if (booking := live.fleet.booking(key))}
            held = [(live.attempts[key], each) for key, each in bookings.items() if live.attempts[key].state.live]
            ends = [
                (ends_ns - now_ns if ends_ns < NEVER_NS else ends_ns, bookings[key])
                for ends_ns, key in reservations.ends()
                if key in bookings
            ]
            records = [live.jobs[attempt.job_id] for attempt, _ in held]
            jobs = {each.id: (each, live.history.runs(each.spec, each.submitted_by)) for each in records}
            state = self._controller.forecast.state()
            fleet = live.fleet.fleet() if replays else Fleet(())
            reserved = [
                (reservations.own(entry), entry, Reserved(entry.job, each.placements, starts_ns and starts_ns - now_ns))
                for each in reservations.made()
                for entry, starts_ns in ((each.entry, each.starts_ns),)
            ]
            return _Copy(
                snapshot,
                live.tree.copy(),
                state,
                held,
                ends if live.settings.reservations else None,
                reserved,
                jobs,
                dict(live.refusals),
                fleet,
            )

    def _tasks(self, entries: Sequence[tuple[Entry, tuple[str, ...]]]) -> list[Task]:
        """Return the jobs to place. Jobs of one kind share what is reserved in advance for others."""
        known: dict[Hashable, tuple[Demand, str]] = {}
        tasks = []
        with self._controller.lock:
            advance = self._controller.live.advance
            for entry, before in entries:
                spec, job = entry.record.spec, entry.job
                key = (entry.kind, *entry.lane, spec.time_limit_s)
                if key not in known:
                    known[key] = advance.narrow(job, spec).demand, reserved_text(advance.closed_to(spec))
                demand, reserved = known[key]
                allowed, lasts_s = replace(job, demand=demand), entry.max_duration_s
                tasks.append(Task(job, spec.name, entry.owner, before, allowed, reserved, lasts_s))
        return tasks

    def _check(self, question: Question, names: Names) -> None:
        """Reject invalid questions, and compile policies without holding the lock."""
        if question.policy:
            require_policy(self._controller.scheduler, question.policy, "policy")
        for at, spec in enumerate(question.jobs):
            self._check_job(at, spec, names, grows=bool(question.add_nodes))
        for at, (name, fields) in enumerate(question.changes.queues):
            if "policy" in fields:
                require_policy(self._controller.scheduler, names.queues[name].policy_spec, f"queues.{at}.policy")
        wanted = {question.policy} if question.policy else {queue.policy_spec for queue in names.queues.values()}
        self._controller.scheduler.readiness.require(*sorted(wanted))

    def _check_job(self, at: int, spec: JobSpec, names: Names, *, grows: bool) -> None:
        """Reject a job as a submit does, unless it is only too large and the question adds nodes."""
        try:
            self._admission.admit(spec, names=names)
        except RejectedError as error:
            if grows and error.where == TOO_LARGE and not error.also:
                return
            parts = [RejectedError(each.message, where=f"jobs.{at}.{each.where}") for each in (error, *error.also)]
            raise RejectedError(parts[0].message, where=parts[0].where, also=tuple(parts[1:])) from None

    def _policy(self, wanted: str, queue: str, names: Names) -> Profile:
        known = names.queues.get(queue)
        scheduler = self._controller.scheduler
        return scheduler.policy(wanted or (known.policy_spec if known else scheduler.policy_of(queue)))


@dataclass(frozen=True, slots=True)
class _Entries:
    """Queue entries of jobs with the changed queues."""

    names: Names
    tree: QueueTree
    state: PlanState
    refusals: Mapping[str, Refusals]

    def of(self, record: JobRecord, past: PastRuns | None = None) -> Entry:
        """Return the entry of a job."""
        spec = record.spec
        queue = self.names.queues.get(spec.queue) or Queue(spec.queue)
        refusals = self.refusals.get(record.id, NEVER_REFUSED)
        user = record.submitted_by if self.tree.limits_users(spec.queue, spec.tenant) else ""
        clusters = self.names.clusters_of(spec.queue)
        return pending.entry(record, queue, clusters, self.state.discipline, refusals, apart=user, past=past)

    def moved(self, record: JobRecord, past: PastRuns | None, changes: QueueChanges) -> Entry:
        """Return the entry of a job in the queue in which it would be."""
        queue = changes.queue_of(record.spec.queue, record.spec.tenant)
        return self.of(record if queue == record.spec.queue else _in_queue(record, queue), past)

    def again(self, entry: Entry, changes: QueueChanges) -> Entry:
        """Return the entry of a waiting job again, if its queue or tenant changes."""
        changed = {name for name, _ in (*changes.queues, *changes.tenants)}
        same = changed.isdisjoint(entry.lane) and changes.queue_of(*entry.lane) == entry.queue
        return entry if same else self.moved(entry.record, entry.past, changes)

    def asked(self, at: int, spec: JobSpec) -> Entry:
        """Return the entry of a job of the question."""
        now_ns = self.state.now_ns + at  # in the order of the question
        return self.of(JobRecord(f"{ASKED}{at}", spec, JobState.PENDING, now_ns, now_ns, ""))


def _in_queue(record: JobRecord, queue: str) -> JobRecord:
    return replace(record, spec=replace(record.spec, queue=queue))


def _leaving(
    question: Question, drained: Collection[tuple[str, str]], held: Sequence[tuple[Attempt, Allocation]]
) -> list[tuple[Attempt, Allocation]]:
    """Return the jobs to place again, oldest first."""
    return [
        (attempt, booking)
        for attempt, booking in sorted(held, key=lambda each: each[0].created_ns)
        if question.everything or any((each.cluster, each.node) in drained for each in attempt.placements)
    ]


def _left_reserved(
    question: Question, drained: Collection[tuple[str, str]], reserved: Sequence[tuple[str, Entry, Reserved]]
) -> dict[str, Reserved]:
    """Return the reservations that a question leaves as they are, for `Placer.reserved`."""
    return {
        key if "/" in key else question.changes.queue_of(*entry.lane): each
        for key, entry, each in reserved
        if not question.everything and all((place.cluster, place.node) not in drained for place in each.placements)
    }


def _changed(
    state: PlanState,
    changes: QueueChanges,
    names: Names,
    drained: Collection[tuple[str, str]],
    added: Sequence[tuple[str, Node]],
) -> PlanState:
    """Return the inputs of a plan with changed queues, tenants and nodes."""
    past: dict[LaneName, Amounts] = {}
    for (queue, tenant), amounts in state.past.items():
        lane = changes.queue_of(queue, tenant), tenant
        past[lane] = total_of([past.get(lane, {}), amounts])
    clusters, capacities = list(state.clusters), dict(state.capacities)
    if drained or added:
        clusters = [_with_nodes(each, drained, added) for each in clusters]
        new = [Cluster(cluster, (node,)) for cluster, node in added]
        for pool in names.pools.values():
            more = [capacity_of(each) for each in new if not pool.clusters or each.name in pool.clusters]
            capacities[pool.name] = total_of([capacities.get(pool.name, {}), *more])
    queues, tenants = list(names.queues.values()), list(names.tenants.values())
    return replace(state, queues=queues, tenants=tenants, past=past, clusters=clusters, capacities=capacities)


def _with_nodes(cluster: Cluster, drained: Collection[tuple[str, str]], added: Sequence[tuple[str, Node]]) -> Cluster:
    left = [node for node in cluster.nodes if (cluster.name, node.name) not in drained]
    return replace(cluster, nodes=(*left, *(node for name, node in added if name == cluster.name)))


def _move_use(tree: QueueTree, state: PlanState, changes: QueueChanges) -> None:
    """Count what running jobs hold in the queues in which they would be."""
    for attempt, user, _ in state.attempts if changes.moved else ():
        spec, key = attempt.spec, (attempt.job_id, attempt.number)
        queue = changes.queue_of(spec.queue, spec.tenant)
        if queue != spec.queue and tree.withdraw(key):
            tree.hold(key, Owner(queue, spec.tenant, user), attempt.amounts)


def _still_running(
    state: PlanState, left: Mapping[str, Entry], placed: Mapping[str, Placed], changes: QueueChanges
) -> list[tuple[Key, Running]]:
    """Return what runs after a change. A job that moves to other nodes starts again there."""
    found = []
    for key, each in running(state):
        owner = each.owner._replace(queue=changes.queue_of(*each.owner[:2]))
        if key[0] not in left:
            found.append((key, replace(each, owner=owner)))
        elif key[0] in placed:
            lasts_s, now = left[key[0]].max_duration_s, placed[key[0]]
            ends_s = NEVER_S if lasts_s is None else lasts_s
            found.append((key, Running(owner, now.amounts, now.clusters, ends_s, now.placements)))
    return found


def _close(snapshot: Snapshot, places: Iterable[str]) -> set[tuple[str, str]]:
    drained: set[tuple[str, str]] = set()
    for place in places:
        cluster, _, node = place.partition("/")
        found = {key for key in snapshot.node_index if key[0] == cluster and node in {"", key[1]}}
        if not found:
            there = ", ".join(sorted({key[0] for key in snapshot.node_index}))
            known = "" if node else f"; available: {there}"
            raise RejectedError(f"{'node' if node else 'cluster'} {place!r} not found{known}", where="drain")
        drained |= found
    for key in drained:
        put_node(snapshot, key[0], replace(snapshot.nodes[snapshot.node_index[key]], ready=False))
    return drained


def _add(snapshot: Snapshot, wanted: Iterable[NewNodes]) -> list[tuple[str, Node]]:
    """Add nodes, and return them with their clusters."""
    added: list[tuple[str, Node]] = []
    for each in wanted:
        index = snapshot.node_index.get((each.cluster, each.like))
        if index is None:
            raise RejectedError(f"node {each.cluster}/{each.like} not found", where="add_nodes")
        if not 1 <= each.count <= MAX_NODES:
            raise RejectedError(f"count is {each.count}, but must be 1 to {MAX_NODES}", where="add_nodes")
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


def _moves(tasks: Sequence[Task], placer: Placer, waits: WaitChanges) -> list[Move]:
    why, moves = placer.reasons(tasks), []
    for task in tasks:
        name = task.job.name
        after = placed.where if (placed := placer.placed.get(name)) else ()
        moves.append(Move(name, task.name, task.before, after, why.get(name, ""), waits.starts_ns.get(name)))
    return moves


def _consequences(
    moves: Sequence[Move], sums: tuple[Sums, Sums], clusters: tuple[ClusterChange, ...], waits: WaitChanges
) -> Consequences:
    moved = tuple(each for each in moves if each.before and each.after and each.before != each.after)
    started = tuple(each for each in moves if not each.before and each.after)
    stopped = tuple(each for each in moves if each.before and not each.after)
    left = tuple(each for each in moves if not each.before and not each.after)
    parts = [
        f"{len(moved)} {'job' if len(moved) == 1 else 'jobs'} would move",
        f"{len(started)} of {len(started) + len(left)} waiting jobs would start",
        f"{len(stopped)} running jobs would have to wait",
    ]
    if waits.earlier or waits.later:
        parts.append(f"{waits.earlier} waiting jobs are expected to start earlier, {waits.later} later")
    return Consequences(*sums, moved, started, stopped, left, ", ".join(parts), clusters, waits)


def _changes(before: dict[str, ClusterSums], after: dict[str, ClusterSums]) -> tuple[ClusterChange, ...]:
    return tuple(ClusterChange(name, sums, after[name]) for name, sums in before.items())


def _sums(snapshot: Snapshot, placed: int, waiting: int) -> Sums:
    sums = snapshot.arrays.clusters
    cores, free = int(sums[CLUSTER_GPU_CORE].sum()), int(sums[CLUSTER_GPU_CORE_FREE].sum())
    allocated = 100 * (cores - free) / cores if cores else None
    return Sums(placed, waiting, allocated, use(used_shares(sums)).fragmentation)
