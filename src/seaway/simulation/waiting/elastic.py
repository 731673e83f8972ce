"""Running jobs of a replay with queues, of which elastic ones get more and fewer replicas."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import count, islice
from typing import Protocol

import numpy as np

from seaway.domain.job import Job
from seaway.domain.job_spec import NO_CLUSTER
from seaway.scheduling.allocations import Allocation, allocations_of
from seaway.scheduling.columns import (
    NODE_CLUSTER,
    PLAN_BANDWIDTH,
    PLAN_NODE,
    PLAN_REPLICA,
    PLAN_SLICE_END,
    PLAN_SLICE_FIRST,
)
from seaway.scheduling.job_queue import JobQueue
from seaway.scheduling.plan import Plan
from seaway.scheduling.queueing.backfill import NEVER_S
from seaway.scheduling.queueing.preemption import Candidate, replicas_of
from seaway.scheduling.queueing.tree import Key, Owner


class Runs(Protocol):
    """Running jobs of a replay."""

    def stop(self, number: int) -> None:
        """End a job by its number, and release what it holds."""

    def decide(self, wanted: JobQueue) -> Plan:
        """Place replicas, as many as fit."""

    def release(self, plan: Plan) -> None:
        """Release what replicas hold."""

    def resize(self, number: int, plan: Plan, ends_s: int) -> None:
        """Let a job continue with other replicas, until another time."""


@dataclass(slots=True)
class Running:
    """A running job.

    Attributes
    ----------
    plan
        Its replicas.
    candidate
        The job as one that may be displaced.
    spare
        Replicas by which it can shrink.
    share, restart
        Its dominant share of the pool, and the cost of its restart.
    since_s, ends_s
        Start and end; `NEVER_S` without an end.
    rests_s
        Time from which it may get more replicas.
    """

    plan: Plan
    candidate: Candidate
    share: float
    since_s: int
    ends_s: int
    spare: Sequence[Candidate] = ()
    rests_s: int = 0
    restart: float = 0.0

    @classmethod
    def of(cls, job: Job, key: Key, plan: Plan, priority: int) -> Running:
        """Return a job without its share and times."""
        if job.elastic:
            plan = part(plan, plan.decisions[plan.placed, PLAN_REPLICA].tolist())
        (allocation,) = allocations_of(plan)
        amounts, owner = plan.amounts(job.demand.request), Owner(job.queue, job.tenant)
        whole = Candidate(key, owner, amounts, allocation, allocation.nodes, priority, 0.0)
        running = cls(plan, whole, 0.0, 0, NEVER_S)
        if job.elastic:
            replicas = sorted(whole.replicas, reverse=True)
            whole.spare = len(replicas) - job.replicas
            parts = {each: part(plan, {each}) for each in replicas} if whole.spare else {}
            held = {each: own.amounts(job.demand.request) for each, own in parts.items()}
            running.spare = replicas_of(whole, [[each] for each in replicas], held)
        return running

    @property
    def size(self) -> int:
        """Number of replicas."""
        return int(self.plan.placed.sum())

    def end_of(self, size: int, now_s: int) -> int:
        """Return its end with another number of replicas, which share the rest of its work."""
        return self.ends_s if self.ends_s >= NEVER_S else now_s + -(-(self.ends_s - now_s) * self.size // size)


def more_of(job: Job, plan: Plan, most: int) -> Iterator[Job]:
    """Yield new replicas of a running job as jobs: in the clusters of the others, then anywhere.

    In their clusters, their bandwidth to the user is already reserved. Replicas with bounds between them stay there.
    """
    wanted = replace(job, replicas=most, gang=False, single_cluster=False, ring=False, partial=True, max_replicas=0)
    demand, stays = job.demand, job.single_cluster or job.between_replicas.any
    if stays or demand.network.min_bandwidth_mbps:
        numbers = np.unique(plan.snapshot.arrays.nodes[NODE_CLUSTER, plan.decisions[plan.placed, PLAN_NODE]])
        own = frozenset(plan.snapshot.clusters[int(each)].name for each in numbers)
        allowed = (demand.nodes.clusters & own if demand.nodes.clusters else own) or NO_CLUSTER
        network = replace(demand.network, min_bandwidth_mbps=0)
        yield replace(wanted, demand=replace(demand, nodes=replace(demand.nodes, clusters=allowed), network=network))
    if not stays:
        yield wanted


def part(plan: Plan, replicas: Collection[int]) -> Plan:
    """Return some replicas of a job, with the bandwidth that they reserve."""
    placed = Allocation(plan.decisions[plan.placed], plan.slices)
    own = placed.part(replicas, reserves=True)
    return Plan(plan.snapshot, plan.queue, own.decisions, own.slices)


def split(plan: Plan, leaving: Collection[int]) -> tuple[Plan, Plan]:
    """Return the replicas of a job that leave, and the others, which keep the bandwidth to its user in a cluster."""
    left = part(plan, set(plan.decisions[:, PLAN_REPLICA].tolist()).difference(leaving))
    gone, cluster_of = part(plan, leaving), plan.snapshot.arrays.nodes[NODE_CLUSTER]
    for line in gone.decisions[gone.decisions[:, PLAN_BANDWIDTH] > 0]:
        same = np.flatnonzero(cluster_of[left.decisions[:, PLAN_NODE]] == cluster_of[line[PLAN_NODE]])
        if same.size:
            left.decisions[same[0], PLAN_BANDWIDTH] += line[PLAN_BANDWIDTH]
            gone.decisions[gone.decisions[:, PLAN_REPLICA] == line[PLAN_REPLICA], PLAN_BANDWIDTH] = 0
    return gone, left


def joined(plan: Plan, more: Plan) -> Plan:
    """Return the replicas of a job with new ones, which get free numbers."""
    taken = set(plan.decisions[:, PLAN_REPLICA].tolist())
    lines = more.decisions[more.placed]
    lines[:, PLAN_REPLICA] = [*islice((each for each in count() if each not in taken), len(lines))]
    lines[:, [PLAN_SLICE_FIRST, PLAN_SLICE_END]] += len(plan.slices)
    decisions = np.concatenate([plan.decisions, lines])
    return Plan(plan.snapshot, plan.queue, decisions, np.concatenate([plan.slices, more.slices]))
