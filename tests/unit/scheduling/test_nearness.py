"""Scores of the link between a job's user and the clusters."""

from __future__ import annotations

from typing import Any

import pytest

from seaway.domain.errors import RejectedError
from seaway.domain.job import Job
from seaway.domain.network import Gateway, Link
from seaway.scheduling.engine import decide
from seaway.scheduling.framework import Score
from seaway.scheduling.job_queue import JobQueue
from seaway.scheduling.plugins.network import NetworkScore, NetworkWeights
from seaway.scheduling.policies.registry import PolicyOptions, make_policy
from seaway.scheduling.snapshot.snapshot import Snapshot
from seaway.testing.plugins import cluster, fleet, gpu, job, node
from tests.unit.scheduling.requesting import cycle_for, place

ONLY = {"latency": 0, "jitter": 0, "loss": 0, "bandwidth": 0}


def four(**speeds: int) -> Snapshot:
    """Create clusters with ever longer links, and one without a link; the second's link has most bandwidth."""
    names = ("near", "wide", "far", "dark")
    ties = [
        Link("user", "gw-near", 5, jitter_ns=1, loss_ppm=90, bandwidth_mbps=100),
        Link("user", "gw-wide", 10, jitter_ns=9, loss_ppm=0, bandwidth_mbps=1_000),
        Link("user", "gw-far", 15, jitter_ns=5, loss_ppm=45, bandwidth_mbps=550),
        Link("user", "gw-dark", None, bandwidth_mbps=9_000),
    ]
    parts = [cluster(node(gpu()), name=name, gateway=f"gw-{name}") for name in names]
    doors = [Gateway(f"gw-{name}", speed_mbps=speeds.get(name, 0)) for name in names]
    return Snapshot(fleet(*parts, links=ties, gateways=[*doors, Gateway("user")]))


def scores(plugin: Score, snapshot: Snapshot, asked: Job) -> list[int]:
    """Return a plugin's scores of the clusters' nodes."""
    return [int(score) for score in plugin.score(cycle_for(snapshot, asked))]


@pytest.mark.parametrize(
    ("side", "expected"),
    [
        ("latency", [100, 50, 0, 0]),
        ("jitter", [100, 0, 50, 0]),
        ("loss", [0, 100, 50, 0]),
        ("bandwidth", [0, 100, 50, 0]),
    ],
)
def test_each_metric_of_the_user_link_counts(side: str, expected: list[int]) -> None:
    """The best value of a metric scores 100, the worst 0, an unreachable link 0."""
    plugin = NetworkScore(NetworkWeights(**{**ONLY, side: 3}))
    assert scores(plugin, four(), job(gateway="user")) == expected


def test_metrics_are_weighted() -> None:
    """The score is the weighted mean; a job without a user gateway scores the same everywhere."""
    plugin = NetworkScore(NetworkWeights(latency=3, jitter=0, loss=1, bandwidth=0))
    assert scores(plugin, four(), job(gateway="user")) == [75, 62, 12, 0]
    assert scores(plugin, four(), job()) == [100] * 4


def test_bandwidth_counts_without_reservations() -> None:
    """Reservations of running jobs and interface speeds reduce the bandwidth."""
    plugin = NetworkScore(NetworkWeights(**{**ONLY, "bandwidth": 1}))
    snapshot = four(wide=300)
    place(snapshot, job(gateway="user", min_bandwidth_mbps=250, clusters={"far"}))
    assert scores(plugin, snapshot, job(gateway="user")) == [0, 100, 100, 0]


@pytest.mark.parametrize("weights", [{"latency": -1}, {"loss": 1.5}, ONLY])
def test_weights_have_to_be_positive_in_sum(weights: dict[str, Any]) -> None:
    """Weights are whole numbers from 0 up, and not all 0."""
    with pytest.raises(RejectedError):
        NetworkWeights(**weights)


@pytest.mark.parametrize("plain", [False, True], ids=["compiled", "plain"])
def test_seaway_prefers_near_clusters_for_jobs_without_bounds(plain: bool) -> None:
    """A job with only a user gateway is placed near by; bounds, or no gateway, switch this preference off."""
    policy = make_policy("seaway", PolicyOptions(plain=plain))
    parts = [cluster(node(gpu()), name=name, gateway=f"gw-{name}") for name in ("a", "b", "c")]
    ties = [Link("user", f"gw-{name}", latency_ns) for name, latency_ns in (("a", 9), ("b", 3), ("c", 5))]

    def went(gateway: str = "", max_latency_ns: int = 0) -> str:
        snapshot = Snapshot(fleet(*parts, links=ties))
        asked = job(gpus=1, gpu_memory_mib=1_000, gateway=gateway, max_latency_ns=max_latency_ns)
        plan = decide(snapshot, JobQueue(snapshot, [asked]), policy)
        return next(plan.placements()).cluster

    assert went(gateway="user") == "b"
    assert went(gateway="user", max_latency_ns=10) == "a"
    assert went() == "a"
