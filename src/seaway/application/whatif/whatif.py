"""What-if questions, answered on a copy of the live fleet."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, replace

from seaway.application.admission import Admission, shortage
from seaway.application.control.loop import Controller
from seaway.application.control.pending import Entry
from seaway.application.control.state import without_models
from seaway.application.operations import require_policy
from seaway.application.records import Attempt
from seaway.application.whatif.clusters import ClusterChange, ClusterSums, sums_of
from seaway.domain.amounts import held_amounts, requested_amounts
from seaway.domain.device import Device
from seaway.domain.errors import RejectedError
from seaway.domain.job import Job
from seaway.domain.job_spec import JobSpec
from seaway.domain.node import Node
from seaway.domain.placement import Placement
from seaway.scheduling.allocations import Allocation
from seaway.scheduling.columns import CLUSTER_GPU_CORE, CLUSTER_GPU_CORE_FREE
from seaway.scheduling.engine import decide
from seaway.scheduling.explain import explain, summary
from seaway.scheduling.job_queue import JobQueue
from seaway.scheduling.profile import Profile
from seaway.scheduling.queueing.tree import Key, Owner, QueueTree
from seaway.scheduling.snapshot.snapshot import Snapshot
from seaway.scheduling.snapshot.update import put_node
from seaway.simulation.outcome import use, used_shares

ASKED = "asked-"
"""Prefix of job names in a question. Job IDs have no hyphen."""

TOO_LARGE = "resources"
"""Field of the admission error for a job that exceeds the fleet."""

MAX_EXPLAINED = 20
"""Maximum number of explained kinds of waiting jobs."""

MAX_TOGETHER = 256
"""Maximum number of jobs that are decided before the limits of their queues are checked again."""

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
    """

    drain: tuple[str, ...] = ()
    add_nodes: tuple[NewNodes, ...] = ()
    policy: str = ""
    jobs: tuple[JobSpec, ...] = ()
    replan: bool = False

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
    """

    job_id: str
    job: str
    before: tuple[str, ...]
    after: tuple[str, ...]
    why: str = ""

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
    """

    before: Sums
    after: Sums
    moved: tuple[Move, ...]
    started: tuple[Move, ...]
    stopped: tuple[Move, ...]
    waiting: tuple[Move, ...]
    message: str
    clusters: tuple[ClusterChange, ...] = ()


@dataclass(frozen=True, slots=True)
class _Task:
    job: Job
    name: str
    owner: Owner
    before: tuple[str, ...]

    @property
    def queue(self) -> str:
        return self.owner.queue


