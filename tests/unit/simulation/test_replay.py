import numpy as np
import pytest

from seaway.domain.cluster import Fleet
from seaway.domain.job import Job
from seaway.domain.network import Link
from seaway.scheduling.policies.registry import PolicyOptions, make_policy
from seaway.scheduling.profile import Profile
from seaway.simulation.replay import arrivals_until_requested, replay
from seaway.simulation.stopwatch import PolicyMaker
from seaway.testing.plugins import cluster, fleet, gpu, job, node


def maker(name: str, **options: int) -> PolicyMaker:
    """Return what makes the policy of that name."""
    return lambda: make_policy(name, PolicyOptions(**options))  # type: ignore[arg-type]  # seeds alone


def halves(count: int, gpus: int = 1, **figures: int) -> list[Job]:
    """Return jobs that each ask for half of a device."""
    return [job(f"job-{at}", gpus=gpus, gpu_milli=500, gpu_memory_mib=40_960, **figures) for at in range(count)]


def small(devices: int = 2) -> Fleet:
    """Return a fleet of one node."""
    return fleet(node(*[gpu() for _ in range(devices)]))


def test_jobs_arrive_until_nothing_fits_and_are_lost_then() -> None:
    """Two devices hold four halves; the fifth is refused, and nothing failed."""
    counts = replay(small(), halves(5), maker("bestfit")).counts
    assert (counts.jobs, counts.placed, counts.refused, counts.failed) == (5, 4, 1, 0)


def test_the_curve_follows_what_was_asked_for_and_allocations() -> None:
    """After each arrival the curve says what had been asked for and what was in use, % of all cores."""
    outcome = replay(small(), halves(5), maker("bestfit"))
    assert outcome.curve.arrived_pct.tolist() == [25, 50, 75, 100, 125]
    assert outcome.curve.allocated_pct.tolist() == [25, 50, 75, 100, 100]
    assert outcome.shares.arrived_pct == pytest.approx(125)
    assert outcome.shares.gpu_allocated_pct_at_100 == pytest.approx(100)


def test_figures_have_the_published_names() -> None:
    """Scripts read these names, in this order."""
    assert list(replay(small(), halves(1), maker("bestfit")).record()) == [
        *("policy", "jobs", "placed", "refused", "failed"),
        *("arrived_pct", "gpu_allocated_pct", "gpu_allocated_pct_at_100"),
        *("gpu_core_pct", "gpu_memory_pct", "cpu_pct", "memory_pct"),
        *("gpu_core_pct_std", "gpu_memory_pct_std", "cpu_pct_std", "memory_pct_std"),
        *("fragmentation", "gpu_load_variance", "decisions_per_s", "p50_us", "p99_us"),
    ]


def test_a_fleet_without_gpus_has_no_gpu_figures() -> None:
    """Anything that cannot be computed is unknown, not 0."""
    record = replay(fleet(node()), [job(cpu_milli=1)], maker("bestfit")).record()
    unknown = {name for name, value in record.items() if value is None}
    assert {"arrived_pct", "gpu_allocated_pct", "gpu_allocated_pct_at_100", "gpu_core_pct"} <= unknown
    assert record["placed"] == 1


def test_replicas_count_together_and_partly_placed_jobs_do_not() -> None:
    """A job is placed when all its replicas are; what a part of it holds is held all the same."""
    outcome = replay(small(), halves(2, replicas=3), maker("bestfit"))
    assert (outcome.counts.placed, outcome.counts.refused) == (1, 1)
    assert outcome.curve.allocated_pct.tolist() == [75, 100]
    assert outcome.curve.arrived_pct.tolist() == [75, 150]


def test_who_finds_the_fleet_full_is_refused_though_it_would_have_fitted_before() -> None:
    """A check whether a job could have been placed is judged by the fleet as it was when the job's turn came."""
    jobs = [*halves(3), job("whole", gpus=1), *halves(1)]
    counts = replay(small(), jobs, maker("bestfit")).counts
    assert (counts.placed, counts.refused, counts.failed) == (4, 1, 0)


