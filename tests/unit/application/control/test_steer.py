"""Which paths traffic is to take, by what runs and by what waits."""

from __future__ import annotations

from dataclasses import replace

from seaway.application.control.steer import Crossing, Steering
from seaway.application.network.paths import Measured
from seaway.domain.lifecycle import JobState
from seaway.domain.network import PPM, Gateway, Link
from seaway.testing.builders import cluster, fleet, gpu, node
from tests.unit.application.scene import Scene, scene

MS = 1_000_000

DIRECT = Measured("direct", Link("gw-u", "gw-a", 40 * MS))
QUICK = Measured("quick", Link("gw-u", "gw-a", 10 * MS, loss_ppm=20_000))
DEAD = Measured("direct", Link("gw-u", "gw-a", None, loss_ppm=PPM))


def crossing(current: str = "direct", direct: Measured = DIRECT) -> Crossing:
    """Make what is known of the pair between users and the cluster."""
    return Crossing("gw-u", "gw-a", current, (direct, QUICK))


def behind_gateways(link: Measured = DIRECT) -> Scene:
    """Put one cluster behind ``gw-a``, which users reach from ``gw-u``."""
    assert link.link is not None
    made = fleet(
        cluster(node(gpu(), gpu()), name="alpha", gateway="gw-a"),
        gateways=(Gateway("gw-a"), Gateway("gw-u")),
        links=(link.link,),
    )
    return scene(made, path_hold_s=30)


def steering(made: Scene) -> Steering:
    """Return who steers for a control plane."""
    return Steering(made.plane.controller.live)


def test_a_job_that_waits_in_vain_has_traffic_take_its_path() -> None:
    """A job that no link serves as it is, and that another path would serve, has that path chosen."""
    made = behind_gateways()
    job = made.submit(gateway="gw-u", max_latency_ns=20 * MS)
    assert made.state(job) == "queued"
    ((pair, choice),) = steering(made).choices([crossing()])
    assert (pair.target, choice.path) == ("gw-a", "quick")
    assert job in choice.why


def test_a_job_that_was_not_tried_yet_changes_no_path() -> None:
    """Who was not tried may be served as things are."""
    made = behind_gateways()
    tried = made.job(made.submit(gateway="gw-u", max_latency_ns=20 * MS))
    live = made.plane.controller.live
    live.waiting.put(live.entry(replace(tried, state=JobState.PENDING)))
    assert steering(made).choices([crossing()]) == []
    live.waiting.put(live.entry(tried))
    assert steering(made).choices([crossing()])


def test_what_runs_keeps_its_path() -> None:
    """A path that a running job needs stays, whatever waits."""
    made = behind_gateways()
    runs = made.submit(gateway="gw-u", max_loss_ppm=1_000)
    made.plane.run(5)
    assert made.state(runs) == "running"
    made.submit(gateway="gw-u", max_latency_ns=20 * MS)
    assert steering(made).choices([crossing()]) == []


def test_a_path_stays_for_a_while_once_it_is_chosen() -> None:
    """What was chosen is held, so that jobs with unlike needs do not have it change all the time."""
    made = behind_gateways()
    who = steering(made)
    job = made.submit(gateway="gw-u", max_latency_ns=20 * MS)
    assert who.choices([crossing()])
    made.plane.jobs.cancel(job, "somebody")
    made.plane.settle()
    assert who.choices([crossing("quick")]) == []
    made.clock.advance_s(31)
    assert [choice.path for _, choice in who.choices([crossing("quick")])] == ["direct"]


def test_a_path_that_went_silent_is_left_at_once() -> None:
    """Where nothing answers any more nothing is held."""
    made = behind_gateways()
    who = steering(made)
    made.submit(gateway="gw-u", max_latency_ns=20 * MS)
    assert who.choices([crossing()])
    silent = Crossing("gw-u", "gw-a", "direct", (DEAD, QUICK))
    assert [choice.path for _, choice in who.choices([silent])] == ["quick"]


def test_a_job_that_may_not_go_there_changes_nothing() -> None:
    """Only who may go to a cluster behind the pair has a say."""
    made = behind_gateways()
    made.submit(gateway="gw-u", max_latency_ns=20 * MS, clusters={"elsewhere"})
    assert steering(made).choices([crossing()]) == []
