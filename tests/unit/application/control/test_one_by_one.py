"""Jobs whose replicas start one by one, as room is found."""

from __future__ import annotations

import pytest

from seaway.domain.errors import RejectedError
from seaway.testing.plugins import cluster, fleet, gpu, node
from tests.unit.application.scene import START_S, Scene, scene, spec

WORK_S = 60


def four(**settings: object) -> Scene:
    """Create a scene with room for four replicas in two clusters."""
    parts = (cluster(node(gpu(), gpu()), name=name) for name in ("alpha", "beta"))
    return scene(fleet(*parts), **settings)


def replicas(made: Scene, job_id: str) -> list[int]:
    """Return the numbers of the replicas of a job's latest attempt."""
    return [each.replica for each in made.plane.attempt(job_id).placements]


def gpus(made: Scene) -> int:
    """Return the number of allocated GPUs."""
    return sum(each.gpu_milli.used for each in made.plane.overview.clusters()) // 1000


def test_those_that_fit_run_and_the_others_follow() -> None:
    """Of ten replicas where four fit, four run and six wait; each replica runs once, under its own number."""
    made = four()
    job_id = made.submit(replicas=10, one_by_one=True, expected_duration_s=WORK_S)
    ran = []
    for wave in ([0, 1, 2, 3], [4, 5, 6, 7], [8, 9]):
        made.plane.run(START_S + 3)
        assert (made.state(job_id), replicas(made, job_id), gpus(made)) == ("running", wave, len(wave))
        rest = 10 - wave[-1] - 1
        waits = f"{rest} other replicas wait for room"
        assert (waits in made.job(job_id).reason) == bool(rest)
        ran += wave
        made.plane.run(WORK_S)
    made.plane.run(5)
    assert (made.state(job_id), ran, gpus(made)) == ("completed", list(range(10)), 0)


def test_other_jobs_all_start_at_once_or_wait() -> None:
    """Without it, and for a gang, a service or connected replicas, no replica starts before all fit."""
    made = four(reservations=False)
    held = made.submit()
    for fields in ({}, {"gang": True}, {"template": "deployment"}, {"template": "torchrun"}):
        job_id = made.plane.submit(spec(replicas=4, one_by_one=fields != {}, **fields))[0]
        made.plane.run(5)
        assert (made.state(job_id), gpus(made)) == ("queued", 1), fields
        made.plane.jobs.cancel(job_id, "ada")
    assert made.state(held) == "running"


def test_a_restart_goes_on_after_the_replicas_that_completed() -> None:
    """Their number is stored with the job, and devices of waiting replicas are not held."""
    made = four()
    job_id = made.submit(replicas=6, one_by_one=True, expected_duration_s=WORK_S)
    made.plane.run(10)
    made.plane.restart()
    made.plane.run(WORK_S)
    made.plane.restart()
    made.plane.run(5)
    assert (made.job(job_id).completed, replicas(made, job_id), gpus(made)) == (4, [4, 5], 2)
    made.plane.run(WORK_S)
    assert made.state(job_id) == "completed"


def test_a_failure_repeats_only_the_replicas_that_ran() -> None:
    """Replicas that completed before do not run again."""
    made = four()
    job_id = made.submit(replicas=6, one_by_one=True, retries=1, expected_duration_s=WORK_S)
    made.plane.run(WORK_S + 10)
    assert replicas(made, job_id) == [4, 5]
    made.cluster(made.where(job_id)).fail_copy(job_id, 2, "killed")
    made.plane.run(WORK_S + 30)
    assert (made.state(job_id), made.job(job_id).attempt, replicas(made, job_id)) == ("completed", 3, [4, 5])


def test_fewer_replicas_than_have_completed_start_all_again() -> None:
    """A request that has completed already is another job: no replica of it has completed."""
    made = four()
    job_id = made.submit(replicas=6, one_by_one=True, expected_duration_s=WORK_S)
    made.plane.run(WORK_S + 10)
    assert made.job(job_id).completed == 4
    made.plane.jobs.change(job_id, spec(replicas=3, one_by_one=True, expected_duration_s=WORK_S), "ada")
    made.plane.run(10)
    assert (made.job(job_id).completed, replicas(made, job_id)) == (0, [0, 1, 2])


def test_more_replicas_than_the_fleet_has_room_for_are_accepted() -> None:
    """One replica must fit the empty fleet; a job that starts at once must fit as a whole."""
    made = four()
    made.plane.admission.admit(spec(replicas=100, one_by_one=True))
    with pytest.raises(RejectedError, match="4 of them fit"):
        made.plane.admission.admit(spec(replicas=100))
    with pytest.raises(RejectedError):
        made.plane.admission.admit(spec(replicas=2, one_by_one=True, gpus=3))


def test_a_dry_run_says_how_many_start_now() -> None:
    """It shows the places of the replicas that would start, and that the others follow."""
    made = four()
    made.submit()
    trial = made.plane.overview.dry_run(spec(replicas=10, one_by_one=True))
    assert (trial.fits, len(trial.placements)) == (True, 3)
    assert trial.message.endswith("3 of 10 replicas start now, and the others when these have completed")
