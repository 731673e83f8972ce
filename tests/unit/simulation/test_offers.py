import numpy as np
import pytest

from seaway.domain.cluster import Fleet
from seaway.domain.errors import RejectedError
from seaway.domain.job import Job
from seaway.scheduling.framework import PASS, Cycle, Status, Verdict
from seaway.scheduling.policies.registry import make_policy
from seaway.scheduling.profile import Profile, WeightedPlugin
from seaway.simulation.replay import batch_ranges, replay
from seaway.simulation.stopwatch import PolicyMaker
from seaway.testing.plugins import fleet, gpu, job, node


class Whole:
    """Policy that defers jobs of whole devices, and records offers."""

    name = "Whole"

    def __init__(self, offered: list[str]) -> None:
        self._offered = offered

    def pre_score(self, cycle: Cycle) -> Status:
        """Note the job, and hold it back or not."""
        self._offered.append(cycle.job.name)
        whole = cycle.job.demand.request.gpu_milli != 500
        return Status(Verdict.WAIT, "waits for the small ones") if whole else PASS


def small(devices: int) -> Fleet:
    """Return a fleet of one node."""
    return fleet(node(*[gpu() for _ in range(devices)]))


def shared(name: str) -> Job:
    """Return a job of half a device."""
    return job(name, gpus=1, gpu_milli=500, gpu_memory_mib=40_960)


def maker(offered: list[str] | None = None) -> PolicyMaker:
    """Return what makes best fit with `Whole` before it."""

    def make() -> Profile:
        policy = make_policy("bestfit")
        assert isinstance(policy, Profile)
        return Profile("patient", (*policy.plugins, WeightedPlugin(Whole([] if offered is None else offered))))

    return make


JOBS = [job("whole", gpus=1), shared("a"), job("also", gpus=1), shared("b"), shared("c")]


def test_what_a_policy_puts_back_is_offered_once_more_after_the_last_arrival() -> None:
    """Two offers: all jobs in order of arrival, then those that were put back in the same order, and no third time."""
    offered: list[str] = []
    counts = replay(small(4), JOBS, maker(offered), offers=2).counts
    assert offered[len(JOBS) :] == ["whole", "a", "also", "b", "c", "whole", "also"]  # first it warms up
    assert (counts.jobs, counts.placed) == (5, 5)


def test_no_one_waits_where_a_job_is_offered_once() -> None:
    """Without a second offer a policy that would wait decides at once."""
    curve = replay(small(4), JOBS, maker()).curve
    assert curve.allocated_pct.tolist() == curve.arrived_pct.tolist() == [25, 37.5, 62.5, 75, 87.5]


def test_who_waited_and_finds_no_place_has_failed() -> None:
    """Something could have held it when it was put back."""
    counts = replay(small(3), JOBS, maker(), offers=2).counts
    assert (counts.placed, counts.refused, counts.failed) == (4, 0, 1)


def test_the_curve_has_waiting_jobs_asked_for_on_arrival_and_held_after_the_last() -> None:
    """Anything that is in use while others arrive does not count a waiting user, and what was asked for does."""
    curve = replay(small(4), JOBS, maker(), offers=2).curve
    assert curve.arrived_pct.tolist() == [25, 37.5, 62.5, 75, 87.5]
    assert curve.allocated_pct.tolist() == [0, 12.5, 12.5, 25, 87.5]


def test_a_job_may_be_put_back_as_often_as_it_is_offered_but_once() -> None:
    """With three offers a job waits twice, and is placed at the third."""
    offered: list[str] = []
    counts = replay(small(2), JOBS[:1], maker(offered), offers=3).counts
    assert offered[1:] == ["whole"] * 3
    assert counts.placed == 1


def test_a_job_that_holds_a_part_is_not_put_back() -> None:
    """One replica is placed and the next deferred: the job keeps what it has and is not offered again."""
    offered: list[str] = []

    class Second(Whole):
        def pre_score(self, cycle: Cycle) -> Status:
            super().pre_score(cycle)
            return Status(Verdict.WAIT, "") if cycle.replica else PASS

    def make() -> Profile:
        policy = make_policy("bestfit")
        assert isinstance(policy, Profile)
        return Profile("torn", (*policy.plugins, WeightedPlugin(Second(offered))))

    outcome = replay(small(4), [job("two", gpus=1, replicas=2)], make, offers=2)
    assert offered[2:] == ["two", "two"]
    assert outcome.counts.placed == 0
    assert outcome.curve.allocated_pct.tolist() == [25]


def test_offers_are_the_same_however_the_queue_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    """Jobs decided alone or together are deferred alike, with equal results."""
    jobs = [job(f"job-{at}", gpus=1, gpu_milli=1000 if at % 3 else 500) for at in range(60)]
    once = replay(small(30), jobs, maker(), offers=2)
    monkeypatch.setattr("seaway.simulation.replay.MAX_BATCH", 1)
    again = replay(small(30), jobs, maker(), offers=2)
    assert np.array_equal(once.curve.allocated_pct, again.curve.allocated_pct)
    assert (once.counts, once.use) == (again.counts, again.use)


def test_jobs_that_are_never_offered_are_rejected() -> None:
    """A job is offered once at least."""
    with pytest.raises(RejectedError, match="offered once at least"):
        replay(small(1), JOBS, maker(), offers=0)


@pytest.mark.parametrize("jobs", [0, 1, 2, 7, 80, 1_200, 10_866])
def test_calls_cover_every_job_once_and_some_are_alone(jobs: int) -> None:
    """However long a queue is, calls follow each other without a gap, many at once and then some alone."""
    cut = batch_ranges(jobs, one_by_one=False)
    assert [number for first, end in cut for number in range(first, end)] == list(range(jobs))
    assert jobs < 2 or any(end - first == 1 for first, end in cut)
    assert max((end - first for first, end in cut), default=0) <= 512
