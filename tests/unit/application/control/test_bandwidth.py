from __future__ import annotations

from dataclasses import replace

import pytest

from seaway.application.control.fleet import LiveFleet
from seaway.application.network.link_table import NetworkSnapshot
from seaway.application.network.views import Side
from seaway.application.views import ClusterState
from seaway.domain.job_state import AttemptState
from seaway.domain.network import Gateway, Link, NetworkNeed
from seaway.testing.plugins import cluster, fleet, gpu, node
from tests.unit.application.control.test_fleet import fits, held

NS = 1_000_000_000

SITE, DOOR = Gateway("site", "::1", 1000), Gateway("door", "::2", 1000)
MEASURED = Link("site", "door", 10, bandwidth_mbps=1000)


def network_snapshot(site_out: int = 0, gateway_in: int = 0) -> NetworkSnapshot:
    """Create a network snapshot of a user's gateway and a cluster's, with their traffic."""
    gateways = replace(SITE, used_out_mbps=site_out), replace(DOOR, used_in_mbps=gateway_in)
    link = replace(MEASURED, used_mbps=max(site_out, gateway_in))
    return NetworkSnapshot(gateways, (link,), {"alpha": "door"}, {"site": "office"})


def live(around: NetworkSnapshot) -> LiveFleet:
    """Create a fleet of one cluster that reports no gateway, behind a configured one."""
    made = LiveFleet()
    made.know(["alpha"], 0)
    made.connect((), (), around)
    made.tell(fleet(cluster(node(gpu(), gpu()), name="alpha")).clusters[0])
    made.set_state("alpha", ClusterState.UP)
    return made


def running(made: LiveFleet, mbps: int, number: int = 1, since_s: int | None = 0) -> None:
    """Add a job with reserved bandwidth that started some seconds ago; None if it does not run yet."""
    attempt = held(number, gateway="site")
    spec = replace(attempt.spec, demand=replace(attempt.spec.demand, network=NetworkNeed(min_bandwidth_mbps=mbps)))
    attempt = replace(attempt, spec=spec, state=AttemptState.ASSUMED)
    made.hold(attempt, spec.job("job"))
    if since_s is not None:
        made.run(("job", number), since_s * NS)


def others(made: LiveFleet, mbps: int, at_s: int, since_s: int) -> int:
    """Measure the link's interfaces over a time; return the traffic that counts as others'."""
    since_ns = {"site": since_s * NS, "door": since_s * NS}
    made.connect((), (), network_snapshot(site_out=mbps, gateway_in=mbps), since_ns, at_s * NS)
    return made.links[0].used_mbps


def test_a_reservation_does_not_wipe_out_what_was_there_before_it() -> None:
    """With 600 of 1000 used by others, a job of 300 fits and a second does not, however long it sends nothing."""
    made = live(network_snapshot())
    others(made, 600, 10, 0)
    assert fits(made, gateway="site", min_bandwidth_mbps=300)
    running(made, 300, since_s=11)
    for at_s in (11, 20, 40, 4000):
        assert others(made, 600, at_s, at_s - 10) == 600
        assert fits(made, gateway="site", min_bandwidth_mbps=100)
        assert not fits(made, gateway="site", min_bandwidth_mbps=101)


@pytest.mark.parametrize(("sent", "besides"), [(0, 600), (300, 600), (350, 650)])
def test_what_a_job_sends_besides_others_is_its_own_up_to_its_reservation(sent: int, besides: int) -> None:
    """Others' 600 stay 600 when it sends nothing or all; its traffic beyond the reservation counts as others'."""
    made = live(network_snapshot())
    others(made, 600, 10, 0)
    running(made, 300, since_s=11)
    assert others(made, 600 + sent, 40, 30) == besides


def test_what_others_carry_less_is_free_again() -> None:
    """When less is measured than before the job, all of that may be others', and no more."""
    made = live(network_snapshot())
    others(made, 600, 10, 0)
    running(made, 300, since_s=11)
    assert others(made, 200, 40, 30) == 200
    assert others(made, 500, 50, 40) == 200


