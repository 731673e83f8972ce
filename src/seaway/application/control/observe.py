"""Observing: from what clusters answer and tell to the next steps of jobs."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from seaway.application.changes import Change
from seaway.application.control.fleet import Key
from seaway.application.control.orphans import Known, Strays, lacking, lost, phase_of, what_is_gone, with_what_ended
from seaway.application.control.rejections import NEVER_REFUSED
from seaway.application.control.reports import Answered, Heard, Report, Silent
from seaway.application.control.stages import Deployed
from seaway.application.control.state import Live
from seaway.application.control.timers import Due
from seaway.application.ports.store import Store
from seaway.application.records import Attempt, Event, JobRecord, Outgoing, Verb
from seaway.application.transitions import ended, ending, hindered, moved, sent_back, stepped, told
from seaway.application.views import ClusterState
from seaway.domain.deployment import OVER, Cause, Copy, CopyPhase
from seaway.domain.job_state import AttemptState, JobState

log = logging.getLogger(__name__)

ACTOR = "controller"
NS = 1_000_000_000
MOST_MADE_AGAIN = 3
"""How often what is gone of one attempt is made again; somebody removes it, so the job goes elsewhere then."""


WHOLE_S = 60.0
"""How long all of a copy may take to be there before its cluster is told once more what it consists of."""


@dataclass(frozen=True, slots=True)
class _News:
    """What came in about one attempt: who confirmed it, refused it, lost it, and would have it on no node.

    Of clusters that were not even asked, as what they are told through refused, it is by whom.
    """

    confirmed: dict[str, Outgoing]
    refused: dict[str, str]
    missing: set[str]
    unfit: set[str]
    unasked: dict[str, str]


class Observer:
    """Turns reports into changes.

    Parameters
    ----------
    live
        The loop's memory; what copies were seen is noted in it.
    store
        To look up jobs that are over, when a copy of one turns up.

    Attributes
    ----------
    strays
        Deals with copies that no attempt accounts for.
    """

    def __init__(self, live: Live, store: Store) -> None:
        self._live = live
        self.strays = Strays(live, store)

    def changes(self, reports: Sequence[Report], known: Known | None = None) -> list[Change]:
        """Take reports in, in order, and return what follows from them.

        Parameters
        ----------
        known
            What `strays` found when it looked the reports up; None to do it now.
        """
        known = self.strays.look_up(reports) if known is None else known
        news: dict[Key, _News] = {}
        removed: dict[Key, dict[str, Outgoing]] = {}
        changes: list[Change] = []
        self._take_inventory(reports)
        for report in reports:
            match report:
                case Answered():
                    self._answered(report, news, removed)
                case Heard():
                    changes += self._heard(report, news, known)
                case Silent():  # upkeep notices by the clock for how long
                    if live := self._live.fleet.clusters.get(report.cluster):
                        live.silence = report.reason
        changes += [self._removed(key, clusters) for key, clusters in removed.items()]
        changes += [change for key, told_of in news.items() if (change := self._judge(key, told_of))]
        return changes

    # Answers to commands.

    def _answered(self, report: Answered, news: dict[Key, _News], removed: dict[Key, dict[str, Outgoing]]) -> None:
        outgoing = report.outgoing
        key = (outgoing.job_id, outgoing.attempt)
        if self._live.outgoing.get((*key, outgoing.cluster)) != outgoing:
            return  # a late answer: meanwhile something else is to be told; or a stray, of which nothing is stored
        if report.answer.underway:
            self._live.underway_ns[*key, outgoing.cluster] = self._live.clock.monotonic_ns()
            return
        if outgoing.verb is Verb.DELETE:
            removed.setdefault(key, {})[outgoing.cluster] = outgoing
            return
        noted = _of(news, key)
        if report.answer.refused:
            noted.refused[outgoing.cluster] = report.answer.reason
            if report.answer.by:
                noted.unasked[outgoing.cluster] = report.answer.by
            elif report.answer.everywhere:
                noted.unfit.add(outgoing.cluster)
        elif (*key, outgoing.cluster) in self._live.gone:
            noted.missing.add(outgoing.cluster)  # made, and gone before the answer came
        else:
            noted.confirmed[outgoing.cluster] = outgoing
            self._live.told_ns[(*key, outgoing.cluster)] = self._live.clock.monotonic_ns()

    def _removed(self, key: Key, clusters: dict[str, Outgoing]) -> Change:
        """Note that clusters have nothing of an attempt any more; the last one ends it."""
        attempt = self._live.attempts[key]
        if set(self._live.unsent(attempt)) - clusters.keys():
            return Change(delete=list(clusters.values()))
        return ended(attempt, self._live.clock.now_ns())

    # What clusters tell.

    def _take_inventory(self, reports: Iterable[Report]) -> None:
        """Take over what clusters told of themselves, of each the last; all together, as that costs less."""
        inventories = [each.changes.inventory for each in reports if isinstance(each, Heard)]
        told = {each.name: each for each in inventories if each and each.name in self._live.fleet.clusters}
        if told:
            self._live.fleet.tell(*told.values())

    def _heard(self, report: Heard, news: dict[Key, _News], known: Known) -> Iterator[Change]:
        live = self._live.fleet.clusters.get(report.cluster)
        if live is None:
            return
        now_ns = self._live.clock.monotonic_ns()
        silent_s = (now_ns - live.heard_ns) / NS
        live.heard_ns = max(live.heard_ns, now_ns - int(report.changes.age_s * NS))
        live.silence = ""
        fresh = now_ns - live.heard_ns <= self._live.settings.stale_s * NS
        if live.state is not ClusterState.UP and live.cluster is not None and fresh:
            before = live.state
            if live.told_silent:
                live.told_silent = False
                log.warning("%s answers again, after %.0f s", live.name, silent_s)
            self._live.fleet.set_state(live.name, ClusterState.UP)
            self._live.reconsider(live.name)
            yield Change(insert=[self._fleet_event("cluster", f"{live.name} answers (it was {before.value})")])
        if report.changes.complete:
            there = {copy.name for copy in report.changes.copies if copy.phase is not CopyPhase.GONE}
            self._live.fleet.keep_strays(live.name, there)
            self._find_missing(report, news)
        if report.changes.occupants or report.changes.complete:
            self._live.fleet.occupy(live.name, report.changes.occupants, complete=report.changes.complete)
        for copy in report.changes.copies:
            self._saw(copy, news, known, complete=report.changes.complete)

    def _find_missing(self, report: Heard, news: dict[Key, _News]) -> None:
        """Find attempts that a complete listing should have, but has not."""
        copies = report.changes.copies
        listed = {(copy.job_id, copy.attempt) for copy in copies if copy.phase is not CopyPhase.GONE}
        for key in self._live.by_cluster[report.cluster] - listed:
            place = (*key, report.cluster)
            if place not in self._live.outgoing and self._live.told_ns.get(place, -1) < report.asked_ns:
                self._miss(key, report.cluster, news)

    def _miss(self, key: Key, cluster: str, news: dict[Key, _News]) -> None:
        """Note that a copy of a live attempt is gone, unless it had done its part."""
        copy = self._live.seen[key].get(cluster)
        if not self._live.attempts[key].state.live or (copy and copy.phase is CopyPhase.SUCCEEDED):
            return
        if (*key, cluster) in self._live.outgoing:  # it is made again if the cluster says only now that it made it
            self._live.gone.add((*key, cluster))
        else:
            _of(news, key).missing.add(cluster)
        self._live.seen[key].pop(cluster, None)

    def _saw(self, copy: Copy, news: dict[Key, _News], known: Known, *, complete: bool) -> None:
        key = (copy.job_id, copy.attempt)
        attempt = self._live.attempts.get(key)
        if attempt is None or key not in self._live.by_cluster[copy.cluster]:
            # of a former attempt, of a cluster's former name, or of a cluster that removed it
            self.strays.saw(copy, known, complete=complete)
        elif not attempt.state.live:
            pass  # it is being removed
        elif copy.phase is CopyPhase.GONE:
            if not complete:  # else it was found missing, unless it is being made
                self._miss(key, copy.cluster, news)
        else:
            self._take(copy, attempt, _of(news, key), complete=complete)

    def _take(self, copy: Copy, attempt: Attempt, news: _News, *, complete: bool) -> None:
        """Take a copy of a live attempt as it is now; what was there of it, and is not any more, is missing.

        Who sees it for the first time, in all that there is, and has told nobody to make it, knows that it was made.
        """
        key = (copy.job_id, copy.attempt)
        place = (*key, copy.cluster)
        before = self._live.seen[key].get(copy.cluster)
        copy = with_what_ended(copy, before, attempt)
        self._live.seen[key][copy.cluster] = copy
        if lacking(copy, attempt) and place not in self._live.partial:
            self._live.partial.add(place)
            self._live.deadlines.in_seconds(WHOLE_S, Due.WHOLE, place)
        first = complete and not before and place not in self._live.told_ns and place not in self._live.outgoing
        if lacking(copy, attempt) if first else lost(copy, before, attempt):
            if place in self._live.outgoing:  # made, and gone before the answer came
                self._live.gone.add(place)
            else:
                news.missing.add(copy.cluster)
        elif not before or not lacking(copy, attempt):
            self._live.gone.discard(place)

    def remove(self, job_id: str, attempt: int, cluster: str) -> None:
        """Have a cluster remove a copy that nothing is kept for."""
        self.strays.remove(job_id, attempt, cluster)

    # What follows for the job.

    def _judge(self, key: Key, news: _News) -> Change | None:
        found = self._live.current(key)
        if found is None:
            return None
        job, attempt = found
        if news.refused:
            return self._refused(job, attempt, news.refused, news.unfit, news.unasked)
        copies = self._live.seen[key]
        phases = [phase_of(copies.get(cluster), attempt) for cluster in attempt.clusters]
        if CopyPhase.FAILED in phases:
            return self._failed(job, attempt, copies)
        if all(phase is CopyPhase.SUCCEEDED for phase in phases):
            return self._completed(job, attempt)
        if news.missing:
            return self._drifted(job, attempt, news.missing)
        return self._progressed(job, attempt, news, phases)

    def _progressed(
        self, job: JobRecord, attempt: Attempt, news: _News, phases: list[CopyPhase | None]
    ) -> Change | None:
        """Step a job on towards running."""
        now_ns = self._live.clock.now_ns()
        change = Change(delete=list(news.confirmed.values()))
        started = {CopyPhase.RUNNING, CopyPhase.SUCCEEDED}
        runs = all(phase in started for phase in phases)
        sent = all(cluster in news.confirmed for cluster in self._live.unsent(attempt))
        if (sent or runs) and job.state is JobState.SCHEDULED:
            hindrance = next(iter(self._hindrances(job)), "")  # it may have been heard before the answer was
            job = moved(job, JobState.DEPLOYING, hindrance or f"taken over by {_listed(attempt.clusters)}", now_ns)
            attempt = replace(attempt, state=AttemptState.SENT)
            change.update = [job, attempt]
            change.insert.append(told(job, ACTOR))
        if runs and job.state is not JobState.RUNNING:
            self._live.stages.became(attempt, attempt.clusters, Deployed.RUNNING)
            version = job.version - (1 if change.update else 0)  # one row, one version
            started_ns = job.started_ns or now_ns
            job = replace(
                moved(job, JobState.RUNNING, _where(attempt), now_ns, started_ns=started_ns), version=version + 1
            )
            attempt = replace(attempt, state=AttemptState.RUNNING, running_ns=attempt.running_ns or now_ns)
            change.update = [job, attempt]
            change.insert.append(told(job, ACTOR))
        if not change.update and not runs:
            change.add(self._hindered(job))
        return change or None

    def _hindered(self, job: JobRecord) -> Change:
        """Pass on why a copy does not start, when that changes."""
        reasons = self._hindrances(job)
        if job.state is not JobState.DEPLOYING or not reasons or job.reason == reasons[0]:
            return Change()
        return hindered(job, reasons[0], ACTOR, self._live.clock.now_ns())

    def _hindrances(self, job: JobRecord) -> list[str]:
        """Return why copies of a job's latest attempt do not start."""
        return [copy.reason for copy in self._live.seen[job.id, job.attempt].values() if copy.reason]

    def _completed(self, job: JobRecord, attempt: Attempt) -> Change:
        now_ns = self._live.clock.now_ns()
        if job.state is not JobState.RUNNING:  # it was over before anyone saw it run
            job = replace(job, started_ns=job.started_ns or now_ns)
        after = moved(job, JobState.COMPLETED, "every replica ended well", now_ns)
        self._live.stages.became(attempt, attempt.clusters, Deployed.RUNNING)
        change = stepped(after, ACTOR)
        change.add(ended(attempt, now_ns))
        self._collect_later(attempt)
        return change

    def _failed(self, job: JobRecord, attempt: Attempt, copies: dict[str, Copy]) -> Change:
        now_ns = self._live.clock.now_ns()
        failed = [copy for copy in copies.values() if copy.phase is CopyPhase.FAILED]
        refused = {copy.cluster: copy.reason for copy in failed if copy.cause in (Cause.REFUSED, Cause.DENIED)}
        if refused:
            unfit = [copy.cluster for copy in failed if copy.cause is Cause.DENIED]
            return self._refused(job, attempt, refused, unfit, {})
        struck = [copy for copy in failed if copy.cause is Cause.INFRASTRUCTURE]
        for copy in failed:
            self._live.stages.became(attempt, (copy.cluster,), Deployed.STRUCK if copy in struck else Deployed.FAILED)
        reason = next((copy.reason for copy in struck or failed if copy.reason), "a replica failed")
        job = job if struck else replace(job, failures=job.failures + 1)
        if struck or job.spec.comes_back:
            return self._once_more(job, attempt, reason, self._setbacks(attempt))
        if job.failures <= job.spec.retries:
            return self._once_more(job, attempt, reason, job.failures, f" of {job.spec.retries + 1}")
        change = stepped(moved(job, JobState.FAILED, reason, now_ns), ACTOR)
        over = len(copies) == len(attempt.clusters) and all(
            replica.phase in OVER for copy in copies.values() for replica in copy.replicas
        )
        if over:
            change.add(ended(attempt, now_ns))
            self._collect_later(attempt)
        else:
            change.add(ending(attempt, reason, now_ns))
        return change

    def _once_more(self, job: JobRecord, attempt: Attempt, reason: str, times: int, of: str = "") -> Change:
        """Send a job that failed for so many times back to its queue, to be tried again after a pause."""
        now_ns, pause_s = self._live.clock.now_ns(), self._live.settings.pause_s(times)
        nth = job.failures + 1 if of else attempt.number + 1
        text = f"{reason}; attempt {nth}{of} follows in {pause_s:.0f} s"
        return sent_back(job, attempt, text, ACTOR, now_ns, pause_s=pause_s)

    def _setbacks(self, attempt: Attempt) -> int:
        """Count the failures of a job in a row: an attempt that ran for longer than any pause begins anew."""
        ran_ns = self._live.clock.now_ns() - (attempt.running_ns or self._live.clock.now_ns())
        long = ran_ns > self._live.settings.most_retry_s * 1e9
        times = 1 if long else self._live.setbacks.get(attempt.job_id, 0) + 1
        self._live.setbacks[attempt.job_id] = times
        return times

    def _refused(
        self,
        job: JobRecord,
        attempt: Attempt,
        refused: Mapping[str, str],
        unfit: Iterable[str],
        unasked: Mapping[str, str],
    ) -> Change:
        """Send a job back to its queue, kept from where a cluster would not have it: from all of one unfit.

        Nothing is held against those that were not asked: the job waits, and goes wherever it is best.
        """
        cluster, reason = next(iter(refused.items()))
        self._live.stages.became(attempt, tuple(refused), Deployed.REFUSED)
        placements = [each for each in attempt.placements if each.cluster in refused.keys() - unasked.keys()]
        demand = job.spec.job(job.id, self._live.clusters_of(job.spec.queue)).demand
        before = self._live.refusals.get(job.id, NEVER_REFUSED)
        after = before.once_more(demand, placements, set(unfit), self._live.fleet.snapshot)
        self._live.refusals[job.id] = after
        self._live.deadlines.in_seconds(self._live.settings.forgive_s, Due.FORGIVE, (job.id, 0, ""))
        text = f"{unasked.get(cluster, cluster)} refused it: {reason}"
        pause_s = self._live.settings.pause_s(after.times)
        return sent_back(job, attempt, text, ACTOR, self._live.clock.now_ns(), pause_s=pause_s)

    def _drifted(self, job: JobRecord, attempt: Attempt, missing: set[str]) -> Change:
        """Have copies made again that somebody removed, a few times; then try anew after a pause."""
        now_ns, key = self._live.clock.now_ns(), (job.id, attempt.number)
        self._live.made_again[key] += 1
        times = self._live.made_again[key]
        left = self._live.seen[key]
        what = " and ".join(what_is_gone(cluster, left.get(cluster), attempt) for cluster in sorted(missing))
        if times > MOST_MADE_AGAIN:
            self._live.stages.became(attempt, tuple(missing), Deployed.GONE)
            text = f"{what} for the {times}th time"
            return sent_back(job, attempt, text, ACTOR, now_ns, pause_s=self._live.settings.pause_s(attempt.number))
        reason = f"{what}; it is made again"
        change = Change()
        for cluster in sorted(missing):
            self._live.gone.discard((*key, cluster))
            change.put.append(Outgoing(job.id, attempt.number, cluster, Verb.CREATE, now_ns))
        if job.state is JobState.RUNNING:
            job = moved(job, JobState.DEPLOYING, reason, now_ns)
            change.update = [job, replace(attempt, state=AttemptState.SENT)]
            change.insert = [told(job, ACTOR)]
        else:
            job = replace(job, reason=reason, changed_ns=now_ns, version=job.version + 1)
            change.update = [job]
        change.insert.append(told(job, ACTOR, "drift", reason))
        return change

    def _collect_later(self, attempt: Attempt) -> None:
        for cluster in attempt.clusters:
            self.strays.collect_later(attempt.job_id, attempt.number, cluster)

    def _fleet_event(self, kind: str, reason: str) -> Event:
        return Event(self._live.clock.now_ns(), kind, reason, ACTOR)


def _of(news: dict[Key, _News], key: Key) -> _News:
    if key not in news:
        news[key] = _News({}, {}, set(), set(), {})
    return news[key]


def _listed(names: Iterable[str]) -> str:
    return ", ".join(names)


def _where(attempt: Attempt) -> str:
    nodes = list(dict.fromkeys(f"{each.cluster}/{each.node}" for each in attempt.placements))
    more = f" and {len(nodes) - 3} more nodes" if len(nodes) > 3 else ""
    return f"runs on {_listed(nodes[:3])}{more}"
