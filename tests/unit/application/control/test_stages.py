from __future__ import annotations

from collections import Counter

import pytest

from seaway.application.control.stages import Deployed, Stage
from seaway.application.fleet.queues import QueueViews
from seaway.application.histogram import BOUNDS_S, Timed, Timing
from seaway.domain.errors import UnavailableError
from seaway.domain.job_state import JobState
from tests.unit.application.scene import START_S, Scene, scene, spec


def deployed(made: Scene) -> dict[tuple[str, Deployed], int]:
    """Return the outcomes of deployments, without zeros."""
    return {key: count for key, count in made.plane.overview.figures().deployed.items() if count}


def seconds(timed: Timed) -> tuple[int, float]:
    """Return the count and the total time."""
    return sum(timed.counts), timed.total_s


def test_times_are_counted_up_to_their_bound() -> None:
    """A time equal to a bound counts for it; one above all bounds counts last; none is negative."""
    timing = Timing()
    for each in (-1, 0.001, 0.002, 86_400, 86_401):
        timing.note(each)
    assert timing.timed() == Timed((2, 1, *(0,) * (len(BOUNDS_S) - 3), 1, 1), 172_801.003)


def test_stages_add_up_to_the_way_of_a_job() -> None:
    """A job waits from submit to placement, then it is sent, then it starts; each is counted once."""
    made = scene()
    for _ in range(2):
        made.submit(gpus=2, expected_duration_s=10)
    late = made.submit(gpus=2)
    made.plane.run(20)
    figures = made.plane.overview.figures()
    assert made.state(late) == "running"
    count, waited_s = seconds(figures.jobs.waits["default"])
    assert (count, 10 <= waited_s <= 15) == (3, True)
    assert seconds(figures.stages[Stage.START]) == (3, 3 * START_S)
    assert sum(figures.stages[Stage.DISPATCH].counts) == sum(figures.stages[Stage.STORE].counts) == 3
    assert sum(figures.stages[Stage.DECIDE].counts) >= 3
    assert deployed(made).keys() == {("alpha", Deployed.RUNNING), ("beta", Deployed.RUNNING)}


def test_the_longest_wait_of_a_queue_goes_on_over_a_fault() -> None:
    """After a new read, a job waits since its submit, and no state is counted twice."""
    made = scene()
    for _ in range(3):
        made.submit(gpus=2)
    made.plane.run(60)
    before = made.plane.overview.figures().jobs
    assert before.longest_waits_s == {"default": 60}
    made.plane.store.fail_next(after=True)
    with pytest.raises(UnavailableError):
        made.submit(gpus=2)
    made.plane.run(5)
    after = made.plane.overview.figures()
    assert after.jobs.longest_waits_s == {"default": 65}
    assert after.store.failures == 1
    rise = Counter(after.jobs.reached) - Counter(before.reached)
    assert rise.keys() <= {JobState.QUEUED.value}
    assert made.plane.controller.live.stages.began_ns.keys() == {job.id for job in made.plane.store.live_jobs()}


def longest(made: Scene) -> float:
    """Return the longest wait, which monitoring and the view of queues agree on."""
    (waited_s,) = made.plane.overview.figures().jobs.longest_waits_s.values()
    uses = QueueViews(made.plane.controller).uses()
    assert max((each.longest_wait_s for each in uses), default=0) == waited_s
    return waited_s


def test_a_job_that_is_refused_again_and_again_waits_all_the_time() -> None:
    """It waits since its submit, also in between and over a fault; the time to each attempt is counted separately."""
    made = scene()
    for name in ("alpha", "beta"):
        made.cluster(name).refuse("not today")
    job_id = made.submit(gpus=2)
    for second in range(1, 601):
        made.plane.run(1)
        assert longest(made) == second, made.state(job_id)
    assert made.job(job_id).attempt > 2
    made.plane.store.fail_next(after=True)
    with pytest.raises(UnavailableError):
        made.submit(gpus=2)
    made.plane.run(5)
    assert longest(made) == 605


def test_a_job_that_ran_waits_since_then() -> None:
    """A job that is rescheduled starts over; a suspended one does not wait, and then starts over, too."""
    made = scene()
    job_id = made.submit(gpus=2)
    made.plane.run(60)
    assert (made.state(job_id), longest(made)) == ("running", 0)
    for name in ("alpha", "beta"):
        made.cluster(name).refuse("not today")
    made.plane.jobs.change(job_id, spec(gpus=1), "ada")
    made.plane.run(20)
    assert longest(made) == pytest.approx(20, abs=1)
    made.plane.jobs.suspend(job_id, "ada")
    made.plane.run(30)
    assert longest(made) == 0
    made.plane.jobs.resume(job_id, "ada")
    made.plane.run(10)
    assert longest(made) == 10


def test_deployments_count_by_outcome_of_them() -> None:
    """Rejected, failed before running, and never confirmed are separate, each for its cluster."""
    made = scene(assume_timeout_s=30, grace_period_s=1000)
    made.cluster("alpha").refuse("not today")
    made.submit(gpus=2)
    assert deployed(made) == {("alpha", Deployed.REFUSED): 1}
    made = scene(assume_timeout_s=30, grace_period_s=1000)
    made.cluster("alpha").disconnect()
    made.submit()
    made.plane.run(31)
    assert deployed(made) == {("alpha", Deployed.LATE): 1}
    made = scene()
    made.cluster("alpha").fail_starts("no such image")
    made.submit()
    made.plane.run(5)
    assert deployed(made)["alpha", Deployed.FAILED] == 1


def test_what_fails_while_it_runs_is_no_failed_deployment() -> None:
    """A job that ran and then failed was deployed successfully."""
    made = scene()
    job_id = made.submit()
    made.plane.run(5)
    made.cluster("alpha").fail_copy(job_id, 1, "out of memory")
    made.plane.run(1)
    assert made.plane.overview.figures().jobs.reached["failed"] == 1
    assert deployed(made) == {("alpha", Deployed.RUNNING): 1}
