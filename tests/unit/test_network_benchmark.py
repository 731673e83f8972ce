"""Counts of the network benchmark."""

from __future__ import annotations

from benchmarks.network import met_by_links
from seaway.domain.cluster import Fleet
from seaway.domain.network import Link
from seaway.testing.plugins import cluster, fleet, job, node


def near_and_far() -> Fleet:
    """Create a cluster near the user with a narrow link, and a distant one."""
    return fleet(
        cluster(node(), name="near", gateway="gw-near"),
        cluster(node(), name="far", gateway="gw-far"),
        links=[Link("user", "gw-near", 5, bandwidth_mbps=100), Link("user", "gw-far", 50, bandwidth_mbps=1_000)],
    )


def test_job_counts_within_its_network_bounds() -> None:
    """A job without bounds counts anywhere; one replica within them is enough."""
    close = job(gateway="user", max_latency_ns=10)
    placed = [(job(), ["far"]), (close, ["far"]), (close, ["near"]), (close, ["far", "near"])]
    assert met_by_links(near_and_far(), placed) == 3


def test_bandwidth_is_reserved_in_order_until_exhausted() -> None:
    """Later jobs cannot use reserved bandwidth; a job that violates another bound reserves none."""
    wide = job(gateway="user", min_bandwidth_mbps=60)
    choosy = job(gateway="user", min_bandwidth_mbps=60, max_latency_ns=1)
    assert met_by_links(near_and_far(), [(choosy, ["near"]), (wide, ["near"]), (wide, ["near"])]) == 1
