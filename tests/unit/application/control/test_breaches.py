"""Running jobs whose links break their bounds are told of, and moved where they asked for it."""

from __future__ import annotations

from typing import Any

from seaway.domain.network import Link, NetworkNeed, OnBreach
from seaway.testing.builders import cluster, fleet, gpu, node
from tests.unit.application.scene import Scene, scene

MS = 1_000_000
DOORS = ("gw-alpha", "gw-beta", "gw-gamma")


def ties(**latency_ms: int | None) -> list[Link]:
    """Return links from the user to each cluster, and between the clusters, of 10 ms unless said otherwise."""
    ends = [(a, b) for a in ("user", *DOORS) for b in DOORS if a != b]
    slow = {("user", f"gw-{name}"): ms for name, ms in latency_ms.items()}
    figures = ((each, slow.get(each, 10)) for each in ends)
    return [Link(*each, None if ms is None else ms * MS, bandwidth_mbps=1_000) for each, ms in figures]


def three(gpus: int = 4, **settings: float) -> Scene:
    """Make three clusters of one node each, all near the user."""
    parts = [cluster(node(*[gpu() for _ in range(gpus)]), name=d.removeprefix("gw-"), gateway=d) for d in DOORS]
    return scene(fleet(*parts, links=ties()), **settings)


def measured(made: Scene, links: list[Link]) -> None:
    """Have links measured anew."""
    made.clusters.measure(links)


def told(made: Scene, job_id: str) -> list[str]:
    """Return the breaches of a job and their ends, as they were told."""
    found = made.plane.store.events(0, 1000, job_id=job_id)
    return [f"{event.kind}: {event.reason}" for event in found if event.kind in ("breach", "recovered")]


NEAR = {"gateway": "user", "max_latency_ns": 20 * MS}
SLOW = "breach: its network breaks its bounds: user to gw-alpha: latency 31 ms, bound 20 ms"


def running(made: Scene, on_breach: OnBreach = OnBreach.REPORT, **fields: Any) -> str:  # noqa: ANN401  # as `submit` takes them
    """Submit a job with bounds and let it start."""
    job_id = made.submit(on_breach=on_breach, **{**NEAR, **fields})
    made.plane.run(10)
    assert made.state(job_id) == "running"
    return job_id


def test_a_breach_is_told_of_once_it_has_lasted_and_when_it_ends() -> None:
    """It is told once, shown with the job, and over when the link is good again; the job goes on where it is."""
    made = three()
    job_id = running(made)
    measured(made, ties(alpha=31))
    made.plane.run(55)
    assert told(made, job_id) == []
    made.plane.run(120)
    assert told(made, job_id) == [SLOW]
    assert made.job(job_id).reason == SLOW.removeprefix("breach: ")
    assert made.plane.controller.breaches.reported == 1
    measured(made, ties())
    made.plane.run(5)
    assert told(made, job_id) == [SLOW, "recovered: its network keeps its bounds again"]
    assert (made.state(job_id), made.job(job_id).attempt) == ("running", 1)


def test_a_breach_that_passes_is_not_told_of() -> None:
    """A link that is bad for less than the set time, however often, breaks nothing."""
    made = three()
    job_id = running(made)
    for _ in range(4):
        measured(made, ties(alpha=31))
        made.plane.run(40)
        measured(made, ties())
        made.plane.run(2)
    assert told(made, job_id) == []


def test_a_silent_link_is_broken_and_one_that_nobody_measures_is_not() -> None:
    """Where nothing answers a bound is broken; where nobody asked, nobody knows."""
    made = three()
    job_id = running(made)
    measured(made, [link for link in ties() if link.target != "gw-alpha"])
    made.plane.run(120)
    assert told(made, job_id) == []
    measured(made, ties(alpha=None))
    made.plane.run(70)
    assert told(made, job_id) == ["breach: its network breaks its bounds: user to gw-alpha: nothing answers"]


