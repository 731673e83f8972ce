from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace

import pytest

from seaway.application.jobs import TRIES, Jobs, SubmitKey
from seaway.application.ports.store import Retention
from seaway.domain.errors import ConflictError, RejectedError, StaleError, UnavailableError, UnknownError
from seaway.domain.job_record import JobRecord
from seaway.domain.job_state import FOLLOWS, AttemptState, JobState
from seaway.domain.queues import Queue
from seaway.domain.runtime import Run
from seaway.domain.tenancy import Pool
from tests.unit.application.scene import Scene, scene, spec

S = JobState


def bring_to(state: JobState) -> tuple[Scene, str]:
    """Make a scene in which a job is in a state."""
    made = scene()
    jobs = made.plane.jobs
    if state is S.QUEUED:
        made.submit(gpus=2), made.submit(gpus=2)
    job_id = made.plane.submit(spec(gpus=2, expected_duration_s=20, retries=0))[0]
    if state is S.PENDING:
        return made, job_id
    made.plane.controller.step()
    if state is S.DEPLOYING:
        made.plane.controller.step()
    if state in {S.RUNNING, S.COMPLETED, S.FAILED}:
        made.plane.run(5)
    if state is S.COMPLETED:
        made.plane.run(30)
    if state is S.FAILED:
        made.cluster(made.where(job_id)).fail_copy(job_id, 1, "killed")
        made.plane.settle()
    if state in {S.SUSPENDED, S.CANCELLED}:
        (jobs.suspend if state is S.SUSPENDED else jobs.cancel)(job_id, "ada")
    assert made.plane.state(job_id) is state
    return made, job_id


REACHED = [S.PENDING, S.QUEUED, S.SCHEDULED, S.DEPLOYING, S.RUNNING, S.COMPLETED, S.FAILED, S.SUSPENDED, S.CANCELLED]


@pytest.mark.parametrize("state", REACHED)
@pytest.mark.parametrize("then", [S.CANCELLED, S.SUSPENDED, S.DELETED])
def test_people_stop_jobs_from_every_state_that_allows_it(state: JobState, then: JobState) -> None:
    """Cancelling, suspending and deleting work wherever the lifecycle says so, and leave nothing behind."""
    made, job_id = bring_to(state)
    jobs = made.plane.jobs
    act = {S.CANCELLED: jobs.cancel, S.SUSPENDED: jobs.suspend, S.DELETED: jobs.delete}[then]
    if then is not state and then not in FOLLOWS[state]:
        with pytest.raises(ConflictError):
            act(job_id, "bob")
        assert made.plane.state(job_id) is state
        return
    after = act(job_id, "bob", "because")
    assert after.state is then
    made.plane.run(5)
    assert made.plane.state(job_id) is then
    assert all(each.state is AttemptState.ENDED for each in made.plane.store.attempts(job_id))
    assert not [each for each in made.plane.store.pending_commands() if each.job_id == job_id]
    if then is not state:
        reported = made.plane.store.events(0, 100, job_id=job_id)[-1]
        assert (reported.actor, reported.reason, reported.state) == ("bob", "because", then.value)


@pytest.mark.parametrize("state", REACHED)
def test_only_suspended_jobs_resume(state: JobState) -> None:
    """Resuming sends a suspended job back to its queue, with a new attempt; anything else is a conflict."""
    made, job_id = bring_to(state)
    if state is not S.SUSPENDED:
        with pytest.raises(ConflictError, match="only a suspended job"):
            made.plane.jobs.resume(job_id, "ada")
        return
    assert made.plane.jobs.resume(job_id, "ada").state is S.QUEUED
    made.plane.run(8)
    assert made.plane.state(job_id) is S.RUNNING


@pytest.mark.parametrize("state", [S.SCHEDULED, S.DEPLOYING, S.RUNNING])
def test_changing_a_placed_job_makes_a_new_attempt(state: JobState) -> None:
    """Anything that a job asks for is changed by stopping it and starting it again.

    Its priority is changed in place.
    """
    made, job_id = bring_to(state)
    before = made.job(job_id)
    made.plane.jobs.change(job_id, replace(before.spec, priority=5), "ada")
    made.plane.run(4)
    assert made.job(job_id).attempt == 1
    made.plane.jobs.change(job_id, replace(before.spec, run=Run("new")), "ada")
    made.plane.run(8)
    assert (made.state(job_id), made.job(job_id).attempt) == ("running", 2)
    first, second = made.plane.store.attempts(job_id)
    assert (first.state, first.spec.run.image, second.spec.run.image) == (AttemptState.ENDED, "", "new")


def test_a_job_leaves_where_its_new_queue_does_not_reach() -> None:
    """A change of queue is made in place where the pool of the new one has what it runs on, else it restarts."""
    made, job_id = bring_to(S.RUNNING)
    there = made.where(job_id)
    elsewhere = next(name for name in ("alpha", "beta") if name != there)
    for name, clusters in (("here", {there}), ("away", {elsewhere})):
        made.plane.operations.put_pool(Pool(name, frozenset(clusters)), "ada")
        made.plane.operations.put_queue(Queue(name, pool=name), "ada")
    made.plane.settle()
    before = made.job(job_id).spec
    made.plane.jobs.change(job_id, replace(before, queue="here"), "ada")
    made.plane.run(4)
    assert (made.state(job_id), made.job(job_id).attempt, made.where(job_id)) == ("running", 1, there)
    made.plane.jobs.change(job_id, replace(before, queue="away"), "ada")
    made.plane.run(8)
    assert (made.state(job_id), made.job(job_id).attempt, made.where(job_id)) == ("running", 2, elsewhere)


