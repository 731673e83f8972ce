"""Control-plane state: all stored records of unfinished jobs, in memory.

It changes only by stored changes of the loop and of users, in the order of storage.
"""

from __future__ import annotations

import logging
from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from seaway.application.changes import Change, Record
from seaway.application.control.advance_reservations import AdvanceReservations, cordon_ends_ns
from seaway.application.control.arrays import Arrays
from seaway.application.control.attempt_totals import Holdings
from seaway.application.control.dependencies import Dependencies
from seaway.application.control.dispatch import Dispatcher
from seaway.application.control.fleet import Key, LiveCluster, LiveFleet
from seaway.application.control.history import History
from seaway.application.control.last_reports import LastReports
from seaway.application.control.pending import apart_of, entry, is_fresh
from seaway.application.control.rejections import NEVER_REFUSED, Deadlines, Due, Refusals
from seaway.application.control.settings import ControlSettings, SchedulerSettings
from seaway.application.control.stages import Stages
from seaway.application.control.stored import Stored
from seaway.application.control.tenancy import Names
from seaway.application.network.link_table import LinkTable
from seaway.application.ports.backend import Command, Removal
from seaway.application.ports.clock import Clock
from seaway.application.records import ClusterFacts, Cordon, PendingCommand, Verb
from seaway.application.transitions import AWAITS_VICTIMS, later_task_reason, stopped
from seaway.application.views import ClusterState
from seaway.domain.amounts import MODEL_PREFIX, Amounts, capacity_of, total_of
from seaway.domain.attempt import Attempt
from seaway.domain.deployment import Cause, Deployment, Workload, WorkloadPhase
from seaway.domain.facts import NO_FACTS
from seaway.domain.job import OTHER_COPY, Job
from seaway.domain.job_record import JobRecord
from seaway.domain.job_state import AttemptState, JobState
from seaway.domain.queues import Queue
from seaway.domain.reasons import Reason
from seaway.domain.tenancy import Pool, Tenant
from seaway.scheduling.allocations import Allocation
from seaway.scheduling.cycle.fork import Fork
from seaway.scheduling.cycle.jobs import Entry
from seaway.scheduling.cycle.state import PlannedMove, State
from seaway.scheduling.cycle.waiting import Waiting
from seaway.scheduling.cycle.work import ElasticWork
from seaway.scheduling.queueing.registry import make_queue_discipline
from seaway.scheduling.queueing.tree import QueueTree

log = logging.getLogger(__name__)

MIX = 1000
"""Number of past jobs from which policies learn."""


