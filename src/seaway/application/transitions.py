"""State transitions of jobs, as changes with the rows and the event.

An attempt changes only together with its job, whose version protects both. The one exception is the last step of an
attempt, from ending to ended, which only the control loop makes.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from seaway.application.changes import Change
from seaway.application.records import NS_PER_S, Attempt, Event, JobRecord, PendingCommand, Verb
from seaway.domain.dependencies import After, When
from seaway.domain.job_spec import HEADED, ONE_TEMPLATE, JobSpec
from seaway.domain.job_state import AttemptState, JobState, require_may_follow

ELSEWHERE = "it is placed elsewhere"
"""End of the reason of a job that was moved away. It applies until the next placement attempt."""

AWAITS_ENDS = ("preempted job has ended", "preempted jobs have ended")
AWAITS_SHRINKING = ("elastic job has shrunk", "elastic jobs have shrunk")
AWAITS_VICTIMS = (*AWAITS_ENDS, *AWAITS_SHRINKING)
"""Ends of the reason of a job that displaced one other, or several. After a restart, its place is reserved again."""

ACCEPTED, TAKEN_IN = "accepted", "added to its queue"
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


def ended(attempt: Attempt, now_ns: int) -> Change:
    """Return the change for the end of an attempt whose objects are removed."""
    change = Change(update=[replace(attempt, state=AttemptState.ENDED, ended_ns=now_ns)])
    for cluster in attempt.clusters:
        for verb in Verb:
            change.delete.append(PendingCommand(attempt.job_id, attempt.number, cluster, verb, now_ns))
    return change


MAX_AWAITED = 3
"""Maximum number of predecessors in a reason."""

_VERBS = {When.SUCCEEDED: "to complete", When.FINISHED: "to end", When.STARTED: "to start", When.FAILED: "to fail"}


def awaits_text(awaits: Sequence[After], known: Mapping[str, JobRecord | None]) -> str:
    """Return the reason of a job that waits for predecessors; `known` has the known ones by ID."""
    named = []
    for each in awaits[:MAX_AWAITED]:
        job = known.get(each.job)
        named.append(f"{f'{job.spec.name} ({each.job})' if job else each.job} {_VERBS[each.when]}")
    more = len(awaits) - len(named)
    return f"waits for {', '.join(named)}{f', and for {more} more jobs' if more else ''}"


def renewed(job: JobRecord, actor: str, now_ns: int, *, event: bool = True) -> tuple[JobRecord, Change]:
    """Return the change for a lease that counts from now again."""
    expires_ns = now_ns + (job.spec.lease_s or 0) * NS_PER_S
    after = replace(job, expires_ns=expires_ns, changed_ns=now_ns, version=job.version + 1)
    text = f"the lease is renewed by {actor} until {minute(expires_ns)}"
    return after, Change(update=[after], insert=[job_event(after, actor, "updated", text)] if event else [])


def minute(at_ns: int) -> str:
    """Format nanoseconds since 1970 to the second."""
    return datetime.fromtimestamp(at_ns // NS_PER_S, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def resized(job: JobRecord, before: Attempt, after: Attempt, actor: str, reason: str, now_ns: int) -> Change:
    """Return the change for more replicas of a live attempt, or for some that are leaving.

    Clusters get the attempt again. A command replaces an earlier one only if its time differs.
    """
    changed = dict.fromkeys(each.cluster for each in {*after.placements} ^ {*before.placements})
    job = sized(replace(job, reason=reason, changed_ns=now_ns, version=job.version + 1), after)
    commands = [PendingCommand(job.id, after.number, cluster, Verb.CREATE, now_ns) for cluster in sorted(changed)]
    return Change(update=[job, after], insert=[job_event(job, actor, "resized", reason)], put=[*commands])


def leaving(attempt: Attempt, replicas: Collection[int]) -> Attempt:
    """Return an attempt of which some replicas are leaving."""
    placements = tuple(replace(each, leaving=True) if each.replica in replicas else each for each in attempt.placements)
    return of_size(replace(attempt, placements=placements))


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
    return leaving(attempt, leaves) if len(stays) >= job.spec.least_replicas else None


def sizes_text(before: Attempt, after: Attempt) -> str:
    """Return a text on the number of replicas before and after a resize."""
    was, now = len(before.remaining), len(after.remaining)
    return f"{'grows' if now > was else 'shrinks'} from {was} to {now} replica{'s' * (now != 1)}"


def of_size(attempt: Attempt) -> Attempt:
    """Return an attempt whose specification has the number of its remaining replicas, unless these end one by one."""
    if attempt.spec.starts_in_part or attempt.spec.replicas == len(attempt.remaining):
        return attempt
    return replace(attempt, spec=attempt.spec.with_replicas(len(attempt.remaining)))


def sized(job: JobRecord, attempt: Attempt) -> JobRecord:
    """Return a job with the clusters and nodes of its attempt, and its number of replicas."""
    nodes = tuple(dict.fromkeys(each.node for each in attempt.placements))
    return replace(job, clusters=attempt.clusters, nodes=nodes, held_replicas=len(attempt.holding))


def waiting_text(job: JobRecord, placed: int) -> str:
    """Return the end of a sentence on the replicas of a job that wait; empty for none."""
    rest = job.spec.replicas - job.completed - placed
    waits = "another replica waits" if rest == 1 else f"{rest} other replicas wait"
    return f"; {waits} {'for room' if job.spec.resizable else 'until these have completed'}" if rest > 0 else ""


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
    reason = f"changed by {actor}{f': {changes}' if changes else ''}"
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
    reason = f"changed by {actor}{f': {changes}' if changes else ''}"
    after = replace(array, spec=spec, changed_ns=now_ns, version=array.version + 1)
    return after, Change(update=[after], insert=[job_event(after, actor, "updated", reason)])
