"""Links that share interfaces of gateways, and bandwidth between the replicas of jobs."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np
import pytest

from seaway.domain.errors import RejectedError
from seaway.domain.job import Job
from seaway.domain.network import Gateway, Link, NetworkNeed
from seaway.scheduling.allocations import allocate
from seaway.scheduling.engine import decide
from seaway.scheduling.explain import violating_links
from seaway.scheduling.job_queue import JobQueue
from seaway.scheduling.plan import Plan
from seaway.scheduling.policies.registry import PolicyOptions, make_policy
from seaway.scheduling.snapshot.links import free_bandwidth
from seaway.scheduling.snapshot.snapshot import Snapshot
from seaway.scheduling.snapshot.update import put_gateways
from seaway.testing.plugins import cluster, fleet, job, node
from tests.unit.scheduling.requesting import refusals

GATEWAYS = ("east", "west", "south")
PATHS = pytest.mark.parametrize("plain", [False, True], ids=["compiled", "plain"])


def three(**speeds: int) -> Snapshot:
    """Create three clusters of one node and a gateway each, with links of 100 Mbit/s between all and from the user."""
    ends = [(a, b) for a in ("user", *GATEWAYS) for b in GATEWAYS if a != b]
    return Snapshot(
        fleet(
            *(cluster(node(), name=name, gateway=name) for name in GATEWAYS),
            links=[Link(*each, latency_ns=1, bandwidth_mbps=100) for each in ends],
            gateways=[Gateway(name, speed_mbps=speeds.get(name, 0)) for name in ("user", *GATEWAYS)],
        )
    )


def placed(snapshot: Snapshot, *jobs: Job, plain: bool = False) -> Plan:
    """Plan jobs by best fit."""
    return decide(snapshot, JobQueue(snapshot, jobs), make_policy("bestfit", PolicyOptions(plain=plain)))


def demanding(mbps: int, clusters: Collection[str] = ()) -> Job:
    """Create a job of one replica that fills half a node and reserves bandwidth from its user."""
    return job(cpu_milli=32_000, gateway="user", min_bandwidth_mbps=mbps, clusters=clusters)


def spread(replicas: int, mbps: int, *, gang: bool = True) -> Job:
    """Create a job whose replicas fill a node each, with `mbps` between any two clusters."""
    between = NetworkNeed(min_bandwidth_mbps=mbps)
    return job(cpu_milli=64_000, replicas=replicas, gang=gang, between_replicas=between)


@PATHS
def test_links_of_a_gateway_share_its_interface(plain: bool) -> None:
    """A reservation on one link of the user's gateway reduces the others, down to 0."""
    snapshot = three(user=150)
    plan = placed(snapshot, *(demanding(60) for _ in range(4)), plain=plain)
    assert plan.jobs_placed.tolist() == [True, True, False, False]
    link, interface = "not enough free bandwidth", "not enough free bandwidth on the interface of a gateway"
    assert refusals(snapshot, demanding(60)) == [link, link, interface]
    assert refusals(snapshot, demanding(30)) == [""] * 3


@PATHS
def test_interface_of_a_cluster_is_shared(plain: bool) -> None:
    """Traffic into a cluster is limited by its gateway, from any source."""
    snapshot = three(east=50)
    plan = placed(snapshot, demanding(30, clusters={"east"}), demanding(30, clusters={"east"}), plain=plain)
    assert plan.jobs_placed.tolist() == [True, False]


def test_gateway_without_a_speed_sets_no_limit() -> None:
    """Without an interface speed only links count."""
    snapshot = three()
    plan = placed(snapshot, *(demanding(100) for _ in range(4)))
    assert plan.jobs_placed.tolist() == [True, True, True, False]


def test_other_traffic_is_not_reserved() -> None:
    """Jobs cannot reserve bandwidth of observed traffic; existing reservations remain."""
    snapshot = three(user=150)
    plan = placed(snapshot, demanding(60))
    doors = [Gateway("user", speed_mbps=150, used_out_mbps=50), *(Gateway(name) for name in GATEWAYS)]
    put_gateways(snapshot, doors)
    user, east = 0, 1
    assert free_bandwidth(snapshot.arrays, user, east) == 40
    snapshot.release(plan.decisions, plan.slices, plan.rows_of(0))
    assert free_bandwidth(snapshot.arrays, user, east) == 100
    with pytest.raises(RejectedError, match="keeps the gateways"):
        put_gateways(snapshot, doors[:2])


@PATHS
@pytest.mark.parametrize("gang", [True, False], ids=["gang", "apart"])
def test_traffic_between_clusters_is_reserved_in_both_directions(plain: bool, gang: bool) -> None:
    """A job over several clusters reserves bandwidth on each link between two of them once, and releases it."""
    snapshot = three(east=1_000)
    before = snapshot.arrays.bandwidth.copy(), snapshot.arrays.gateways.copy()
    plan = placed(snapshot, spread(3, 40, gang=gang), plain=plain)
    taken = before[0] - snapshot.arrays.bandwidth
    assert taken[1:, 1:].tolist() == [[0, 40, 40], [40, 0, 40], [40, 40, 0]]
    assert not taken[0].any()
    assert (before[1] - snapshot.arrays.gateways)[:, 1:].tolist() == [[80, 80, 80], [80, 80, 80]]
    snapshot.release(plan.decisions, plan.slices, np.array([1]))
    assert int((before[0] - snapshot.arrays.bandwidth).sum()) == 80
    snapshot.release(plan.decisions, plan.slices, plan.rows_of(0))
    np.testing.assert_array_equal(snapshot.arrays.bandwidth, before[0])
    np.testing.assert_array_equal(snapshot.arrays.gateways, before[1])


