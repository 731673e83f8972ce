import numpy as np
import pytest

from seaway.domain.cluster import Fleet
from seaway.domain.job import Job
from seaway.domain.network import Link
from seaway.scheduling.policies import make_policy
from seaway.simulation.outcome import Outcome
from seaway.simulation.timeline import replay_with_departures
from seaway.testing.builders import cluster, fleet, gpu, job, node


def run(jobs: list[Job], where: Fleet | None = None, policy: str = "bestfit") -> Outcome:
    """Replay jobs on one node with one device, unless another fleet is given."""
    return replay_with_departures(where or fleet(node(gpu())), jobs, lambda: make_policy(policy))


def whole(name: str, arrives_s: int, runs_s: int | None, **figures: object) -> Job:
    """Return a job that needs a whole device for a while."""
    return job(name, gpus=1, arrives_s=arrives_s, runs_s=runs_s, **figures)


def steps(outcome: Outcome) -> dict[float, float]:
    """Return what was allocated from each moment on."""
    assert outcome.curve.time_s is not None
    return dict(zip(outcome.curve.time_s, outcome.curve.allocated_pct, strict=True))


def test_a_job_waits_until_another_has_ended() -> None:
    """What does not fit is not lost: it starts when there is room, and its wait is counted."""
    outcome = run([whole("a", 10, 100), whole("b", 20, 50)])
    assert outcome.counts.placed == 2
    assert outcome.waits is not None
    assert outcome.waits.queue_wait_mean_s == pytest.approx(45)
    assert outcome.waits.makespan_s == 150
    assert steps(outcome) == {10: 100, 20: 100, 110: 100, 160: 0}


def test_a_job_behind_may_go_first_if_only_it_fits() -> None:
    """The queue is gone through from the front, and who fits starts, past those who do not."""
    where = fleet(node(gpu(), gpu()))
    pair = job("pair", gpus=2, arrives_s=1, runs_s=10)
    outcome = run([whole("a", 0, 100), whole("b", 0, 50), pair, whole("c", 2, 10)], where)
    assert steps(outcome)[50] == 100
    assert steps(outcome)[60] == 50
    assert steps(outcome)[100] == 100
    assert outcome.waits is not None
    assert outcome.waits.queue_wait_mean_s == pytest.approx((0 + 0 + 99 + 48) / 4)


def test_among_equals_the_first_to_come_goes_first_and_priority_before_all() -> None:
    """Higher priority first; then first come, first served."""
    jobs = [
        whole("a", 0, 10),
        whole("late", 2, 10),
        whole("early", 1, 10),
        whole("urgent", 3, 10, priority=5),
    ]
    outcome = run(jobs)
    assert outcome.waits is not None
    waits = {"urgent": 10 - 3, "early": 20 - 1, "late": 30 - 2, "a": 0}
    assert outcome.waits.queue_wait_mean_s == pytest.approx(sum(waits.values()) / 4)
    assert outcome.waits.queue_wait_p50_s == pytest.approx(np.median(list(waits.values())))


def test_use_is_the_mean_over_time() -> None:
    """A device in use for a quarter of the time counts as a quarter in use."""
    outcome = run([whole("a", 0, 10), whole("b", 30, 10), job("idle", cpu_milli=1, arrives_s=0, runs_s=80)])
    assert outcome.shares.gpu_allocated_pct == pytest.approx(25)
    assert outcome.use.gpu_core_pct == pytest.approx(25)
    assert outcome.shares.arrived_pct == pytest.approx(200)
    assert outcome.shares.gpu_allocated_pct_at_100 is None


def test_a_job_without_an_end_stays() -> None:
    """A job that never ends holds its device; who waits behind it in vain has failed, not been refused."""
    outcome = run([whole("stays", 5, None), whole("waits", 6, 10), job("huge", gpus=2, arrives_s=7, runs_s=1)])
    assert (outcome.counts.placed, outcome.counts.refused, outcome.counts.failed) == (1, 1, 1)
    assert outcome.waits is not None
    assert outcome.waits.makespan_s == 2


def test_bandwidth_comes_back_when_a_job_ends() -> None:
    """A job that waits for bandwidth starts when another has ended elsewhere on the same link."""
    where = fleet(
        cluster(node(gpu()), node(gpu()), gateway="gw-1"), links=[Link("gw-2", "gw-1", 1, bandwidth_mbps=100)]
    )
    needs = {"gateway": "gw-2", "min_bandwidth_mbps": 80}
    outcome = run([whole("a", 0, 30, **needs), whole("b", 1, 30, **needs)], where)
    assert steps(outcome) == {0: 50, 1: 50, 30: 50, 60: 0}


def test_jobs_of_no_length_and_no_jobs_at_all_are_fine() -> None:
    """A job may end at the second at which it started, and a trace may be over before it begins."""
    outcome = run([whole("a", 0, 0), whole("b", 0, 0)])
    assert outcome.counts.placed == 2
    assert outcome.waits is not None
    assert outcome.waits.makespan_s == 0
    assert run([]).counts.jobs == 0


def test_a_gang_starts_together_or_waits() -> None:
    """A gang takes nothing before it can have all of it."""
    gang = whole("gang", 1, 10, replicas=2, gang=True)
    outcome = run([whole("a", 0, 20), gang], fleet(node(gpu(), gpu())))
    assert steps(outcome) == {0: 50, 1: 50, 20: 100, 30: 0}


def test_replicas_without_a_gang_wait_for_all_their_room_too() -> None:
    """A job runs with all its replicas; parts that would fit are given back while it waits."""
    outcome = run([whole("a", 0, 20), whole("b", 1, 10, replicas=2)], fleet(node(gpu(), gpu())))
    assert steps(outcome) == {0: 50, 1: 50, 20: 100, 30: 0}


def test_a_job_sent_over_a_bad_link_runs_but_has_failed() -> None:
    """A policy that is blind to links lets the job hold a device all the same."""
    where = fleet(cluster(node(gpu()), gateway="gw-1"), links=[Link("gw-2", "gw-1", 50_000_000)])
    jobs = [whole("a", 0, 20, gateway="gw-2", max_latency_ns=1)]
    outcome = run(jobs, where, "volcano-divided")
    assert (outcome.counts.placed, outcome.counts.failed) == (0, 1)
    assert steps(outcome) == {0: 100, 20: 0}