def test_a_reservation_is_not_taken_out_of_what_was_measured_before_it_ran() -> None:
    """Growth in that time may be others', and uses unreserved bandwidth; afterwards it is the job's."""
    made = live(network_snapshot())
    others(made, 0, 10, 0)
    running(made, 300, since_s=15)
    assert others(made, 300, 20, 10) == 300
    assert others(made, 300, 30, 20) == 0


def test_a_job_that_was_placed_and_does_not_run_sends_nothing() -> None:
    """Its reservation is not subtracted; it is when the job has run for all of the measured time."""
    made = live(network_snapshot())
    running(made, 300, since_s=None)
    assert others(made, 300, 100, 90) == 300
    made.run(("job", 1), 101 * NS)
    assert others(made, 300, 120, 110) == 0


def test_what_may_be_a_new_jobs_traffic_breaks_no_reservation() -> None:
    """A job of 800 that sends immediately fills its interface: nothing is free, and no reservation is violated."""
    made = live(network_snapshot())
    running(made, 800, since_s=15)
    assert others(made, 800, 20, 10) == 200
    assert others(made, 1000, 21, 11) == 200
    assert others(made, 1000, 40, 30) == 200


def test_a_job_that_takes_the_place_of_another_is_not_counted_twice() -> None:
    """The first job's traffic does not count as others': jobs may follow each other without filling the interface."""
    made = live(network_snapshot())
    running(made, 300, number=1, since_s=0)
    at_s = 20
    for number in range(2, 6):
        assert others(made, 300, at_s, at_s - 10) == 0
        made.release_allocation(("job", number - 1))
        running(made, 300, number=number, since_s=at_s + 1)
        assert others(made, 300, at_s + 1, at_s - 9) == 300
        at_s += 20


def test_what_goes_on_after_a_job_ended_is_others() -> None:
    """Its own traffic ends with the first measurement after its end."""
    made = live(network_snapshot())
    running(made, 300, since_s=0)
    assert others(made, 300, 20, 10) == 0
    made.release_allocation(("job", 1))
    others(made, 300, 21, 10)
    running(made, 300, number=2, since_s=22)
    assert others(made, 300, 35, 21) == 300
    assert made.settling
    made.release_allocation(("job", 2))
    assert others(made, 300, 80, 70) == 300


def test_after_a_restart_those_that_ran_before_may_have_sent_what_is_measured() -> None:
    """The reservation of a job that ran for all of the first measurement is subtracted; earlier traffic is unknown."""
    made = live(network_snapshot())
    running(made, 300, number=1, since_s=0)
    running(made, 300, number=2, since_s=95)
    before = [each for each, _, _ in made._held.values()]  # noqa: SLF001
    others(made, 600, 98, 88)
    made.empty()
    others(made, 600, 99, 89)
    made.empty()
    for each, since_s in zip(before, (0, 95), strict=True):
        made.hold(replace(each, running_ns=since_s * NS), each.spec.job("job"))
    assert others(made, 600, 100, 90) == 300
    assert others(made, 600, 110, 100) == 0


def test_gateways_that_are_known_late_count_what_ran_before_them() -> None:
    """A job that ran before the network was known does not count as starting now."""
    made = live(NetworkSnapshot())
    running(made, 300, since_s=0)
    others(made, 300, 100, 90)
    assert made.settling
    assert others(made, 300, 101, 91) == 0


def test_while_nothing_is_measured_what_was_there_is_stored() -> None:
    """Without its exporter the link is unknown; when it returns others' traffic is still theirs."""
    made = live(network_snapshot())
    others(made, 600, 10, 0)
    running(made, 300, since_s=11)
    unread = NetworkSnapshot((Gateway("site", "::1"), Gateway("door", "::2")), (replace(MEASURED, bandwidth_mbps=0),))
    made.connect((), (), replace(unread, gateways_by_cluster={"alpha": "door"}), {}, 20 * NS)
    assert not fits(made, gateway="site", min_bandwidth_mbps=1)
    assert others(made, 600, 60, 50) == 600