@PATHS
@pytest.mark.parametrize(("mbps", "fits"), [(40, True), (60, False)])
def test_bandwidth_of_a_gang_is_not_free_for_another(plain: bool, mbps: int, fits: bool) -> None:
    """A gang that fits on nodes waits while another has reserved the link between its clusters."""
    between = NetworkNeed(min_bandwidth_mbps=mbps)
    first, second = (
        job(cpu_milli=cpu, replicas=3, gang=True, between_replicas=between, clusters={"east", "west"})
        for cpu in (24_000, 16_000)
    )
    snapshot = three()
    assert placed(snapshot, first, second, plain=plain).jobs_placed.tolist() == [True, fits]


@PATHS
@pytest.mark.parametrize("gang", [True, False], ids=["gang", "apart"])
def test_gateway_limits_the_spread_of_a_job(plain: bool, gang: bool) -> None:
    """A gateway with bandwidth to one other cluster cannot be the third of three."""
    snapshot = three(east=60, west=60)
    plan = placed(snapshot, spread(3, 40, gang=gang), plain=plain)
    assert int(plan.placed.sum()) == (0 if gang else 2)
    assert (snapshot.arrays.gateways >= 0).all()


def ring(replicas: int, mbps: int, **figures: Any) -> Job:  # noqa: ANN401  # fields of a job
    """Create a ring whose replicas fill a node each, with `mbps` from each to the next one."""
    between = NetworkNeed(min_bandwidth_mbps=mbps)
    given: dict[str, Any] = {
        "cpu_milli": 64_000,
        "replicas": replicas,
        "gang": True,
        "ring": True,
        "between_replicas": between,
    }
    return job(**given | figures)


@PATHS
def test_a_ring_reserves_bandwidth_between_consecutive_clusters_in_one_direction(plain: bool) -> None:
    """Each interface has the job's bandwidth once in each direction, and a release frees exactly that."""
    snapshot = three(east=60, west=60, south=60)
    before = snapshot.arrays.bandwidth.copy(), snapshot.arrays.gateways.copy()
    plan = placed(snapshot, ring(3, 40), plain=plain)
    assert plan.jobs_placed.tolist() == [True]
    assert (before[1] - snapshot.arrays.gateways)[:, 1:].tolist() == [[40] * 3] * 2
    taken = (before[0] - snapshot.arrays.bandwidth)[1:, 1:]
    where = [plan.placement(int(row)).cluster for row in plan.rows_of(0)]
    numbers = [GATEWAYS.index(name) for name in where]
    assert {(int(a), int(b)) for a, b in zip(*taken.nonzero(), strict=True)} == set(
        zip(numbers, [*numbers[1:], numbers[0]], strict=True)
    )
    assert not placed(snapshot.copy(), spread(2, 40)).jobs_placed[0]
    snapshot.release(plan.decisions, plan.slices, np.array([1]))
    assert int((before[0] - snapshot.arrays.bandwidth).sum()) == 40, "only the link from the last to the first is left"
    snapshot.release(plan.decisions, plan.slices, plan.rows_of(0))
    np.testing.assert_array_equal(snapshot.arrays.bandwidth, before[0])
    np.testing.assert_array_equal(snapshot.arrays.gateways, before[1])


@PATHS
def test_a_ring_takes_the_direction_that_has_bandwidth(plain: bool) -> None:
    """Links have bandwidth one way round only: the ring goes that way, and the opposite one is refused."""
    ends = [(a, b) for a in GATEWAYS for b in GATEWAYS if a != b]
    onwards = {("east", "south"), ("south", "west"), ("west", "east")}
    links = [Link(*each, latency_ns=1, bandwidth_mbps=100 if each in onwards else 10) for each in ends]
    clusters = [cluster(node(), name=name, gateway=name) for name in GATEWAYS]
    snapshot = Snapshot(fleet(*clusters, links=links, gateways=[Gateway(name) for name in GATEWAYS]))
    plan = placed(snapshot.copy(), ring(3, 50), plain=plain)
    assert [plan.placement(int(row)).cluster for row in plan.rows_of(0)] == ["east", "south", "west"]
    assert not placed(snapshot, spread(3, 50), plain=plain).jobs_placed[0], "a mesh needs both directions"
    assert violating_links(snapshot, ring(3, 200))[0] == "east to west: 10Mbps free, bound 200Mbps"


def test_a_ring_is_restored_from_its_placements() -> None:
    """After a restart the reservations are those of the engine, also if a replica has gone."""
    snapshot = three()
    asked = ring(3, 40)
    plan = placed(snapshot, asked)
    where = tuple(plan.placement(int(row)) for row in plan.rows_of(0))
    for kept in (where, where[1:], where[:2], where[::2]):
        engine, again = snapshot.copy(), three()
        decisions = plan.decisions.copy()
        gone = [int(row) for row in plan.rows_of(0) if plan.placement(int(row)) not in kept]
        engine.release(decisions, plan.slices, np.array(gone, np.intp))
        allocate(again, asked, kept)
        np.testing.assert_array_equal(engine.arrays.bandwidth, again.arrays.bandwidth)
        np.testing.assert_array_equal(engine.arrays.gateways, again.arrays.gateways)
