from __future__ import annotations

import numpy as np
import pytest

from seaway.domain.network import Link
from seaway.learning.episodes.episode import Episode
from seaway.learning.instances.instance import Instance
from seaway.learning.instances.wide import drawn
from seaway.learning.observing.clusters import observation_size, observe, observe_network, observer
from seaway.scheduling.job_queue import JobQueue
from seaway.scheduling.snapshot.aggregates import asked_sums, free_sums, total_sums
from seaway.scheduling.snapshot.snapshot import Snapshot
from seaway.scheduling.snapshot.update import put_links
from seaway.testing.plugins import cluster, fleet, gpu, job, node
from tests.unit.learning.episodes.playing import play

MS = 1_000_000
"""Nanoseconds in a millisecond."""


def test_the_layout_of_observations() -> None:
    """It has the four free shares of each cluster, then the requests of the job relative to the mean cluster."""
    (instance,) = drawn("placement", 1, seed=1)
    episode = Episode(instance)
    for _ in range(30):
        episode.place_in_cluster(int(np.flatnonzero(episode.legal_clusters())[0]))
    snapshot = episode.snapshot
    shown = observe(snapshot, episode.line).reshape(17, 4)
    np.testing.assert_allclose(shown[:16], (free_sums(snapshot) / total_sums(snapshot)).T, rtol=1e-6)
    asked = asked_sums(snapshot, episode.line)[:, 0]
    np.testing.assert_allclose(shown[16], asked / total_sums(snapshot).mean(axis=1), rtol=1e-6)


def test_fitting_counts_feasible_nodes_only() -> None:
    """Shares of clusters without feasible nodes are 0; without a job, all nodes count."""
    snapshot = Snapshot(fleet(cluster(node(gpu()), node()), cluster(node())))
    on_gpu, anywhere = JobQueue(snapshot, [job(gpus=1), job(cpu_milli=1)]).rows[:, 0]
    all_of, none_of = [1, 1, 1, 1], [0, 0, 0, 0]
    assert observe(snapshot, int(on_gpu), fitting=True)[:8].tolist() == [0.5, 0.5, 1, 1, *none_of]
    assert observe(snapshot, int(anywhere), fitting=True)[:8].tolist() == [*all_of, 1, 1, 0, 0]
    assert observe(snapshot, -1, fitting=True)[:8].tolist() == [*all_of, 1, 1, 0, 0]


@pytest.mark.parametrize("kind", ["placement", "network"])
def test_fitting_shares_are_positive_for_feasible_clusters(kind: str) -> None:
    """Shares of infeasible clusters are 0, and the features of the job do not change."""
    (instance,) = drawn(kind, 1, seed=3)
    episode = Episode(instance)
    see = observer(network=kind == "network", fitting=True)
    width = 8 if kind == "network" else 4
    while not episode.done:
        shown = see(episode.snapshot, episode.line).reshape(-1, width)
        legal = episode.legal_clusters()
        assert (shown[:-1, :4].any(axis=1) == legal).all()
        plain = observer(network=kind == "network", fitting=False)(episode.snapshot, episode.line).reshape(-1, width)
        assert (shown[:-1, :4] <= plain[:-1, :4] + 1e-6).all()
        assert (shown[-1] == plain[-1]).all()
        episode.place_in_cluster(int(np.flatnonzero(legal)[-1])) if legal.any() else episode.wait()


def test_the_number_of_features_is_the_published_one() -> None:
    """Sixteen clusters have 68 features, and twice as many with a network."""
    assert observation_size(16, network=False) == 68
    assert observation_size(16, network=True) == 136
    snapshot = Episode(drawn("network", 1, seed=0)[0]).snapshot
    assert observe(snapshot, 0).shape == (observation_size(3, network=False),)
    assert observe_network(snapshot, 0).shape == (observation_size(3, network=True),)


def test_without_a_job_its_features_are_empty() -> None:
    """At the end of an episode there are no requests and no bounds."""
    episode = Episode(drawn("network", 1, seed=0)[0])
    play(episode)
    assert observe(episode.snapshot, episode.line)[-4:].tolist() == [0] * 4
    assert observe_network(episode.snapshot, episode.line)[-8:].tolist() == [0, 0, 0, 0, 1, 1, 1, 0]


