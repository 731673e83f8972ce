"""Housekeeping: periodic work and deadlines of the control loop."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace

from seaway.application.changes import Change
from seaway.application.control.allocations import amounts_of_cluster, away, everyone, held, own
from seaway.application.control.fleet import Key, LiveCluster
from seaway.application.control.last_reports import MINUTE_NS
from seaway.application.control.observe import ACTOR, NS, WHOLE_S, Observer
from seaway.application.control.orphans import lacking, loss_text
from seaway.application.control.rejections import Due
from seaway.application.control.rejections import Key as DueKey
from seaway.application.control.stages import Deployed
from seaway.application.control.state import ControlState
from seaway.application.pairs import switched
from seaway.application.records import ClusterSample, Event, LinkSample, PendingCommand, Verb
from seaway.application.transitions import (
    ELSEWHERE,
    ended,
    ending,
    job_event,
    moved,
    sent_back,
    stepped,
)
from seaway.application.views import ClusterState
from seaway.domain.attempt import Attempt
from seaway.domain.deployment import Reach
from seaway.domain.job_record import JobRecord, Pair
from seaway.domain.job_state import AttemptState, JobState
from seaway.domain.placement import Placement
from seaway.domain.queues import START_TIMEOUT_S
from seaway.domain.reasons import Reason, also, time_param

log = logging.getLogger(__name__)

MAX_HELD = 10
"""Maximum factor by which progress reports of a cluster extend the time to confirm."""

LEASE_WARNING_S = 600
"""Time between the warning and the end of a lease, seconds; a quarter of a shorter lease."""

AGAIN_S = 1
"""Delay before a handled deadline is checked again, seconds."""


class Housekeeping:
    """Aging of clusters, expiry of placements, time limits, moves of jobs, and samples."""

    def __init__(self, live: ControlState, observer: Observer) -> None:
        self._state = live
        self._observer = observer
        self._replaced_ns: deque[int] = deque()
        self._aged_ns = live.clock.monotonic_ns()
        self._sampled_ns: int | None = None
        self._halted = False
        self._doubted_ns: int | None = None
        self._given_up: set[str] = set()
        self._warned_ns: dict[str, int] = {}
        self._read_ns = live.clock.monotonic_ns()
        self._starts_ns = 0

    def reset(self) -> None:
        """Restart the time to confirm placements, since no answer could arrive during the reload."""
        self._read_ns = self._state.clock.monotonic_ns()

    def changes(self) -> list[Change]:
        """Return the changes to store."""
        return [
            *self._age(),
            *self._enforce_deadlines(),
            *self._release_unstarted(),
            *self._replace(),
            *self._drain(),
            *self._sample(),
            *self._state.last_reports.changes(),
            *self._state.advance.due(),
        ]

    # Clusters that do not answer.

    def _age(self) -> Iterator[Change]:
        settings = self._state.settings
        now_ns = self._state.clock.monotonic_ns()
        self._pass_over_pauses(now_ns)
        for live in self._state.fleet.clusters.values():
            last_seen_s = (now_ns - live.last_seen_ns) / NS
            if last_seen_s > settings.stale_after_s and not live.reported_unreachable:
                live.reported_unreachable = True
                log.warning("%s does not answer: %s", live.name, live.unreachable_reason or "no answer")
            if live.state is ClusterState.UP and last_seen_s > settings.stale_after_s:
                self._state.fleet.set_state(live.name, ClusterState.STALE)
                yield self._reported("cluster", Reason("stale", cluster=live.name, silent=round(last_seen_s)))
                self._state.reconsider(live.name)
            if live.state is ClusterState.STALE and last_seen_s > settings.grace_period_s:
                self._state.fleet.set_state(live.name, ClusterState.LOST)
                yield self._reported("cluster", Reason("given_up", cluster=live.name, silent=round(last_seen_s)))
                self._state.reconsider(live.name)
        self._check_local_cause()

    def _check_local_cause(self) -> None:
        """Check whether missing reports may have a local cause; reconsider jobs of lost clusters if that changes."""
        doubtful = self._halts() or self._recently_halted()
        if doubtful != self._state.doubtful:
            self._state.doubtful = doubtful
            for live in self._state.fleet.clusters.values():
                if live.state is ClusterState.LOST:
                    self._state.reconsider(live.name)

    def _pass_over_pauses(self, now_ns: int) -> None:
        """Exclude time during which the loop itself processed no reports, for example without a database."""
        deaf_ns = now_ns - self._aged_ns - int(self._state.settings.stale_after_s * NS)
        self._aged_ns = now_ns
        if deaf_ns > 0:
            for live in self._state.fleet.clusters.values():
                live.last_seen_ns = min(live.last_seen_ns + deaf_ns, now_ns)
            if self._doubted_ns is not None:
                self._doubted_ns = min(self._doubted_ns + deaf_ns, now_ns)
            left = self._state.left_ns.items()
            self._state.left_ns = {name: min(left_ns + deaf_ns, now_ns) for name, left_ns in left}
            for name in self._state.left_ns:  # those that counted as lost during the pause may not do so now
                self._state.reconsider(name)

    def _replace(self) -> Iterator[Change]:
        """Requeue jobs of lost or removed clusters, a limited number per minute."""
        gone, reported = self._removed_clusters()
        yield from reported
        yield from self._end_attempts_without_removal()
        lost = [live.name for live in self._state.fleet.clusters.values() if live.state is ClusterState.LOST]
        lost = lost if self._holding(lost) else []
        halted = self._halts()
        if halted and lost and not self._halted:
            silent, clusters = len(self._unreachable()), len(self._state.fleet.clusters)
            yield self._reported("rescheduling_halted", Reason("halted", silent=silent, clusters=clusters))
        self._halted = halted and (self._halted or bool(lost))
        why = {name: Reason("left_fleet", cluster=name) for name in gone}
        if not self._state.doubtful:
            why |= {name: Reason("silent", cluster=name) for name in lost}
        yield from self._reschedule(why)

    def _unreachable(self) -> list[str]:
        return [live.name for live in self._state.fleet.clusters.values() if live.state is not ClusterState.UP]

    def _halts(self) -> bool:
        """Report whether so many clusters are unreachable that the fault is likely local, and record the time."""
        halted = len(self._unreachable()) > self._state.settings.unhealthy_cluster_threshold * len(
            self._state.fleet.clusters
        )
        if halted:
            self._doubted_ns = self._state.clock.monotonic_ns()
        return halted

    def _recently_halted(self) -> bool:
        """Report whether too many clusters were unreachable within the last grace period.

        Clusters recover from a common fault one after the other. Late ones get the full grace period again.
        """
        if self._doubted_ns is None:
            return False
        return self._state.clock.monotonic_ns() - self._doubted_ns <= self._state.settings.grace_period_s * NS

    def _holding(self, names: Collection[str]) -> list[Key]:
        keys = {key for name in names for key in self._state.by_cluster.get(name, ())}
        live = (key for key in keys if self._state.attempts[key].state.live)
        return sorted(key for key in live if any(each.cluster in names for each in _running(self._state.attempts[key])))

    def _reschedule(self, why: Mapping[str, str]) -> Iterator[Change]:
        """Requeue the jobs in these clusters, with a reason for each cluster.

        Services with a standby go first. Those with a second copy do not count in the limit.
        """
        now_ns = self._state.clock.monotonic_ns()
        while self._replaced_ns and now_ns - self._replaced_ns[0] >= MINUTE_NS:
            self._replaced_ns.popleft()
        for key in sorted(self._holding(why), key=lambda each: each[0] not in self._state.paired):
            full = len(self._replaced_ns) >= self._state.settings.max_reschedules_per_minute
            if full and key[0] not in self._state.paired:
                return
            found = self._state.current(key)
            if found is None or (full and not found[0].other):
                continue
            job, attempt = found
            if not job.other:
                self._replaced_ns.append(now_ns)
            lost = {each.replica: each.cluster for each in _running(attempt) if each.cluster in why}
            cluster = next(iter(lost.values()))
            yield self._observer.shrunk(job, attempt, lost, why[cluster]) or self._sent_back(
                self._leaving(job, cluster), attempt, also(why[cluster], ELSEWHERE)
            )

    def _leaving(self, job: JobRecord, cluster: str) -> JobRecord:
        """Record the loss of the cluster of a service with a standby, for the time until the switch."""
        if job.spec.standby is None or job.is_standby:
            return job
        live, now_ns = self._state.fleet.clusters.get(cluster), self._state.clock.monotonic_ns()
        last_ns = live.last_seen_ns if live else self._state.left_ns.get(cluster, now_ns)
        lost_ns = self._state.clock.now_ns() - max(0, now_ns - last_ns)
        pair = replace(job.pair or Pair(), left=cluster, lost_ns=lost_ns, switched_ns=None)
        return replace(job, pair=pair)

    def _removed_clusters(self) -> tuple[list[str], list[Change]]:
        """Return clusters that left the fleet a grace period ago and still have attempts, and the events to store.

        An empty fleet is more likely a mistake, and jobs have no other place. So attempts stay then, and no further
        cluster counts as lost. One that left before does: jobs that wait for it are reconsidered.
        """
        fleet, now_ns = self._state.fleet, self._state.clock.monotonic_ns()
        if not fleet.met:
            return [], []
        left = away(self._state)
        if fleet.clusters:
            self._state.left_ns = {name: self._state.left_ns.get(name, now_ns) for name in left}
        gone = [name for name in left if self._state.given_up(name)]
        reported = []
        for name in gone:
            if name not in self._given_up:
                reported.append(self._reported("cluster", Reason("counts_as_lost", cluster=name)))
                self._state.reconsider(name)
        self._given_up = set(gone)
        return gone if fleet.clusters else [], reported

    def _end_attempts_without_removal(self) -> Iterator[Change]:
        """End attempts without removals that a cluster has to confirm."""
        for key in sorted(self._state.done):
            yield ended(self._state.attempts[key], self._state.clock.now_ns())

    def _drain(self) -> Iterator[Change]:
        drained = {(each.cluster, each.node) for each in self._state.fleet.cordons() if each.drain}
        drained |= self._state.advance.drained()
        for cluster in {name for name, _ in drained}:
            for key in sorted(self._state.by_cluster[cluster]):
                if found := self._state.current(key):
                    lost = {
                        each.replica: f"{each.cluster}/{each.node}"
                        for each in _running(found[1])
                        if {(each.cluster, ""), (each.cluster, each.node)} & drained
                    }
                    if not lost:
                        continue
                    reason = Reason("drained", place=next(iter(lost.values())))
                    if change := self._observer.shrunk(*found, lost, reason):
                        yield change
                    elif standby := self._ready_standby(found[0], drained):
                        now_ns = self._state.clock.now_ns()
                        yield switched(found[0], standby, reason, ACTOR, now_ns)[2]  # and is moved after that
                    else:
                        yield self._sent_back(*found, also(reason, ELSEWHERE))

    def _ready_standby(self, job: JobRecord, drained: Collection[tuple[str, str]]) -> JobRecord | None:
        """Return the standby of a service, if it runs in a cluster that answers and is not drained itself."""
        standby = self._state.jobs.get(job.other)
        if standby is None or job.is_standby or standby.state is not JobState.RUNNING:
            return None
        places = {(cluster, "") for cluster in standby.clusters}
        if found := self._state.attempts.get((standby.id, standby.attempt)):
            places |= {(each.cluster, each.node) for each in found.placements}
        return standby if self._state.all_up(standby.clusters) and places.isdisjoint(drained) else None

    # Deadlines.

    def _enforce_deadlines(self) -> Iterator[Change]:
        for what, key in list(self._state.deadlines.due()):
            match what:
                case Due.EXPIRY:
                    yield from self._expire(key)
                case Due.LIMIT:
                    yield from self._limit(key)
                case Due.LEASE:
                    yield from self._end_lease(key)
                case Due.RETRY:
                    self._state.consider(key[0])
                case Due.COLLECT:
                    self._collect(key)
                case Due.FORGIVE:
                    self._lift_exclusion(key[0])
                case Due.WHOLE:
                    yield from self._make_whole(key)

    def _expire(self, key: DueKey) -> Iterator[Change]:
        found = self._state.current(key[:2])
        if found is None or found[1].state is not AttemptState.ASSUMED:
            return
        attempt = found[1]
        held_s, now_ns = self._state.settings.confirm_s(len(attempt.placements)), self._state.clock.monotonic_ns()
        placed_ns = max(self._read_ns, now_ns - max(0, self._state.clock.now_ns() - attempt.created_ns))
        in_all_s = (now_ns - placed_ns) / NS
        last_seen_s = (now_ns - max(placed_ns, self._last_sign_ns(attempt, now_ns))) / NS
        left_s = min(held_s - last_seen_s, MAX_HELD * held_s - in_all_s)
        if left_s > 0:
            self._state.deadlines.in_seconds(left_s, Due.EXPIRY, key)
            return
        self._reset_deadline(Due.EXPIRY, key)
        unsent, home = self._state.unsent(attempt), attempt.clusters[0]
        waiting = self._state.awaiting_rank_0(attempt)
        silent = ", ".join(each for each in unsent if each not in waiting)
        self._state.stages.became(attempt, tuple(unsent), Deployed.LATE)
        copy = self._state.seen[key[:2]].get(home)
        notes = [each.reason for each in copy.endpoints if each.reach is Reach.NONE and each.reason] if copy else []
        waited = round(in_all_s)
        reason: str = Reason("not_confirmed", clusters=silent, waited=waited)
        if not silent:
            reason = Reason("no_address", cluster=home, clusters=", ".join(waiting), waited=waited)
            reason = also(reason, *notes[:1])
        yield self._sent_back(*found, reason)

    def _last_sign_ns(self, attempt: Attempt, now_ns: int) -> int:
        """Return the monotonic time of the last progress on an attempt in the slowest cluster.

        A cluster that has not received the command yet does not count.
        """
        signs, waiting = [now_ns], self._state.awaiting_rank_0(attempt)
        for cluster in self._state.unsent(attempt):
            if cluster in waiting:
                continue
            key = (attempt.job_id, attempt.number, cluster)
            pending_commands = self._state.pending_commands.get(key)
            if pending_commands is None or not self._state.dispatcher.awaits(pending_commands):
                signs.append(self._state.underway_ns.get(key, 0))
        return min(signs)

    def _limit(self, key: DueKey) -> Iterator[Change]:
        found = self._state.current(key[:2])
        if found is None:
            return
        self._reset_deadline(Due.LIMIT, key)
        reason = Reason("time_limit", limit=found[1].spec.time_limit_s or 0)
        yield self._stopped(*found, JobState.FAILED, reason)

    def _end_lease(self, key: DueKey) -> Iterator[Change]:
        """Stop a job whose lease has ended, or warn before the end. A renewal only changes the stored end."""
        found = self._state.current(key[:2])
        if found is None or found[0].expires_ns is None or not found[0].spec.lease_s:
            return
        job, now_ns = found[0], self._state.clock.now_ns()
        lease_s, expires_ns = found[0].spec.lease_s, found[0].expires_ns
        left_s, warned_s = (expires_ns - now_ns) / NS, min(LEASE_WARNING_S, lease_s / 4)
        if left_s <= 0:
            self._reset_deadline(Due.LEASE, key)
            self._warned_ns.pop(job.id, None)
            yield self._stopped(
                *found, JobState.CANCELLED, Reason("lease_ended", ends_at=time_param(expires_ns, seconds=True))
            )
            return
        self._state.deadlines.in_seconds(
            min(left_s - warned_s if left_s > warned_s else left_s, lease_s), Due.LEASE, key
        )
        if left_s <= warned_s and self._warned_ns.get(job.id) != expires_ns:
            self._warned_ns[job.id] = expires_ns
            text = Reason("lease_ends", ends_at=time_param(expires_ns, seconds=True), job=job.id)
            yield Change(insert=[replace(job_event(job, ACTOR, "lease", text), at_ns=now_ns)])

    def _stopped(self, job: JobRecord, attempt: Attempt, state: JobState, reason: str) -> Change:
        """Return the change that ends a running job, and the other copy of a service."""
        now_ns = self._state.clock.now_ns()
        after = moved(job, state, reason, now_ns)
        change = stepped(after, ACTOR)
        change.add(ending(attempt, reason, now_ns))
        change.add(self._state.end_of_other(after, ACTOR))
        return change

    def _release_unstarted(self) -> Iterator[Change]:
        """Release the devices of jobs that did not start within the time-out of their queue.

        While missing reports may have a local cause, the jobs may run.
        """
        now_ns = self._state.clock.monotonic_ns()
        if now_ns < self._starts_ns or self._state.doubtful:
            return
        self._starts_ns = now_ns + AGAIN_S * NS
        for key, since_ns in sorted(self._state.unstarted_ns.items()):
            found = self._state.current(key)
            queue = self._state.queues.get(found[0].spec.queue) if found else None
            timeout_s = queue.start_timeout_s if queue else START_TIMEOUT_S
            if found and timeout_s and now_ns - since_ns > timeout_s * NS:
                yield self._observer.unstarted(*found, timeout_s)

    def _make_whole(self, key: DueKey) -> Iterator[Change]:
        """Send the command for an incomplete workload again; parts may have been removed before their observation.

        A workload that had succeeded before it got more replicas never runs them, so they leave.
        """
        self._state.partial.discard(key)
        found, copy = self._state.current(key[:2]), self._state.seen.get(key[:2], {}).get(key[2])
        if found is None or copy is None or not lacking(copy, found[1]):
            return
        self._state.partial.add(key)
        self._state.deadlines.in_seconds(WHOLE_S, Due.WHOLE, key)
        if key in self._state.pending_commands:
            return
        (job, attempt), now_ns = found, self._state.clock.now_ns()
        if change := self._observer.without_unstarted(job, attempt, copy):
            yield change
            return
        change = Change(put=[PendingCommand(*key, Verb.CREATE, now_ns)])
        reason = also(Reason("gone_or_late", what=loss_text(key[2], copy, attempt)), Reason("sent_again"))
        if job.reason != reason:
            job = replace(job, reason=reason, changed_ns=now_ns, version=job.version + 1)
            change.add(Change(update=[job], insert=[job_event(job, ACTOR, "drift")]))
        yield change

    def _reset_deadline(self, what: Due, key: DueKey) -> None:
        """Set the deadline again, since its change is not stored if a user updates the job concurrently."""
        self._state.deadlines.in_seconds(AGAIN_S, what, key)

    def _lift_exclusion(self, job_id: str) -> None:
        """Allow a job again in the places that rejected it."""
        if job_id in self._state.refusals:
            self._state.refusals[job_id] = self._state.refusals[job_id].without_exclusions()
            self._state.consider(job_id)

    def _collect(self, key: DueKey) -> None:
        if key[:2] not in self._state.by_cluster[key[2]]:
            self._observer.remove(*key)

    # Samples.

    def _sample(self) -> Iterator[Change]:
        now_ns = self._state.clock.monotonic_ns()
        if self._sampled_ns is not None and now_ns - self._sampled_ns < self._state.settings.sample_interval_s * NS:
            return
        if not self._state.fleet.clusters and self._state.link_table.config is None:
            return
        self._sampled_ns = now_ns
        wall_ns = self._state.clock.now_ns()
        yield Change(
            insert=[
                *(self._cluster_sample(each, wall_ns) for each in everyone(self._state)),
                *(
                    LinkSample(
                        wall_ns,
                        link.source,
                        link.target,
                        link.latency_ns,
                        link.jitter_ns,
                        link.loss_ppm,
                        link.bandwidth_mbps,
                        link.used_mbps,
                    )
                    for link in self._state.fleet.reported_links
                ),
            ],
            put=[*self._state.link_table.samples(wall_ns)],
        )

    def _cluster_sample(self, cluster: LiveCluster, now_ns: int) -> ClusterSample:
        mine = own(self._state, cluster)
        sums = amounts_of_cluster(cluster, held(self._state, cluster, mine), mine)
        return ClusterSample(
            at_ns=now_ns,
            cluster=cluster.name,
            state=cluster.state.value,
            nodes=sums.nodes,
            gpus=sums.gpus,
            gpu_milli=sums.gpu_milli.total,
            gpu_milli_used=sums.gpu_milli.used,
            gpu_memory_mib=sums.gpu_memory_mib.total,
            gpu_memory_mib_used=sums.gpu_memory_mib.used,
            cpu_milli=sums.cpu_milli.total,
            cpu_milli_used=sums.cpu_milli.used,
            memory_mib=sums.memory_mib.total,
            memory_mib_used=sums.memory_mib.used,
            jobs=sums.jobs,
        )

    def _sent_back(self, job: JobRecord, attempt: Attempt, reason: str) -> Change:
        return sent_back(job, attempt, reason, ACTOR, self._state.clock.now_ns())

    def _reported(self, kind: str, reason: str) -> Change:
        return Change(insert=[Event(self._state.clock.now_ns(), kind, reason, ACTOR)])


def _running(attempt: Attempt) -> Iterator[Placement]:
    """Yield the placements of the replicas that run, or are to run."""
    return (each for each in attempt.holding if not each.leaving)
