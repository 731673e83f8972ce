"""A policy may defer a job that fits, for a limited time, and the reason is reported."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from seaway.domain.job import Job
from seaway.domain.queues import Preemption, Queue
from seaway.domain.tenancy import DEFAULT
from seaway.scheduling.framework import Cycle, Status, Verdict
from seaway.scheduling.policies.registry import PolicyOptions, make_profile
from seaway.scheduling.profile import Profile
from tests.unit.application.scene import Scene, scene

WHY = "tide waits for the tide"


class Tide:
    """Defers jobs until the tide turns: all of them, or only one."""

    name = "tide"

    def __init__(self) -> None:
        self.low = True
        self.late = False
        self.only = ""

    def pre_score(self, cycle: Cycle) -> Status:
        """Defer a job, or report that the tide was not known in time."""
        if self.late:
            cycle.message = "bestfit decides instead of tide: slower than 5 ms"
            return Status()
        meant = not self.only or cycle.job.name == self.only
        return Status(Verdict.WAIT, WHY) if self.low and meant else Status()


def waiting_for(tide: Tide, *, max_deferral_s: float = 60, **settings: Any) -> Scene:  # noqa: ANN401  # of the loop
    """Create a control plane whose every policy waits for the tide."""

    def make(name: str, mix: Sequence[Job]) -> Profile:
        return make_profile(name, PolicyOptions(mix=mix)).with_plugins(tide)

    stage = scene(max_deferral_s=max_deferral_s, **settings)
    stage.plane.make = make
    stage.plane.restart()
    return stage


def attempts(stage: Scene, *jobs: str) -> list[int]:
    """Return how often each job was placed."""
    return [stage.job(each).attempt for each in jobs]


def test_who_is_deferred_is_reported_why_and_gets_no_reservation() -> None:
    """A deferred job waits with the policy's reason, without a reservation: it would find a place."""
    stage = waiting_for(Tide())
    job_id = stage.submit()
    assert stage.state(job_id) == "queued"
    assert stage.job(job_id).reason == WHY
    assert not stage.plane.controller.scheduler.reservations.made()
    assert stage.plane.overview.reason(stage.job(job_id)).message.endswith(WHY)


def test_the_reason_is_what_happened() -> None:
    """The explanation of a deferred job names its policy, also if that has no answer at that moment."""
    tide = Tide()
    stage = waiting_for(tide)
    job_id = stage.submit()
    tide.late = True
    reason = stage.plane.overview.reason(stage.job(job_id))
    assert reason.message.endswith(WHY)
    assert "instead of" not in reason.message
    assert reason.explanation is not None
    assert (reason.explanation.deferral_reason, reason.explanation.message) == (WHY, "")


def test_who_is_deferred_is_tried_again_though_nothing_changes() -> None:
    """A deferral may end without any change of the fleet: the job is tried again within seconds."""
    tide = Tide()
    stage = waiting_for(tide)
    job_id = stage.submit()
    tide.low = False
    stage.plane.run(6)
    assert stage.job(job_id).attempt == 1


def test_no_one_is_deferred_for_longer_than_may_be() -> None:
    """After the longest deferral a job is placed whatever the policy decides, and so are equal jobs behind it."""
    stage = waiting_for(Tide(), max_deferral_s=60)
    first, second = stage.submit(), stage.submit()
    stage.plane.run(50)
    assert attempts(stage, first, second) == [0, 0]
    stage.plane.run(20)
    assert attempts(stage, first, second) == [1, 1]


def test_the_same_jobs_that_are_placed_meanwhile_give_no_one_more_time() -> None:
    """A job's clock is its own: equal jobs before it that are placed do not reset it."""
    tide = Tide()
    stage = waiting_for(tide, max_deferral_s=60)
    tide.only = stage.submit()
    others = []
    for _ in range(3):
        others.append(stage.submit(priority=1))
        stage.plane.run(18)
    assert attempts(stage, tide.only, *others) == [0, 1, 1, 1]
    stage.plane.run(15)
    assert attempts(stage, tide.only) == [1]


