"""State transitions of services with a warm standby, whose two copies are two jobs.

A change that concerns both copies is stored as one change, so that there are never two active ones.
"""

from __future__ import annotations

from dataclasses import replace

from seaway.application.changes import Change
from seaway.application.records import NS_PER_S
from seaway.application.transitions import ELSEWHERE, changed_by, job_event, respecified, stopped
from seaway.domain.attempt import Attempt
from seaway.domain.job_record import JobRecord, Pair
from seaway.domain.job_spec import JobSpec
from seaway.domain.job_state import JobState
from seaway.domain.reasons import Reason, without

SUFFIX = "-standby"
"""End of the name of a standby. The name without it belongs to the active copy."""

MAX_NAME = 63

Copy = tuple[JobRecord, Attempt | None]
"""A job and its latest attempt."""


def standby_name(name: str) -> str:
    """Return the name of the standby of a service."""
    return name[: MAX_NAME - len(SUFFIX)].rstrip("-.") + SUFFIX


def with_standby(job: JobRecord, job_id: str, actor: str, now_ns: int) -> Change:
    """Return the change that adds a second copy to a service, as its standby."""
    spec = replace(job.spec, name=standby_name(job.spec.name), copy_of=job.spec.copy_of or job.id, after=())
    reason = Reason("standby_of", name=job.spec.name, job=job.id)
    made = JobRecord(job_id, spec, JobState.PENDING, now_ns, now_ns, job.submitted_by, reason, pair=Pair(job.id, False))
    pair = replace(job.pair or Pair(), other=job_id, active=True)
    after = replace(job, pair=pair, version=job.version + 1)
    return Change(insert=[made, job_event(made, actor)], update=[after])


def alone(job: JobRecord) -> JobRecord:
    """Return a job without its other copy."""
    return replace(job, pair=None, version=job.version + 1)


def switched(
    active: JobRecord, standby: JobRecord, reason: str, actor: str, now_ns: int
) -> tuple[JobRecord, JobRecord, Change]:
    """Return the new active copy, the new standby, and the change that makes the standby of a service active.

    The names of the copies change places, so that the name of the service leads to the active one.
    """
    pair = active.pair or Pair()
    left, lost_ns = pair.left if pair.leaving else ", ".join(active.clusters), pair.lost_ns if pair.leaving else None
    latest = Pair(left=left, lost_ns=lost_ns, switched_ns=now_ns)
    name, other_name = active.spec.name, standby.spec.name
    leads = replace(
        standby,
        spec=replace(standby.spec, name=name),
        pair=replace(latest, other=active.id),
        changed_ns=now_ns,
        version=standby.version + 1,
    )
    follows = replace(
        active,
        spec=replace(active.spec, name=other_name),
        pair=replace(latest, other=standby.id, active=False),
        changed_ns=now_ns,
        version=active.version + 1,
    )
    text = switch_text(leads, reason)
    events = [job_event(each, actor, "failover", text) for each in (leads, follows)]
    return leads, follows, Change(update=[leads, follows], insert=[*events])


def switch_text(active: JobRecord, reason: str) -> str:
    """Describe the latest switch of a service; `active` is its new active copy."""
    pair = active.pair or Pair()
    why = without(reason, ELSEWHERE)
    where = {"place": ", ".join(active.clusters), "other": pair.left}
    if pair.lost_ns is None or pair.switched_ns is None:
        return Reason("active_instead", **where, why=why)
    after = max(0, pair.switched_ns - pair.lost_ns) / NS_PER_S
    return Reason("active_after_loss", **where, after=after, why=why)


def both_respecified(
    asked: Copy, other: Copy, spec: JobSpec, actor: str, now_ns: int, *, may_stay: tuple[bool, bool], changes: str
) -> tuple[JobRecord, Change]:
    """Return the change for a new spec of a service with a standby, and the job `asked` after it.

    A placed standby restarts first, and then takes over, so that the service is not interrupted. If the new spec has no
    warm standby, the present one ends.

    Parameters
    ----------
    may_stay
        Whether the placement of each copy is still allowed.
    """
    active, standby = (other, asked) if asked[0].is_standby else (asked, other)
    stays = dict(zip((asked[0].id, other[0].id), may_stay, strict=True))
    name = spec.name if not asked[0].is_standby or spec.name != asked[0].spec.name else active[0].spec.name
    lead_spec = replace(spec, name=name, copy_of=active[0].spec.copy_of, after=active[0].spec.after)
    if not spec.has_warm_standby:
        job, change = respecified(*active, lead_spec, actor, now_ns, may_stay=stays[active[0].id], changes=changes)
        job = replace(job, pair=None)
        change.update[0] = job
        reason = Reason("no_warm_standby", name=name, who=actor)
        ended, stop = stopped(*standby, JobState.CANCELLED, reason, actor, now_ns)
        change.add(stop)
        return ended if asked is standby else job, change
    own = standby[0].spec
    follow_spec = replace(spec, name=standby_name(name), copy_of=own.copy_of, after=own.after)
    waits = standby[0].state.placed and active[0].state.placed
    if waits:  # it restarts when the standby has taken over
        job = replace(active[0], spec=lead_spec, changed_ns=now_ns, version=active[0].version + 1)
        reason = changed_by(actor, changes)
        change = Change(update=[job], insert=[job_event(job, actor, "updated", reason)])
    else:
        job, change = respecified(*active, lead_spec, actor, now_ns, may_stay=stays[active[0].id], changes=changes)
    follows, more = respecified(*standby, follow_spec, actor, now_ns, may_stay=stays[standby[0].id], changes=changes)
    change.add(more)
    return follows if asked is standby else job, change
