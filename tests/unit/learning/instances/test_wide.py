from __future__ import annotations

import pytest

from seaway.domain.errors import RejectedError
from seaway.learning.episodes.episode import Episode
from seaway.learning.instances.instance import Instance
from seaway.learning.instances.wide import KINDS, drawn
from tests.unit.learning.episodes.playing import play


def requested_memory(instance: Instance) -> float:
    """Return the request of all jobs as a share of the fleet's GPU memory."""
    asked = sum(job.demand.request.gpus * job.demand.request.gpu_memory_mib for job in instance.jobs)
    return asked / sum(device.memory_mib for device in instance.fleet.devices)


def requested_cores(instance: Instance) -> float:
    """Return the request of all jobs as a share of the fleet's GPU cores."""
    asked = sum(job.demand.request.gpus * job.demand.request.gpu_milli for job in instance.jobs)
    return asked / sum(device.core_milli for device in instance.fleet.devices)


@pytest.mark.parametrize("kind", KINDS)
def test_instances_depend_on_seed_and_number(kind: str) -> None:
    """Instances generated before have no influence."""
    once, again, other = drawn(kind, 2, seed=3), drawn(kind, 2, seed=3), drawn(kind, 1, seed=4)
    assert once == again
    assert once[0].jobs != once[1].jobs
    assert once[0].jobs != other[0].jobs


@pytest.mark.parametrize("kind", KINDS)
def test_generated_instances_have_episodes(kind: str) -> None:
    """Jobs have one replica, and gateways have links; a heuristic places most jobs, but rarely all."""
    placed = jobs = 0
    for instance in drawn(kind, 8, seed=1):
        episode = Episode(instance)
        play(episode)
        counts = episode.outcome("").counts
        placed, jobs = placed + counts.placed, jobs + counts.jobs
    assert 0.5 * jobs < placed < jobs


@pytest.mark.parametrize("kind", KINDS)
def test_past_jobs_have_the_same_distribution(kind: str) -> None:
    """They differ from the jobs of the instance, and their number is about equal."""
    for instance in drawn(kind, 4, seed=5):
        assert len(instance.mix) == len(instance.jobs)
        assert [job.demand for job in instance.mix] != [job.demand for job in instance.jobs] or len(instance.jobs) < 3


def test_placement_resembles_the_study() -> None:
    """It has sixteen clusters of four nodes, and 220 jobs that request 0.97 to 1.11 of all GPU memory."""
    for instance in drawn("placement", 6, seed=2):
        assert [len(cluster.nodes) for cluster in instance.fleet.clusters] == [4] * 16
        assert len(instance.jobs) == 220
        assert 0.965 < requested_memory(instance) < 1.115


def test_network_has_bounds_on_links() -> None:
    """It has three clusters and 80 jobs; about half of them set each bound, and a link satisfies each."""
    for instance in drawn("network", 4, seed=2):
        assert (len(instance.fleet.clusters), len(instance.jobs)) == (3, 80)
        needs = [job.demand.network for job in instance.jobs]
        for bound in ("max_latency_ns", "max_jitter_ns", "max_loss_ppm", "min_bandwidth_mbps"):
            assert 0.25 < sum(getattr(need, bound) > 0 for need in needs) / len(needs) < 0.75


def test_a_trace_requests_a_multiple_of_the_fleet() -> None:
    """Jobs request 130 % of all cards: whole cards, parts, several, and none."""
    for instance in drawn("trace", 6, seed=2):
        requests = [job.demand.request for job in instance.jobs]
        assert requested_cores(instance) >= 1.3
        assert requested_cores(Instance("", instance.fleet, instance.jobs[:-1])) < 1.3
        assert {0, 1} <= {request.gpus for request in requests}
        assert any(request.gpu_milli == 1000 for request in requests)
        assert any(0 < request.gpu_milli < 1000 for request in requests)


def test_any_has_diverse_sizes() -> None:
    """It has one or many clusters, few or many nodes, with or without links; each fleet has cards."""
    instances = drawn("any", 30, seed=2)
    assert {1, 2, 3} < {len(instance.fleet.clusters) for instance in instances}
    nodes = [sum(len(cluster.nodes) for cluster in instance.fleet.clusters) for instance in instances]
    assert min(nodes) < 6
    assert max(nodes) > 60
    assert {bool(instance.fleet.links) for instance in instances} == {True, False}
    assert all(any(True for _ in instance.fleet.devices) for instance in instances)


def test_unknown_kinds_are_rejected() -> None:
    """The error lists the available kinds."""
    with pytest.raises(RejectedError, match="placement, network, trace, any"):
        drawn("openb", 1, seed=0)
