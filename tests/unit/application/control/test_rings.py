"""Clusters of a ring or gang get the address of rank 0: its cluster starts first, and the others once it is known."""

from __future__ import annotations

from dataclasses import replace

import pytest

from seaway.adapters.simulated import workload
from seaway.application.records import Verb
from seaway.domain.deployment import Reach
from seaway.domain.job_spec import JobSpec
from seaway.domain.network import NetworkNeed
from seaway.domain.runtime import Run
from tests.unit.application.control.test_slo import MS, three, ties
from tests.unit.application.scene import Scene, spec


def ring(made: Scene, **env: str) -> str:
    """Submit a ring over three clusters, whose replicas have these variables."""
    return made.plane.submit(spec(replicas=3, ring=True, run=Run(env=tuple(env.items()))))[0]


def waiting(made: Scene) -> set[str]:
    """Return the clusters with a stored command."""
    return {each.cluster for each in made.plane.store.pending_commands() if each.verb is Verb.CREATE}


GANG = spec(replicas=3, gang=True, run=Run(command=("train",)))
"""A gang whose replicas meet at rank 0, in any clusters."""

TORCHRUN = replace(GANG, gang=False, template="torchrun")


@pytest.mark.parametrize("asked", [spec(replicas=3, ring=True), GANG, TORCHRUN])
def test_other_clusters_start_with_the_address_of_rank_0(asked: JobSpec) -> None:
    """Their commands wait until the cluster of rank 0 reports it; it is stored, shown and an event."""
    made = three(gpus=1)
    (job_id,) = made.plane.submit(asked)
    made.plane.controller.step()
    first, *others = (each.cluster for each in made.plane.attempt(job_id).placements)
    assert all(made.phase(each, job_id) is None for each in others)
    assert set(others) <= waiting(made)
    made.plane.run(10)
    assert made.state(job_id) == "running"
    attempt = made.plane.attempt(job_id)
    (address,) = (each.address for each in attempt.placements if each.address)
    assert attempt.placements[0].address == address
    assert f".{first}.simulated:" in address
    events = [each.reason for each in made.plane.store.events(0, 100, job_id=job_id) if each.kind == "endpoint"]
    assert events == [f"rank 0 answers the other clusters at {address}"]
    (copy,) = (each for each in made.cluster(first).changes("", 0).workloads)
    assert [(each.address, each.reach) for each in copy.endpoints] == [(address, Reach.CLUSTERS)]


@pytest.mark.parametrize(
    "asked",
    [
        replace(GANG, run=Run()),
        replace(GANG, min_replicas=3, max_replicas=4),
        replace(GANG, run=Run(command=("train",), env=(("MASTER_ADDR", "master.example"),))),
    ],
)
def test_a_gang_that_needs_no_address_starts_everywhere_at_once(asked: JobSpec) -> None:
    """Its pods get no variables, or its own address."""
    made = three(gpus=1)
    (job_id,) = made.plane.submit(asked)
    made.plane.controller.step()
    made.plane.controller.step()
    assert not waiting(made)
    assert {each.address for each in made.plane.attempt(job_id).placements} == {""}


def test_a_ring_is_shown_with_the_present_figures_of_its_links() -> None:
    """Each cluster has the link to the next one, in the order of the ranks, until the attempt ends."""
    made = three(gpus=1)
    job_id = ring(made)
    made.plane.run(10)
    attempt = made.plane.attempt(job_id)
    clusters = [each.cluster for each in attempt.placements]
    parts = made.plane.overview.ring(attempt)
    assert [(each.cluster, each.next) for each in parts] == [*zip(clusters, [*clusters[1:], clusters[0]], strict=True)]
    assert [each.replicas for each in parts] == [1, 1, 1]
    slow = ties()
    made.clusters.measure([replace(each, latency_ns=17 * MS) for each in slow])
    made.plane.run(2)
    for part in made.plane.overview.ring(attempt):
        assert part.link is not None
        assert (part.link.source, part.link.target) == (f"gw-{part.cluster}", f"gw-{part.next}")
        assert part.link.link is not None
        assert part.link.link.latency_ns == 17 * MS


def test_a_replica_that_has_completed_releases_its_devices_and_links() -> None:
    """Those of the other clusters report later. Both neighbours of the replica in the ring have their links back."""
    made = three(gpus=1)
    between = NetworkNeed(min_bandwidth_mbps=100)
    (job_id,) = made.plane.submit(spec(replicas=3, ring=True, between_replicas=between, expected_duration_s=20))

    def free() -> dict[str, tuple[int, ...]]:
        snapshot = made.plane.controller.live.fleet.snapshot
        return dict(
            zip((each.name for each in snapshot.fleet.gateways), snapshot.arrays.gateways.T.tolist(), strict=True)
        )

    def reserved() -> dict[str, tuple[int, int]]:
        """Return the bandwidth that is reserved on each interface, in and out."""
        now = free()
        return {
            name: (was[0] - now[name][0], was[1] - now[name][1]) for name, was in before.items() if was != now[name]
        }

    before = free()
    made.plane.run(10)
    first, second, third = (f"gw-{each.cluster}" for each in made.plane.attempt(job_id).placements)
    assert reserved() == dict.fromkeys((first, second, third), (100, 100))
    for name in (second, third):
        made.cluster(name.removeprefix("gw-")).disconnect()
    made.plane.run(20)
    assert [each.completed for each in made.plane.attempt(job_id).placements] == [True, False, False]
    assert reserved() == {second: (0, 100), third: (100, 0)}
    later = made.submit(gpus=1)
    assert made.where(later) == first.removeprefix("gw-")
    for name in (second, third):
        made.cluster(name.removeprefix("gw-")).reconnect()
    made.plane.run(5)
    assert (made.state(job_id), made.job(job_id).attempt, reserved()) == ("completed", 1, {})


@pytest.mark.parametrize("steps", range(6))
def test_a_restart_at_any_step_starts_a_ring_once(steps: int) -> None:
    """Commands that wait, and the address, are stored: each cluster gets the first attempt, and no second one."""
    made = three(gpus=1)
    job_id = ring(made)
    for _ in range(steps):
        made.plane.controller.step()
    made.plane.restart()
    made.plane.run(10)
    assert (made.state(job_id), made.job(job_id).attempt) == ("running", 1)


def test_a_job_with_an_address_of_its_own_starts_everywhere_at_once() -> None:
    """Seaway needs none then."""
    made = three(gpus=1)
    job_id = ring(made, MASTER_ADDR="master.example")
    made.plane.controller.step()
    made.plane.controller.step()
    assert not waiting(made)
    assert {each.address for each in made.plane.attempt(job_id).placements} == {""}


def test_a_ring_without_an_address_of_rank_0_frees_all_clusters(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is placed again after the time-out for confirmations, with the reason, and nothing of it is left."""
    monkeypatch.setattr(workload, "_rank_0", lambda *_: ())
    made = three(gpus=1, assume_timeout_s=10)
    job_id = ring(made)
    made.plane.run(120)
    reasons = [each.reason for each in made.plane.store.events(0, 100, job_id=job_id) if each.state == "queued"]
    assert any(" gave no address of rank 0 for " in each for each in reasons)
