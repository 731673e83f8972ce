"""A policy may hold a job back that fits, not for ever, and whoever waits is told why."""

from __future__ import annotations

from collections.abc import Sequence

from seaway.domain.job import Job
from seaway.scheduling.framework import Cycle, Status, Verdict
from seaway.scheduling.policies import PolicyOptions, make_profile
from seaway.scheduling.profile import Profile
from tests.unit.application.scene import Scene, scene

WHY = "tide waits for the tide"


class Tide:
    """Holds jobs back until the tide turns."""

    name = "tide"

    def __init__(self) -> None:
        self.low = True
        self.late = False

    def pre_score(self, cycle: Cycle) -> Status:
        """Hold a job back, or say that the tide was not known in time."""
        if self.late:
            cycle.said = "bestfit decides instead of tide: slower than 5 ms"
            return Status()
        return Status(Verdict.WAIT, WHY) if self.low else Status()


def waiting_for(tide: Tide, *, longest_wait_s: float = 60) -> Scene:
    """Make a control plane whose every policy waits for the tide."""

    def make(name: str, mix: Sequence[Job]) -> Profile:
        return make_profile(name, PolicyOptions(mix=mix)).joined_by(tide)

    stage = scene(longest_wait_s=longest_wait_s)
    stage.plane.make = make
    stage.plane.restart()
    return stage


def test_who_is_held_back_is_told_why_and_gets_no_reservation() -> None:
    """A job that is held back waits with the policy's reason, and nothing is kept for it: it would find a place."""
    stage = waiting_for(Tide())
    job_id = stage.submit()
    assert stage.state(job_id) == "queued"
    assert stage.job(job_id).reason == WHY
    assert not stage.plane.controller.scheduler.reservations.made()
    assert stage.plane.overview.reason(stage.job(job_id)).sentence.endswith(WHY)


def test_the_reason_is_what_happened() -> None:
    """Who asks why a job waits is told that its policy held it back, also when it has no answer at that moment."""
    tide = Tide()
    stage = waiting_for(tide)
    job_id = stage.submit()
    tide.late = True
    reason = stage.plane.overview.reason(stage.job(job_id))
    assert reason.sentence.endswith(WHY)
    assert "instead of" not in reason.sentence
    assert reason.explanation is not None
    assert (reason.explanation.held, reason.explanation.said) == (WHY, "")


def test_who_is_held_back_is_tried_again_though_nothing_changes() -> None:
    """What held a job back may be over without any change of the fleet: it is tried again within seconds."""
    tide = Tide()
    stage = waiting_for(tide)
    job_id = stage.submit()
    tide.low = False
    stage.plane.run(6)
    assert stage.job(job_id).attempt == 1


def test_nobody_is_held_back_for_longer_than_may_be() -> None:
    """After the longest wait a job is placed whatever the policy says, and so are the same jobs behind it."""
    stage = waiting_for(Tide(), longest_wait_s=60)
    first, second = stage.submit(), stage.submit()
    stage.plane.run(50)
    assert [stage.job(each).attempt for each in (first, second)] == [0, 0]
    stage.plane.run(20)
    assert [stage.job(each).attempt for each in (first, second)] == [1, 1]


def test_without_a_longest_wait_nobody_is_held_back() -> None:
    """A longest wait of 0 lets no policy hold jobs back."""
    stage = waiting_for(Tide(), longest_wait_s=0)
    assert stage.job(stage.submit()).attempt == 1
