"""Decisions of the scheduling cycle as changes for the store, and in words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from seaway.application.changes import Change
from seaway.application.control.state import ControlState
from seaway.application.transitions import blocked, moved, nodes_text, resize_reason, resized, stepped, stopped
from seaway.application.views import RoomMaker
from seaway.domain.attempt import NS_PER_S, Attempt
from seaway.domain.job_record import JobRecord
from seaway.domain.job_state import JobState
from seaway.domain.reasons import Reason, both, time_param
from seaway.scheduling.cycle.displace import Claim
from seaway.scheduling.cycle.resize import Resize
from seaway.scheduling.queueing.preemption import Candidate
from seaway.scheduling.queueing.tree import Key

ACTOR = "scheduler"

MAX_NAMED = 3
"""Maximum number of jobs that shrink, and of jobs that end, that a reason names."""


class _Shrunk(NamedTuple):
    """An elastic job as it will be once the claims before are stored, and the time of its commands."""

    job: JobRecord
    attempt: Attempt
    command_ns: int


def claim_changes(live: ControlState, claims: Iterable[Claim]) -> list[Change]:
    """Return the change of each claim: it sends the victims back to their queues and says what the winner waits for.

    Earlier winners that lose their places get the reason. Each change is based on those before it.
    """
    shrunk: dict[Key, _Shrunk] = {}
    return [_claim_change(live, claim, shrunk) for claim in claims]


def _claim_change(live: ControlState, claim: Claim, shrunk: dict[Key, _Shrunk]) -> Change:
    now_ns, winner, queue = live.clock.now_ns(), live.jobs[claim.entry.id], claim.entry.queue
    change = Change()
    for loser in map(live.jobs.__getitem__, claim.losers):
        change.add(blocked(loser, Reason("place_lost", **_named(winner, loser.spec.tenant)), ACTOR, now_ns))
    if not claim.victims:
        return change
    what = room_text([each.shown_to(winner.spec.tenant.__eq__) for each in makers(live, claim.victims)])
    until = time_param(now_ns + claim.within_s * NS_PER_S, seconds=True)
    reason = Reason("waits_until_at", what=what, ends_at=until)
    if winner.state is JobState.QUEUED:
        change.add(blocked(winner, reason, ACTOR, now_ns))
    else:
        change.add(stepped(moved(winner, JobState.QUEUED, reason, now_ns), ACTOR))
    for before, after in claim.shrinks:
        key = before.job_id, before.number
        job, _, earlier_ns = shrunk.get(key) or _Shrunk(live.jobs[before.job_id], before, 0)
        by = Reason("job_of_queue", **_named(winner, job.spec.tenant), queue=queue)
        command_ns = max(live.command_ns(after), earlier_ns + 1)
        resizes = resized(job, before, after, ACTOR, _shrinks_for(before, after, by), command_ns)
        job = next(each for each in resizes.update if isinstance(each, JobRecord))
        shrunk[key] = _Shrunk(job, after, command_ns)
        change.add(resizes)
    for each in claim.ends:
        by = Reason("job_of_priority", **_named(winner, each.owner.tenant))
        if each.owner.queue != queue:
            code = "job_of_priority_of_queue" if each in claim.lower else "job_of_queue"
            by = Reason(code, **by.params, queue=queue)
        job, attempt, _ = shrunk.get(each.key) or _Shrunk(live.jobs[each.key[0]], live.attempts[each.key], 0)
        said = Reason("preempted", winner=by)
        change.add(stopped(job, attempt, JobState.PREEMPTED, said, ACTOR, now_ns)[1])
    return change


def _shrinks_for(before: Attempt, after: Attempt, winner: str) -> Reason:
    least = len(after.remaining) == before.spec.least_replicas
    return resize_reason("shrinks_to_minimum_for" if least else "shrinks_for", before, after, winner=winner)


def resize_change(live: ControlState, resize: Resize) -> Change:
    """Return the change of a job that gets more replicas, or of which some leave."""
    job, before, after = resize.job, resize.before, resize.after
    scaled = live.scale_reason(job)
    if resize.added:
        where = nodes_text(resize.added)
        room = Reason("wanted_and_room", why=scaled, where=where) if scaled else Reason("room_on", where=where)
        reason = resize_reason("grows", before, after, why=room)
    else:
        reason = resize_reason("shrinks", before, after, why=scaled or Reason("as_set"))
    return resized(job, before, after, ACTOR, reason, live.command_ns(after))


def makers(live: ControlState, victims: Iterable[Candidate]) -> list[RoomMaker]:
    """Return the jobs that end or shrink, those that shrink first."""
    victims = list(victims)
    shrinks = Counter(each.job_key for each in victims if each.whole)
    ends = [each.key for each in victims if each.whole is None]
    found = [*shrinks.items(), *((key, 0) for key in ends)]
    known = ((live.jobs.get(key[0]), replicas) for key, replicas in found)
    return [RoomMaker(job.id, job.display_name, job.spec.tenant, replicas) for job, replicas in known if job]


def _named(job: JobRecord, tenant: str) -> dict[str, str]:
    """Return the parameters that name a job in a reason for a tenant; jobs of others have their IDs only."""
    return {"job": job.display_name if job.spec.tenant == tenant else job.id, "job_id": job.id}


def room_text(makers: Sequence[RoomMaker]) -> str:
    """Return a clause on what jobs do to make room."""
    shrinks, ends = ([each for each in makers if bool(each.replicas) is shrinks] for shrinks in (True, False))
    clauses = [
        Reason("victim_shrinks", job=each.label, job_id=each.job_id, count=each.replicas)
        for each in shrinks[:MAX_NAMED]
    ]
    clauses += [Reason("more_shrink", count=len(shrinks) - MAX_NAMED)] if len(shrinks) > MAX_NAMED else []
    clauses += [Reason("victim_ends", job=each.label, job_id=each.job_id) for each in ends[:MAX_NAMED]]
    clauses += [Reason("more_end", count=len(ends) - MAX_NAMED)] if len(ends) > MAX_NAMED else []
    return both(*clauses)


def preview_text(makers: Sequence[RoomMaker]) -> Reason:
    """Return the result of a dry run of a job for which others make room."""
    shrinks = [each for each in makers if each.replicas]
    ends = tuple(each.label for each in makers if not each.replicas)
    clauses = [Reason("may_shrink", job=each.label, count=each.replicas) for each in shrinks]
    clauses += [Reason("may_displace", jobs=ends)] if ends else []
    return Reason("starts_and", what=both(*clauses))
