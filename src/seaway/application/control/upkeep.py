"""Upkeep: what follows from nothing but time passing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from seaway.application.changes import Change
from seaway.application.control.deadlines import Due, Key
from seaway.application.control.live import Live
from seaway.application.control.observe import ACTOR, Observer
from seaway.application.records import ClusterSample, Event, LinkSample
from seaway.application.transitions import ending, moved, stepped, stopped
from seaway.application.views import ClusterState
from seaway.domain.lifecycle import AttemptState, JobState

NS = 1_000_000_000

AGAIN_S = 1
"""Delay before a deadline that was met is looked at again."""


class Upkeep:
    """Ages clusters, expires placements, ends jobs at their limit, moves jobs away, writes samples.

    Parameters
    ----------
    live
        The loop's memory.
    observer
        Knows how copies are removed.
    """

    def __init__(self, live: Live, observer: Observer) -> None:
        self._live = live
        self._observer = observer
        self._allowed = float(live.settings.replace_per_minute)
        self._refilled_ns = live.clock.monotonic_ns()
        self._aged_ns = live.clock.monotonic_ns()
        self._sampled_ns: int | None = None
        self._halted = False

    def changes(self) -> list[Change]:
        """Return what is to be stored now."""
        return [*self._age(), *self._meet_deadlines(), *self._replace(), *self._drain(), *self._sample()]

    # Clusters that do not answer.

    def _age(self) -> Iterator[Change]:
        settings = self._live.settings
        now_ns = self._live.clock.monotonic_ns()
        self._pass_over_pauses(now_ns)
        for live in self._live.fleet.clusters.values():
            silent_s = (now_ns - live.heard_ns) / NS
            if live.state is ClusterState.UP and silent_s > settings.stale_s:
                self._live.fleet.set_state(live.name, ClusterState.STALE)
                yield self._told("cluster", f"{live.name} has not answered for {silent_s:.0f} s and gets no new work")
            if live.state is ClusterState.STALE and silent_s > settings.grace_s:
                self._live.fleet.set_state(live.name, ClusterState.LOST)
                yield self._told("cluster", f"{live.name} has not answered for {silent_s:.0f} s and is given up")
                self._live.reconsider(live.name)

    def _pass_over_pauses(self, now_ns: int) -> None:
        """Hold nothing against clusters for a time in which nobody listened, like one without a database."""
        deaf_ns = now_ns - self._aged_ns - int(self._live.settings.stale_s * NS)
        self._aged_ns = now_ns
        if deaf_ns > 0:
            for live in self._live.fleet.clusters.values():
                live.heard_ns = min(live.heard_ns + deaf_ns, now_ns)

    def _replace(self) -> Iterator[Change]:
        """Send jobs of lost clusters back to their queues, so many in a minute, and none when most are lost."""
        fleet = self._live.fleet
        names = list(dict.fromkeys([*fleet.clusters, *(name for name, held in self._live.by_cluster.items() if held)]))
        lost = [name for name in names if self._live.state_of(name) is ClusterState.LOST]
        affected = [key for name in lost for key in self._live.by_cluster[name] if self._live.attempts[key].state.live]
        if not affected:
            self._halted = False
            return
        if len(lost) > self._live.settings.halt_share * len(names):
            if not self._halted:
                self._halted = True
                text = f"{len(lost)} of {len(names)} clusters do not answer: the fault may be on this side"
                yield self._told("halt", f"{text}, and nothing is placed elsewhere")
            return
        self._halted = False
        self._refill()
        for key in sorted(affected):
            if self._allowed < 1:
                return
            attempt, job = self._live.attempts[key], self._live.jobs.get(key[0])
            if job is None or job.attempt != attempt.number:
                continue
            self._allowed -= 1
            name = next(cluster for cluster in attempt.clusters if cluster in lost)
            reason = f"{name} does not answer; it is placed elsewhere"
            yield stopped(job, attempt, JobState.QUEUED, reason, ACTOR, self._live.clock.now_ns())[1]

    def _refill(self) -> None:
        """Allow more replacements as time passes, up to a minute's worth."""
        most = self._live.settings.replace_per_minute
        now_ns = self._live.clock.monotonic_ns()
        self._allowed = min(most, self._allowed + (now_ns - self._refilled_ns) * most / (60 * NS))
        self._refilled_ns = now_ns

    def _drain(self) -> Iterator[Change]:
        """Send jobs of drained clusters and nodes back to their queues."""
        drained = {(each.cluster, each.node) for each in self._live.fleet.cordons() if each.drain}
        for cluster in {name for name, _ in drained}:
            for key in sorted(self._live.by_cluster[cluster]):
                attempt, job = self._live.attempts[key], self._live.jobs.get(key[0])
                if job is None or not attempt.state.live or job.attempt != attempt.number:
                    continue
                for each in attempt.placements:
                    where = {(each.cluster, ""), (each.cluster, each.node)} & drained
                    if where:
                        reason = f"{each.cluster}/{each.node} is drained"
                        yield stopped(job, attempt, JobState.QUEUED, reason, ACTOR, self._live.clock.now_ns())[1]
                        break

    # Deadlines.

    def _meet_deadlines(self) -> Iterator[Change]:
        for what, key in list(self._live.deadlines.due()):
            match what:
                case Due.EXPIRY:
                    yield from self._expire(key)
                case Due.LIMIT:
                    yield from self._limit(key)
                case Due.RETRY:
                    self._live.consider(key[0])
                case Due.COLLECT:
                    self._collect(key)
                case Due.FORGIVE:
                    self._forgive(key[0])

    def _expire(self, key: Key) -> Iterator[Change]:
        attempt, job = self._live.attempts.get(key[:2]), self._live.jobs.get(key[0])
        if attempt is None or job is None or attempt.state is not AttemptState.ASSUMED:
            return
        self._look_again(Due.EXPIRY, key)
        silent = ", ".join(self._live.unsent(attempt))
        reason = f"{silent} did not confirm it within {self._live.settings.assume_s:.0f} s"
        yield stopped(job, attempt, JobState.QUEUED, reason, ACTOR, self._live.clock.now_ns())[1]

    def _limit(self, key: Key) -> Iterator[Change]:
        attempt, job = self._live.attempts.get(key[:2]), self._live.jobs.get(key[0])
        if attempt is None or job is None or not attempt.state.live or job.attempt != attempt.number:
            return
        self._look_again(Due.LIMIT, key)
        now_ns = self._live.clock.now_ns()
        reason = f"it ran for longer than its limit of {attempt.spec.time_limit_s} s"
        change = stepped(moved(job, JobState.FAILED, reason, now_ns), ACTOR)
        change.add(ending(attempt, reason, now_ns))
        yield change

    def _look_again(self, what: Due, key: Key) -> None:
        """Come back to a deadline: what follows from it is not stored when somebody changes the job meanwhile."""
        self._live.deadlines.in_seconds(AGAIN_S, what, key)

    def _forgive(self, job_id: str) -> None:
        """Let a job try again where it was refused."""
        if job_id in self._live.refusals:
            self._live.refusals[job_id] = replace(self._live.refusals[job_id], devices=frozenset())
            self._live.consider(job_id)

    def _collect(self, key: Key) -> None:
        if key[:2] not in self._live.attempts:
            self._observer.remove(*key)

    # Samples.

    def _sample(self) -> Iterator[Change]:
        now_ns = self._live.clock.monotonic_ns()
        if self._sampled_ns is not None and now_ns - self._sampled_ns < self._live.settings.sample_s * NS:
            return
        if not self._live.fleet.clusters:
            return
        self._sampled_ns = now_ns
        wall_ns = self._live.clock.now_ns()
        yield Change(
            insert=[
                *(self._cluster_sample(name, wall_ns) for name in self._live.fleet.clusters),
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
                    for link in self._live.fleet.links
                ),
            ]
        )

    def _cluster_sample(self, name: str, now_ns: int) -> ClusterSample:
        live = self._live.fleet.clusters[name]
        nodes = live.cluster.nodes if live.cluster else ()
        devices = [device for node in nodes for device in node.devices]
        attempts = [self._live.attempts[key] for key in self._live.by_cluster[name]]
        placements = [
            (attempt.spec.demand.request, each)
            for attempt in attempts
            for each in attempt.placements
            if each.cluster == name
        ]
        slices = [taken for _, each in placements for taken in each.slices]
        return ClusterSample(
            at_ns=now_ns,
            cluster=name,
            state=live.state.value,
            nodes=len(nodes),
            gpus=len(devices),
            gpu_milli=sum(device.core_milli for device in devices),
            gpu_milli_used=sum(taken.core_milli for taken in slices),
            gpu_memory_mib=sum(device.memory_mib for device in devices),
            gpu_memory_mib_used=sum(taken.memory_mib for taken in slices),
            cpu_milli=sum(node.cpu_milli for node in nodes),
            cpu_milli_used=sum(request.cpu_milli for request, _ in placements),
            memory_mib=sum(node.memory_mib for node in nodes),
            memory_mib_used=sum(request.memory_mib for request, _ in placements),
            jobs=len(attempts),
        )

    def _told(self, kind: str, reason: str) -> Change:
        return Change(insert=[Event(self._live.clock.now_ns(), kind, reason, ACTOR)])
