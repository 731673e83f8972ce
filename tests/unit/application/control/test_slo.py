"""SLO violations of running jobs are reported, and the jobs moved on request."""

from __future__ import annotations

from ipaddress import IPv6Address
from typing import Any
from unittest.mock import patch

import pytest

from seaway.application.control.slo import Verdicts
from seaway.application.ports.agent import Reported
from seaway.domain.gateways import GatewayConfig, NetworkConfig
from seaway.domain.network import Link, NetworkNeed, OnViolation
from seaway.testing.plugins import cluster, fleet, gpu, node
from tests.unit.application.scene import Scene, scene

MS = 1_000_000
GATEWAYS = ("gw-alpha", "gw-beta", "gw-gamma")


def ties(**latency_ms: int | None) -> list[Link]:
    """Return links from the user to each cluster, and between the clusters, of 10 ms by default."""
    ends = [(a, b) for a in ("user", *GATEWAYS) for b in GATEWAYS if a != b]
    slow = {("user", f"gw-{name}"): ms for name, ms in latency_ms.items()}
    figures = ((each, slow.get(each, 10)) for each in ends)
    return [Link(*each, None if ms is None else ms * MS, bandwidth_mbps=1_000) for each, ms in figures]


def three(gpus: int = 4, **settings: float) -> Scene:
    """Create three clusters of one node each, all near the user."""
    parts = [cluster(node(*[gpu() for _ in range(gpus)]), name=d.removeprefix("gw-"), gateway=d) for d in GATEWAYS]
    return scene(fleet(*parts, links=ties()), **settings)


def measured(made: Scene, links: list[Link]) -> None:
    """Apply new measurements of links."""
    made.clusters.measure(links)


def reported(made: Scene, job_id: str) -> list[str]:
    """Return the reported SLO violations of a job and their ends."""
    found = made.plane.store.events(0, 1000, job_id=job_id)
    return [f"{event.kind}: {event.reason}" for event in found if event.kind in ("slo_violated", "slo_recovered")]


NEAR = {"gateway": "user", "max_latency_ns": 20 * MS}
SLOW = "slo_violated: its network violates its bounds: user to gw-alpha: latency 31 ms, bound 20 ms"


def running(made: Scene, on_violation: OnViolation = OnViolation.REPORT, **fields: Any) -> str:  # noqa: ANN401  # as `submit` takes them
    """Submit a job with bounds and let it start."""
    job_id = made.submit(on_violation=on_violation, **{**NEAR, **fields})
    made.plane.run(10)
    assert made.state(job_id) == "running"
    return job_id


def test_a_breach_is_informed_of_once_it_has_lasted_and_when_it_ends() -> None:
    """It is reported once, shown with the job, and ends when the link recovers; the job stays in its place."""
    made = three()
    job_id = running(made)
    measured(made, ties(alpha=31))
    made.plane.run(55)
    assert reported(made, job_id) == []
    made.plane.run(120)
    assert reported(made, job_id) == [SLOW]
    assert made.job(job_id).reason == SLOW.removeprefix("slo_violated: ")
    assert made.plane.controller.slo_violations.reported == 1
    measured(made, ties())
    made.plane.run(5)
    assert reported(made, job_id) == [SLOW, "slo_recovered: its network meets its bounds again"]
    assert (made.state(job_id), made.job(job_id).attempt) == ("running", 1)


def test_a_breach_that_passes_is_not_informed_of() -> None:
    """A link that is bad for less than the set time, however often, violates nothing."""
    made = three()
    job_id = running(made)
    for _ in range(4):
        measured(made, ties(alpha=31))
        made.plane.run(40)
        measured(made, ties())
        made.plane.run(2)
    assert reported(made, job_id) == []


def test_a_unreachable_link_is_broken_and_one_that_no_one_measures_is_not() -> None:
    """A link without answers violates a bound; one without measurements is unknown."""
    made = three()
    job_id = running(made)
    measured(made, [link for link in ties() if link.target != "gw-alpha"])
    made.plane.run(120)
    assert reported(made, job_id) == []
    measured(made, ties(alpha=None))
    made.plane.run(70)
    assert reported(made, job_id) == [
        "slo_violated: its network violates its bounds: user to gw-alpha: nothing answers"
    ]


