"""Observation: state transitions of jobs, derived from answers and reports of clusters."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from seaway.application.changes import Change
from seaway.application.control.fleet import Key
from seaway.application.control.orphans import (
    STARTED,
    Known,
    Orphans,
    lacking,
    loss_text,
    lost,
    phase_of,
    run_again,
    with_ended_replicas,
)
from seaway.application.control.rejections import NEVER_REFUSED, Due
from seaway.application.control.reports import Answered, Observation, Report, Unreachable
from seaway.application.control.settings import Drift
from seaway.application.control.stages import Deployed
from seaway.application.control.state import ControlState
from seaway.application.ports.store import Store
from seaway.application.records import Event, PendingCommand, Verb
from seaway.application.transitions import (
    blocked,
    ended,
    ending,
    job_event,
    moved,
    nodes_text,
    resize_reason,
    resized,
    sent_back,
    sized,
    stepped,
    waiting_text,
    without_lost,
)
from seaway.application.views import ClusterState
from seaway.domain.amounts import held_amounts
from seaway.domain.attempt import Attempt
from seaway.domain.deployment import FINISHED_PHASES, Cause, Reach, Workload, WorkloadPhase
from seaway.domain.job_record import JobRecord
from seaway.domain.job_spec import ONE_OBJECT, ONE_TEMPLATE
from seaway.domain.job_state import AttemptState, JobState
from seaway.domain.placement import Placement
from seaway.domain.reasons import Reason, also, both, without_cluster
from seaway.domain.units import ranges

log = logging.getLogger(__name__)

ACTOR = "controller"
NS = 1_000_000_000
MAX_MADE_AGAIN = 3
"""Maximum number of times that missing workloads of an attempt are re-created before the job is placed elsewhere."""


MAX_RELEASES = 32
"""Maximum number of times that devices of completed replicas are released before their attempt ends."""

WHOLE_S = 60.0
"""Seconds that a workload may be incomplete before its command is sent again."""


@dataclass(frozen=True, slots=True)
class _AttemptChanges:
    """Changes of one attempt: clusters that confirmed it, rejected it, lost it, or have no suitable node.

    `exposed` has the clusters in which the addresses of its ports changed, and `drift` what others changed in its
    objects, by cluster. If a component in front of several clusters rejected the command, the rejection counts under
    its name.
    """

    confirmed: dict[str, PendingCommand]
    refused: dict[str, str]
    missing: set[str]
    unfit: set[str]
    unasked: dict[str, str]
    exposed: set[str]
    drift: dict[str, list[str]]


class Observer:
    """Conversion of reports into changes.

    Parameters
    ----------
    live
        The control-plane state, in which observed workloads are recorded.
    store
        Used to look up finished jobs whose workloads are reported.

    Attributes
    ----------
    orphans
        Handles workloads without an attempt.
    """

    def __init__(self, live: ControlState, store: Store) -> None:
        self._state = live
        self.orphans = Orphans(live, store)

    def changes(self, reports: Sequence[Report], known: Known | None = None) -> list[Change]:
        """Process reports in order; return the resulting changes.

        Parameters
        ----------
        known
            Result of `orphans.look_up`; None to query it now.
        """
        known = self.orphans.look_up(reports) if known is None else known
        news: dict[Key, _AttemptChanges] = {}
        removed: dict[Key, dict[str, PendingCommand]] = {}
        changes: list[Change] = []
        self._take_inventory(reports)
        for report in reports:
            match report:
                case Answered():
                    self._answered(report, news, removed)
                case Observation():
                    changes += self._received(report, news, known)
                case Unreachable():  # housekeeping measures the duration
                    if live := self._state.fleet.clusters.get(report.cluster):
                        live.unreachable_reason = without_cluster(report.cluster, report.reason)
        changes += [self._removed(key, clusters) for key, clusters in removed.items()]
        changes += [change for key, told_of in news.items() if (change := self._apply_verdict(key, told_of))]
        return changes

    # Answers to commands.

    def _answered(
        self, report: Answered, news: dict[Key, _AttemptChanges], removed: dict[Key, dict[str, PendingCommand]]
    ) -> None:
        pending_commands = report.pending_commands
        key = (pending_commands.job_id, pending_commands.attempt)
        if self._state.pending_commands.get((*key, pending_commands.cluster)) != pending_commands:
            return  # a late answer to a replaced command, or to one for an orphaned workload, which is not stored
        if report.answer.underway:
            self._state.underway_ns[*key, pending_commands.cluster] = self._state.clock.monotonic_ns()
            return
        if pending_commands.verb is Verb.DELETE:
            removed.setdefault(key, {})[pending_commands.cluster] = pending_commands
            return
        noted = _of(news, key)
        if report.answer.refused:
            noted.refused[pending_commands.cluster] = report.answer.reason
            if report.answer.by:
                noted.unasked[pending_commands.cluster] = report.answer.by
            elif report.answer.everywhere:
                noted.unfit.add(pending_commands.cluster)
        elif (*key, pending_commands.cluster) in self._state.gone:
            noted.missing.add(pending_commands.cluster)  # created, and removed before the answer
        else:
            noted.confirmed[pending_commands.cluster] = pending_commands
            self._state.sent_ns[(*key, pending_commands.cluster)] = self._state.clock.monotonic_ns()

    def _removed(self, key: Key, clusters: dict[str, PendingCommand]) -> Change:
        """Record that clusters removed their parts of an attempt. The last removal ends it."""
        attempt = self._state.attempts[key]
        if set(self._state.unsent(attempt)) - clusters.keys():
            return Change(delete=list(clusters.values()))
        return ended(attempt, self._state.clock.now_ns())

    # Reports of clusters.

    def _take_inventory(self, reports: Iterable[Report]) -> None:
        """Apply the latest inventory of each cluster, all in one call, which is cheaper."""
        inventories = [each.changes.inventory for each in reports if isinstance(each, Observation)]
        reported = {each.name: each for each in inventories if each and each.name in self._state.fleet.clusters}
        if reported:
            self._state.fleet.tell(*reported.values())

    def _received(self, report: Observation, news: dict[Key, _AttemptChanges], known: Known) -> Iterator[Change]:
        live = self._state.fleet.clusters.get(report.cluster)
        if live is None:
            return
        now_ns = self._state.clock.monotonic_ns()
        last_seen_s = (now_ns - live.last_seen_ns) / NS
        live.last_seen_ns = max(live.last_seen_ns, now_ns - int(report.changes.age_s * NS))
        reported_ns = self._state.clock.now_ns() - int(report.changes.age_s * NS)
        live.reported_ns = reported_ns if live.answered else max(live.reported_ns or 0, reported_ns)
        live.answered = True
        live.unreachable_reason = ""
        fresh = now_ns - live.last_seen_ns <= self._state.settings.stale_after_s * NS
        if live.state is not ClusterState.UP and live.cluster is not None and fresh:
            before, again = live.state, live.reported_unreachable
            live.reported_unreachable = False
            self._state.fleet.set_state(live.name, ClusterState.UP)
            self._state.reconsider(live.name)
            if again:  # each cluster is stale until its first report after a start, which is no news
                log.warning("%s answers again, after %.0f s", live.name, last_seen_s)
                reason = Reason("answers", cluster=live.name, state=before.value)
                yield Change(insert=[self._fleet_event("cluster", reason)])
        if report.changes.complete:
            there = {copy.name for copy in report.changes.workloads if copy.phase is not WorkloadPhase.GONE}
            self._state.fleet.keep_orphans(live.name, there)
            self._find_missing(report, news)
        if report.changes.unmanaged_pods or report.changes.complete:
            self._state.fleet.occupy(live.name, report.changes.unmanaged_pods, complete=report.changes.complete)
        for copy in report.changes.workloads:
            self._saw(copy, news, known, complete=report.changes.complete)

    def _find_missing(self, report: Observation, news: dict[Key, _AttemptChanges]) -> None:
        workloads = report.changes.workloads
        listed = {(copy.job_id, copy.attempt) for copy in workloads if copy.phase is not WorkloadPhase.GONE}
        for key in self._state.by_cluster[report.cluster] - listed:
            place = (*key, report.cluster)
            if place not in self._state.pending_commands and self._state.sent_ns.get(place, -1) < report.asked_ns:
                self._miss(key, report.cluster, news)

    def _miss(self, key: Key, cluster: str, news: dict[Key, _AttemptChanges]) -> None:
        """Record that a workload of a live attempt is missing, unless it already succeeded."""
        copy = self._state.seen[key].get(cluster)
        attempt = self._state.attempts[key]
        if not attempt.state.live or (copy and copy.phase is WorkloadPhase.SUCCEEDED):
            return
        if all(each.completed for each in attempt.placements if each.cluster == cluster):
            return
        if (
            *key,
            cluster,
        ) in self._state.pending_commands:  # re-create it if the answer of the cluster arrives only now
            self._state.gone.add((*key, cluster))
        else:
            _of(news, key).missing.add(cluster)
        self._state.seen[key].pop(cluster, None)

    def _saw(self, copy: Workload, news: dict[Key, _AttemptChanges], known: Known, *, complete: bool) -> None:
        key = (copy.job_id, copy.attempt)
        attempt = self._state.attempts.get(key)
        if attempt is None or key not in self._state.by_cluster[copy.cluster]:
            # of an earlier attempt, of an earlier name of the cluster, or of a cluster that removed it
            self.orphans.saw(copy, known, complete=complete)
        elif not attempt.state.live:
            pass  # it is being removed
        elif copy.phase is WorkloadPhase.GONE:
            if not complete:  # else `_find_missing` found it, unless its command is pending
                self._miss(key, copy.cluster, news)
        else:
            self._take(copy, attempt, _of(news, key), complete=complete)

    def _take(self, copy: Workload, attempt: Attempt, news: _AttemptChanges, *, complete: bool) -> None:
        """Apply the current workload of a live attempt. Parts that were observed before and are absent now are missing.

        A workload in a complete listing confirms its command, even if another process sent it.
        """
        key = (copy.job_id, copy.attempt)
        place = (*key, copy.cluster)
        before = self._state.seen[key].get(copy.cluster)
        copy = with_ended_replicas(copy, before, attempt)
        self._state.seen[key][copy.cluster] = copy
        if before and copy.endpoints != before.endpoints:
            news.exposed.add(copy.cluster)
        if changed := self._new_drift(copy, before, key):
            news.drift[copy.cluster] = changed
        if lacking(copy, attempt) and place not in self._state.partial:
            self._state.partial.add(place)
            self._state.deadlines.in_seconds(WHOLE_S, Due.WHOLE, place)
        first = (
            complete and not before and place not in self._state.sent_ns and place not in self._state.pending_commands
        )
        if lacking(copy, attempt) if first else lost(copy, before, attempt):
            if place in self._state.pending_commands:  # created, and removed before the answer
                self._state.gone.add(place)
            else:
                news.missing.add(copy.cluster)
        elif not before or not lacking(copy, attempt):
            self._state.gone.discard(place)

    def remove(self, job_id: str, attempt: int, cluster: str) -> None:
        """Command a cluster to remove an unneeded workload."""
        self.orphans.remove(job_id, attempt, cluster)

    # Next steps of the job.

    def _apply_verdict(self, key: Key, news: _AttemptChanges) -> Change | None:
        found = self._state.current(key)
        if found is None:
            return None
        job, attempt = found
        if news.refused:
            return self._refused(job, attempt, news.refused, news.unfit, news.unasked, news.missing)
        workloads = self._state.seen[key]
        if run_again(workloads.values(), attempt):
            now_ns, pause_s = self._state.clock.now_ns(), self._state.settings.pause_s(attempt.number)
            return sent_back(job, attempt, Reason("completed_run_again"), ACTOR, now_ns, pause_s=pause_s)
        stay = dict.fromkeys(each.cluster for each in attempt.remaining)
        over = stay.keys() - {each.cluster for each in attempt.remaining if not each.completed}
        phases = [
            WorkloadPhase.SUCCEEDED if cluster in over else phase_of(workloads.get(cluster), attempt)
            for cluster in stay
        ]
        if WorkloadPhase.FAILED in phases:
            return self._failed(job, attempt, workloads, news.missing)
        if all(phase is WorkloadPhase.SUCCEEDED for phase in phases):
            return self._completed(job, attempt)
        missing = news.missing
        return self._drifted(job, attempt, missing) if missing else self._progressed(job, attempt, news, phases)

    def _progressed(
        self, job: JobRecord, attempt: Attempt, news: _AttemptChanges, phases: list[WorkloadPhase | None]
    ) -> Change | None:
        now_ns = self._state.clock.now_ns()
        change = Change(delete=list(news.confirmed.values()))
        runs = all(phase in STARTED for phase in phases)
        sent = all(cluster in news.confirmed for cluster in self._state.unsent(attempt))
        if (sent or runs) and job.state is JobState.SCHEDULED:
            hindrance = next(iter(self._blocking_reasons(job)), "")  # it may arrive before the answer
            job = moved(
                job, JobState.DEPLOYING, hindrance or Reason("accepted_by", clusters=_listed(attempt.clusters)), now_ns
            )
            attempt = replace(attempt, state=AttemptState.SENT)
            change.update = [job, attempt]
            change.insert.append(job_event(job, ACTOR))
        exposed = bool(news.exposed) or job.state is not JobState.RUNNING
        if runs and job.state is not JobState.RUNNING:
            self._state.stages.became(attempt, attempt.clusters, Deployed.RUNNING)
            version = job.version - (1 if change.update else 0)  # one update of the row, one version
            started_ns = job.started_ns or now_ns
            job = replace(
                moved(job, JobState.RUNNING, _placement_text(job, attempt), now_ns, started_ns=started_ns),
                version=version + 1,
            )
            attempt = replace(attempt, state=AttemptState.RUNNING, running_ns=attempt.running_ns or now_ns)
            change.update = [job, attempt]
            change.insert.append(job_event(job, ACTOR))
        if not change.update and not runs:
            change.add(self._held(job, attempt) or self._blocked(job))
        if runs and exposed:
            change.add(self._exposed(job, attempt, change))
        if news.drift:
            self._edited(job, attempt, news.drift, change)
        if attempt.spec.meets:
            self._meet(job, attempt, change)
        placements = attempt.placements
        if any(each.leaving and each.cluster in news.confirmed for each in placements):
            placements = without_leaving(placements, news.confirmed)
        if over := self._completed_early(attempt):
            ended_in = {each.cluster for each in placements if each.replica in over} & self._state.recreating
            self._send_again(attempt, ended_in, change)
            placements = tuple(replace(each, completed=True) if each.replica in over else each for each in placements)
        if placements is not attempt.placements:
            self._release(job, attempt, placements, change)
        return change or None

    def _completed_early(self, attempt: Attempt) -> frozenset[int]:
        """Return the replicas whose devices are released now, before the end of their attempt.

        They are those of workloads that have completed and that no other replica needs. A large attempt is stored for
        several of them together. Pods with one template may run on the node of another one, and then release nothing.
        """
        copies = self._state.seen[attempt.job_id, attempt.number].values()
        ended_on = {
            one.replica: one.node for copy in copies for one in copy.replicas if one.phase is WorkloadPhase.SUCCEEDED
        }
        template = attempt.spec.template
        if not ended_on or not attempt.spec.releases_early:
            return frozenset()
        if template in ONE_OBJECT and not self._state.recreating.isdisjoint(attempt.clusters):
            return frozenset()
        over = set(ended_on)
        if template in ONE_TEMPLATE:
            over = {each.replica for each in attempt.placements if ended_on.get(each.replica) == each.node}
        running = {each.place for each in attempt.placements if each.replica not in over or each.leaving}
        ended = {each.replica for each in attempt.holding if each.place not in running}
        return frozenset(ended if len(ended) * MAX_RELEASES >= len(attempt.placements) else ())

    def _release(self, job: JobRecord, attempt: Attempt, placements: tuple[Placement, ...], change: Change) -> None:
        """Release the devices of replicas that left or completed; `placements` are those of the attempt after it."""
        amounts = held_amounts(attempt.spec.demand, placements, self._state.fleet.snapshot.device)
        attempt = replace(attempt, placements=placements, amounts=amounts)
        if stepping := [each for each in change.update if isinstance(each, JobRecord)]:
            job = sized(stepping[0], attempt)
        else:
            job = replace(job, changed_ns=self._state.clock.now_ns(), version=job.version + 1)
            job = sized(job, attempt)
        change.update = [job, attempt]

    def _new_drift(self, copy: Workload, before: Workload | None, key: Key) -> list[str]:
        """Return the changes of others that were not reported yet. After a repair, a repeated change counts again."""
        if before is None:
            return [each.text for each in copy.drift]
        repairs = self._state.settings.drift == Drift.REPAIR and self._state.restored[key] <= MAX_MADE_AGAIN
        texts = {each.text for each in before.drift}
        known = (each in before.drift if repairs else each.text in texts for each in copy.drift)
        return [each.text for each, is_known in zip(copy.drift, known, strict=True) if not is_known]

    def _edited(self, job: JobRecord, attempt: Attempt, drift: Mapping[str, Sequence[str]], change: Change) -> None:
        """Report what others changed in objects of a job, and restore them if that is configured.

        After `MAX_MADE_AGAIN` repairs of an attempt, what others change stays: a controller may insist on it.
        """
        key, now_ns = (job.id, attempt.number), self._state.clock.now_ns()
        repairs = self._state.settings.drift == Drift.REPAIR
        if repairs:
            self._state.restored[key] += 1
        insists = self._state.restored[key] > MAX_MADE_AGAIN
        what = "stays" if not repairs else "stays_after_repairs" if insists else "restored"
        changed = (
            Reason("in_cluster", cluster=cluster, text=each) for cluster in sorted(drift) for each in drift[cluster]
        )
        reason = also(*changed, Reason(what))
        if repairs and not insists:
            self._send_again(attempt, drift, change)
        if not change.update:
            job = replace(job, changed_ns=now_ns, version=job.version + 1)
            change.update = [job]
        change.insert.append(job_event(job, ACTOR, "drift", reason))

    def _send_again(self, attempt: Attempt, clusters: Collection[str], change: Change) -> None:
        """Command clusters to write the objects of an attempt again, also if they confirm an earlier command now."""
        now_ns = self._state.command_ns(attempt)
        confirmed = [each for each in change.delete if isinstance(each, PendingCommand)]
        change.delete = [each for each in confirmed if each.cluster not in clusters]
        key = attempt.job_id, attempt.number
        change.put += [PendingCommand(*key, cluster, Verb.CREATE, now_ns) for cluster in sorted(clusters)]

    def _exposed(self, job: JobRecord, attempt: Attempt, change: Change) -> Change:
        """Report the addresses of a running job for clients outside its cluster, as an event."""
        workloads = self._state.seen[attempt.job_id, attempt.number].values()
        found = [
            Reason("port", port=str(each.port), address=each.address)
            for copy in workloads
            for each in copy.endpoints
            if each.address and each.reach in (Reach.OUTSIDE, Reach.NODES)
        ]
        if not found:
            return Change()
        if change.update:  # its version changes anyway
            return Change(insert=[job_event(job, ACTOR, "endpoint", Reason("ports", ports=tuple(found)))])
        after = replace(job, changed_ns=self._state.clock.now_ns(), version=job.version + 1)
        return Change(update=[after], insert=[job_event(after, ACTOR, "endpoint", Reason("ports", ports=tuple(found)))])

    def _meet(self, job: JobRecord, attempt: Attempt, change: Change) -> None:
        """Store the address of rank 0 once its cluster reports it, and send the commands that wait for it."""
        waiting = self._state.awaiting_rank_0(attempt)
        copy = self._state.seen[job.id, attempt.number].get(attempt.placements[0].cluster)
        if not (waiting and copy):
            return
        address = next((each.address for each in copy.endpoints if each.reach is Reach.CLUSTERS and each.address), "")
        if not address:
            return
        attempt = next((each for each in change.update if isinstance(each, Attempt)), attempt)
        first, *others = attempt.placements
        attempt = replace(attempt, placements=(replace(first, address=address), *others))
        now_ns = self._state.command_ns(attempt)
        renewed = replace(job, changed_ns=self._state.clock.now_ns(), version=job.version + 1)
        job = next((each for each in change.update if isinstance(each, JobRecord)), renewed)
        change.update = [job, attempt]
        change.insert.append(job_event(job, ACTOR, "endpoint", Reason("rank_0", address=address)))
        change.put += [PendingCommand(job.id, attempt.number, each, Verb.CREATE, now_ns) for each in waiting]

    def _held(self, job: JobRecord, attempt: Attempt) -> Change | None:
        """Return a running job to deploying if a cluster stopped its replicas and holds them; None otherwise."""
        held = [copy for copy in self._state.seen[job.id, attempt.number].values() if copy.held]
        if job.state is not JobState.RUNNING or not held:
            return None
        change = stepped(moved(job, JobState.DEPLOYING, held[0].reason, self._state.clock.now_ns()), ACTOR)
        change.update.append(replace(attempt, state=AttemptState.SENT))
        return change

    def unstarted(self, job: JobRecord, attempt: Attempt, timeout_s: int) -> Change:
        """Requeue a job whose replicas did not all start in time, and release its devices in all clusters.

        It avoids the clusters in which they did not start.
        """
        workloads = self._state.seen[attempt.job_id, attempt.number]
        late = [each for each in attempt.clusters if phase_of(workloads.get(each), attempt) not in STARTED]
        why = [
            Reason("in_cluster", cluster=each, text=workloads[each].reason)
            for each in late
            if each in workloads and workloads[each].reason
        ]
        self._state.stages.became(attempt, tuple(late), Deployed.LATE)
        text = also(Reason("not_started", limit_s=timeout_s), *(why or [Reason("late", clusters=_listed(late))]))
        return self._avoiding(job, attempt, late, late, text)

    def _blocked(self, job: JobRecord) -> Change:
        """Record the reason why a workload does not start, if it changed."""
        reasons = self._blocking_reasons(job)
        if job.state is not JobState.DEPLOYING or not reasons or job.reason == reasons[0]:
            return Change()
        return blocked(job, reasons[0], ACTOR, self._state.clock.now_ns())

    def _blocking_reasons(self, job: JobRecord) -> list[str]:
        """Return the reasons why workloads of the latest attempt of a job do not start."""
        return [copy.reason for copy in self._state.seen[job.id, job.attempt].values() if copy.reason]

    def _completed(self, job: JobRecord, attempt: Attempt) -> Change:
        now_ns = self._state.clock.now_ns()
        if job.state is not JobState.RUNNING:  # it finished before it was observed as running
            job = replace(job, started_ns=job.started_ns or now_ns)
        done = job.completed + len(attempt.remaining)
        if attempt.spec.starts_in_part and done < job.spec.replicas:
            why = also(Reason("some_completed", done=done, replicas=job.spec.replicas), Reason("rest_waits"))
            after = moved(job, JobState.QUEUED, why, now_ns, completed=done)
        else:
            after = moved(job, JobState.COMPLETED, Reason("completed"), now_ns)
        self._state.stages.became(attempt, attempt.clusters, Deployed.RUNNING)
        change = stepped(after, ACTOR)
        change.add(ended(attempt, now_ns, after.reason))
        change.add(self._state.end_of_other(after, ACTOR))
        self._collect_later(attempt)
        return change

    def _failed(
        self, job: JobRecord, attempt: Attempt, workloads: dict[str, Workload], missing: Collection[str]
    ) -> Change:
        now_ns = self._state.clock.now_ns()
        stay = {each.cluster for each in attempt.remaining}
        failed = [workloads[name] for name in stay if phase_of(workloads.get(name), attempt) is WorkloadPhase.FAILED]
        refused = {copy.cluster: copy.reason for copy in failed if copy.cause in (Cause.UNSCHEDULABLE, Cause.REJECTED)}
        if refused:
            unfit = [copy.cluster for copy in failed if copy.cause is Cause.REJECTED]
            return self._refused(job, attempt, refused, unfit, {}, missing)
        struck = [copy for copy in failed if copy.cause is Cause.INFRASTRUCTURE]
        for copy in failed:
            self._state.stages.became(attempt, (copy.cluster,), Deployed.STRUCK if copy in struck else Deployed.FAILED)
        reason = next((copy.reason for copy in struck or failed if copy.reason), Reason("replica_failed"))
        if change := self._without_failed(job, attempt, failed, reason):
            return change
        job = job if struck else replace(job, failures=job.failures + 1)
        if struck or job.spec.restarts:
            return self._once_more(job, attempt, reason, self._setbacks(attempt))
        if job.failures <= job.spec.retries:
            return self._once_more(job, attempt, reason, job.failures, job.spec.retries + 1)
        after = moved(job, JobState.FAILED, reason, now_ns)
        change = stepped(after, ACTOR)
        change.add(self._state.end_of_other(after, ACTOR))
        over = len(workloads) == len(attempt.clusters) and all(
            replica.phase in FINISHED_PHASES for copy in workloads.values() for replica in copy.replicas
        )
        if over:
            change.add(ended(attempt, now_ns, reason))
            self._collect_later(attempt)
        else:
            change.add(ending(attempt, reason, now_ns))
        return change

    def _without_failed(
        self, job: JobRecord, attempt: Attempt, failed: Sequence[Workload], reason: str
    ) -> Change | None:
        """Let an elastic job continue without the replicas that failed with their nodes or devices.

        Return None if it must restart, for example because another replica failed by itself. The next growth has a
        back-off.
        """
        over = [each for copy in failed for each in copy.replicas if each.phase is WorkloadPhase.FAILED]
        over = [each for each in over if each.replica in {one.replica for one in attempt.remaining}]
        if any(each.cause is not Cause.INFRASTRUCTURE for each in over):
            return None
        change = self.shrunk(job, attempt, {each.replica for each in over}, reason)
        if change:
            again_ns = self._state.clock.monotonic_ns() + int(self._state.settings.pause_s(1) * NS)
            self._state.resize_after_ns[job.id] = max(self._state.resize_after_ns[job.id], again_ns)
        return change

    def shrunk(self, job: JobRecord, attempt: Attempt, lost: Collection[int], why: str) -> Change | None:
        """Return the change by which an elastic job continues without its lost replicas; None if it must restart.

        It also restarts if a replica has completed, because it gets no more replicas then.
        """
        workloads = self._state.seen[job.id, attempt.number].values()
        after = without_lost(job, attempt, lost)
        if after is None or any(one.phase is WorkloadPhase.SUCCEEDED for copy in workloads for one in copy.replicas):
            return None
        self._state.rest_from_resizes(job)
        reason = resize_reason("shrinks", attempt, after, why=why)
        return resized(job, attempt, after, ACTOR, reason, self._state.command_ns(after))

    def _once_more(self, job: JobRecord, attempt: Attempt, reason: str, times: int, most: int = 0) -> Change:
        """Requeue a failed job after a pause that depends on the number of failures."""
        now_ns, pause_s = self._state.clock.now_ns(), self._state.settings.pause_s(times)
        follows = Reason("attempt_follows", number=attempt.number + 1, pause=round(pause_s))
        if most:
            follows = Reason("attempt_of_follows", number=job.failures + 1, most=most, pause=round(pause_s))
        return sent_back(job, attempt, also(reason, follows), ACTOR, now_ns, pause_s=pause_s)

    def _setbacks(self, attempt: Attempt) -> int:
        """Count consecutive failures of a job. An attempt that ran longer than the maximum pause resets the count."""
        ran_ns = self._state.clock.now_ns() - (attempt.running_ns or self._state.clock.now_ns())
        long = ran_ns > self._state.settings.max_backoff_s * 1e9
        times = 1 if long else self._state.setbacks.get(attempt.job_id, 0) + 1
        self._state.setbacks[attempt.job_id] = times
        return times

    def _refused(
        self,
        job: JobRecord,
        attempt: Attempt,
        refused: Mapping[str, str],
        unfit: Iterable[str],
        unasked: Mapping[str, str],
        missing: Collection[str],
    ) -> Change:
        """Requeue a job. It avoids the places that rejected it, or the whole cluster if no node there is suitable.

        Clusters that did not receive the command are not avoided. If the job continues without the rejected replicas,
        workloads that are `missing` elsewhere are created again.
        """
        cluster, reason = next(iter(refused.items()))
        text = Reason("refused", by=unasked.get(cluster, cluster), why=reason)
        if change := self._undone(job, attempt, refused, unfit, text):
            self._create_again(attempt, sorted(set(missing) - refused.keys()), change)
            return change
        self._state.stages.became(attempt, tuple(refused), Deployed.REFUSED)
        return self._avoiding(job, attempt, refused.keys() - unasked.keys(), unfit, text)

    def _avoiding(
        self, job: JobRecord, attempt: Attempt, clusters: Collection[str], unfit: Iterable[str], text: str
    ) -> Change:
        """Requeue a job. Its next attempt avoids its places in these clusters, and all places in the `unfit` ones."""
        placements = [each for each in attempt.placements if each.cluster in clusters]
        pause_s = self._state.settings.pause_s(self._avoid(job, placements, unfit))
        return sent_back(job, attempt, text, ACTOR, self._state.clock.now_ns(), pause_s=pause_s)

    def _avoid(self, job: JobRecord, placements: Iterable[Placement], unfit: Iterable[str]) -> int:
        """Exclude places of a job for a while, and return how often it was rejected."""
        demand = job.spec.job(job.id, self._state.clusters_of(job.spec.queue)).demand
        before = self._state.refusals.get(job.id, NEVER_REFUSED)
        after = before.with_rejection(demand, placements, set(unfit), self._state.fleet.snapshot)
        self._state.refusals[job.id] = after
        self._state.deadlines.in_seconds(self._state.settings.exclusion_period_s, Due.FORGIVE, (job.id, 0, ""))
        return after.times

    def _undone(
        self, job: JobRecord, attempt: Attempt, clusters: Collection[str], unfit: Iterable[str], text: str
    ) -> Change | None:
        """Take back the replicas that were added last and that clusters rejected; None if the job must move.

        The others continue. It must move if they are too few, or if older replicas were rejected.
        """
        there = [each for each in attempt.remaining if each.cluster in clusters]
        newest = max((each.wave for each in there), default=0)
        added = {each.replica for each in there if each.wave == newest}
        copies = (self._state.seen[job.id, attempt.number].get(cluster) for cluster in clusters)
        failed = {one.replica for copy in copies if copy for one in copy.replicas if one.phase is WorkloadPhase.FAILED}
        failed &= {each.replica for each in there}
        if not newest or not failed <= added or len(attempt.remaining) - len(added) < (attempt.spec.min_replicas or 1):
            return None
        pause_s = self._state.settings.pause_s(self._avoid(job, [e for e in there if e.replica in added], unfit))
        self._state.resize_after_ns[job.id] = self._state.clock.monotonic_ns() + int(pause_s * NS)
        after, reason = attempt.leaving(added), also(text, Reason("others_continue"))
        return resized(job, attempt, after, ACTOR, reason, self._state.command_ns(after))

    def _drifted(self, job: JobRecord, attempt: Attempt, missing: set[str]) -> Change:
        """Create missing workloads again, up to `MAX_MADE_AGAIN` times; then retry the job after a pause."""
        now_ns, key = self._state.clock.now_ns(), (job.id, attempt.number)
        for copy in (self._state.seen[key].get(cluster) for cluster in sorted(missing)):
            if copy and (change := self.without_unstarted(job, attempt, copy)):
                return change
        self._state.made_again[key] += 1
        times = self._state.made_again[key]
        left = self._state.seen[key]
        what = both(*(loss_text(cluster, left.get(cluster), attempt) for cluster in sorted(missing)))
        released = attempt.spec.template in ONE_OBJECT and attempt.holding is not attempt.placements
        if times > MAX_MADE_AGAIN or released:
            self._state.stages.became(attempt, tuple(missing), Deployed.GONE)
            text = Reason("gone_others_completed", what=what)
            if not released:
                text = Reason("gone_again", what=what, times=times)
            return sent_back(job, attempt, text, ACTOR, now_ns, pause_s=self._state.settings.pause_s(attempt.number))
        reason = also(what, Reason("re_created"))
        change = Change()
        self._create_again(attempt, sorted(missing), change)
        if job.state is JobState.RUNNING:
            job = moved(job, JobState.DEPLOYING, reason, now_ns)
            change.update = [job, replace(attempt, state=AttemptState.SENT)]
            change.insert = [job_event(job, ACTOR)]
        else:
            job = replace(job, reason=reason, changed_ns=now_ns, version=job.version + 1)
            change.update = [job]
        change.insert.append(job_event(job, ACTOR, "drift", reason))
        return change

    def without_unstarted(self, job: JobRecord, attempt: Attempt, copy: Workload) -> Change | None:
        """Let the replicas leave that a workload got after it had succeeded, and never runs; None if there are none."""
        missing = lacking(copy, attempt)
        added = {each.replica for each in attempt.placements if each.wave}
        if copy.phase is not WorkloadPhase.SUCCEEDED or not missing or not missing <= added:
            return None
        after, ended_in = attempt.leaving(missing), Reason("ended_before", cluster=copy.cluster)
        reason = resize_reason("shrinks", attempt, after, why=ended_in)
        return resized(job, attempt, after, ACTOR, reason, self._state.command_ns(after))

    def _create_again(self, attempt: Attempt, clusters: Iterable[str], change: Change) -> None:
        """Command clusters to create missing workloads of an attempt."""
        for cluster in clusters:
            self._state.gone.discard((attempt.job_id, attempt.number, cluster))
            now_ns = self._state.clock.now_ns()
            change.put.append(PendingCommand(attempt.job_id, attempt.number, cluster, Verb.CREATE, now_ns))

    def _collect_later(self, attempt: Attempt) -> None:
        for cluster in attempt.clusters:
            self.orphans.collect_later(attempt.job_id, attempt.number, cluster)

    def _fleet_event(self, kind: str, reason: str) -> Event:
        return Event(self._state.clock.now_ns(), kind, reason, ACTOR)


def without_leaving(placements: Iterable[Placement], clusters: Collection[str]) -> tuple[Placement, ...]:
    """Return placements without those that left some clusters. Others of their workloads note what these began with."""
    by_place = defaultdict[Hashable, list[Placement]](list)
    for each in placements:
        by_place[each.place].append(each)
    retained: list[Placement] = []
    for group in by_place.values():
        stay = [each for each in group if not (each.leaving and each.cluster in clusters)]
        if len(stay) < len(group):
            began = ranges(each.replica for each in group).replace(" ", "")
            stay = [replace(each, beside=each.beside or began) for each in stay]
        retained += stay
    return tuple(sorted(retained, key=lambda each: each.replica))


def _of(news: dict[Key, _AttemptChanges], key: Key) -> _AttemptChanges:
    if key not in news:
        news[key] = _AttemptChanges({}, {}, set(), set(), {}, set(), {})
    return news[key]


def _listed(names: Iterable[str]) -> str:
    return ", ".join(names)


def _placement_text(job: JobRecord, attempt: Attempt) -> str:
    runs = Reason("runs", where=nodes_text(attempt.placements))
    return also(runs, waiting_text(job, len(attempt.placements)))