def test_what_is_over_cannot_be_changed_and_tenants_stay() -> None:
    """A job that ended is submitted again instead; and a job does not change hands."""
    made, job_id = bring_to(S.COMPLETED)
    with pytest.raises(ConflictError, match="submit it again"):
        made.plane.jobs.change(job_id, spec(), "ada")
    made, job_id = bring_to(S.RUNNING)
    with pytest.raises(RejectedError, match="stays with its tenant"):
        made.plane.jobs.change(job_id, spec(tenant="other"), "ada")


def test_a_change_that_was_meant_for_an_older_version_is_refused() -> None:
    """Anyone who says which version they saw changes that version or nothing."""
    made, job_id = bring_to(S.RUNNING)
    version = made.job(job_id).version
    acts: tuple[Callable[[], JobRecord], ...] = (
        lambda: made.plane.jobs.cancel(job_id, "ada", version=version - 1),
        lambda: made.plane.jobs.change(job_id, spec(), "ada", version=version - 1),
    )
    for act in acts:
        with pytest.raises(StaleError, match=f"version {version}, not"):
            act()
    assert made.plane.jobs.cancel(job_id, "ada", version=version).state is S.CANCELLED


def test_a_step_is_taken_again_when_a_user_was_quicker() -> None:
    """A change that meets another is tried on the present state then; when that never ends, it is a conflict."""
    made, job_id = bring_to(S.RUNNING)
    jobs = made.plane.jobs

    def reprioritize() -> None:
        job = jobs.find(job_id)
        jobs.change(job_id, replace(job.spec, priority=job.spec.priority + 1), "bob")

    made.plane.writer.meanwhile.append(reprioritize)
    assert jobs.suspend(job_id, "ada").spec.priority == 1
    jobs.resume(job_id, "ada")
    for _ in range(TRIES):
        made.plane.writer.meanwhile += [reprioritize, lambda: None]
    with pytest.raises(ConflictError, match="changes too fast"):
        jobs.suspend(job_id, "ada")


def test_deleted_jobs_are_not_found() -> None:
    """A job that is deleted, or never was, is unknown; cancelling twice is the same as once."""
    made, job_id = bring_to(S.RUNNING)
    first = made.plane.jobs.cancel(job_id, "ada")
    assert made.plane.jobs.cancel(job_id, "ada").version == first.version
    made.plane.jobs.delete(job_id, "ada")
    for unknown in (job_id, "0000000000000"):
        with pytest.raises(UnknownError):
            made.plane.jobs.find(unknown)


def submit(jobs: Jobs, key: SubmitKey | None = None) -> tuple[JobRecord, bool]:
    """Submit a job."""

    async def run() -> tuple[JobRecord, bool]:
        known = await jobs.replayed(key, [spec()]) if key else []
        stored, new = (known, False) if known else await jobs.submit([spec()], "ada", key)
        return stored[0], new

    return asyncio.run(run())


def test_an_idempotency_key_makes_one_job() -> None:
    """Sent again with the same body, a submit returns the first job; with another body it is a conflict."""
    made = scene()
    job, new = submit(made.plane.jobs, SubmitKey("k", "digest"))
    assert new
    assert submit(made.plane.jobs, SubmitKey("k", "digest")) == (job, False)
    with pytest.raises(ConflictError, match="another request"):
        submit(made.plane.jobs, SubmitKey("k", "other"))
    assert asyncio.run(made.plane.jobs.submit([spec()], "ada", SubmitKey("k", "digest"))) == ([job], False)
    assert submit(made.plane.jobs, SubmitKey("l", "digest"))[1]
    assert len(list(made.plane.store.live_jobs())) == 2


def test_a_key_whose_answer_was_lost_finds_its_job() -> None:
    """When a submit was stored and no one observed, sending it again finds the job, also after a restart."""
    made = scene()
    made.plane.store.fail_next(after=True)
    with pytest.raises(UnavailableError):
        submit(made.plane.jobs, SubmitKey("k", "digest"))
    made.plane.restart()
    _, new = submit(made.plane.jobs, SubmitKey("k", "digest"))
    assert not new
    assert len(list(made.plane.store.live_jobs())) == 1


def test_the_key_of_a_job_that_is_gone_says_so() -> None:
    """When its job was deleted and pruned, a key makes no second job, and the answer says why."""
    made = scene()
    job, _ = submit(made.plane.jobs, SubmitKey("k", "digest"))
    made.plane.jobs.delete(job.id, "ada")
    made.plane.settle()
    made.plane.store.prune(Retention(None, None, None, None), made.clock.now_ns())
    with pytest.raises(ConflictError, match="for a deleted job"):
        submit(made.plane.jobs, SubmitKey("k", "digest"))


def test_ids_go_on_after_a_restart() -> None:
    """A control plane that draws an id that is taken draws another."""
    made = scene()
    first, _ = submit(made.plane.jobs)
    made.plane.restart()  # the same seed and the same time
    second, new = submit(made.plane.jobs)
    assert new
    assert first.id != second.id