def test_a_job_that_asked_for_it_is_moved() -> None:
    """It ends, and starts again in a cluster with a good link; its old cluster is excluded for a while."""
    made = three()
    job_id = running(made, OnViolation.MOVE)
    measured(made, ties(alpha=31))
    made.plane.run(59)
    assert (made.state(job_id), made.where(job_id)) == ("running", "alpha")
    made.plane.run(30)
    assert (made.state(job_id), made.where(job_id), made.job(job_id).attempt) == ("running", "beta", 2)
    assert reported(made, job_id) == [SLOW]
    assert made.plane.controller.slo_violations.moved == 1


def test_a_job_that_fits_nowhere_else_stays() -> None:
    """A bad network is better than none: the violation is reported, and the job moves when resources are free."""
    made = three(gpus=1)
    blockers = [made.submit(clusters={name}) for name in ("beta", "gamma")]
    job_id = running(made, OnViolation.MOVE)
    measured(made, ties(alpha=31))
    made.plane.run(200)
    assert (made.state(job_id), made.where(job_id), made.job(job_id).attempt) == ("running", "alpha", 1)
    assert reported(made, job_id) == [SLOW]
    made.plane.jobs.cancel(blockers[0], "eve")
    made.plane.run(100)
    assert (made.state(job_id), made.where(job_id)) == ("running", "beta")
    assert reported(made, job_id) == [SLOW]
    assert made.plane.controller.slo_violations.reported == 1


def test_jobs_are_moved_a_bounded_number_of_times() -> None:
    """With bad links everywhere a job moves less and less often, and finally no more."""
    made = three(slo_violation_s=4, exclusion_period_s=5)
    job_id = running(made, OnViolation.MOVE)
    for _ in range(30):
        here = made.where(job_id)
        measured(made, ties(**{here: 31}))
        made.plane.run(20)
    assert made.job(job_id).attempt == 6
    assert made.state(job_id) == "running"


def test_bounds_between_replicas_are_watched_too() -> None:
    """For a job over several clusters every link between two of them counts, in both directions."""
    made = three(gpus=1)
    job_id = made.submit(replicas=3, gang=True, between_replicas=NetworkNeed(max_latency_ns=20 * MS))
    made.plane.run(10)
    worse = [
        Link(each.source, each.target, 25 * MS) if (each.source, each.target) == ("gw-gamma", "gw-beta") else each
        for each in ties()
    ]
    measured(made, worse)
    made.plane.run(70)
    text = "its network violates its bounds: gw-gamma to gw-beta: latency 25 ms, bound 20 ms"
    assert reported(made, job_id) == [f"slo_violated: {text}"]


def test_bandwidth_that_a_link_has_no_more_is_a_breach() -> None:
    """A link whose capacity shrinks below the reserved bandwidth violates the bounds of all its jobs."""
    made = three()
    first, second = (
        running(made, max_latency_ns=0, min_bandwidth_mbps=mbps, clusters={"alpha"}) for mbps in (300, 400)
    )
    slim = [Link(each.source, each.target, 10 * MS, bandwidth_mbps=600) for each in ties()]
    measured(made, slim)
    made.plane.run(70)
    for job_id in (first, second):
        assert reported(made, job_id) == [
            "slo_violated: its network violates its bounds: user to gw-alpha: 100Mbps more is reserved than it has"
        ]


def test_jobs_move_one_at_a_time() -> None:
    """Each moved job is placed before the next is tried, so that no two are sent to the same place."""
    made = three(gpus=2)
    blockers = [made.submit(clusters={name}, gpus=2) for name in ("gamma",)]
    taken = made.submit(clusters={"beta"})
    movers = [running(made, OnViolation.MOVE, clusters={"alpha", "beta"}) for _ in range(2)]
    assert {made.where(each) for each in movers} <= {"alpha", "beta"}
    there = [each for each in movers if made.where(each) == "alpha"]
    measured(made, ties(alpha=31))
    made.plane.run(200)
    assert sum(made.where(each) == "beta" for each in movers) == 1
    assert all(made.state(each) == "running" for each in (*movers, taken, *blockers))
    assert len(there) >= 1


