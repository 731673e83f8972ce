"""A copy of the live state, and the changes of a what-if question to it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from seaway.application.control import pending
from seaway.application.control.rejections import NEVER_REFUSED, Refusals
from seaway.application.control.scheduler.forecast import NS_PER_S, PlanState, Running, running
from seaway.application.control.tenancy import Names
from seaway.application.transitions import without_lost
from seaway.application.whatif.place import ASKED, Placed, Reserved, RunningJob
from seaway.application.whatif.question import NewNodes, Question
from seaway.application.whatif.queues import QueueChanges
from seaway.domain.amounts import GPUS, Amounts, capacity_of, total_of
from seaway.domain.attempt import Attempt
from seaway.domain.cluster import Cluster, Fleet
from seaway.domain.device import Device
from seaway.domain.errors import RejectedError
from seaway.domain.job_record import JobRecord
from seaway.domain.job_spec import JobSpec
from seaway.domain.job_state import JobState
from seaway.domain.node import Node
from seaway.domain.queues import Elastic, Queue
from seaway.domain.reasons import Reason, also
from seaway.scheduling.allocations import Allocation
from seaway.scheduling.columns import PLAN_REPLICA
from seaway.scheduling.cycle.displace import in_clusters, spare_replicas
from seaway.scheduling.cycle.jobs import Entry
from seaway.scheduling.explain import Keeper
from seaway.scheduling.queueing.backfill import NEVER_S
from seaway.scheduling.queueing.discipline import QueueDiscipline
from seaway.scheduling.queueing.lanes import LaneName
from seaway.scheduling.queueing.past_durations import PastRuns
from seaway.scheduling.queueing.preemption import Candidate
from seaway.scheduling.queueing.tree import Key, Owner, QueueTree
from seaway.scheduling.snapshot.snapshot import Snapshot
from seaway.scheduling.snapshot.update import put_node

MAX_NODES = 1000
"""Maximum number of nodes that a question can add."""


@dataclass(frozen=True, slots=True)
class Copy:
    """Copy of the live state.

    Attributes
    ----------
    held
        Live attempts with their allocations.
    ends
        Allocations of attempts with their expected ends, for `Placer.ends`.
    ran_ns
        Time since the start of each of them.
    reserved
        Reservations of waiting jobs, by the key of `Reservations`.
    jobs
        Their jobs, by ID, each with the past runs from which its duration is learned.
    fleet
        All inventories, for a replay.
    closed
        Decisions that close clusters and nodes.
    later
        Number of tasks that wait until others of their array start or end.
    """

    snapshot: Snapshot
    tree: QueueTree
    state: PlanState
    held: Sequence[tuple[Attempt, Allocation]]
    ends: list[tuple[int, Allocation]] | None
    ran_ns: Mapping[Key, int]
    reserved: Sequence[tuple[str, Entry, Reserved]]
    jobs: Mapping[str, tuple[JobRecord, PastRuns | None]]
    refusals: Mapping[str, Refusals]
    fleet: Fleet
    closed: Sequence[Keeper] = ()
    later: int = 0

    @property
    def usable_fleet(self) -> Fleet:
        """The inventories of clusters that accept new work."""
        usable = {each.name for each in self.state.clusters}
        return replace(self.fleet, clusters=tuple(each for each in self.fleet.clusters if each.name in usable))


@dataclass(frozen=True, slots=True)
class Entries:
    """Queue entries of jobs with the changed queues."""

    names: Names
    tree: QueueTree
    state: PlanState
    refusals: Mapping[str, Refusals]

    def of(self, record: JobRecord, past: PastRuns | None = None) -> Entry:
        """Return the entry of a job."""
        rules, apart = self._rules(record.id, record.spec.queue, record.spec.tenant, record.submitted_by)
        return pending.entry(record, *rules, apart=apart, past=past)

    def moved(self, record: JobRecord, past: PastRuns | None, changes: QueueChanges) -> Entry:
        """Return the entry of a job in the queue in which it would be."""
        queue = changes.queue_of(record.spec.queue, record.spec.tenant)
        return self.of(record if queue == record.spec.queue else _in_queue(record, queue), past)

    def again(self, entry: Entry, changes: QueueChanges) -> Entry:
        """Return the entry of a waiting job again, if its queue or tenant changes."""
        changed = {name for name, _ in (*changes.queues, *changes.tenants)}
        same = changed.isdisjoint(entry.lane) and changes.queue_of(*entry.lane) == entry.queue
        if same:
            return entry
        rules, apart = self._rules(entry.id, changes.queue_of(*entry.lane), entry.tenant, entry.user)
        return pending.in_queue(entry, *rules, apart=apart)

    def _rules(
        self, job_id: str, queue: str, tenant: str, user: str
    ) -> tuple[tuple[Queue, frozenset[str], QueueDiscipline, Refusals], str]:
        """Return the arguments of `pending.entry` for a job in a queue, and its user if users have limits there."""
        known, refusals = self.names.queues.get(queue) or Queue(queue), self.refusals.get(job_id, NEVER_REFUSED)
        apart = user if self.tree.limits_users(queue, tenant) else ""
        return (known, self.names.clusters_of(queue), self.state.discipline, refusals), apart

    def asked(self, at: int, spec: JobSpec) -> Entry:
        """Return the entry of a job of the question."""
        now_ns = self.state.now_ns + at  # in the order of the question
        return self.of(JobRecord(f"{ASKED}{at}", spec, JobState.PENDING, now_ns, now_ns, ""))


def _in_queue(record: JobRecord, queue: str) -> JobRecord:
    return replace(record, spec=replace(record.spec, queue=queue))


def leaving_jobs(
    question: Question, drained: Collection[tuple[str, str]], held: Sequence[tuple[Attempt, Allocation]]
) -> list[tuple[Attempt, Allocation]]:
    """Return the jobs to place again, oldest first."""
    return [
        (attempt, booking)
        for attempt, booking in sorted(held, key=lambda each: each[0].created_ns)
        if question.everything or any((each.cluster, each.node) in drained for each in attempt.holding)
    ]


def shrink_off(
    copy: Copy, drained: Collection[tuple[str, str]], tree: QueueTree, changes: QueueChanges
) -> tuple[Copy, dict[str, Attempt]]:
    """Remove replicas of elastic jobs from drained nodes, where the jobs can continue without them.

    Return the copy with the jobs that have shrunk, and their attempts by job.
    """
    held, off = [], {}
    for attempt, booking in copy.held:
        (job, _), spec, after = copy.jobs[attempt.job_id], attempt.spec, None
        lost = {each.replica for each in attempt.remaining if (each.cluster, each.node) in drained}
        if lost and job.attempt == attempt.number and not any(each.completed for each in attempt.placements):
            after = without_lost(job, attempt, lost)
        if after:
            leaves = {each.replica for each in attempt.remaining} - {each.replica for each in after.remaining}
            stays = tuple(each for each in after.placements if each.replica not in leaves)
            off[job.id] = after = replace(after, placements=stays)
            booking.release(copy.snapshot, np.flatnonzero(np.isin(booking.decisions[:, PLAN_REPLICA], [*leaves])))
            owner = Owner(changes.queue_of(spec.queue, spec.tenant), spec.tenant, job.submitted_by)
            tree.hold((job.id, attempt.number), owner, after.amounts)
        held.append((after or attempt, booking))
    return replace(copy, held=held), off


def lost_gpu_hours(copy: Copy, jobs: Collection[str]) -> float:
    """Return the GPU-hours since their starts of some running jobs that have no checkpoints."""
    lost = (
        each.amounts.get(GPUS, 0) / 1000 * copy.ran_ns[each.job_id, each.number] / (3600 * NS_PER_S)
        for each, _ in copy.held
        if each.job_id in jobs and each.running_ns and not each.spec.checkpoint
    )
    return sum(lost)


def running_jobs(copy: Copy, tree: QueueTree, changes: QueueChanges, left: Collection[str]) -> list[RunningJob]:
    """Return the running jobs without those in `left`, as the changed queues let each be displaced."""
    usable, found = {each.name for each in copy.state.clusters}, []
    for attempt, booking in copy.held:
        (job, _), key, spec = copy.jobs[attempt.job_id], (attempt.job_id, attempt.number), attempt.spec
        if job.id in left or job.attempt != attempt.number or not booking.holds_any:
            continue
        node = tree.node(changes.queue_of(spec.queue, spec.tenant))
        ran_s = copy.ran_ns[key] / NS_PER_S
        preemptible = node.queue.preemptible if spec.preemptible is None else spec.preemptible
        young = attempt.running_ns and ran_s < node.queue.min_runtime_s
        loses = attempt.running_ns and not spec.checkpoint
        priority = job.spec.priority + node.queue.points((attempt.created_ns - job.submitted_ns) / NS_PER_S)
        lost = tree.loss(node.queue.name, attempt.amounts, ran_s if loses else 0)
        owner = Owner(node.queue.name, spec.tenant, job.submitted_by)
        candidate = Candidate(key, owner, attempt.amounts, booking, booking.nodes, priority, lost)
        may = bool(preemptible and usable.issuperset(attempt.clusters))
        replicas = spare_replicas(attempt, candidate, copy.snapshot)
        if node.queue.elastic is Elastic.LEND:
            replicas = in_clusters(replicas, attempt, usable)
        elif not may:
            replicas = ()
        found.append(RunningJob(candidate, may and not young, replicas))
    return found


def left_reserved(
    question: Question, drained: Collection[tuple[str, str]], reserved: Sequence[tuple[str, Entry, Reserved]]
) -> dict[str, Reserved]:
    """Return the reservations that a question leaves as they are, for `Placer.reserved`."""
    return {
        key if "/" in key else question.changes.queue_of(*entry.lane): each
        for key, entry, each in reserved
        if not question.everything and all((place.cluster, place.node) not in drained for place in each.placements)
    }


def changed(
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
        clusters = [with_nodes(each, drained, added) for each in clusters]
        new = [Cluster(cluster, (node,)) for cluster, node in added]
        for pool in names.pools.values():
            more = [capacity_of(each) for each in new if not pool.clusters or each.name in pool.clusters]
            capacities[pool.name] = total_of([capacities.get(pool.name, {}), *more])
    queues, tenants = list(names.queues.values()), list(names.tenants.values())
    return replace(state, queues=queues, tenants=tenants, past=past, clusters=clusters, capacities=capacities)


def with_nodes(cluster: Cluster, drained: Collection[tuple[str, str]], added: Sequence[tuple[str, Node]]) -> Cluster:
    """Return a cluster without drained nodes and with added ones."""
    left = [node for node in cluster.nodes if (cluster.name, node.name) not in drained]
    return replace(cluster, nodes=(*left, *(node for name, node in added if name == cluster.name)))


def changed_tree(copy: Copy, state: PlanState, changes: QueueChanges) -> QueueTree:
    """Return the changed queues, in which running jobs count where they would be."""
    tree = copy.tree
    tree.set_queues(state.queues, state.tenants)
    tree.set_capacities(state.capacities)
    for attempt, user, _ in copy.state.attempts if changes.moved else ():
        spec, key = attempt.spec, (attempt.job_id, attempt.number)
        queue = changes.queue_of(spec.queue, spec.tenant)
        if queue != spec.queue and tree.withdraw(key):
            tree.hold(key, Owner(queue, spec.tenant, user), attempt.amounts)
    return tree


def still_running(
    state: PlanState,
    left: Mapping[str, Entry],
    placed: Mapping[str, Placed],
    changes: QueueChanges,
    shrunk: Mapping[str, Placed],
) -> list[tuple[Key, Running]]:
    """Return what runs after a change. A job that moves to other nodes starts again there.

    Parameters
    ----------
    shrunk
        Remaining replicas of elastic jobs that shrink, by ID.
    """
    found = []
    for key, each in running(state):
        owner = each.owner._replace(queue=changes.queue_of(*each.owner[:2]))
        if key[1] < 0:  # replicas that leave already
            found.append((key, replace(each, owner=owner)))
        elif now := shrunk.get(key[0]):
            found.append((key, Running(owner, now.amounts, now.clusters, each.ends_s, now.placements)))
        elif key[0] not in left:
            found.append((key, replace(each, owner=owner)))
        elif key[0] in placed:
            lasts_s, now = left[key[0]].max_duration_s, placed[key[0]]
            ends_s = NEVER_S if lasts_s is None else lasts_s
            found.append((key, Running(owner, now.amounts, now.clusters, ends_s, now.placements)))
    return found


def close_places(snapshot: Snapshot, places: Iterable[str]) -> set[tuple[str, str]]:
    """Close clusters and nodes to all jobs, and return the nodes with their clusters.

    Raises
    ------
    RejectedError
        If a place is unknown.
    """
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


def add_nodes(snapshot: Snapshot, wanted: Iterable[NewNodes]) -> list[tuple[str, Node]]:
    """Add nodes, and return them with their clusters.

    Raises
    ------
    RejectedError
        If the node to copy is unknown, or the number is too large.
    """
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
