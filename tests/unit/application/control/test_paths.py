"""Choice of paths for traffic, by running and pending jobs."""

from __future__ import annotations

from dataclasses import replace

from seaway.application.control.paths import Steering
from seaway.application.network.paths import Measured, SteerablePair
from seaway.domain.job_state import JobState
from seaway.domain.network import PPM, Gateway, Link, NetworkNeed
from seaway.testing.plugins import cluster, fleet, gpu, node
from tests.unit.application.scene import Scene, scene

MS = 1_000_000

DIRECT = Measured("direct", Link("gw-u", "gw-a", 40 * MS))
QUICK = Measured("quick", Link("gw-u", "gw-a", 10 * MS, loss_ppm=20_000))
DEAD = Measured("direct", Link("gw-u", "gw-a", None, loss_ppm=PPM))


def crossing(current: str = "direct", direct: Measured = DIRECT) -> SteerablePair:
    """Create the state of the pair between users and the cluster."""
    return SteerablePair("gw-u", "gw-a", current, (direct, QUICK))


def behind_gateways(link: Measured = DIRECT) -> Scene:
    """Put a cluster behind ``gw-a``, which users reach from ``gw-u``, and one behind ``gw-b``, too far away."""
    assert link.link is not None
    made = fleet(
        cluster(node(gpu(), gpu()), name="alpha", gateway="gw-a"),
        cluster(node(gpu(), gpu(), gpu()), name="beta", gateway="gw-b"),
        gateways=(Gateway("gw-a"), Gateway("gw-b"), Gateway("gw-u")),
        links=(link.link, Link("gw-u", "gw-b", 900 * MS, loss_ppm=500_000)),
    )
    return scene(made, path_hold_down_s=30)


def steering(made: Scene) -> Steering:
    """Return the steering of a control plane."""
    return Steering(made.plane.controller.live, made.plane.controller.scheduler.ready)


def test_a_job_that_waits_in_vain_has_traffic_take_its_path() -> None:
    """If another path would serve a job that no link serves now, that path is chosen."""
    made = behind_gateways()
    job = made.submit(gateway="gw-u", max_latency_ns=20 * MS)
    assert made.state(job) == "queued"
    ((pair, choice),) = steering(made).choices([crossing()])
    assert (pair.target, choice.path) == ("gw-a", "quick")
    assert job in choice.why


def test_a_job_that_was_not_tried_yet_changes_no_path() -> None:
    """A job without a try may fit as things are."""
    made = behind_gateways()
    tried = made.job(made.submit(gateway="gw-u", max_latency_ns=20 * MS))
    live = made.plane.controller.live
    live.jobs[tried.id] = replace(tried, state=JobState.PENDING)
    assert steering(made).choices([crossing()]) == []
    live.jobs[tried.id] = tried
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
    """A chosen path is held for a while, so that jobs with different needs do not change it all the time."""
    made = behind_gateways()
    who = steering(made)
    job = made.submit(gateway="gw-u", max_latency_ns=20 * MS)
    assert who.choices([crossing()])
    made.plane.jobs.cancel(job, "eve")
    made.plane.settle()
    assert who.choices([crossing("quick")]) == []
    made.clock.advance_s(31)
    assert [choice.path for _, choice in who.choices([crossing("quick")])] == ["direct"]


def test_a_path_that_went_unreachable_is_left_at_once() -> None:
    """A path without answers is not held."""
    made = behind_gateways()
    who = steering(made)
    made.submit(gateway="gw-u", max_latency_ns=20 * MS)
    assert who.choices([crossing()])
    unreachable = SteerablePair("gw-u", "gw-a", "direct", (DEAD, QUICK))
    assert [choice.path for _, choice in who.choices([unreachable])] == ["quick"]


def test_a_job_that_may_not_go_there_changes_nothing() -> None:
    """Only jobs that may use a cluster behind the pair count."""
    made = behind_gateways()
    made.submit(gateway="gw-u", max_latency_ns=20 * MS, clusters={"elsewhere"})
    assert steering(made).choices([crossing()]) == []


def test_a_job_that_has_no_place_anyway_changes_nothing() -> None:
    """A job that could not run with a perfect link does not steer traffic, but the next job may."""
    made = behind_gateways()
    made.plane.operations.cordon("alpha", "", drain=False, reason="repairs", actor="ada")
    made.plane.settle()
    made.submit(gateway="gw-u", max_latency_ns=20 * MS)
    assert steering(made).choices([crossing()]) == []
    made.plane.operations.uncordon("alpha", "", actor="ada")
    made.plane.settle()
    large = made.submit(gateway="gw-u", max_latency_ns=20 * MS, gpus=3)
    small = made.submit(gateway="gw-u", max_latency_ns=20 * MS)
    ((_, choice),) = steering(made).choices([crossing()])
    assert choice.job_id not in {"", large}
    assert made.state(small) == "queued"


def test_a_gang_has_traffic_between_its_clusters_steered() -> None:
    """Bounds between replicas count for the link between two clusters, of pending and running jobs."""
    ends = (Gateway("gw-a"), Gateway("gw-b"))
    links = (Link("gw-a", "gw-b", 40 * MS), Link("gw-b", "gw-a", 4 * MS))
    clusters = [cluster(node(gpu()), name=name, gateway=f"gw-{name[0]}") for name in ("alpha", "beta")]
    made = scene(fleet(*clusters, gateways=ends, links=links))
    gang = made.submit(replicas=2, gang=True, between_replicas=NetworkNeed(max_latency_ns=20 * MS))
    assert made.state(gang) == "queued"
    paths = (
        Measured("direct", links[0]),
        Measured("quick", Link("gw-a", "gw-b", 10 * MS)),
    )
    ((_, choice),) = steering(made).choices([SteerablePair("gw-a", "gw-b", "direct", paths)])
    assert (choice.path, choice.job_id) == ("quick", gang)
