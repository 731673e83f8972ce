"""Data locality: transfer times, their explanation and their influence on placement."""

from __future__ import annotations

from dataclasses import replace

import pytest

from seaway.domain.job import DataSource, Job
from seaway.domain.network import Gateway, Link
from seaway.scheduling.data_locality import UNREACHABLE_MS, data_text, pull_ms
from seaway.scheduling.engine import decide
from seaway.scheduling.explain import explain, summary
from seaway.scheduling.job_queue import JobQueue
from seaway.scheduling.policies.registry import BUILT_IN, PolicyOptions, make_policy, make_profile
from seaway.scheduling.snapshot.snapshot import Snapshot
from seaway.scheduling.snapshot.update import put_links
from seaway.testing.plugins import cluster, fleet, gpu, job, node

NAMES = ("near", "wide", "far", "dark", "dead")
DATA = DataSource("near", 1_000)
AWAY = DataSource("wide", 100_000)
POLICIES = [name for name in BUILT_IN if not name.startswith("volcano")]


def ties(far_mbps: int = 400) -> list[Link]:
    """Return links: none to dark, and an unreachable one to dead."""
    return [
        Link("gw-near", "gw-wide", 1, bandwidth_mbps=1_000),
        Link("gw-wide", "gw-near", 1, bandwidth_mbps=1_000),
        Link("gw-near", "gw-far", 1, bandwidth_mbps=far_mbps),
        Link("gw-wide", "gw-far", 1, bandwidth_mbps=far_mbps),
        Link("gw-near", "gw-dead", None, bandwidth_mbps=9_000),
        Link("user", "gw-far", 1, bandwidth_mbps=400),
    ]


def five(**speeds: int) -> Snapshot:
    """Create clusters of one device each; `speeds` are the speeds of their gateways."""
    parts = [cluster(node(gpu()), name=name, gateway=f"gw-{name}", region=f"r-{name}") for name in NAMES]
    doors = [Gateway(f"gw-{name}", speed_mbps=speeds.get(name, 0)) for name in NAMES]
    return Snapshot(fleet(*parts, links=ties(), gateways=[*doors, Gateway("user")]))


def went(snapshot: Snapshot, policy: str, *jobs: Job, plain: bool = False) -> list[str]:
    """Return the clusters of the placed jobs."""
    plan = decide(snapshot, JobQueue(snapshot, jobs), make_policy(policy, PolicyOptions(plain=plain)))
    return [each.cluster for each in plan.placements()]


@pytest.mark.parametrize(
    ("place", "expected"),
    [
        (DATA, [0, 8_388, 20_971, UNREACHABLE_MS, UNREACHABLE_MS]),
        (DataSource("gw-near", 1_000), [0, 8_388, 20_971, UNREACHABLE_MS, UNREACHABLE_MS]),
        (DataSource("r-near", 1_000), [0, 8_388, 20_971, UNREACHABLE_MS, UNREACHABLE_MS]),
        (DataSource("user", 1_000), [UNREACHABLE_MS, UNREACHABLE_MS, 20_971, UNREACHABLE_MS, UNREACHABLE_MS]),
        (DataSource("near"), [0, 0, 0, UNREACHABLE_MS, UNREACHABLE_MS]),
        (DataSource("nowhere", 1_000), [UNREACHABLE_MS] * 5),
    ],
)
def test_transfer_time_is_data_size_over_free_bandwidth(place: DataSource, expected: list[int]) -> None:
    """Local data takes no time; an unknown or unreachable link has no transfer time."""
    assert pull_ms(five(), place).tolist() == expected


def test_transfer_time_counts_unreserved_bandwidth() -> None:
    """Reservations of running jobs and the speed of interfaces make transfers longer."""
    snapshot = five(wide=500)
    asked = job(gateway="user", min_bandwidth_mbps=300, clusters={"far"})
    assert went(snapshot, "bestfit", asked) == ["far"]
    assert pull_ms(snapshot, DataSource("user", 1_000))[2] == 83_886
    assert pull_ms(snapshot, DATA)[1] == 16_777


@pytest.mark.parametrize(
    ("place", "clusters", "said"),
    [
        (DataSource(), ["near"], ""),
        (AWAY, ["wide"], "its data is at wide"),
        (AWAY, ["near", "far"], "its data is at wide; 100000Mi take 14 min to near, 35 min to far"),
        (AWAY, ["dark"], "its data is at wide; the transfer time is unknown to dark"),
    ],
)
def test_explanation_has_transfer_times(place: DataSource, clusters: list[str], said: str) -> None:
    """It names the source and the time; a job without data has no such line."""
    snapshot = five()
    assert data_text(snapshot, place, pull_ms(snapshot, place), clusters) == said


@pytest.mark.parametrize("plain", [False, True], ids=["compiled", "plain"])
@pytest.mark.parametrize("policy", POLICIES)
def test_every_policy_prefers_clusters_near_the_data(policy: str, plain: bool) -> None:
    """Jobs go to the data, then to ever slower links, and at last to clusters without a link."""
    jobs = [job(f"job-{number}", gpus=1, data=AWAY) for number in range(5)]
    found = went(five(), policy, *jobs, plain=plain)
    assert found[:3] == ["wide", "near", "far"]
    assert sorted(found[3:]) == ["dark", "dead"]


def test_present_link_measurements_decide() -> None:
    """After a new measurement the next job uses it."""
    asked = job(gpus=1, data=AWAY, clusters={"near", "far"})
    snapshot = five()
    assert went(snapshot.copy(), "greedy", asked) == ["near"]
    put_links(snapshot, ties(far_mbps=9_000))
    assert went(snapshot, "greedy", asked) == ["far"]


def test_candidates_are_sorted_by_transfer_time() -> None:
    """An explanation lists candidates in the order of preference, with their transfer times."""
    snapshot, asked = five(), job(gpus=1, data=AWAY)
    profile = make_profile("greedy")
    reported = explain(snapshot, asked, profile)
    assert [each.cluster for each in reported.candidates] == ["wide", "near", "far", "dark", "dead"]
    assert summary(reported).endswith(
        "best wide/node-0; its data is at wide; 100000Mi take 14 min to near, 35 min to far"
    )
    assert not explain(snapshot, replace(asked, data=DataSource()), profile).data


def test_plan_has_transfer_times() -> None:
    """A plan has the transfer times at decision time, for jobs with data only."""
    snapshot = five()
    queue = JobQueue(snapshot, [job("a", data=DATA), job("b")])
    plan = decide(snapshot, queue, make_policy("greedy"))
    assert {number: pulls.tolist() for number, pulls in plan.pulls.items()} == {0: pull_ms(five(), DATA).tolist()}