def test_a_policy_that_passes_over_a_place_has_failed() -> None:
    """The cluster with the most free GPU has no device large enough, and another has: not a refusal."""
    sliced = cluster(node(*[gpu(memory_mib=8_192) for _ in range(8)]))
    whole = cluster(node(gpu(memory_mib=40_960)))
    jobs = [job(gpus=1, gpu_memory_mib=20_000, gpu_milli=100)]
    counts = replay(fleet(sliced, whole), jobs, maker("volcano-divided")).counts
    assert (counts.placed, counts.refused, counts.failed) == (0, 0, 1)
    assert replay(fleet(sliced, whole), jobs, maker("bestfit")).counts.placed == 1


def test_a_job_placed_behind_a_bad_link_has_failed() -> None:
    """A job that holds devices where its link misses the bound does not count as placed."""
    far = cluster(node(gpu(), gpu()), gateway="gw-1")
    links = [Link("gw-9", "gw-1", 50_000_000)]
    jobs = [job(gpus=1, gpu_milli=500, gpu_memory_mib=1, gateway="gw-9", max_latency_ns=10_000_000)]
    outcome = replay(fleet(far, links=links), jobs, maker("volcano-divided"))
    assert (outcome.counts.placed, outcome.counts.refused, outcome.counts.failed) == (0, 0, 1)
    assert outcome.curve.allocated_pct[-1] == pytest.approx(25)
    assert replay(fleet(far, links=links), jobs, maker("bestfit")).counts.refused == 1


def test_one_seed_gives_one_curve_however_the_queue_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same seed gives the same plan, whether jobs are decided alone or many in a call."""
    once = replay(small(16), halves(40), maker("random", seed=1))
    monkeypatch.setattr("seaway.simulation.replay.MAX_BATCH", 1)
    again = replay(small(16), halves(40), maker("random", seed=1))
    assert np.array_equal(once.curve.allocated_pct, again.curve.allocated_pct)
    assert once.use == again.use


def test_progress_is_reported_up_to_the_last_job() -> None:
    """Anyone who watches sees the number of decided jobs grow to all of them."""
    seen: list[int] = []
    replay(small(), halves(100), maker("bestfit"), seen.append)
    assert seen == sorted(seen)
    assert seen[-1] == 100


def test_jobs_stop_once_enough_was_asked_for() -> None:
    """The job with which the limit is reached still arrives; without reaching it all do."""
    jobs = halves(10)
    assert len(arrivals_until_requested(small(), jobs, 1.3)) == 6
    assert len(arrivals_until_requested(small(), jobs, 1.25)) == 5
    assert len(arrivals_until_requested(small(), jobs, 99)) == 10


def test_a_policy_that_sorts_sees_one_job_at_a_time() -> None:
    """Jobs that have not arrived yet may not be put in front of the one that has."""
    from seaway.scheduling.plugins.priority_sort import PrioritySort
    from seaway.scheduling.profile import WeightedPlugin

    def sorting() -> Profile:
        policy = make_policy("bestfit")
        assert isinstance(policy, Profile)
        return Profile("sorting", (*policy.plugins, WeightedPlugin(PrioritySort())))

    jobs = [job(f"job-{at}", gpus=1, priority=at) for at in range(9)]
    curve = replay(small(4), jobs, sorting).curve
    assert curve.allocated_pct.tolist() == [25, 50, 75, *[100] * 6]


def test_what_is_in_use_at_the_end_is_reported_by_cluster() -> None:
    """Each cluster has its own column of shares: a job of half a device fills a quarter of two, elsewhere nothing."""
    two = fleet(cluster(node(gpu(), gpu())), cluster(node(gpu())))
    used = replay(two, halves(1), maker("greedy")).used
    assert used is not None
    assert used.shape == (4, 2)
    assert used[3].tolist() == [0.25, 0]