def test_a_moved_job_is_stored_from_where_it_was_although_the_link_is_good_again() -> None:
    """For `exclusion_period_s` it does not return, whatever causes its placement; after that it may."""
    made = three(slo_violation_s=4, exclusion_period_s=100)
    job_id = running(made, OnViolation.MOVE)
    measured(made, ties(alpha=31))
    made.plane.run(10)
    assert made.where(job_id) == "beta"
    measured(made, ties())
    for seconds, there in ((10, {"beta", "gamma"}), (120, {"alpha"})):
        made.plane.run(seconds)
        made.plane.jobs.suspend(job_id, "eve")
        made.plane.run(10)
        made.plane.jobs.resume(job_id, "eve")
        made.plane.run(10)
        assert made.state(job_id) == "running"
        assert made.where(job_id) in there


def test_stored_data_for_a_job_that_waits_breaks_nothing() -> None:
    """Its bandwidth is not in use yet: running jobs keep theirs; real losses count as before."""
    made = three(slo_violation_s=4)
    bounds: dict[str, Any] = {"max_latency_ns": 0, "clusters": {"alpha"}}
    first = running(made, OnViolation.MOVE, **{**bounds, "clusters": {"alpha", "beta"}, "min_bandwidth_mbps": 600})
    second = running(made, **bounds, min_bandwidth_mbps=300)
    third = made.submit(**{**NEAR, **bounds, "min_bandwidth_mbps": 300})
    made.plane.run(20)
    assert [each.entry.id for each in made.plane.controller.scheduler.reservations.made()] == [third]
    assert (reported(made, first), reported(made, second), made.job(first).attempt) == ([], [], 1)
    measured(made, [Link(each.source, each.target, 10 * MS, bandwidth_mbps=800) for each in ties()])
    made.plane.run(5)
    text = "user to gw-alpha: 100Mbps more is reserved than it has"
    assert reported(made, second) == [f"slo_violated: its network violates its bounds: {text}"]


def test_bandwidth_that_is_not_known_breaks_nothing_of_what_runs() -> None:
    """Unknown free bandwidth is no violation and moves no job; a silent link still is one."""
    made = three(slo_violation_s=4)
    job_id = running(made, OnViolation.MOVE, min_bandwidth_mbps=100)
    measured(made, [Link(each.source, each.target, 10 * MS) if "alpha" in each.target else each for each in ties()])
    made.plane.run(30)
    assert (reported(made, job_id), made.job(job_id).attempt) == ([], 1)
    measured(made, [Link(each.source, each.target, None) for each in ties()])
    made.plane.run(10)
    assert made.job(job_id).reason.endswith("user to gw-alpha: nothing answers")


def test_the_reason_follows_the_figures() -> None:
    """It reports the present values; an update is not an event."""
    made = three()
    job_id = running(made)
    measured(made, ties(alpha=31))
    made.plane.run(70)
    measured(made, ties(alpha=62))
    made.plane.run(70)
    assert made.job(job_id).reason == "its network violates its bounds: user to gw-alpha: latency 62 ms, bound 20 ms"
    assert reported(made, job_id) == [SLOW]


def test_what_keeps_its_bounds_is_judged_again_only_when_its_links_change() -> None:
    """Changes of other links cause no work."""
    made = three()
    job_id = running(made)
    made.plane.run(5)
    with patch.object(Verdicts, "violation", autospec=True, side_effect=Verdicts.violation) as judged:
        made.plane.run(20)
        measured(made, ties(beta=31))
        made.plane.run(20)
        assert judged.call_count == 0
        measured(made, ties(alpha=31))
        made.plane.run(70)
    assert reported(made, job_id) == [SLOW]