class WhatIf:
    """Answers to what-if questions.

    Parameters
    ----------
    controller
        Controller with the fleet and the queues.
    admission
        Rejects the jobs that a submit would reject, and adds the traits of their templates.
    """

    def __init__(self, controller: Controller, admission: Admission) -> None:
        self._controller = controller
        self._admission = admission

    def ask(self, question: Question) -> Consequences:
        """Return the consequences of a question.

        Raises
        ------
        RejectedError
            If the question names an unknown object, or admission rejects a job.
        UnavailableError
            While the state is being reloaded, or a policy is being compiled.
        """
        question = replace(question, jobs=tuple(map(self._admission.with_template_traits, question.jobs)))
        self._check(question)
        with self._controller.lock:
            self._controller.require_read()
            live = self._controller.live
            snapshot = live.fleet.snapshot.copy()
            snapshot.unshare_demands()  # the loop continues to write into its own
            self._controller.scheduler.reservations.lift_from(snapshot)
            queues = {each.queue for each in live.waiting.entries()} | {spec.queue for spec in question.jobs}
            queues |= {attempt.spec.queue for attempt in live.attempts.values()}
            policies = {queue: self._policy(question.policy, queue) for queue in queues}
            held = [
                (attempt, booking.copy())
                for key, attempt in live.attempts.items()
                if attempt.state.live and (booking := live.fleet.booking(key))
            ]
            submitters = {attempt.job_id: live.jobs[attempt.job_id].submitted_by for attempt, _ in held}
            waiting = sorted(live.waiting.entries(), key=lambda entry: entry.order)
            pools = {queue: live.clusters_of(queue) for queue in queues}
            tree = live.tree.copy()
        before = _sums(snapshot, len(held), len(waiting))
        clusters = sums_of(snapshot, [_where(attempt.placements) for attempt, _ in held])
        _add(snapshot, question.add_nodes)
        leaving = self._leaving(snapshot, question, held)
        for attempt, _ in leaving:
            tree.release((attempt.job_id, attempt.number))
        tasks = [
            _task(attempt, pools[attempt.spec.queue], submitters.get(attempt.job_id, "")) for attempt, _ in leaving
        ]
        tasks += [_Task(each.job, each.record.spec.name, each.owner, ()) for each in waiting]
        for at, spec in enumerate(question.jobs):
            owner = Owner(spec.queue, spec.tenant)
            tasks.append(_Task(spec.job(f"{ASKED}{at}", pools[spec.queue]), spec.name, owner, ()))
        after, limited = _place(snapshot, tasks, policies, tree)
        why = _reasons(snapshot, [task for task in tasks if task.job.name not in after], policies) | limited
        left = {attempt.job_id for attempt, _ in leaving}
        stayed = [_where(attempt.placements) for attempt, _ in held if attempt.job_id not in left]
        changes = _changes(clusters, sums_of(snapshot, [*stayed, *after.values()]))
        answer = _consequences(snapshot, before, len(held) - len(leaving), tasks, after, why, waiting)
        return replace(answer, clusters=changes)

    def _check(self, question: Question) -> None:
        """Reject invalid questions, and compile policies without holding the lock."""
        if question.policy:
            require_policy(self._controller.scheduler, question.policy, "policy")
        for at, spec in enumerate(question.jobs):
            self._check_job(at, spec, grows=bool(question.add_nodes))
        scheduler = self._controller.scheduler
        with self._controller.lock:
            queues = [*self._controller.live.queues]
        wanted = [question.policy] if question.policy else [scheduler.policy_of(queue) for queue in queues]
        scheduler.readiness.require(*wanted)

    def _check_job(self, at: int, spec: JobSpec, *, grows: bool) -> None:
        """Reject a job as a submit does, unless it is only too large and the question adds nodes."""
        try:
            self._admission.admit(spec)
        except RejectedError as error:
            if grows and error.where == TOO_LARGE and not error.also:
                return
            parts = [RejectedError(each.message, where=f"jobs.{at}.{each.where}") for each in (error, *error.also)]
            raise RejectedError(parts[0].message, where=parts[0].where, also=tuple(parts[1:])) from None

    def _policy(self, wanted: str, queue: str) -> Profile:
        scheduler = self._controller.scheduler
        return scheduler.policy(wanted) if wanted else scheduler.profile(queue)

    def _leaving(
        self, snapshot: Snapshot, question: Question, held: Sequence[tuple[Attempt, Allocation]]
    ) -> list[tuple[Attempt, Allocation]]:
        """Close drained nodes on the copy, and release the jobs to place again, oldest first."""
        drained = _close(snapshot, question.drain)
        leaving = [
            (attempt, booking)
            for attempt, booking in sorted(held, key=lambda each: each[0].created_ns)
            if question.everything or any((each.cluster, each.node) in drained for each in attempt.placements)
        ]
        for _, booking in leaving:
            booking.release(snapshot)
        return leaving


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


def _add(snapshot: Snapshot, wanted: Iterable[NewNodes]) -> None:
    for each in wanted:
        index = snapshot.node_index.get((each.cluster, each.like))
        if index is None:
            raise RejectedError(f"node {each.cluster}/{each.like} not found", where="add_nodes")
        if not 1 <= each.count <= MAX_NODES:
            raise RejectedError(f"count is {each.count}, but must be 1 to {MAX_NODES}", where="add_nodes")
        for number in range(each.count):
            put_node(snapshot, each.cluster, _like(snapshot.nodes[index], f"new-{each.like}-{number}"))


def _like(node: Node, name: str) -> Node:
    devices = tuple(_fresh(device, name) for device in node.devices)
    return replace(node, name=name, devices=devices, ready=True, reason="")


def _fresh(device: Device, node: str) -> Device:
    return replace(device, uuid=f"{node}/{device.index}", healthy=True, cordoned=False, reason="")


def _task(attempt: Attempt, clusters: frozenset[str], user: str) -> _Task:
    spec = attempt.spec
    owner = Owner(spec.queue, spec.tenant, user)
    return _Task(spec.job(attempt.job_id, clusters), spec.name, owner, _where(attempt.placements))


def _place(
    snapshot: Snapshot, tasks: Sequence[_Task], policies: dict[str, Profile], tree: QueueTree
) -> tuple[dict[str, tuple[str, ...]], dict[str, str]]:
    """Place jobs in order, each with the policy of its queue, as far as the limits of queues allow.

    Returns
    -------
    tuple
        Locations of the jobs that fit, and the limit of each job that has no room under one.
    """
    went: dict[str, tuple[str, ...]] = {}
    limited: dict[str, str] = {}
    first = 0
    while first < len(tasks):
        end = first
        while end < min(len(tasks), first + MAX_TOGETHER) and (
            policies[tasks[end].queue] is policies[tasks[first].queue]
        ):
            end += 1
        allowed = []
        for task in tasks[first:end]:
            requested = requested_amounts(task.job.demand, task.job.replicas)
            if hit := tree.hit(task.owner, requested, task.job.name):
                limited[task.job.name] = hit.message
            else:
                tree.hold(_key(task), task.owner, requested)
                allowed.append(task)
        if allowed:
            _place_allowed(snapshot, allowed, policies[tasks[first].queue], tree, went, limited)
        first = end
    return went, limited


