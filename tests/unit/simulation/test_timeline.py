import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seaway.domain.cluster import Fleet
from seaway.domain.job import Job
from seaway.domain.network import Link
from seaway.scheduling.columns import CLUSTER_GPU_CORE_FREE
from seaway.scheduling.engine import decide
from seaway.scheduling.job_queue import JobQueue
from seaway.scheduling.plan import Plan
from seaway.scheduling.policies.registry import make_policy
from seaway.scheduling.snapshot.snapshot import Snapshot
from seaway.simulation.outcome import Outcome
from seaway.simulation.timeline import replay_with_departures
from seaway.testing.plugins import cluster, fleet, gpu, job, node


def run(jobs: list[Job], where: Fleet | None = None, policy: str = "bestfit") -> Outcome:
    """Replay jobs on one node with one device, unless another fleet is given."""
    return replay_with_departures(where or fleet(node(gpu())), jobs, lambda: make_policy(policy))


def whole(name: str, arrives_s: int, expected_duration_s: int | None, **figures: object) -> Job:
    """Return a job that needs a whole device for a while."""
    return job(name, gpus=1, arrives_s=arrives_s, expected_duration_s=expected_duration_s, **figures)


def steps(outcome: Outcome) -> dict[float, float]:
    """Return what was allocated from each moment on."""
    assert outcome.curve.time_s is not None
    return dict(zip(outcome.curve.time_s, outcome.curve.allocated_pct, strict=True))


def test_a_job_waits_until_another_has_ended() -> None:
    """Anything that does not fit is not lost: it starts when there is room, and its wait is counted."""
    outcome = run([whole("a", 10, 100), whole("b", 20, 50)])
    assert outcome.counts.placed == 2
    assert outcome.waits is not None
    assert outcome.waits.queue_wait_mean_s == pytest.approx(45)
    assert outcome.waits.makespan_s == 150
    assert steps(outcome) == {10: 100, 20: 100, 110: 100, 160: 0}


def test_a_job_behind_may_go_first_if_only_it_fits() -> None:
    """The queue is gone through from the front, and who fits starts, past those who do not."""
    where = fleet(node(gpu(), gpu()))
    pair = job("pair", gpus=2, arrives_s=1, expected_duration_s=10)
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
    outcome = run(
        [whole("a", 0, 10), whole("b", 30, 10), job("idle", cpu_milli=1, arrives_s=0, expected_duration_s=80)]
    )
    assert outcome.shares.gpu_allocated_pct == pytest.approx(25)
    assert outcome.use.gpu_core_pct == pytest.approx(25)
    assert outcome.shares.arrived_pct == pytest.approx(200)
    assert outcome.shares.gpu_allocated_pct_at_100 is None


def test_a_job_without_an_end_stays() -> None:
    """A job that never ends holds its device; a waiting user behind it in vain has failed, not been refused."""
    outcome = run(
        [whole("stays", 5, None), whole("waits", 6, 10), job("huge", gpus=2, arrives_s=7, expected_duration_s=1)]
    )
    assert (outcome.counts.placed, outcome.counts.refused, outcome.counts.failed) == (1, 1, 1)
    assert outcome.waits is not None
    assert outcome.waits.makespan_s == 2


def test_bandwidth_returns_when_a_job_ends() -> None:
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


def plainly(where: Fleet, jobs: list[Job]) -> dict[float, float]:
    """Replay like `replay_with_departures`, but try every waiting job at every moment."""
    snapshot = Snapshot(where)
    queue = JobQueue(snapshot, jobs)
    policy = make_policy("bestfit")
    order = sorted(range(len(jobs)), key=lambda number: (-jobs[number].priority, number))
    running: dict[int, tuple[int, Plan]] = {}
    started: set[int] = set()
    allocated: dict[float, float] = {}
    now_s = jobs[0].arrives_s
    while True:
        for number in [number for number, (end_s, _) in running.items() if end_s == now_s]:
            plan = running.pop(number)[1]
            snapshot.release(plan.decisions, plan.slices, np.arange(len(plan.decisions)))
        waiting = [number for number in order if jobs[number].arrives_s < now_s]
        arriving = [number for number in range(len(jobs)) if jobs[number].arrives_s == now_s]
        for number in [number for number in waiting + arriving if number not in started]:
            plan = decide(snapshot, queue.part(number, number + 1), policy)
            if plan.jobs_placed[0]:
                started.add(number)
                running[number] = (now_s + (jobs[number].expected_duration_s or 0), plan)
            else:
                snapshot.release(plan.decisions, plan.slices, np.arange(len(plan.decisions)))
        held = sum(device.core_milli for device in snapshot.devices)
        held -= int(snapshot.arrays.clusters[CLUSTER_GPU_CORE_FREE].sum())
        allocated[now_s] = 100 * held / sum(device.core_milli for device in snapshot.devices)
        due = [end_s for end_s, _ in running.values()] + [each.arrives_s for each in jobs]
        if not any(moment > now_s for moment in due):
            return allocated
        now_s = min(moment for moment in due if moment > now_s)


@given(st.data())
def test_the_queue_goes_as_if_everyone_were_tried_at_every_moment(data: st.DataObject) -> None:
    """Passing over jobs that cannot fit yet changes nothing but the time it takes."""
    where = fleet(
        cluster(node(gpu(), gpu()), node(gpu(), cpu_milli=3), gateway="gw-1"),
        cluster(node(gpu(), gpu()), gateway="gw-2"),
        links=[Link("gw-3", "gw-1", 9, bandwidth_mbps=100), Link("gw-3", "gw-2", 99, bandwidth_mbps=50)],
    )
    drawn: st.SearchStrategy[dict[str, int]] = st.builds(
        dict,
        arrives_s=st.integers(0, 40),
        expected_duration_s=st.integers(1, 30),
        gpus=st.sampled_from([1, 1, 1, 2]),
        gpu_milli=st.sampled_from([300, 500, 1_000]),
        cpu_milli=st.integers(0, 3),
        replicas=st.sampled_from([1, 1, 2]),
        priority=st.sampled_from([0, 0, 3]),
        min_bandwidth_mbps=st.sampled_from([0, 0, 40]),
        max_latency_ns=st.sampled_from([0, 0, 50]),
    )
    figures = data.draw(st.lists(drawn, min_size=1, max_size=25))
    figures.sort(key=lambda each: each["arrives_s"])
    jobs = [
        job(f"job-{at}", gateway="gw-3", gpu_memory_mib=each["gpu_milli"] * 80, **each)
        for at, each in enumerate(figures)
    ]
    assert steps(run(jobs, where)) == pytest.approx(plainly(where, jobs))