class Probed:
    """A scene in which an agent measures the link from the user to ``alpha``, and a job with a bound on its loss."""

    def __init__(self, on_violation: OnViolation = OnViolation.REPORT) -> None:
        self.made = three()
        self.link_table = self.made.plane.controller.live.link_table
        user = GatewayConfig("user", IPv6Address("fd00::1"), site="lab")
        admission = GatewayConfig("gw-alpha", IPv6Address("fd00::2"), cluster="alpha")
        self.link_table.use(NetworkConfig((user, admission)), self.made.clock.now_ns())
        self.take(*[5] * 30)
        self.job_id = running(self.made, on_violation, max_latency_ns=0, max_loss_ppm=10_000)
        self.take(5)

    def take(self, *received: int) -> None:
        """Report rounds of five probes, ten seconds apart, each with a number of answers."""
        for count in received:
            now_ns = self.made.clock.now_ns()
            latency_ns = 10 * MS if count else None
            self.link_table.take("user", [Reported("gw-alpha", "", now_ns, 5, count, latency_ns)], now_ns)
            self.made.plane.run(10)

    @property
    def loss_ppm(self) -> int:
        """Return the loss that decisions use."""
        links = self.link_table.links(self.made.clock.now_ns())
        return next(each.loss_ppm for each in links if each.target == "gw-alpha")


@pytest.mark.parametrize("lost", [(0, 0), (0,), (3,), (0, 0, 0, 0)], ids=str)
def test_loss_of_a_moment_is_no_breach_however_long_it_is_counted(lost: tuple[int, ...]) -> None:
    """The window remembers it for minutes, but it did not last: nothing is reported or moved."""
    probed = Probed(OnViolation.MOVE)
    probed.take(*lost, *[5] * 12)
    assert probed.loss_ppm > 10_000
    probed.take(*[5] * 20)
    assert probed.loss_ppm <= 10_000
    assert (reported(probed.made, probed.job_id), probed.made.job(probed.job_id).attempt) == ([], 1)


def test_loss_that_goes_on_is_a_breach() -> None:
    """A link with losses every few rounds violates its bound, although rounds in between do not."""
    probed = Probed()
    probed.take(4, 5, 5, 4, 5, 5, 4)
    assert reported(probed.made, probed.job_id) == []
    probed.take(5, 5, 4)
    said = reported(probed.made, probed.job_id)
    assert [
        each.startswith("slo_violated: its network violates its bounds: user to gw-alpha: loss ") for each in said
    ] == [True]


def test_a_dead_link_is_a_breach_after_the_set_time() -> None:
    """Rounds without answers keep violating every bound; silence of the agent changes nothing."""
    probed = Probed()
    probed.take(0, 0)
    probed.made.plane.run(60)
    assert reported(probed.made, probed.job_id) == []
    probed.take(*[0] * 8)
    assert reported(probed.made, probed.job_id) == [
        "slo_violated: its network violates its bounds: user to gw-alpha: nothing answers"
    ]


def test_only_the_links_of_a_ring_count() -> None:
    """A link that no replica uses violates nothing; one between consecutive replicas does, and is named."""
    made = three(gpus=1)
    job_id = made.submit(replicas=3, ring=True, gpus=1, between_replicas=NetworkNeed(max_latency_ns=20 * MS))
    made.plane.run(10)
    assert made.state(job_id) == "running"
    (attempt,) = made.plane.controller.live.attempts.values()
    gateways = [f"gw-{each.cluster}" for each in attempt.placements]
    used = list(zip(gateways, [*gateways[1:], gateways[0]], strict=True))

    def slow(source: str, target: str) -> list[Link]:
        links = [each for each in ties() if (each.source, each.target) != (source, target)]
        return [*links, Link(source, target, 31 * MS, bandwidth_mbps=1_000)]

    measured(made, slow(*reversed(used[0])))
    made.plane.run(120)
    assert reported(made, job_id) == []
    measured(made, slow(*used[0]))
    made.plane.run(120)
    source, target = used[0]
    assert reported(made, job_id) == [
        f"slo_violated: its network violates its bounds: {source} to {target}: latency 31 ms, bound 20 ms"
    ]
