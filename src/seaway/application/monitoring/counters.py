"""Figures for monitoring, a consistent view of the live state on demand. Thread-safe."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product

from seaway.application.control.allocations import duplicated, everyone
from seaway.application.control.loop import Controller
from seaway.application.control.stages import Deployed
from seaway.application.control.state import ControlState
from seaway.application.histogram import Timed, Timing
from seaway.application.ports.backend import Collecting, CollectorState
from seaway.application.records import PendingCommand
from seaway.application.writer import Writer
from seaway.domain.cluster import Cluster
from seaway.domain.job_record import JobRecord
from seaway.domain.job_state import JobState
from seaway.scheduling.cycle.displace import RULES

DUPLICATE = "duplicate"
"""Problem of a cluster: a node lists devices that belong to another node."""

NS = 1_000_000_000

NOTHING = Timing()
"""Empty histogram, for a queue without placed jobs."""


@dataclass(frozen=True, slots=True)
class JobFigures:
    """Figures of jobs.

    Attributes
    ----------
    states
        Number of unfinished jobs by state.
    waiting
        Number of waiting jobs by queue.
    longest_waits_s
        Longest wait by queue, seconds since the submit or since the job last ran.
    reached
        Number of transitions into each state since the start.
    waits
        Waits until placement by queue since the start.
    """

    states: Mapping[str, int]
    waiting: Mapping[str, int]
    longest_waits_s: Mapping[str, float]
    reached: Mapping[str, int]
    waits: Mapping[str, Timed]


@dataclass(frozen=True, slots=True)
class StoreFigures:
    """Figures of the store since the start; `waiting` is the current value.

    Attributes
    ----------
    changes, transactions
        Number of stored changes, and of their transactions.
    took
        Durations of transactions.
    failures
        Number of failed transactions.
    waiting
        Number of changes that wait to be stored.
    trouble
        Reason why the database stores nothing; empty while it does.
    unreadable
        Number of damaged rows.
    """

    changes: int
    transactions: int
    took: Timed
    failures: int
    waiting: int
    trouble: str = ""
    unreadable: int = 0


@dataclass(frozen=True, slots=True)
class CommandQueueFigures:
    """Pending commands of a cluster.

    Attributes
    ----------
    count
        Number of commands that the cluster has not confirmed.
    oldest_s
        Age of the oldest pending command.
    delayed
        Number of pending commands that failed and are retried.
    """

    count: int
    oldest_s: float
    delayed: int


@dataclass(slots=True)
class NotifierCounts:
    """Numbers of messages of notifications.

    Attributes
    ----------
    sent, failed
        Number of accepted messages, and of failed tries, by channel, since the start.
    waiting, dead
        Number of stored messages that wait, and of dead letters.
    """

    sent: Counter[str] = field(default_factory=Counter)
    failed: Counter[str] = field(default_factory=Counter)
    waiting: int = 0
    dead: int = 0

    def copied(self) -> NotifierCounts:
        """Return a copy."""
        return replace(self, sent=Counter(self.sent), failed=Counter(self.failed))


@dataclass(frozen=True, slots=True)
class Figures:
    """Figures for monitoring.

    Attributes
    ----------
    ready
        Whether jobs can be placed.
    preempted
        Number of displaced jobs, by their queue and the rule: ``priority`` or ``reclaim``. Every queue is present.
    decided, conflicts
        Number of decided jobs, and of decisions dropped because of concurrent changes, since the start.
    placed
        Placements by policy since the start. Every policy of a queue is present.
    failures
        Number of failed cycles of the control loop since the start.
    slo_violations, moves
        Number of reported SLO violations, and of jobs moved because of them, since the start.
    stages
        Durations by stage.
    deployed
        Number of deployments by cluster and result since the start.
    pending_commands
        Pending commands by cluster.
    last_seen_s
        Seconds since the last response of each cluster.
    nodes_not_ready, gpus_unhealthy
        Number of nodes that accept no new work, and of unhealthy devices, by cluster.
    clusters
        Number of clusters in each state.
    collecting
        State of collectors by cluster.
    failing_tasks
        Whether the last run failed, by scheduled task.
    notified
        Numbers of messages of notifications.
    standbys
        Number of placed services that should have a standby, and of those that cannot switch to it.
    """

    ready: bool
    jobs: JobFigures
    store: StoreFigures
    decided: int
    placed: Mapping[str, int]
    conflicts: int
    preempted: Mapping[tuple[str, str], int]
    failures: int
    slo_violations: int
    moves: int
    stages: Mapping[str, Timed]
    deployed: Mapping[tuple[str, Deployed], int]
    pending_commands: Mapping[str, CommandQueueFigures]
    last_seen_s: Mapping[str, float]
    clusters: Mapping[str, int]
    nodes_not_ready: Mapping[str, int] = field(default_factory=dict)
    gpus_unhealthy: Mapping[str, int] = field(default_factory=dict)
    collecting: Mapping[str, CollectorState] = field(default_factory=dict)
    failing_tasks: Mapping[str, bool] = field(default_factory=dict)
    notified: NotifierCounts = field(default_factory=NotifierCounts)
    standbys: tuple[int, int] = (0, 0)


def figures(controller: Controller, writer: Writer) -> Figures:
    """Return the figures for monitoring. Expensive counts run after the lock is released."""
    collecting = {each.cluster: each.collector_state() for each in controller.backends if isinstance(each, Collecting)}
    trouble = writer.trouble or controller.database_health.trouble
    store = StoreFigures(
        changes=writer.stored,
        transactions=writer.groups,
        took=writer.took.timed(),
        failures=writer.failures,
        waiting=writer.waiting,
        trouble=trouble,
        unreadable=len(writer.unreadable()),
    )
    with controller.lock:
        live = controller.live
        clusters, nodes = everyone(live), duplicated(live)
        jobs, waiting = list(live.jobs.values()), Counter(each.queue for each in live.waiting.entries())
        unstarted = Counter[str]()
        for array in live.arrays.known.values():
            unstarted[array.spec.queue] += array.waiting
        pending_commands, delays = list(live.pending_commands.values()), live.dispatcher.delays()
        standbys = controller.standbys.missing()
        queues, policies = list(live.queues), sorted({each.policy for each in live.queues.values()})
    reported = {each.name: each.cluster or Cluster(each.name) for each in clusters}
    now_ns, tally, names = live.clock.monotonic_ns(), controller.scheduler.tally, [each.name for each in clusters]
    return Figures(
        ready=not controller.unready(),
        jobs=_jobs(live, jobs, queues, waiting + unstarted, unstarted.total()),
        store=store,
        decided=tally.decided,
        placed=dict.fromkeys(policies, 0) | tally.placed,
        conflicts=tally.conflicts,
        preempted=dict.fromkeys(product(queues, RULES), 0) | controller.scheduler.preemptor.displaced,
        failures=controller.failures,
        slo_violations=controller.slo_violations.reported,
        moves=controller.slo_violations.moved,
        stages={stage.value: timing.timed() for stage, timing in live.stages.times.items()},
        deployed=_deployed(live, names),
        pending_commands=_pending_commands(
            names, pending_commands, Counter(cluster for _, _, cluster in delays), live.clock.now_ns()
        ),
        last_seen_s={each.name: (now_ns - each.last_seen_ns) / NS for each in clusters},
        clusters=dict(Counter(each.state.value for each in clusters)),
        nodes_not_ready={name: len(each.not_ready) for name, each in reported.items()},
        gpus_unhealthy={name: sum(each.unhealthy.values()) for name, each in reported.items()},
        collecting={
            name: replace(state, problems={**state.problems, DUPLICATE: nodes.get(name, 0)})
            for name, state in collecting.items()
        },
        standbys=standbys,
    )


def _jobs(
    live: ControlState, jobs: Sequence[JobRecord], queues: Sequence[str], waiting: Counter[str], unstarted: int
) -> JobFigures:
    """Count jobs, and the tasks of arrays that are not stored yet. A queue without waiting jobs has a wait of 0."""
    now_ns, stages = live.clock.now_ns(), live.stages
    since_ns = dict.fromkeys(queues, now_ns)
    for job in jobs:
        if (queue := job.spec.queue) in since_ns and (at_ns := stages.waits_since_ns(job)) is not None:
            since_ns[queue] = min(since_ns[queue], at_ns)
    return JobFigures(
        states=dict(Counter(job.state.value for job in jobs) + Counter({JobState.PENDING.value: unstarted})),
        waiting=dict.fromkeys(queues, 0) | waiting,
        longest_waits_s={queue: (now_ns - at_ns) / NS for queue, at_ns in since_ns.items()},
        reached={state.value: stages.reached[state] for state in JobState},
        waits={queue: stages.waits.get(queue, NOTHING).timed() for queue in queues},
    )


def _deployed(live: ControlState, clusters: Iterable[str]) -> dict[tuple[str, Deployed], int]:
    """Count deployments, including zeros, so that Prometheus sees the first one as an increase."""
    known = live.stages.deployed
    return {(cluster, what): known[cluster, what] for cluster in clusters for what in Deployed}


def _pending_commands(
    clusters: Iterable[str], pending_commands: Iterable[PendingCommand], delayed: Counter[str], now_ns: int
) -> dict[str, CommandQueueFigures]:
    oldest_ns: dict[str, int] = dict.fromkeys(clusters, now_ns)
    counts: Counter[str] = Counter()
    for each in pending_commands:
        counts[each.cluster] += 1
        oldest_ns[each.cluster] = min(oldest_ns.get(each.cluster, now_ns), each.created_ns)
    return {
        cluster: CommandQueueFigures(counts[cluster], (now_ns - at_ns) / NS, delayed[cluster])
        for cluster, at_ns in oldest_ns.items()
    }
