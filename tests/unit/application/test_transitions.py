from __future__ import annotations

from dataclasses import replace

import pytest

from seaway.application.records import Event, PendingCommand, Verb
from seaway.application.transitions import (
    accepted,
    ended,
    ending,
    moved,
    placed,
    respecified,
    sent_back,
    stepped,
    stopped,
)
from seaway.domain.attempt import Attempt
from seaway.domain.errors import ConflictError
from seaway.domain.job_record import JobRecord
from seaway.domain.job_state import FOLLOWS, PLACED, AttemptState, JobState
from seaway.domain.runtime import Run
from tests.fakes.records import NOW_NS, attempt_of, job_record
from tests.unit.application.scene import spec

LATER_NS = NOW_NS + 5


@pytest.mark.parametrize("now", JobState)
@pytest.mark.parametrize("then", JobState)
def test_only_allowed_steps_can_be_taken(now: JobState, then: JobState) -> None:
    """A step that the lifecycle does not know raises a conflict that says what is possible; others are recorded."""
    job = job_record(state=now)
    if then not in FOLLOWS[now]:
        with pytest.raises(ConflictError, match=f"the job is {now.value}, so it cannot be {then.value}"):
            moved(job, then, "why", LATER_NS)
        return
    after = moved(job, then, "why", LATER_NS)
    assert (after.state, after.reason, after.changed_ns, after.version) == (then, "why", LATER_NS, job.version + 1)
    assert (after.ended_ns is not None) == then.final


def test_the_end_is_when_it_ended_first() -> None:
    """Deleting a job that is over does not change when it ended."""
    over = moved(job_record(state=JobState.RUNNING), JobState.COMPLETED, "done", LATER_NS)
    assert moved(over, JobState.DELETED, "gone", LATER_NS + 9).ended_ns == LATER_NS


def test_every_step_comes_with_its_event() -> None:
    """Anything that is stored of a step says who, when, why, and where the job is after it."""
    job = job_record(spec=spec(tenant="team"))
    first = accepted(job).insert[1]
    assert isinstance(first, Event)
    assert (first.actor, first.state, first.tenant, first.job_id) == ("ada", "pending", "team", job.id)
    after = moved(job, JobState.QUEUED, "full", LATER_NS)
    change = stepped(after, "scheduler")
    assert change.update == [after]
    assert change.insert == [Event(LATER_NS, "state", "full", "scheduler", "team", job.id, "queued", 0)]


@pytest.mark.parametrize("state", [JobState.PENDING, JobState.QUEUED, JobState.PREEMPTED])
def test_a_placement_is_stored_with_what_is_to_be_reported(state: JobState) -> None:
    """A placement brings its attempt and a command for each cluster; a job that was not queued yet says that too."""
    waits = job_record(state=state)
    attempt = attempt_of(waits)
    scheduled = replace(waits, state=JobState.SCHEDULED, version=2, attempt=1, changed_ns=LATER_NS)
    change = placed(waits, scheduled, attempt, "scheduler")
    reported = [each.state for each in change.insert if isinstance(each, Event)]
    assert reported == (["scheduled"] if state is JobState.QUEUED else ["queued", "scheduled"])
    assert attempt in change.insert
    assert [each.verb for each in change.insert if isinstance(each, PendingCommand)] == [Verb.CREATE]


def test_removing_takes_the_place_of_making() -> None:
    """An attempt that ends drops what was not reported yet, and has all of its clusters asked to remove it."""
    attempt = attempt_of(job_record())
    change = ending(attempt, "why", LATER_NS)
    assert change.update == [replace(attempt, state=AttemptState.ENDING, reason="why")]
    assert [(each.verb, each.cluster) for each in change.delete if isinstance(each, PendingCommand)] == [
        (Verb.CREATE, "c1")
    ]
    assert [(each.verb, each.cluster) for each in change.put if isinstance(each, PendingCommand)] == [
        (Verb.DELETE, "c1")
    ]
    over = ended(attempt, LATER_NS)
    assert [each.ended_ns for each in over.update if isinstance(each, Attempt)] == [LATER_NS]
    assert {each.verb for each in over.delete if isinstance(each, PendingCommand)} == set(Verb)


def test_stopping_ends_a_live_attempt_only() -> None:
    """Stopping a job removes its attempt, unless that is being removed or over already."""
    job = job_record(state=JobState.RUNNING)
    for state in AttemptState:
        _, change = stopped(job, attempt_of(job, state=state), JobState.CANCELLED, "why", "ada", LATER_NS)
        assert any(isinstance(each, Attempt) for each in change.update) == state.live


@pytest.mark.parametrize(("pause_s", "until_ns"), [(None, None), (2.5, LATER_NS + 2_500_000_000)])
def test_what_is_sent_back_waits_and_its_attempt_is_removed(pause_s: float | None, until_ns: int | None) -> None:
    """A job that goes back to its queue is tried again after the pause, if there is one, and without what it had."""
    job = job_record(state=JobState.RUNNING, attempt=1)
    change = sent_back(job, attempt_of(job), "why", "controller", LATER_NS, pause_s=pause_s)
    after, attempt = change.update
    assert isinstance(after, JobRecord)
    assert (after.state, after.reason, after.not_before_ns) == (JobState.QUEUED, "why", until_ns)
    assert isinstance(attempt, Attempt)
    assert attempt.state is AttemptState.ENDING


@pytest.mark.parametrize("state", [state for state in JobState if not state.final])
def test_changing_what_runs_makes_a_new_attempt_and_changing_priority_does_not(state: JobState) -> None:
    """A job that has a place goes back to its queue when its copies no longer match; else it stays where it is."""
    job = job_record(state=state)
    attempt = attempt_of(job, state=AttemptState.RUNNING) if state in PLACED else None
    same, change = respecified(job, attempt, replace(job.spec, priority=9, name="other"), "ada", LATER_NS)
    assert (same.state, same.version, same.spec.priority) == (state, job.version + 1, 9)
    assert change.update == [same]
    assert [each.kind for each in change.insert if isinstance(each, Event)] == ["updated"]
    other, change = respecified(job, attempt, replace(job.spec, run=Run("other")), "ada", LATER_NS)
    assert other.state is (JobState.QUEUED if state in PLACED else state)
    assert other.spec.run.image == "other"
    assert len([each for each in change.update if isinstance(each, JobRecord)]) == 1
    assert any(isinstance(each, Attempt) for each in change.update) == (state in PLACED)
