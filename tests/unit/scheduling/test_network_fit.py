"""The network filter: the link from the user's gateway to the cluster."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from seaway.domain.network import Link
from seaway.scheduling.columns import CLUSTERS_RESERVED
from seaway.scheduling.plugins.network import Network
from seaway.scheduling.snapshot.snapshot import Snapshot
from seaway.scheduling.snapshot.update import put_links
from seaway.testing.plugins import cluster, job, node
from tests.unit.scheduling.requesting import cycle_for, place, refusals, snapshot_of

LINK = Link("user", "east", latency_ns=20, jitter_ns=5, loss_ppm=7, bandwidth_mbps=100, used_mbps=10)


def east(link: Link = LINK) -> Snapshot:
    """Create one cluster behind the gateway east, with a link from the gateway user to it."""
    return snapshot_of(cluster(node(), gateway="east"), links=(link,))


@pytest.mark.parametrize(
    ("need", "reason"),
    [
        ({"max_latency_ns": 20}, ""),
        ({"max_latency_ns": 19}, "latency above the bound"),
        ({"max_jitter_ns": 5}, ""),
        ({"max_jitter_ns": 4}, "jitter above the bound"),
        ({"max_loss_ppm": 7}, ""),
        ({"max_loss_ppm": 6}, "loss above the bound"),
        ({"min_bandwidth_mbps": 90}, ""),
        ({"min_bandwidth_mbps": 91}, "not enough free bandwidth"),
        ({"max_loss_ppm": 1, "max_jitter_ns": 1, "max_latency_ns": 1}, "latency above the bound"),
        ({"max_loss_ppm": 1, "max_jitter_ns": 1, "min_bandwidth_mbps": 1_000}, "jitter above the bound"),
    ],
)
def test_link_has_to_meet_every_bound(need: dict[str, Any], reason: str) -> None:
    """A value equal to its bound is allowed; the reason is the first violated bound."""
    assert refusals(east(), job(gateway="user", **need)) == [reason]


def test_job_without_bounds_is_never_rejected() -> None:
    """It may use clusters without a gateway or a link."""
    snapshot = snapshot_of(cluster(node()), cluster(node(), gateway="east"))
    assert refusals(snapshot, job()) == ["", ""]


def test_unknown_links_are_rejected() -> None:
    """A cluster without a gateway and an unmeasured link meet no bound."""
    snapshot = snapshot_of(cluster(node()), cluster(node(), gateway="west"), links=(LINK,))
    reasons = ["cluster has no gateway", "link to the cluster not measured"]
    assert refusals(snapshot, job(gateway="user", min_bandwidth_mbps=1)) == reasons


def test_links_have_a_direction() -> None:
    """The link from the cluster to the user does not count for the link from the user to the cluster."""
    asked = job(gateway="east", max_latency_ns=100)
    snapshot = snapshot_of(cluster(node(), gateway="user"), links=(LINK,))
    assert refusals(snapshot, asked) == ["link to the cluster not measured"]


def test_cluster_behind_own_gateway_needs_no_link() -> None:
    """A cluster behind the user's own gateway meets every bound."""
    snapshot = snapshot_of(cluster(node(), gateway="east"))
    assert refusals(snapshot, job(gateway="east", max_latency_ns=1, min_bandwidth_mbps=10**6)) == [""]


def test_running_jobs_reserve_their_bandwidth() -> None:
    """Bandwidth is never reserved twice."""
    snapshot = east()
    place(snapshot, job(gateway="user", min_bandwidth_mbps=60))
    place(snapshot, job())
    assert refusals(snapshot, job(gateway="user", min_bandwidth_mbps=30)) == [""]
    assert refusals(snapshot, job(gateway="user", min_bandwidth_mbps=31)) == ["not enough free bandwidth"]


def test_overcommitted_link_serves_jobs_without_bandwidth() -> None:
    """A link with less bandwidth than it reserved rejects requests for bandwidth only."""
    snapshot = east()
    place(snapshot, job(gateway="user", min_bandwidth_mbps=60), job())
    put_links(snapshot, [Link("user", "east", latency_ns=20, bandwidth_mbps=10)])
    assert refusals(snapshot, job(gateway="user", max_latency_ns=20)) == [""]
    assert refusals(snapshot, job(gateway="user", min_bandwidth_mbps=1)) == ["not enough free bandwidth"]


def test_job_reserves_bandwidth_to_a_cluster_once() -> None:
    """Further replicas of the job need no bandwidth to that cluster."""
    snapshot = east()
    snapshot.arrays.clusters_open[CLUSTERS_RESERVED, 0] = 1
    assert refusals(snapshot, job(gateway="user", min_bandwidth_mbps=1_000)) == [""]
    assert refusals(snapshot, job(gateway="user", max_latency_ns=1, min_bandwidth_mbps=1)) != [""]


def test_replicas_share_one_reservation() -> None:
    """A job of many replicas reserves its bandwidth to a cluster once."""
    placements = place(east(), job(gateway="user", min_bandwidth_mbps=90, replicas=3))
    assert len(placements) == 3


def test_closed_cluster_rejects_every_job() -> None:
    """Clusters that a decision closes are rejected before any link is checked."""
    cycle = cycle_for(east(), job(gateway="user", max_latency_ns=1))
    cycle.usable = np.zeros(1, np.bool_)
    [code] = Network().filter(cycle)
    assert Network.reasons[code - 1] == "in a cluster that is cordoned or does not answer"


def test_new_measurements_take_effect_immediately() -> None:
    """A filter drops its cached links after a new measurement."""
    snapshot, plugin = east(), Network()
    cycle = cycle_for(snapshot, job(gateway="user", max_latency_ns=20))
    assert not plugin.filter(cycle).any()
    put_links(snapshot, [Link("user", "east", latency_ns=21)])
    assert plugin.filter(cycle).all()


def test_unreachable_link_meets_no_bound() -> None:
    """An unreachable link is rejected for every bound, also on bandwidth or loss alone."""
    snapshot = east()
    put_links(snapshot, [Link("user", "east", latency_ns=None, bandwidth_mbps=1_000)])
    bounds: tuple[dict[str, Any], ...] = (
        {"max_latency_ns": 100},
        {"max_jitter_ns": 9},
        {"max_loss_ppm": 9},
        {"min_bandwidth_mbps": 1},
    )
    for bound in bounds:
        assert refusals(snapshot, job(gateway="user", **bound)) == ["nothing answers on the link to the cluster"]
    assert refusals(snapshot, job(gateway="user")) == [""]


def test_compiled_search_rejects_unreachable_link() -> None:
    """The compiled search agrees with the plugin."""
    snapshot = east()
    put_links(snapshot, [Link("user", "east", latency_ns=None, bandwidth_mbps=1_000)])
    assert place(snapshot, job(gateway="user", min_bandwidth_mbps=1)) == []
