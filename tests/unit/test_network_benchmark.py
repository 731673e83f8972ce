"""The benchmark of the network counts what users would."""

from __future__ import annotations

from benchmarks.network import met_by_links
from seaway.domain.cluster import Fleet
from seaway.domain.network import Link
from seaway.testing.plugins import cluster, fleet, job, node


def near_and_far() -> Fleet:
    """Make a cluster near the user with a narrow link, and one far away."""
    return fleet(
        cluster(node(), name="near", gateway="gw-near"),
        cluster(node(), name="far", gateway="gw-far"),
        links=[Link("user", "gw-near", 5, bandwidth_mbps=100), Link("user", "gw-far", 50, bandwidth_mbps=1_000)],
    )


def test_a_job_counts_where_its_link_keeps_its_bounds() -> None:
    """One that asks nothing counts anywhere; one copy in a good place is enough."""
    close = job(gateway="user", max_latency_ns=10)
    placed = [(job(), ["far"]), (close, ["far"]), (close, ["near"]), (close, ["far", "near"])]
    assert met_by_links(near_and_far(), placed) == 3


def test_bandwidth_is_given_in_order_while_it_lasts() -> None:
    """What a link promised is gone for those that come later; who misses another bound takes none."""
    wide = job(gateway="user", min_bandwidth_mbps=60)
    choosy = job(gateway="user", min_bandwidth_mbps=60, max_latency_ns=1)
    assert met_by_links(near_and_far(), [(choosy, ["near"]), (wide, ["near"]), (wide, ["near"])]) == 1