class ControlState(State):
    """State of the control loop.

    Attributes
    ----------
    paired
        Jobs that have a standby, are to get one, or are one.
    by_cluster
        Attempts with allocations in a cluster. An ending attempt has them while its removal is pending.
    holdings
        Total of `by_cluster` for each cluster that ever had one.
    by_node
        Attempts that were placed on a node, by cluster and node.
    done
        Ending attempts without a pending removal.
    pending_commands
        Commands that clusters have not confirmed.
    seen
        Observed workloads of each attempt, by cluster.
    sent_ns
        Monotonic time at which a cluster confirmed an attempt.
    underway_ns
        Monotonic time at which a cluster last reported progress on an attempt.
    refusals
        Recent rejections of jobs by clusters.
    setbacks
        Number of consecutive failures of jobs that always restart.
    pauses
        Jobs in back-off: stored wall-clock end of the pause, and its monotonic end.
    made_again
        Number of times that missing workloads of an attempt were re-created.
    gone
        Workloads that disappeared before their cluster confirmed their creation.
    partial
        Workloads without some of their replicas, which are checked again.
    scaled
        Unfinished jobs with triggers.
    recreating
        Clusters behind a component that may create deleted objects again.
    scale_reasons
        Number of replicas that the triggers of a job want, with the reason, by job.
    networked
        Attempts of jobs with network bounds.
    recent
        Recent jobs.
    doubtful
        Whether missing reports are inconclusive, because too many clusters are or recently were unreachable.
    link_table
        Measurements of links by agents.
    log_wait_ns
        Time for which the pods of a failed program wait for `logs_read`, nanoseconds; 0 if logs are not stored.
    unread_logs
        Attempts whose pods wait for it.
    stages
        Durations of stages.
    history
        Past use and past runs.
    dependencies, arrays
        Held jobs, and arrays, which are not in `jobs`.
    last_reports
        Stored reports of clusters.
    left_ns
        Monotonic time at which clusters with attempts left the fleet.
    unstarted_ns
        Monotonic time since which confirmed attempts wait until all their replicas run.
    """

    settings: ControlSettings
    fleet: LiveFleet
    advance: AdvanceReservations

    def __init__(self, dispatcher: Dispatcher, clock: Clock, settings: ControlSettings) -> None:
        self.clock = clock
        self.settings = settings
        self.scheduler = SchedulerSettings()
        self.dispatcher = dispatcher
        self.fleet = LiveFleet()
        self.last_reports = LastReports(self.fleet, clock, lambda name: bool(self.by_cluster.get(name)))
        self.link_table = LinkTable(sample_interval_s=settings.sample_interval_s)
        self.stages = Stages(clock)
        self.history = History(clock, settings)
        self.work = ElasticWork(clock.monotonic_ns)
        self.recent: deque[Job] = deque(maxlen=MIX)
        self.taken_in = 0
        self.doubtful = False
        self.log_wait_ns = 0
        self.left_ns: dict[str, int] = {}
        self.began_ns: dict[Key, int] = {}
        self.names = Names()
        self.dependencies = Dependencies()
        self.arrays = Arrays()
        self.advance = AdvanceReservations(self.names, self.fleet, lambda: self.attempts, clock)
        self.moves: dict[str, PlannedMove] = {}
        self.clear()

    @property
    def queues(self) -> dict[str, Queue]:
        """The queues, by name."""
        return self.names.queues

    @property
    def pools(self) -> dict[str, Pool]:
        """The pools, by name."""
        return self.names.pools

    @property
    def tenants(self) -> dict[str, Tenant]:
        """The tenants, by name."""
        return self.names.tenants

    def clear(self) -> None:
        """Drop all jobs. Inventories and names stay."""
        self.jobs: dict[str, JobRecord] = {}
        self.paired: set[str] = set()
        self.attempts: dict[Key, Attempt] = {}
        self.by_job: defaultdict[str, set[int]] = defaultdict(set)
        self.by_cluster: defaultdict[str, set[Key]] = defaultdict(set)
        self.holdings: dict[str, Holdings] = {}
        self.by_node: dict[tuple[str, str], set[Key]] = {}
        self.done: set[Key] = set()
        self._settling: set[Key] = set()
        self.dependencies.clear()
        self.arrays.clear()
        self.pending_commands: dict[tuple[str, int, str], PendingCommand] = {}
        self.seen: defaultdict[Key, dict[str, Workload]] = defaultdict(dict)
        self.sent_ns: dict[tuple[str, int, str], int] = {}
        self.tree = QueueTree(
            self.names.queues.values(),
            tenants=self.names.tenants.values(),
            gpu_weights=self.settings.weights(),
            restart_cost_s=self.scheduler.restart_cost,
        )
        self.history.clear()
        self.work.clear()
        self._capacity_of = -1
        self._weights_without_effect: set[str] = set()
        self.waiting = Waiting(make_queue_discipline(self.settings.queue_discipline), self.tree)
        self.deadlines = Deadlines(self.clock)
        self.awaiting_victims: set[str] = set()
        self.refusals: dict[str, Refusals] = {}
        self.setbacks: dict[str, int] = {}
        self.pauses: dict[str, tuple[int, int]] = {}
        self.made_again: Counter[Key] = Counter()
        self.restored: Counter[Key] = Counter()
        self.gone: set[tuple[str, int, str]] = set()
        self.partial: set[tuple[str, int, str]] = set()
        self.underway_ns: dict[tuple[str, int, str], int] = {}
        self.unstarted_ns: dict[Key, int] = {}
        self.resizing: dict[str, Key] = {}
        self.extended: dict[str, Key] = {}
        self.resize_after_ns: dict[str, int] = {}
        self.changed: set[Key] = set()
        self.scaled: dict[str, None] = {}
        self.recreating: frozenset[str] = frozenset()
        self.scale_reasons: dict[str, tuple[int, str]] = {}
        self.bookings: dict[Key, Allocation] = {}
        self.assumed: dict[Key, Attempt] = {}
        self.started = 0
        self.unread_logs: set[Key] = set()
        self.networked: set[Key] = set()
        self.seen_version = -1
        self.fleet.empty()
        self.dispatcher.forget()

    def reset(self, stored: Stored) -> None:
        """Drop everything except inventories, and set names and cordons. The caller then applies the records."""
        self.clear()
        held = {(each.job_id, each.number) for each in stored.records if isinstance(each, Attempt)}
        self.began_ns = {key: began_ns for key, began_ns in self.began_ns.items() if key in held}
        self.stages.reset()
        self.names.reset(stored.queues, stored.pools, stored.tenants, stored.reservations)
        self.tree.set_queues(self.names.queues.values(), self.names.tenants.values())
        self.fleet.cordon(stored.cordons)
        self.fleet.set_facts({each.cluster: each.facts for each in stored.facts})
        self.last_reports.load(stored.reports, stored.inventories)
        self.history.load(stored.uses, stored.runs)

    # Stored changes.

    def apply(self, changes: Iterable[Change]) -> None:
        """Apply stored changes."""
        for change in changes:
            for record in change.delete:
                self._drop(record)
            for records in (change.insert, change.update, change.put):
                for record in records:
                    self._put(record)
            while self._settling:
                self._release_removed(self._settling.pop())
        if not self.stages.reading:
            self.grant_tasks()

    def grant_tasks(self) -> None:
        """Put tasks into their queues, as many as the limits of their arrays allow."""
        for job_id in self.arrays.grant():
            self.consider(job_id)

    def _put(self, record: Record) -> None:
        match record:
            case JobRecord():
                self._put_job(record)
            case Attempt():
                self._put_attempt(record)
            case PendingCommand():
                self._put_pending_command(record)
            case Cordon():
                others = [each for each in self.fleet.cordons() if (each.cluster, each.node) != _place(record)]
                self.fleet.cordon([*others, record])
            case ClusterFacts():
                self.fleet.put_facts(record.cluster, record.facts)
            case _:
                if self.names.put(record):
                    self._sort_again(record)

    def _drop(self, record: Record) -> None:
        match record:
            case PendingCommand():
                key = (record.job_id, record.attempt, record.cluster)
                if key in self.pending_commands and self.pending_commands[key].verb is record.verb:
                    del self.pending_commands[key]
                    self.dispatcher.drop(record)
                    self.consider(record.job_id)
                    self._settling.add(key[:2])
            case Cordon():
                self.fleet.cordon([each for each in self.fleet.cordons() if _place(each) != _place(record)])
            case ClusterFacts():
                self.fleet.put_facts(record.cluster, NO_FACTS)
            case _:
                if self.names.drop(record):
                    self._sort_again(record)

    def _put_array(self, array: JobRecord) -> None:
        changed = self.arrays.put(array)
        if changed is not None:
            self.dependencies.note(array)
        for job_id in changed or ():
            self.jobs[job_id] = self.arrays.spec_of(self.jobs[job_id])
            self.consider(job_id)

    def _put_job(self, job: JobRecord) -> None:
        if job.is_array:
            self._put_array(job)
            return
        before = self.jobs.get(job.id)
        if before and before.version >= job.version:
            return
        if job.array:
            job = self.arrays.spec_of(job)
            self.arrays.note(job)
        self.jobs[job.id] = job
        self.changed.add((job.id, before.attempt if before else 0))
        self._note_triggers(job)
        for number in self.by_job.get(job.id, ()) if before is None else ():
            if (job.id, number) not in self.done:
                self.count(self.attempts[job.id, number])
        self.stages.went(before, job)
        self.dependencies.note(job)
        if job.state is JobState.QUEUED and job.reason.startswith(AWAITS_VICTIMS):
            self.awaiting_victims.add(job.id)
        else:
            self.awaiting_victims.discard(job.id)
        if before and job.state is JobState.COMPLETED is not before.state:
            self._learn(job)
        self.note_size(job.id)
        self._pause(job)
        if job.state is JobState.PENDING and (before is None or before.state is JobState.HELD):
            self.recent.append(job.spec.job(job.id))
            self.taken_in += 1
        self._consider_stored(before, job)
        if job.pair or job.spec.standby:
            self.paired.add(job.id)
            self.consider(job.other)
        else:
            self.paired.discard(job.id)

    def _consider_stored(self, before: JobRecord | None, job: JobRecord) -> None:
        """Queue a job if it can be placed now. If only its state or reason was stored, it waits as before."""
        same = before and job.spec is before.spec and _tries(job) == _tries(before)
        if same and job.id in self.waiting and not is_fresh(job) and not job.pair:
            self.waiting.note_stored(job.id)
        else:
            self.consider(job.id)

    def _pause(self, job: JobRecord) -> None:
        """Convert the wall-clock end of a pause into a monotonic time."""
        pause_ns = job.not_before_ns
        if pause_ns is None:
            self.pauses.pop(job.id, None)
        elif job.id not in self.pauses or self.pauses[job.id][0] != pause_ns:
            left_s = min(max((pause_ns - self.clock.now_ns()) / 1e9, 0), self.settings.max_backoff_s)
            self.pauses[job.id] = (pause_ns, self.clock.monotonic_ns() + int(left_s * 1e9))
            self.deadlines.in_seconds(left_s, Due.RETRY, (job.id, 0, ""))

    def _put_attempt(self, attempt: Attempt) -> None:
        key = (attempt.job_id, attempt.number)
        if not attempt.state.holds:
            self._end_attempt(key)
            return
        before = self.attempts.get(key)
        fresh = before is None
        self.attempts[key] = attempt
        self.changed.add(key)
        self.assumed.pop(key, None)
        self._note_began(key, attempt, fresh=fresh)
        self.fleet.run(key, attempt.running_ns)
        if fresh:
            if attempt.spec.has_bounds:
                self.networked.add(key)
            self.by_job[attempt.job_id].add(attempt.number)
            for cluster in attempt.clusters:
                self.by_cluster[cluster].add(key)
                self.holdings.setdefault(cluster, Holdings(cluster)).add(attempt)
            for place in _places(attempt):
                self.by_node.setdefault(place, set()).add(key)
            self.fleet.hold(attempt, attempt.spec.job(attempt.job_id), self.bookings.pop(key, None))
            self.count(attempt)
        elif before and before.placements is not attempt.placements and before.placements != attempt.placements:
            self._resize(key, before, attempt)
        self.note_size(attempt.job_id)
        self.work.note(key, attempt, self.began_ns.get(key))
        self._note_start(key, attempt, fresh=fresh)
        if attempt.state is AttemptState.ENDING:
            self._settling.add(key)
        if attempt.state is AttemptState.ASSUMED and fresh:
            held_s = self.settings.confirm_s(len(attempt.placements))
            self.deadlines.at_wall(attempt.expires_ns, held_s, Due.EXPIRY, (*key, ""))
        if attempt.state is AttemptState.RUNNING:
            self._set_end(key, attempt, begins=fresh or not _runs(before))

    def _set_end(self, key: Key, attempt: Attempt, *, begins: bool) -> None:
        """Set the deadlines of a running attempt: its time limit, and the check of its lease."""
        if attempt.running_ns and (limit_s := attempt.spec.time_limit_s):
            self.deadlines.at_wall(attempt.running_ns + int(limit_s * 1e9), limit_s, Due.LIMIT, (*key, ""))
        if begins and attempt.spec.lease_s:
            self.deadlines.in_seconds(0, Due.LEASE, (*key, ""))

    def _resize(self, key: Key, before: Attempt, attempt: Attempt) -> None:
        """Apply other placements of a live attempt."""
        for cluster in {*before.clusters} - {*attempt.clusters}:
            self._give_back(cluster, key)
            self._forget_workload((*key, cluster))
            self.seen[key].pop(cluster, None)
        for cluster in attempt.clusters:
            self.by_cluster[cluster].add(key)
            holdings = self.holdings.setdefault(cluster, Holdings(cluster))
            holdings.discard(key)
            holdings.add(attempt)
        for place in _places(before) - _places(attempt):
            self._leave(place, key)
        for place in _places(attempt):
            self.by_node.setdefault(place, set()).add(key)
        self.fleet.resize(attempt, attempt.spec.job(attempt.job_id), self.bookings.pop(key, None))
        self.count(attempt)
        job = self.jobs.get(attempt.job_id)
        if job and len(attempt.holding) < len(before.holding):
            self.tree.note_fall(self.owner(attempt))

    def _note_triggers(self, job: JobRecord) -> None:
        if job.spec.scale and not job.state.final:
            self.scaled[job.id] = None
        else:
            self.scaled.pop(job.id, None)

    def _leave(self, place: tuple[str, str], key: Key) -> None:
        self.by_node[place].discard(key)
        if not self.by_node[place]:
            del self.by_node[place]

    def _forget_workload(self, key: tuple[str, int, str]) -> None:
        self.sent_ns.pop(key, None)
        self.gone.discard(key)
        self.partial.discard(key)
        self.underway_ns.pop(key, None)

    def _note_began(self, key: Key, attempt: Attempt, *, fresh: bool) -> None:
        """Record since when an attempt runs."""
        if attempt.running_ns and key not in self.began_ns:
            ran_ns = max(0, self.clock.now_ns() - attempt.running_ns) if fresh else 0
            self.began_ns[key] = self.clock.monotonic_ns() - ran_ns

    def _note_start(self, key: Key, attempt: Attempt, *, fresh: bool) -> None:
        """Record since when a confirmed attempt waits for its start: since now, or since its placement if loaded."""
        if attempt.state is not AttemptState.SENT:
            self.unstarted_ns.pop(key, None)
        elif key not in self.unstarted_ns:
            waited_ns = max(0, self.clock.now_ns() - attempt.created_ns) if fresh and not attempt.running_ns else 0
            self.unstarted_ns[key] = self.clock.monotonic_ns() - waited_ns

    def assume(self, entry: Entry, attempt: Attempt, booking: Allocation) -> None:
        """Record the attempt of a job that starts, and what it is expected to take."""
        super().assume(entry, attempt, booking)
        self.history.started(attempt, entry.user)

    def withdraw(self, key: Key) -> None:
        """Forget an attempt that is not stored."""
        super().withdraw(key)
        self.history.ended(key)

    def count(self, attempt: Attempt) -> None:
        """Count the amounts of an attempt in its queues and quotas. Its job may be unknown during a load."""
        self.hold(attempt)
        if job := self.jobs.get(attempt.job_id):
            self.history.started(attempt, job.submitted_by)

    def _learn(self, job: JobRecord) -> None:
        """Learn from the run of a job that completed."""
        attempt = self.attempts.get((job.id, job.attempt))
        for each in self.history.learn(job, attempt) if attempt else ():
            if self.waiting.get(each.id) is each:
                self.consider(each.id)

    def _release_removed(self, key: Key) -> None:
        """Release the allocations of an ending attempt in clusters that removed it."""
        attempt = self.attempts.get(key)
        if attempt is None or attempt.state is not AttemptState.ENDING:
            return
        owed = set(self.unsent(attempt))
        for cluster in attempt.clusters:
            if cluster not in owed:
                self._give_back(cluster, key)
        self.fleet.retain_clusters(key, owed)
        if not owed:
            self.done.add(key)
            self.tree.release(key)

    def _end_attempt(self, key: Key) -> None:
        attempt = self.attempts.pop(key, None)
        if attempt is None:
            return
        self.changed.add(key)
        self.by_job[key[0]].discard(key[1])
        self.networked.discard(key)
        for cluster in attempt.clusters:
            self._give_back(cluster, key)
            self._forget_workload((*key, cluster))
        for place in _places(attempt):
            self._leave(place, key)
        self.unstarted_ns.pop(key, None)
        self.seen.pop(key, None)
        self.began_ns.pop(key, None)
        self.made_again.pop(key, None)
        self.restored.pop(key, None)
        self.history.ended(key)
        self.work.drop(key)
        self.done.discard(key)
        self.unread_logs.discard(key)
        self.tree.release(key)
        self.fleet.release_allocation(key)
        if key[0] in self.paired:
            self.consider(self.jobs[key[0]].other)
        self.note_size(key[0])
        self.consider(key[0])

    def _give_back(self, cluster: str, key: Key) -> None:
        self.by_cluster[cluster].discard(key)
        self.holdings[cluster].discard(key)

    def _put_pending_command(self, pending_commands: PendingCommand) -> None:
        key = (pending_commands.job_id, pending_commands.attempt, pending_commands.cluster)
        self.pending_commands[key] = pending_commands
        self._send(pending_commands, self._due_ns(pending_commands))
        if pending_commands.job_id in self.waiting:  # its other copy changed with it, before this command was known
            self.consider(pending_commands.job_id)

    def resend_commands(self, clusters: Iterable[str]) -> None:
        """Send all stored commands to clusters that just connected."""
        joined = set(clusters)
        for pending_commands in self.pending_commands.values():
            if pending_commands.cluster in joined:
                self._send(pending_commands)

    def _send(self, pending_commands: PendingCommand, due_ns: int = 0) -> None:
        """Send a command, unless it waits for the address of rank 0; it is stored again with that."""
        command = self.command(pending_commands)
        if not (isinstance(command, Deployment) and command.awaits_rank_0):
            self.dispatcher.give(pending_commands, command, due_ns)

    def _due_ns(self, pending_commands: PendingCommand) -> int:
        """Return the time of a command by the monotonic clock; 0 for now.

        The pods of a program that failed are removed when their log was read, or some seconds later.
        """
        key = (pending_commands.job_id, pending_commands.attempt)
        copies = self.seen[key].values() if self.log_wait_ns and key in self.seen else ()
        failed = any(each.phase is WorkloadPhase.FAILED and each.cause is Cause.WORKLOAD for each in copies)
        if pending_commands.verb is not Verb.DELETE or not failed:
            return 0
        self.unread_logs.add(key)
        return self.clock.monotonic_ns() + self.log_wait_ns

    def logs_read(self, key: Key) -> None:
        """Remove the pods of an attempt whose logs were read."""
        if key in self.unread_logs:
            self.unread_logs.discard(key)
            attempt = self.attempts.get(key)
            for cluster in attempt.clusters if attempt else ():
                pending_commands = self.pending_commands.get((*key, cluster))
                if pending_commands and pending_commands.verb is Verb.DELETE:
                    self.dispatcher.give(pending_commands, self.command(pending_commands))

    def awaiting_rank_0(self, attempt: Attempt) -> Sequence[str]:
        """Return the clusters whose commands wait for the address of rank 0."""
        if not attempt.spec.meets:
            return ()
        return [each for each in self.unsent(attempt) if deployment(attempt, each).awaits_rank_0]

    def command(self, pending_commands: PendingCommand) -> Command:
        """Return the command for a cluster."""
        attempt = self.attempts.get((pending_commands.job_id, pending_commands.attempt))
        if pending_commands.verb is Verb.DELETE or attempt is None:
            return Removal(pending_commands.job_id, pending_commands.attempt, pending_commands.cluster)
        if all(each.leaving for each in attempt.placements if each.cluster == pending_commands.cluster):
            return Removal(pending_commands.job_id, pending_commands.attempt, pending_commands.cluster)
        return deployment(attempt, pending_commands.cluster)

    # Waiting jobs.

    def consider(self, job_id: str) -> None:
        """Queue a job if it can be placed now; remove a finished job without allocations."""
        job = self.jobs.get(job_id)
        self.waiting.remove(job_id)
        if job is None:
            return
        if job.state.waits and not self.blocked(job):
            waits = self.entry(job)
            self.waiting.put(waits, fresh=is_fresh(job))
            self.history.waits(waits)
            return
        if job.array and not (job.state.waits or job.state.placed or self.by_job.get(job_id)):
            self.arrays.release(job)
        if job.state.final and not self.by_job.get(job_id):
            del self.jobs[job_id]
            self.paired.discard(job_id)
            self.by_job.pop(job_id, None)
            self.refusals.pop(job_id, None)
            self.setbacks.pop(job_id, None)
            self.resize_after_ns.pop(job_id, None)
            self.scaled.pop(job_id, None)
            self.scale_reasons.pop(job_id, None)
            self.pauses.pop(job_id, None)

    def end_move(self, job_id: str) -> None:
        """Let a job start on any node again, or record that its move is done."""
        if self.moves.pop(job_id, None):
            self.consider(job_id)

    def reconsider(self, cluster: str) -> None:
        """Reconsider the jobs with allocations in a cluster that was lost or recovered."""
        for job_id, _ in list(self.by_cluster[cluster]):
            self.consider(job_id)
            if job_id in self.paired:
                self.consider(self.jobs[job_id].other)

    def blocked(self, job: JobRecord) -> str:
        """Return the reason why a waiting job cannot be tried yet; empty if it can."""
        if job.array and not self.arrays.may_wait(job):
            return later_task_reason(array) if (array := self.arrays.known.get(job.array)) else Reason("array_order")
        if job.id in self.pauses and self.clock.monotonic_ns() < self.pauses[job.id][1]:
            return Reason("paused")
        other = self.jobs.get(job.other) if job.pair else None
        if other and job.is_standby and not other.state.placed and not other.state.final:
            return Reason("active_copy_first")
        if other and not job.is_standby and other.state is JobState.RUNNING and self.all_up(other.clusters):
            return Reason("standby_first")
        for number in self.by_job.get(job.id, ()):
            for cluster in self.attempts[job.id, number].clusters:
                if not self.given_up(cluster) and self._reported(job.id, number, cluster):
                    return Reason("being_removed", number=number, cluster=cluster)
        return ""

    def _reported(self, job_id: str, number: int, cluster: str) -> bool:
        """Report whether a cluster may still have objects of an attempt, because it did not confirm the removal."""
        attempt = self.attempts[job_id, number]
        return attempt.state.live or (job_id, number, cluster) in self.pending_commands

    def avoided(self, job: JobRecord) -> Refusals:
        """Return the places that a job avoids: those that rejected it, and clusters with the other copy of its service.

        Both copies use the same names there, so it waits until the last object of the other one is removed. A move of
        the job by an operator names the only nodes that it may use.
        """
        refusals = self.refusals.get(job.id, NEVER_REFUSED)
        if move := self.moves.get(job.id):
            refusals = replace(refusals, only=move.nodes)
        if job.pair is None:
            return refusals
        keys = [(job.other, number) for number in self.by_job.get(job.other, ())]
        taken = {each for key in keys for each in self.attempts[key].clusters if key in self.by_cluster[each]}
        if job.pair.leaving and job.pair.lost_ns is None:
            taken.add(job.pair.left)
        return replace(refusals, places=refusals.places.union((each, OTHER_COPY) for each in taken))

    def fork(self) -> Fork:
        """Return a copy for decisions that are not done. The caller holds the lock."""
        fleet = self.fleet.fork(cordon_ends_ns(self.fleet, self.names.reservations))
        return Fork(self, fleet, self.advance.fork(), self.pending_commands)

    def entry(self, job: JobRecord, names: Names | None = None) -> Entry:
        """Create the queue entry of a job. Without its queue or pool, no cluster is allowed.

        Parameters
        ----------
        names
            Stored queues and pools; None for those that are applied.
        """
        refusals, names = self.avoided(job), names or self.names
        name = job.spec.queue
        queue = names.queues.get(name) or Queue(name)
        past = self.history.runs(job.spec, job.submitted_by)
        apart = apart_of(self.tree, job.spec, name, job.submitted_by, reserves=bool(self.names.reservations))
        pool = names.clusters_of(name)
        return entry(job, queue, pool, self.waiting.discipline, refusals, apart=apart, past=past)

    def more(self, job: JobRecord, attempt: Attempt, names: Names | None = None) -> Job | None:
        """Return what is asked of the engine for more replicas of a running job; None without its queue or pool.

        Parameters
        ----------
        names
            Queues and pools; None for those that are applied.
        """
        names = names or self.names
        if names.lacking(job.spec.queue):
            return None
        wanted = job.spec.job(job.id, names.clusters_of(job.spec.queue))
        demand = self.refusals.get(job.id, NEVER_REFUSED).retained(wanted.demand)
        seen = self.seen.get((attempt.job_id, attempt.number), {})
        over = {(cluster, "") for cluster, copy in seen.items() if copy.phase is WorkloadPhase.SUCCEEDED}
        demand = replace(demand, nodes=replace(demand.nodes, avoid=demand.nodes.avoid | over)) if over else demand
        return replace(wanted, demand=demand)

    def completed_replicas(self, attempt: Attempt) -> frozenset[int]:
        """Return the replicas of a running job that completed."""
        seen = self.seen.get((attempt.job_id, attempt.number), {})
        replicas = (each for copy in seen.values() for each in copy.replicas)
        return frozenset(each.replica for each in replicas if each.phase is WorkloadPhase.SUCCEEDED)

    def clusters_of(self, queue: str) -> frozenset[str]:
        """Return the clusters of a queue's pool, as `Names.clusters_of`. Thread-safe."""
        return self.names.clusters_of(queue)

    def missing_queue_or_pool(self, job: JobRecord) -> str:
        """Return a message with the fix if the queue of a job or its pool is missing; empty if both exist."""
        return self.names.lacking(job.spec.queue)

    def _sort_again(self, changed: Record) -> None:
        """Reconsider the waiting jobs of a queue, pool or tenant that changed, or all for a reservation."""
        self.tree.set_queues(self.queues.values(), self.tenants.values())
        self._capacity_of = -1
        for each in list(self.waiting.entries()):
            match changed:
                case Queue() if each.queue != changed.name:
                    continue
                case Tenant() if each.spec.tenant != changed.name:
                    continue
            self.consider(each.id)
        self.waiting.try_all()

    def renew_capacities(self) -> None:
        """Update the capacity of each pool after a change of inventories or pools."""
        if self._capacity_of != self.fleet.make:
            self._capacity_of = self.fleet.make
            self.tree.set_capacities(capacities(self.pools.values(), self.fleet.clusters.values()))
            if all(each.cluster for each in self.fleet.clusters.values()):
                self._warn_of_weights()

    def _warn_of_weights(self) -> None:
        """Log each weight of a model of which the fleet has no GPU, once."""
        without = {name for name in self.tree.gpu_weights if not self.tree.has_model(name)}
        for name in sorted(without - self._weights_without_effect):
            log.warning("gpu_weights: no GPU is of the model %r", name.removeprefix(MODEL_PREFIX))
        self._weights_without_effect = without

    def decay_usage(self) -> None:
        """Update the past use in the tree, if it is due."""
        self.history.decay(self.tree, self.attempts.values())

    # Queries.

    def end_of_other(self, job: JobRecord, actor: str) -> Change:
        """Return the change that ends the other copy of a service, of which one copy ends now; empty without one."""
        other = self.jobs.get(job.other)
        if other is None or other.state.final:
            return Change()
        reason = Reason("other_copy_ended", job=job.id, state=job.state.value, why=job.reason)
        attempt = self.attempts.get((other.id, other.attempt))
        return stopped(other, attempt, JobState.CANCELLED, reason, actor, self.clock.now_ns())[1]

    def all_up(self, clusters: Iterable[str]) -> bool:
        """Report whether all these clusters answer."""
        known = (self.fleet.clusters.get(cluster) for cluster in clusters)
        return all(each and each.state is ClusterState.UP for each in known)

    def given_up(self, cluster: str) -> bool:
        """Report whether a cluster was without reports, or not in the fleet, for longer than the grace period.

        Clusters in the fleet are not given up while missing reports are inconclusive (`doubtful`), since their jobs may
        still run.
        """
        live = self.fleet.clusters.get(cluster)
        if live:
            return live.state is ClusterState.LOST and not self.doubtful
        now_ns = self.clock.monotonic_ns()
        return (now_ns - self.left_ns.get(cluster, now_ns)) / 1e9 > self.settings.grace_period_s

    def ends_soon(self, attempt: Attempt) -> bool:
        """Report whether an attempt is being removed, and all clusters that still have a part of it respond."""
        return not attempt.state.live and self.all_up(self.unsent(attempt))

    def learned_s(self, key: Key) -> int | None:
        """Return the learned duration of an attempt, seconds; None if it is unknown."""
        return self.history.expected_s(key)

    def latest(self, job_id: str) -> Attempt | None:
        """Return the latest attempt of a job, if it has not ended."""
        numbers = self.by_job.get(job_id)
        return self.attempts[job_id, max(numbers)] if numbers else None

    def scale_reason(self, job: JobRecord) -> str:
        """Return the reason why triggers want the present number of replicas, one clause; empty without one."""
        number, why = self.scale_reasons.get(job.id, (0, ""))
        return why if number == job.spec.replicas else ""

    def command_ns(self, attempt: Attempt) -> int:
        """Return a time for new commands of an attempt, later than that of each pending one."""
        pending = (self.pending_commands.get((attempt.job_id, attempt.number, each)) for each in attempt.clusters)
        return max(self.clock.now_ns(), *(each.created_ns + 1 for each in pending if each), 0)

    def unsent(self, attempt: Attempt) -> Sequence[str]:
        """Return the clusters that have not confirmed an attempt yet."""
        return [
            cluster
            for cluster in attempt.clusters
            if (attempt.job_id, attempt.number, cluster) in self.pending_commands
        ]


def capacities(pools: Iterable[Pool], clusters: Iterable[LiveCluster]) -> Mapping[str, Amounts]:
    """Return the amounts of the clusters of each pool."""
    amounts = {live.name: capacity_of(live.cluster) for live in clusters if live.cluster}
    return {
        pool.name: total_of(each for name, each in amounts.items() if not pool.clusters or name in pool.clusters)
        for pool in pools
    }


def deployment(attempt: Attempt, cluster: str) -> Deployment:
    """Return the part of an attempt in one cluster."""
    return Deployment.of(attempt.job_id, attempt.number, cluster, attempt.spec, attempt.placements)


def _runs(attempt: Attempt | None) -> bool:
    return attempt is not None and attempt.state is AttemptState.RUNNING


def _places(attempt: Attempt) -> set[tuple[str, str]]:
    return {(each.cluster, each.node) for each in attempt.placements}


def _place(cordon: Cordon) -> tuple[str, str]:
    return cordon.cluster, cordon.node


def _tries(job: JobRecord) -> tuple[int, int, int | None]:
    return job.attempt, job.completed, job.not_before_ns
