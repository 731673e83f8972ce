from __future__ import annotations

from dataclasses import replace

from seaway.application.control.fleet import LiveFleet
from seaway.application.network.book import Survey
from seaway.application.network.views import Side
from seaway.application.views import ClusterState
from seaway.domain.lifecycle import AttemptState
from seaway.domain.network import Gateway, Link, NetworkNeed
from seaway.testing.builders import cluster, fleet, gpu, node
from tests.unit.application.control.test_fleet import fits, held

SITE, DOOR = Gateway("site", "::1", 1000), Gateway("door", "::2", 1000)
MEASURED = Link("site", "door", 10, bandwidth_mbps=1000)


def survey(site_out: int = 0, door_in: int = 0) -> Survey:
    """Make a survey of a user's gateway and a cluster's, and what they carry."""
    gateways = replace(SITE, used_out_mbps=site_out), replace(DOOR, used_in_mbps=door_in)
    link = replace(MEASURED, used_mbps=max(site_out, door_in))
    return Survey(gateways, (link,), {"alpha": "door"}, {"site": "office"})


def live(around: Survey) -> LiveFleet:
    """Make a fleet of one cluster that tells of no gateway, behind a configured one."""
    made = LiveFleet()
    made.know(["alpha"], 0)
    made.connect((), (), around)
    made.tell(fleet(cluster(node(gpu(), gpu()), name="alpha")).clusters[0])
    made.set_state("alpha", ClusterState.UP)
    return made


def running(made: LiveFleet, mbps: int) -> None:
    """Have a job run that was promised bandwidth."""
    attempt = held(gateway="site")
    spec = replace(attempt.spec, demand=replace(attempt.spec.demand, network=NetworkNeed(min_bandwidth_mbps=mbps)))
    attempt = replace(attempt, spec=spec, state=AttemptState.RUNNING)
    made.hold(attempt, spec.job("job"))


def test_what_a_job_sends_of_what_it_was_promised_is_not_counted_again() -> None:
    """It holds 400 whether it sends nothing, all of it, or 100 more with others: then 100 are used besides."""
    made = live(survey())
    running(made, 400)
    for sent, used in ((0, 0), (400, 0), (500, 100)):
        made.connect((), (), survey(site_out=sent, door_in=sent))
        assert made.links[0].used_mbps == used
        free = 1000 - 400 - used
        assert fits(made, gateway="site", min_bandwidth_mbps=free)
        assert not fits(made, gateway="site", min_bandwidth_mbps=free + 1)


def test_traffic_of_others_counts_at_either_end() -> None:
    """The fuller end is what is free of the link."""
    made = live(survey(site_out=100, door_in=700))
    assert made.links[0].used_mbps == 700
    assert fits(made, gateway="site", min_bandwidth_mbps=300)
    assert not fits(made, gateway="site", min_bandwidth_mbps=301)


def test_what_was_promised_and_given_back_counts_as_traffic_until_it_ends() -> None:
    """A job that is over and still sends is traffic like any other's."""
    made = live(survey())
    running(made, 400)
    made.connect((), (), survey(site_out=400, door_in=400))
    made.let_go(("job", 1))
    made.connect((), (), survey(site_out=400, door_in=400))
    assert made.links[0].used_mbps == 400


def test_nothing_is_done_while_neither_measurements_nor_promises_change() -> None:
    """The same survey again leaves the fleet's version as it is."""
    around = survey(site_out=100)
    made = live(around)
    before = made.version, made.make
    made.connect((), (), around)
    assert (made.version, made.make) == before


def test_figures_are_followed_without_making_the_fleet_anew() -> None:
    """Other traffic is a new version; only another speed may let a job fit that no cluster could hold before."""
    made = live(survey())
    snapshot, make = made.snapshot, made.make
    made.connect((), (), survey(site_out=100))
    assert (made.snapshot is snapshot, made.make) == (True, make)
    faster = survey()
    made.connect((), (), replace(faster, gateways=(replace(SITE, speed_mbps=2000), DOOR)))
    assert (made.snapshot is snapshot, made.make) == (True, make + 1)


def test_a_gateway_stands_before_its_cluster_or_a_site() -> None:
    """By configuration; others by what clusters tell, and before a user site of their own name else."""
    made = live(survey())
    made.connect((Gateway("far", "::9"),), (), survey())
    assert made.sides() == {
        "site": Side("::1", site="office"),
        "door": Side("::2", cluster="alpha"),
        "far": Side("::9", site="far"),
    }


def test_told_links_are_kept_apart_from_measured_ones() -> None:
    """What clusters tell is not what agents measured; both decide."""
    made = live(survey())
    told = Link("far", "door", 5)
    made.connect((Gateway("far"),), (told,), survey())
    assert made.told_links == (told,)
    assert made.links == (told, MEASURED)
    assert made.surveyed == {"site", "door"}