def test_the_fuller_interface_is_what_is_free_not_the_faster() -> None:
    """A gateway of 10,000 that carries 5,000 leaves one of 1,000 all of its own."""
    made = live(network_snapshot())
    around = network_snapshot()
    fast = replace(SITE, speed_mbps=10_000, used_out_mbps=5000)
    made.connect((), (), replace(around, gateways=(fast, DOOR), links=(replace(MEASURED, used_mbps=5000),)))
    assert made.links[0].free_mbps == 1000


def test_figures_that_cannot_be_written_leave_the_fleet_as_it_was() -> None:
    """They are rejected once: later valid ones are applied, and the fleet can be rebuilt."""
    made = live(network_snapshot())
    absurd = network_snapshot()
    for gateways in ((replace(SITE, speed_mbps=10**30), DOOR), (Gateway("new", speed_mbps=10**30), SITE, DOOR)):
        with pytest.raises(OverflowError):
            made.connect((), (), replace(absurd, gateways=gateways))
        made.rebuild()
    made.connect((), (), network_snapshot(site_out=100))
    assert made.links[0].used_mbps == 100


def test_what_a_job_sends_of_what_it_was_promised_is_not_counted_again() -> None:
    """It holds 400 whether it sends nothing, all of it, or 100 more with others: then 100 are used besides."""
    made = live(network_snapshot())
    running(made, 400)
    for sent, used in ((0, 0), (400, 0), (500, 100)):
        made.connect((), (), network_snapshot(site_out=sent, gateway_in=sent))
        assert made.links[0].used_mbps == used
        free = 1000 - 400 - used
        assert fits(made, gateway="site", min_bandwidth_mbps=free)
        assert not fits(made, gateway="site", min_bandwidth_mbps=free + 1)


def test_traffic_of_others_counts_at_either_end() -> None:
    """The fuller end limits the link."""
    made = live(network_snapshot(site_out=100, gateway_in=700))
    assert made.links[0].used_mbps == 700
    assert fits(made, gateway="site", min_bandwidth_mbps=300)
    assert not fits(made, gateway="site", min_bandwidth_mbps=301)


def test_what_was_promised_and_given_back_counts_as_traffic_until_it_ends() -> None:
    """An ended job that still sends is traffic like any other's."""
    made = live(network_snapshot())
    running(made, 400)
    made.connect((), (), network_snapshot(site_out=400, gateway_in=400))
    made.release_allocation(("job", 1))
    made.connect((), (), network_snapshot(site_out=400, gateway_in=400))
    assert made.links[0].used_mbps == 400


def test_nothing_is_done_while_neither_measurements_nor_promises_change() -> None:
    """The same network snapshot again leaves the fleet's version as it is."""
    around = network_snapshot(site_out=100)
    made = live(around)
    before = made.version, made.make
    made.connect((), (), around)
    assert (made.version, made.make) == before


def test_figures_are_followed_without_making_the_fleet_again() -> None:
    """Other traffic is a new version; only another speed may let a job fit that no cluster could hold before."""
    made = live(network_snapshot())
    snapshot, make = made.snapshot, made.make
    made.connect((), (), network_snapshot(site_out=100))
    assert (made.snapshot is snapshot, made.make) == (True, make)
    faster = network_snapshot()
    made.connect((), (), replace(faster, gateways=(replace(SITE, speed_mbps=2000), DOOR)))
    assert (made.snapshot is snapshot, made.make) == (True, make + 1)


def test_a_gateway_stands_before_its_cluster_or_a_site() -> None:
    """The configuration counts; otherwise clusters' reports, and without those a user site of the same name."""
    made = live(network_snapshot())
    made.connect((Gateway("far", "::9"),), (), network_snapshot())
    assert made.sides() == {
        "site": Side("::1", site="office"),
        "door": Side("::2", cluster="alpha"),
        "far": Side("::9", site="far"),
    }


def test_reported_links_are_stored_apart_from_measured_ones() -> None:
    """Clusters' reports are not agents' measurements; both are used."""
    made = live(network_snapshot())
    reported = Link("far", "door", 5)
    made.connect((Gateway("far"),), (reported,), network_snapshot())
    assert made.reported_links == (reported,)
    assert made.links == (reported, MEASURED)
    assert made.surveyed == {"site", "door"}
