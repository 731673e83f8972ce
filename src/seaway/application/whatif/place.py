"""Placement of the jobs of a what-if question on a copy of the fleet."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from seaway.application.admission import shortage
from seaway.application.control.state import without_models
from seaway.domain.amounts import Amounts, held_amounts, requested_amounts
from seaway.domain.job import Job
from seaway.domain.placement import Placement
from seaway.domain.queues import Backfill
from seaway.scheduling.engine import decide
from seaway.scheduling.explain import explain, summary
from seaway.scheduling.job_queue import JobQueue
from seaway.scheduling.profile import Profile
from seaway.scheduling.queueing.tree import Key, Owner, QueueTree
from seaway.scheduling.snapshot.snapshot import Snapshot

ASKED = "asked-"
"""Prefix of job names in a question. Job IDs have no hyphen."""

MAX_EXPLAINED = 20
"""Maximum number of explained kinds of waiting jobs."""

OVERTAKES = "an earlier job of its queue does not fit, and the queue has no backfill"
"""Reason of jobs that would fit, but may not start before an earlier one."""

MAX_TOGETHER = 256
"""Maximum number of jobs that are decided before the limits of their queues are checked again."""


@dataclass(frozen=True, slots=True)
class Task:
    """A job to place.

    Attributes
    ----------
    name
        Name for users. `job` has the ID as its name.
    before
        Present locations of its replicas; empty for a waiting job.
    allowed
        The job without the capacity that is reserved in advance for others.
    reserved
        Text on that capacity; empty if there is none.
    """

    job: Job
    name: str
    owner: Owner
    before: tuple[str, ...]
    allowed: Job
    reserved: str

    @property
    def queue(self) -> str:
        """Name of its queue."""
        return self.owner.queue

    @property
    def asked(self) -> bool:
        """True if the job is part of the question and was never submitted."""
        return self.job.name.startswith(ASKED)


@dataclass(frozen=True, slots=True)
class Placed:
    """Placement of a job: that of each replica, and the amounts that it holds."""

    placements: tuple[Placement, ...]
    amounts: Amounts

    @property
    def where(self) -> tuple[str, ...]:
        """Location of each replica as ``cluster/node``."""
        return where(self.placements)

    @property
    def clusters(self) -> tuple[str, ...]:
        """Clusters, each once."""
        return tuple(dict.fromkeys(each.cluster for each in self.placements))


@dataclass(slots=True)
class Placer:
    """Placement of jobs in order, each with the policy of its queue, as far as the limits of queues allow.

    Attributes
    ----------
    policies
        Profile of each queue.
    tree
        Queues with the amounts that jobs hold.
    placed
        Jobs that fit, by name.
    limited
        Reason of each job that may not start although it could fit.
    blocked
        Queues without backfill of which a job did not fit.
    """

    snapshot: Snapshot
    policies: Mapping[str, Profile]
    tree: QueueTree
    placed: dict[str, Placed] = field(default_factory=dict)
    limited: dict[str, str] = field(default_factory=dict)
    blocked: set[str] = field(default_factory=set)

    def place(self, tasks: Sequence[Task]) -> None:
        """Place jobs."""
        first = 0
        while first < len(tasks):
            end = first
            while end < min(len(tasks), first + MAX_TOGETHER) and (
                self.policies[tasks[end].queue] is self.policies[tasks[first].queue]
            ):
                end += 1
            allowed = []
            for task in tasks[first:end]:
                requested = requested_amounts(task.job.demand, task.job.replicas)
                if hit := self.tree.hit(task.owner, requested, task.job.name):
                    self._leave(task, hit.message)
                else:
                    self.tree.hold(_key(task), task.owner, requested)
                    allowed.append(task)
            if allowed:
                self._place_allowed(allowed)
            first = end

    def _place_allowed(self, tasks: Sequence[Task]) -> None:
        """Place jobs whose least amounts have room, and release those that do not fit or may not start after all."""
        tree, snapshot = self.tree, self.snapshot
        for task in tasks:
            tree.release(_key(task))
        jobs = []
        for task in tasks:
            requested = requested_amounts(task.job.demand, task.job.replicas)
            jobs.append(without_models(task.allowed, tree.model_hits(task.owner, requested), snapshot))
        plan = decide(snapshot, JobQueue(snapshot, jobs), self.policies[tasks[0].queue], dry_run=True)
        fits = plan.jobs_placed
        for at in plan.decision_order.tolist():  # a plugin may reorder them; the first one gets what a limit leaves
            task, rows = tasks[at], plan.rows_of(at)
            placements = [plan.placement(int(row)) for row in rows] if fits[at] else []
            amounts = held_amounts(task.job.demand, placements, snapshot.device)
            hit = tree.hit(task.owner, amounts, task.job.name) if placements else None
            if placements and not hit and task.queue not in self.blocked:
                tree.hold(_key(task), task.owner, amounts)
                self.placed[task.job.name] = Placed(tuple(placements), amounts)
                continue
            snapshot.release(plan.decisions, plan.slices, rows)
            self._leave(task, hit.message if hit else OVERTAKES if placements else "")

    def _leave(self, task: Task, why: str) -> None:
        if why:
            self.limited[task.job.name] = why
        if self.tree.node(task.queue).queue.backfill is Backfill.NONE:
            self.blocked.add(task.queue)

    def reasons(self, tasks: Iterable[Task]) -> dict[str, str]:
        """Return why jobs would wait, by name, for a limited number of kinds; jobs of the question are first."""
        known: dict[Hashable, str] = {}
        why = {}
        left = (task for task in tasks if task.job.name not in self.placed)
        for task in sorted(left, key=lambda task: not task.asked):
            job, profile = task.job, self.policies[task.queue]
            rules = (job.demand, job.replicas, job.gang, job.single_cluster, job.between_replicas, job.data)
            kind = (*rules, profile, task.reserved)
            if kind not in known and len(known) < MAX_EXPLAINED:
                explanation, short = explain(self.snapshot, job, profile), shortage(self.snapshot, job, profile)
                but = f"; {short}" if short else task.reserved if explanation.fits else ""
                known[kind] = f"{summary(explanation)}{but}"
            why[job.name] = known.get(kind, "")
        return why | self.limited


def _key(task: Task) -> Key:
    return task.job.name, 0


def where(placements: Iterable[Placement]) -> tuple[str, ...]:
    """Return the location of each replica as ``cluster/node``."""
    return tuple(f"{each.cluster}/{each.node}" for each in placements)