def test_absent_resources_are_zero() -> None:
    """Free shares of a cluster without devices, and requests of a fleet without devices, are 0."""
    bare = Snapshot(fleet(cluster(node()), cluster(node(gpu()))))
    line = JobQueue(bare, [job(cpu_milli=6_400)]).rows[0, 0]
    shown = observe(bare, int(line))
    assert shown[:8].tolist() == [1, 1, 0, 0, 1, 1, 1, 1]
    assert shown[8:].tolist() == pytest.approx([0.1, 0, 0, 0])


def test_requests_are_clipped_to_the_fleet() -> None:
    """Features stay in the observation space; a percentage is of the mean device."""
    two = Snapshot(fleet(cluster(node(gpu())), cluster(node(gpu()))))
    lines = JobQueue(two, [job(cpu_milli=10**9), job(gpus=1, gpu_memory_percent=50, gpu_milli=250)]).rows[:, 0]
    assert observe(two, int(lines[0]))[-4] == 2
    assert observe(two, int(lines[1]))[-2:].tolist() == [0.5, 0.25]


def linked() -> Snapshot:
    """Return clusters near the user, far from it, behind a silent link, and at the user's own gateway."""
    parts = (cluster(node(), gateway=name) for name in ("near", "far", "silent", "user"))
    links = (
        Link("user", "near", 50 * MS, 5 * MS, 10_000, 3_000, used_mbps=2_000),
        Link("user", "far", 150 * MS, 0, 0, 0),
        Link("user", "silent", None, bandwidth_mbps=1_000),
    )
    return Snapshot(fleet(*parts, links=links))


def test_features_of_links() -> None:
    """They are one half at 50 ms, 5 ms, 1 % and 1 Gbit/s, worst for an unreachable link, and best for no link."""
    snapshot = linked()
    line = JobQueue(snapshot, [job(gateway="user", max_latency_ns=50 * MS, min_bandwidth_mbps=1_000)]).rows[0, 0]
    shown = observe_network(snapshot, int(line)).reshape(5, 8)[:, 4:]
    assert shown[0].tolist() == [0.5, 0.5, 0.5, 0.5]
    assert shown[1].tolist() == [0.75, 0, 0, 0]
    assert shown[2].tolist() == [1, 1, 1, 0.5]
    assert shown[3].tolist() == [0, 0, 0, 1]
    assert shown[4].tolist() == [0.5, 1, 1, 0.5]


def test_jobs_without_a_gateway_have_no_link() -> None:
    """All clusters have the same features then."""
    snapshot = linked()
    line = JobQueue(snapshot, [job()]).rows[0, 0]
    assert (observe_network(snapshot, int(line)).reshape(5, 8)[:4, 4:] == [0, 0, 0, 1]).all()


def test_reserved_bandwidth_is_not_free() -> None:
    """The reservation of a job reduces the feature for the next one."""
    near = fleet(cluster(node(), gateway="gw"), links=[Link("user", "gw", MS, bandwidth_mbps=2_000)])
    jobs = tuple(job(f"job-{at}", gateway="user", min_bandwidth_mbps=1_000) for at in range(2))
    episode = Episode(Instance("near", near, jobs))
    assert observe_network(episode.snapshot, episode.line)[7] == pytest.approx(2 / 3)
    episode.place_in_cluster(0)
    assert observe_network(episode.snapshot, episode.line)[7] == 0.5


def test_new_measurements_of_links_are_used() -> None:
    """Cached features of old measurements are not used."""
    snapshot = linked()
    line = int(JobQueue(snapshot, [job(gateway="user", max_latency_ns=MS)]).rows[0, 0])
    observe_network(snapshot, line)
    put_links(snapshot, [Link("user", "near", 150 * MS)])
    assert observe_network(snapshot, line)[4] == 0.75


def test_bounds_are_comparable_with_links() -> None:
    """Comparing features agrees with the filter of the engine."""
    (instance,) = drawn("network", 1, seed=3)
    episode = Episode(instance)
    while not episode.done:
        shown = observe_network(episode.snapshot, episode.line).reshape(4, 8)[:, 4:]
        links, job_bounds = shown[:3], shown[3]
        good = (links[:, :3] <= job_bounds[:3]).all(axis=1) & (links[:, 3] >= job_bounds[3])
        legal = episode.legal_clusters()
        assert not (legal & ~good).any()
        if legal.any():
            episode.place_in_cluster(int(np.flatnonzero(legal)[0]))
        else:
            episode.wait()
