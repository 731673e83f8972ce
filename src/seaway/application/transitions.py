"""State transitions of jobs, as changes with the rows and the event.

An attempt changes only together with its job, whose version protects both. The one exception is the last step of an
attempt, from ending to ended, which only the control loop makes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from seaway.application.changes import Change
from seaway.application.records import NS_PER_S, Event, PendingCommand, Verb
from seaway.domain.attempt import Attempt
from seaway.domain.dependencies import After, When
from seaway.domain.job_record import JobRecord
from seaway.domain.job_spec import HEADED, ONE_TEMPLATE, JobSpec
from seaway.domain.job_state import AttemptState, JobState, require_may_follow
from seaway.domain.placement import Placement
from seaway.domain.reasons import TEXTS, Reason, time_param

ELSEWHERE = Reason("elsewhere")
"""End of the reason of a job that was moved away. It applies until the next placement attempt."""

AWAITS_VICTIMS = TEXTS["waits_until"].partition("{")[0]
"""Begin of the reason of a job for which others make room. After a restart, its place is reserved again."""

ACCEPTED, TAKEN_IN = Reason("accepted"), Reason("added_to_queue")
"""Reasons of the first two events of a job: stored, and read by the control loop."""


def job_event(job: JobRecord, actor: str, kind: str = "state", reason: str = "") -> Event:
    """Return an event for a job with its new state."""
    return Event(
        at_ns=job.changed_ns,
        kind=kind,
        reason=reason or job.reason,
        actor=actor,
        tenant=job.spec.tenant,
        job_id=job.id,
        state=job.state.value if kind == "state" else "",
        attempt=job.attempt,
    )


def moved(job: JobRecord, state: JobState, reason: str, now_ns: int, **fields: Any) -> JobRecord:  # noqa: ANN401
    """Return a job in a new state.

    Raises
    ------
    ConflictError
        If the current state does not allow the transition.
    """
    require_may_follow(job.state, state)
    if state.final and job.ended_ns is None:
        fields["ended_ns"] = now_ns
    if state is JobState.RUNNING and job.spec.lease_s and job.expires_ns is None:
        fields["expires_ns"] = now_ns + job.spec.lease_s * NS_PER_S
    if not (state.placed or state.final):
        fields["expires_ns"] = None
    return replace(job, state=state, reason=reason, changed_ns=now_ns, version=job.version + 1, **fields)


def blocked(job: JobRecord, reason: str, actor: str, now_ns: int) -> Change:
    """Return the change for a new reason of a job that stays in its state."""
    after = replace(job, reason=reason, changed_ns=now_ns, version=job.version + 1)
    return Change(update=[after], insert=[job_event(after, actor, "blocked")])


def accepted(job: JobRecord) -> Change:
    """Return the change for a new job."""
    return Change(insert=[job, job_event(job, job.submitted_by)])


def stepped(job: JobRecord, actor: str) -> Change:
    """Return the change for a job in a new state."""
    return Change(update=[job], insert=[job_event(job, actor)])


def placed(queued: JobRecord, scheduled: JobRecord, attempt: Attempt, actor: str) -> Change:
    """Return the change for a placement, with the pending commands for its clusters.

    It is stored before they are sent.
    """
    change = stepped(scheduled, actor)
    if queued.state is not JobState.QUEUED:
        change.insert.insert(
            0,
            replace(job_event(queued, actor, reason=TAKEN_IN), at_ns=scheduled.changed_ns, state=JobState.QUEUED.value),
        )
    change.insert.append(attempt)
    for cluster in attempt.clusters:
        change.insert.append(PendingCommand(attempt.job_id, attempt.number, cluster, Verb.CREATE, attempt.created_ns))
    return change


def ending(attempt: Attempt, reason: str, now_ns: int) -> Change:
    """Return the change that starts the removal of an attempt: cancel unsent commands, and add removal commands."""
    change = Change(update=[replace(attempt, state=AttemptState.ENDING, reason=reason)])
    for cluster in attempt.clusters:
        change.delete.append(PendingCommand(attempt.job_id, attempt.number, cluster, Verb.CREATE, now_ns))
        change.put.append(PendingCommand(attempt.job_id, attempt.number, cluster, Verb.DELETE, now_ns))
    return change


def ended(attempt: Attempt, now_ns: int, reason: str = "") -> Change:
    """Return the change for the end of an attempt whose objects are removed, or ended by themselves."""
    reason = reason or attempt.reason
    change = Change(update=[replace(attempt, state=AttemptState.ENDED, ended_ns=now_ns, reason=reason)])
    for cluster in attempt.clusters:
        for verb in Verb:
            change.delete.append(PendingCommand(attempt.job_id, attempt.number, cluster, verb, now_ns))
    return change


MAX_NODES = 3
"""Maximum number of nodes in a reason."""

MAX_AWAITED = 3
"""Maximum number of predecessors in a reason."""

_AWAITED = {When.SUCCEEDED: "to_succeed", When.FINISHED: "to_finish", When.STARTED: "to_start", When.FAILED: "to_fail"}


def awaits_text(awaits: Sequence[After], known: Mapping[str, JobRecord | None]) -> str:
    """Return the reason of a job that waits for predecessors; `known` has the known ones by ID."""
    named = []
    for each in awaits[:MAX_AWAITED]:
        job = known.get(each.job)
        named.append(Reason(_AWAITED[each.when], job=f"{job.spec.name} ({each.job})" if job else each.job))
    if more := len(awaits) - len(named):
        return Reason("waits_for_more", jobs=tuple(named), count=more)
    return Reason("waits_for", jobs=tuple(named))


def later_task_reason(array: JobRecord) -> str:
    """Return the reason of a task that is not in its queue, since its array waits, was stopped, or has others there."""
    if array.state is JobState.HELD:
        return array.reason
    if array.state.final or array.state is JobState.SUSPENDED:
        return Reason("state_of_array", state=array.state.value)
    limit = array.spec.array.limit if array.spec.array else 0
    return Reason("array_limit", limit=limit) if limit else Reason("array_order")


def renewed(job: JobRecord, actor: str, now_ns: int, *, event: bool = True) -> tuple[JobRecord, Change]:
    """Return the change for a lease that counts from now again."""
    expires_ns = now_ns + (job.spec.lease_s or 0) * NS_PER_S
    after = replace(job, expires_ns=expires_ns, changed_ns=now_ns, version=job.version + 1)
    text = Reason("lease_renewed", who=actor, ends_at=time_param(expires_ns, seconds=True))
    return after, Change(update=[after], insert=[job_event(after, actor, "updated", text)] if event else [])


def resized(job: JobRecord, before: Attempt, after: Attempt, actor: str, reason: str, now_ns: int) -> Change:
    """Return the change for more replicas of a live attempt, or for some that are leaving.

    Clusters get the attempt again. A command replaces an earlier one only if its time differs.
    """
    changed = dict.fromkeys(each.cluster for each in {*after.placements} ^ {*before.placements})
    job = sized(replace(job, reason=reason, changed_ns=now_ns, version=job.version + 1), after)
    commands = [PendingCommand(job.id, after.number, cluster, Verb.CREATE, now_ns) for cluster in sorted(changed)]
    return Change(update=[job, after], insert=[job_event(job, actor, "resized", reason)], put=[*commands])


def without_lost(job: JobRecord, attempt: Attempt, lost: Collection[int]) -> Attempt | None:
    """Return the attempt of an elastic job that lost replicas, which are leaving; None if it cannot continue.

    With a lost replica, all replicas of its workload leave. Without its minimum, its head, or a replica before others
    that one controller numbers, the job must restart.
    """
    places = {each.place for each in attempt.remaining if each.replica in lost}
    leaves, stays = (
        {each.replica for each in attempt.remaining if (each.place in places) is gone} for gone in (True, False)
    )
    headless = job.spec.template in HEADED and 0 in leaves
    gap = job.spec.template in ONE_TEMPLATE and bool(stays) and min(leaves, default=0) < max(stays)
    if not (job.spec.elastic and attempt.spec.elastic and leaves) or headless or gap:
        return None
    return attempt.leaving(leaves) if len(stays) >= job.spec.least_replicas else None


def resize_reason(code: str, before: Attempt, after: Attempt, **params: str) -> Reason:
    """Return a reason with the number of replicas before and after a resize."""
    return Reason(code, was=len(before.remaining), now=len(after.remaining), **params)


def sized(job: JobRecord, attempt: Attempt) -> JobRecord:
    """Return a job with the clusters and nodes of its attempt, and its number of replicas."""
    nodes = tuple(dict.fromkeys(each.node for each in attempt.placements))
    return replace(job, clusters=attempt.clusters, nodes=nodes, held_replicas=len(attempt.holding))


def waiting_text(job: JobRecord, placed: int) -> str:
    """Return a reason on the replicas of a job that wait; empty for none."""
    rest = job.spec.replicas - job.completed - placed
    if rest <= 0:
        return ""
    if job.spec.elastic:
        return Reason("more_follow", count=rest)
    code = f"{'one_waits' if rest == 1 else 'others_wait'}{'_for_room' if job.spec.resizable else ''}"
    return Reason(code) if rest == 1 else Reason(code, count=rest)


def nodes_text(placements: Iterable[Placement]) -> str:
    """Return the first nodes of placements."""
    nodes = list(dict.fromkeys(f"{each.cluster}/{each.node}" for each in placements))
    first, more = ", ".join(nodes[:MAX_NODES]), len(nodes) - MAX_NODES
    return Reason("more_nodes", nodes=first, count=more) if more > 0 else first


def stopped(
    job: JobRecord, attempt: Attempt | None, state: JobState, reason: str, actor: str, now_ns: int
) -> tuple[JobRecord, Change]:
    """Return the change that ends, suspends or requeues a job, and removes its live attempt."""
    after = moved(job, state, reason, now_ns)
    change = stepped(after, actor)
    if attempt is not None and attempt.state.live:
        change.add(ending(attempt, reason, now_ns))
    return after, change


def sent_back(
    job: JobRecord, attempt: Attempt, reason: str, actor: str, now_ns: int, *, pause_s: float | None = None
) -> Change:
    """Return the change that requeues a job, after a pause if set, and removes its live attempt."""
    if pause_s is not None:
        job = replace(job, not_before_ns=now_ns + int(pause_s * 1e9))
    return stopped(job, attempt, JobState.QUEUED, reason, actor, now_ns)[1]


def changed_by(actor: str, changes: str) -> Reason:
    """Return the reason of a change by a user."""
    return Reason("changed_fields", who=actor, changes=changes) if changes else Reason("changed", who=actor)


def respecified(
    job: JobRecord,
    attempt: Attempt | None,
    spec: JobSpec,
    actor: str,
    now_ns: int,
    *,
    may_stay: bool = True,
    changes: str = "",
) -> tuple[JobRecord, Change]:
    """Return the change for a new spec of a job.

    The job is requeued if its placement does not match or may not stay. `changes` describes the change for people.
    """
    reason = changed_by(actor, changes)
    again = job.spec.requires_restart(spec) or (job.completed > 0 and spec.replicas <= job.completed)
    placed_otherwise = job.state.placed and (not may_stay or again)
    if again:
        job = replace(job, completed=0)
    if placed_otherwise:
        after, change = stopped(replace(job, spec=spec), attempt, JobState.QUEUED, reason, actor, now_ns)
        return after, change
    after = replace(job, spec=spec, changed_ns=now_ns, version=job.version + 1)
    return after, Change(update=[after], insert=[job_event(after, actor, "updated", reason)])


def respecified_array(
    array: JobRecord, spec: JobSpec, actor: str, now_ns: int, changes: str
) -> tuple[JobRecord, Change]:
    """Return the change for a new spec of an array. Tasks that run continue with the spec of their attempt."""
    reason = changed_by(actor, changes)
    after = replace(array, spec=spec, changed_ns=now_ns, version=array.version + 1)
    return after, Change(update=[after], insert=[job_event(after, actor, "updated", reason)])