def test_a_job_that_is_overdue_ends_the_wait_of_no_other_behind_it() -> None:
    """After an overdue job is placed, later equal ones wait on, each to its own bound."""
    stage = waiting_for(Tide(), max_deferral_s=60)
    first = stage.submit()
    stage.plane.run(40)
    second = stage.submit()
    stage.plane.run(32)
    third = stage.submit()
    assert attempts(stage, first, second, third) == [1, 0, 0]
    stage.plane.run(40)
    assert attempts(stage, first, second, third) == [1, 1, 0]


def test_an_overdue_job_that_is_gone_ends_no_one_s_wait() -> None:
    """A cancelled job is dropped, however long it was deferred."""
    stage = waiting_for(Tide(), max_deferral_s=60)
    first = stage.submit()
    stage.plane.run(40)
    second = stage.submit()
    stage.plane.run(15)
    stage.plane.jobs.cancel(first, "ada")
    stage.plane.run(20)
    assert attempts(stage, second) == [0]


@pytest.mark.parametrize("batch", [1, 64])
def test_none_is_deferred_in_front_of_an_overdue_job(batch: int) -> None:
    """Equal jobs with a higher priority are not deferred while one is overdue behind them."""
    stage = waiting_for(Tide(), max_deferral_s=60, batch_size=batch)
    low = stage.submit()
    stage.plane.run(50)
    high = stage.submit(priority=10)
    stage.plane.run(20)
    assert attempts(stage, low, high) == [1, 1]


def test_a_waiting_user_behind_one_that_is_deferred_has_a_clock_too() -> None:
    """The clocks of equal jobs run in parallel, though only the first of them is tried."""
    stage = waiting_for(Tide(), max_deferral_s=60, batch_size=1)
    jobs = [stage.submit() for _ in range(4)]
    stage.plane.run(50)
    assert attempts(stage, *jobs) == [0, 0, 0, 0]
    stage.plane.run(22)
    assert attempts(stage, *jobs) == [1, 1, 1, 1]


def test_a_full_fleet_gives_no_job_more_time() -> None:
    """A deferred job that then does not fit for a while is placed as soon as it fits after its bound."""
    tide = Tide()
    stage = waiting_for(tide, max_deferral_s=60)
    tide.only = stage.submit()
    stage.plane.run(30)
    others = [stage.submit(priority=1) for _ in range(4)]
    stage.plane.run(40)
    assert attempts(stage, tide.only, *others) == [0, 1, 1, 1, 1]
    stage.plane.jobs.cancel(others[0], "ada")
    stage.plane.run(5)
    assert attempts(stage, tide.only) == [1]


def test_without_a_longest_wait_no_one_is_deferred() -> None:
    """A maximum deferral of 0 lets no policy defer jobs."""
    stage = waiting_for(Tide(), max_deferral_s=0)
    assert stage.job(stage.submit()).attempt == 1


def test_a_deferred_job_displaces_no_other_and_one_that_displaced_is_not_deferred() -> None:
    """A job that has a place waits as its policy says; one for which others ended takes their place at once."""
    tide = Tide()
    stage = waiting_for(tide, max_deferral_s=600)
    stage.plane.operations.put_queue(Queue(DEFAULT, preemption=Preemption.PREEMPT_LOWER_PRIORITY), "ada")
    tide.low = False
    low = [stage.submit() for _ in range(3)]
    stage.plane.run(10)
    tide.low = True
    deferred = stage.submit()
    stage.plane.run(20)
    assert attempts(stage, *low, deferred) == [1, 1, 1, 0]
    assert not stage.plane.controller.scheduler.preemptor.displaced
    winner = stage.submit(priority=5, gpus=2)
    stage.plane.run(10)
    assert stage.state(winner) == "running"
    assert stage.plane.controller.scheduler.preemptor.displaced.total() == 1
    (victim,) = [each for each in low if stage.state(each) != "running"]
    stage.plane.jobs.cancel(winner, "ada")
    stage.plane.run(20)
    assert attempts(stage, victim, deferred) == [1, 0]
    assert stage.plane.overview.reason(stage.job(victim)).message.endswith(WHY)