def _place_allowed(  # the two results of `_place`
    snapshot: Snapshot,
    tasks: Sequence[_Task],
    profile: Profile,
    tree: QueueTree,
    went: dict[str, tuple[str, ...]],
    limited: dict[str, str],
) -> None:
    """Place jobs whose least amounts have room, and release those that do not fit or exceed a limit after all."""
    for task in tasks:
        tree.release(_key(task))
    jobs = []
    for task in tasks:
        requested = requested_amounts(task.job.demand, task.job.replicas)
        jobs.append(without_models(task.job, tree.model_hits(task.owner, requested), snapshot))
    queue = JobQueue(snapshot, jobs)
    plan = decide(snapshot, queue, profile, dry_run=True)
    fits, by_name = plan.jobs_placed, {task.job.name: task for task in tasks}
    for at, job in enumerate(queue.jobs):
        task, rows = by_name[job.name], plan.rows_of(at)
        placements = [plan.placement(int(row)) for row in rows] if fits[at] else []
        amounts = held_amounts(job.demand, placements, snapshot.device)
        hit = tree.hit(task.owner, amounts, job.name) if placements else None
        if placements and not hit:
            tree.hold(_key(task), task.owner, amounts)
            went[job.name] = _where(placements)
            continue
        snapshot.release(plan.decisions, plan.slices, rows)
        if hit:
            limited[job.name] = hit.message


def _key(task: _Task) -> Key:
    return task.job.name, 0


def _reasons(snapshot: Snapshot, left: Sequence[_Task], policies: dict[str, Profile]) -> dict[str, str]:
    """Return why jobs would wait, by name, for a limited number of kinds; jobs of the question are first."""
    known: dict[Hashable, str] = {}
    why = {}
    for task in sorted(left, key=lambda task: not task.job.name.startswith(ASKED)):
        job, profile = task.job, policies[task.queue]
        kind = (job.demand, job.replicas, job.gang, job.single_cluster, job.between_replicas, job.data, profile)
        if kind not in known and len(known) < MAX_EXPLAINED:
            said = summary(explain(snapshot, job, profile))
            known[kind] = "; ".join(each for each in (said, shortage(snapshot, job, profile)) if each)
        why[job.name] = known.get(kind, "")
    return why


def _consequences(  # the two sides of a comparison
    snapshot: Snapshot,
    before: Sums,
    stayed: int,
    tasks: Sequence[_Task],
    after: dict[str, tuple[str, ...]],
    why: dict[str, str],
    waiting: Sequence[Entry],
) -> Consequences:
    moves = [
        Move(task.job.name, task.name, task.before, after.get(task.job.name, ()), why.get(task.job.name, ""))
        for task in tasks
    ]
    sums = _sums(snapshot, stayed + len(after), len(tasks) - len(after))
    moved = tuple(each for each in moves if each.before and each.after and each.before != each.after)
    started = tuple(each for each in moves if not each.before and each.after)
    stopped = tuple(each for each in moves if each.before and not each.after)
    left = tuple(each for each in moves if not each.before and not each.after)
    parts = [
        f"{len(moved)} {'job' if len(moved) == 1 else 'jobs'} would move",
        f"{len(started)} of {len(waiting) + _asked(tasks)} waiting jobs would start",
        f"{len(stopped)} running jobs would have to wait",
    ]
    return Consequences(before, sums, moved, started, stopped, left, ", ".join(parts))


def _changes(before: dict[str, ClusterSums], after: dict[str, ClusterSums]) -> tuple[ClusterChange, ...]:
    return tuple(ClusterChange(name, sums, after[name]) for name, sums in before.items())


def _asked(tasks: Sequence[_Task]) -> int:
    return sum(task.job.name.startswith(ASKED) for task in tasks)


def _where(placements: Iterable[Placement]) -> tuple[str, ...]:
    return tuple(f"{each.cluster}/{each.node}" for each in placements)


def _sums(snapshot: Snapshot, placed: int, waiting: int) -> Sums:
    sums = snapshot.arrays.clusters
    cores, free = int(sums[CLUSTER_GPU_CORE].sum()), int(sums[CLUSTER_GPU_CORE_FREE].sum())
    allocated = 100 * (cores - free) / cores if cores else None
    return Sums(placed, waiting, allocated, use(used_shares(sums)).fragmentation)
