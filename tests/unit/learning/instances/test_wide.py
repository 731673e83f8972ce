from __future__ import annotations

import pytest

from seaway.domain.errors import RejectedError
from seaway.learning.episodes.episode import Episode
from seaway.learning.instances.instance import Instance
from seaway.learning.instances.wide import KINDS, drawn
from tests.unit.learning.episodes.playing import play


def asked_of_memory(instance: Instance) -> float:
    """Return how much of all GPU memory the jobs ask for."""
    asked = sum(job.demand.request.gpus * job.demand.request.gpu_memory_mib for job in instance.jobs)
    return asked / sum(device.memory_mib for device in instance.fleet.devices)


def asked_of_cores(instance: Instance) -> float:
    """Return how much of all GPU cores the jobs ask for."""
    asked = sum(job.demand.request.gpus * job.demand.request.gpu_milli for job in instance.jobs)
    return asked / sum(device.core_milli for device in instance.fleet.devices)


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_seed_draws_the_same_instance(kind: str) -> None:
    """Also when others were drawn before it; another seed and another number draw others."""
    once, again, other = drawn(kind, 2, seed=3), drawn(kind, 2, seed=3), drawn(kind, 1, seed=4)
    assert once == again
    assert once[0].jobs != once[1].jobs
    assert once[0].jobs != other[0].jobs


@pytest.mark.parametrize("kind", KINDS)
def test_episodes_can_be_made_of_what_is_drawn(kind: str) -> None:
    """Jobs have one replica and their links are there; a heuristic places most, but rarely all."""
    placed = jobs = 0
    for instance in drawn(kind, 8, seed=1):
        episode = Episode(instance)
        play(episode)
        counts = episode.outcome("").counts
        placed, jobs = placed + counts.placed, jobs + counts.jobs
    assert 0.5 * jobs < placed < jobs


@pytest.mark.parametrize("kind", KINDS)
def test_the_past_is_like_what_comes_but_not_the_same(kind: str) -> None:
    """It is drawn beside it: no look ahead, and about as many jobs."""
    for instance in drawn(kind, 4, seed=5):
        assert len(instance.mix) == len(instance.jobs)
        assert [job.demand for job in instance.mix] != [job.demand for job in instance.jobs] or len(instance.jobs) < 3


def test_placement_has_the_shape_of_the_study() -> None:
    """Sixteen clusters of four nodes, 220 jobs, which ask for 0.97 to 1.11 of all GPU memory."""
    for instance in drawn("placement", 6, seed=2):
        assert [len(cluster.nodes) for cluster in instance.fleet.clusters] == [4] * 16
        assert len(instance.jobs) == 220
        assert 0.965 < asked_of_memory(instance) < 1.115


def test_network_has_bounds_on_links() -> None:
    """Three clusters, 80 jobs; each bound is set by about half of the jobs, each is kept by some link."""
    for instance in drawn("network", 4, seed=2):
        assert (len(instance.fleet.clusters), len(instance.jobs)) == (3, 80)
        needs = [job.demand.network for job in instance.jobs]
        for bound in ("max_latency_ns", "max_jitter_ns", "max_loss_ppm", "min_bandwidth_mbps"):
            assert 0.25 < sum(getattr(need, bound) > 0 for need in needs) / len(needs) < 0.75


def test_a_trace_goes_on_until_enough_is_asked_for() -> None:
    """That is 130 % of all cards, with whole cards, parts of them, several, and jobs without any."""
    for instance in drawn("trace", 6, seed=2):
        requests = [job.demand.request for job in instance.jobs]
        assert asked_of_cores(instance) >= 1.3
        assert asked_of_cores(Instance("", instance.fleet, instance.jobs[:-1])) < 1.3
        assert {0, 1} <= {request.gpus for request in requests}
        assert any(request.gpu_milli == 1000 for request in requests)
        assert any(0 < request.gpu_milli < 1000 for request in requests)


def test_any_is_of_many_sizes() -> None:
    """One cluster and many, few nodes and many, with links and without; every fleet has cards."""
    instances = drawn("any", 30, seed=2)
    assert {1, 2, 3} < {len(instance.fleet.clusters) for instance in instances}
    nodes = [sum(len(cluster.nodes) for cluster in instance.fleet.clusters) for instance in instances]
    assert min(nodes) < 6
    assert max(nodes) > 60
    assert {bool(instance.fleet.links) for instance in instances} == {True, False}
    assert all(any(True for _ in instance.fleet.devices) for instance in instances)


def test_a_kind_that_there_is_not_is_rejected() -> None:
    """The error names those that there are."""
    with pytest.raises(RejectedError, match="placement, network, trace, any"):
        drawn("openb", 1, seed=0)
