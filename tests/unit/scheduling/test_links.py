"""Links between clusters."""

from __future__ import annotations

from seaway.domain.network import Link, NetworkNeed
from seaway.scheduling.snapshot.links import NO_LINK_MBPS, UNKNOWN_NS, links_of
from seaway.scheduling.snapshot.snapshot import Snapshot
from seaway.scheduling.snapshot.update import put_links
from seaway.testing.plugins import cluster, fleet

THERE = Link("gw-a", "gw-b", latency_ns=10, loss_ppm=5, bandwidth_mbps=100)
BACK = Link("gw-b", "gw-a", latency_ns=30, loss_ppm=1, bandwidth_mbps=50)


def snapshot(*links: Link) -> Snapshot:
    """Create two clusters behind separate gateways, two more behind one, and one without a gateway."""
    gateways = ("gw-a", "gw-b", "gw-c", "gw-c", "")
    return Snapshot(fleet(*(cluster(gateway=gateway) for gateway in gateways), links=links))


def test_worse_direction_counts() -> None:
    """Latency is the higher of both directions, bandwidth the lower."""
    links = links_of(snapshot(THERE, BACK))
    assert links.latency_ns()[0, 1] == links.latency_ns()[1, 0] == 30
    assert links.free_mbps()[0, 1] == links.free_mbps()[1, 0] == 50


def test_one_measured_direction_is_enough() -> None:
    """A single measured direction counts for both."""
    links = links_of(snapshot(THERE))
    assert links.latency_ns()[1, 0] == 10
    assert links.free_mbps()[1, 0] == 100
    assert links.satisfying(NetworkNeed(max_latency_ns=10))[1, 0]


def test_both_directions_have_to_be_within_bounds() -> None:
    """One violation in either direction is enough; a known link without bounds is allowed."""
    links = links_of(snapshot(THERE, BACK))
    assert not links.satisfying(NetworkNeed(max_latency_ns=29))[0, 1]
    assert not links.satisfying(NetworkNeed(max_loss_ppm=4))[1, 0]
    assert not links.satisfying(NetworkNeed(min_bandwidth_mbps=51))[0, 1]
    assert links.satisfying(NetworkNeed(max_latency_ns=30, max_loss_ppm=5, min_bandwidth_mbps=50))[0, 1]


def test_unknown_links_have_highest_latency_and_meet_no_bound() -> None:
    """An unmeasured link has no bandwidth."""
    links = links_of(snapshot(THERE))
    for one, other in ((0, 2), (0, 4), (4, 2)):
        assert links.latency_ns()[one, other] == UNKNOWN_NS
        assert links.free_mbps()[one, other] == 0
        assert not links.satisfying(NetworkNeed(max_latency_ns=1_000))[one, other]


def test_clusters_of_one_gateway_need_no_link() -> None:
    """A cluster is within all bounds of itself, with or without a gateway, and of clusters behind its gateway."""
    links = links_of(snapshot())
    for one, other in ((0, 0), (4, 4), (2, 3)):
        assert links.latency_ns()[one, other] == 0
        assert links.free_mbps()[one, other] == NO_LINK_MBPS
        assert links.satisfying(NetworkNeed(max_latency_ns=1, min_bandwidth_mbps=1_000))[one, other]


def test_new_measurements_replace_cached_links() -> None:
    """Links are cached until the next measurement."""
    fleet_ = snapshot(THERE)
    assert links_of(fleet_) is links_of(fleet_)
    put_links(fleet_, [BACK])
    assert links_of(fleet_).latency_ns()[0, 1] == 30


def test_unreachable_link_counts_as_unknown() -> None:
    """An unreachable direction meets no bound."""
    links = links_of(snapshot(THERE, Link("gw-b", "gw-a", latency_ns=None, bandwidth_mbps=50)))
    assert links.latency_ns()[0, 1] == links.latency_ns()[1, 0] == UNKNOWN_NS
    assert not links.satisfying(NetworkNeed(min_bandwidth_mbps=1))[0, 1]