def test_a_job_that_asked_for_it_is_moved() -> None:
    """It ends, and is started again in a cluster whose link is good; it is kept from where it was for a while."""
    made = three()
    job_id = running(made, OnBreach.MOVE)
    measured(made, ties(alpha=31))
    made.plane.run(59)
    assert (made.state(job_id), made.where(job_id)) == ("running", "alpha")
    made.plane.run(30)
    assert (made.state(job_id), made.where(job_id), made.job(job_id).attempt) == ("running", "beta", 2)
    assert told(made, job_id) == [SLOW]
    assert made.plane.controller.breaches.moved == 1


def test_a_job_that_fits_nowhere_else_stays() -> None:
    """A bad network is better than none: it is only told of, and moved once something else is free."""
    made = three(gpus=1)
    blockers = [made.submit(clusters={name}) for name in ("beta", "gamma")]
    job_id = running(made, OnBreach.MOVE)
    measured(made, ties(alpha=31))
    made.plane.run(200)
    assert (made.state(job_id), made.where(job_id), made.job(job_id).attempt) == ("running", "alpha", 1)
    assert told(made, job_id) == [SLOW]
    made.plane.jobs.cancel(blockers[0], "somebody")
    made.plane.run(100)
    assert (made.state(job_id), made.where(job_id)) == ("running", "beta")


def test_jobs_are_moved_a_bounded_number_of_times() -> None:
    """A network that is bad wherever a job goes moves it ever more rarely, and in the end not at all."""
    made = three(network_breach_s=4, forgive_s=5)
    job_id = running(made, OnBreach.MOVE)
    for _ in range(30):
        here = made.where(job_id)
        measured(made, ties(**{here: 31}))
        made.plane.run(20)
    assert made.job(job_id).attempt == 6
    assert made.state(job_id) == "running"


def test_bounds_between_replicas_are_watched_too() -> None:
    """Of a job over several clusters every link between two of them counts, in both directions."""
    made = three(gpus=1)
    job_id = made.submit(replicas=3, gang=True, between_replicas=NetworkNeed(max_latency_ns=20 * MS))
    made.plane.run(10)
    worse = [
        Link(each.source, each.target, 25 * MS) if (each.source, each.target) == ("gw-gamma", "gw-beta") else each
        for each in ties()
    ]
    measured(made, worse)
    made.plane.run(70)
    text = "its network breaks its bounds: gw-gamma to gw-beta: latency 25 ms, bound 20 ms"
    assert told(made, job_id) == [f"breach: {text}"]


def test_bandwidth_that_a_link_has_no_more_is_a_breach() -> None:
    """A link that shrank below what jobs were promised breaks the bounds of all of them."""
    made = three()
    first, second = (
        running(made, max_latency_ns=0, min_bandwidth_mbps=mbps, clusters={"alpha"}) for mbps in (300, 400)
    )
    slim = [Link(each.source, each.target, 10 * MS, bandwidth_mbps=600) for each in ties()]
    measured(made, slim)
    made.plane.run(70)
    for job_id in (first, second):
        assert told(made, job_id) == [
            "breach: its network breaks its bounds: user to gw-alpha: 100Mbps more is promised than it has"
        ]


def test_jobs_move_one_at_a_time() -> None:
    """Each that is moved is placed before the next is tried, so that no two are sent to the same place."""
    made = three(gpus=2)
    blockers = [made.submit(clusters={name}, gpus=2) for name in ("gamma",)]
    taken = made.submit(clusters={"beta"})
    movers = [running(made, OnBreach.MOVE, clusters={"alpha", "beta"}) for _ in range(2)]
    assert {made.where(each) for each in movers} <= {"alpha", "beta"}
    there = [each for each in movers if made.where(each) == "alpha"]
    measured(made, ties(alpha=31))
    made.plane.run(200)
    assert sum(made.where(each) == "beta" for each in movers) == 1
    assert all(made.state(each) == "running" for each in (*movers, taken, *blockers))
    assert len(there) >= 1
