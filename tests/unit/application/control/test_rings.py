"""Clusters of a ring get the address of rank 0: its cluster starts first, and the others once it is known."""

from __future__ import annotations

import pytest

from seaway.adapters.simulated import workload
from seaway.application.records import Verb
from seaway.domain.deployment import Reach
from seaway.domain.runtime import Run
from tests.unit.application.control.test_slo import three
from tests.unit.application.scene import Scene, spec


def ring(made: Scene, **env: str) -> str:
    """Submit a ring over three clusters, whose replicas have these variables."""
    return made.plane.submit(spec(replicas=3, ring=True, run=Run(env=tuple(env.items()))))[0]


def waiting(made: Scene) -> set[str]:
    """Return the clusters with a stored command."""
    return {each.cluster for each in made.plane.store.pending_commands() if each.verb is Verb.CREATE}


def test_other_clusters_start_with_the_address_of_rank_0() -> None:
    """Their commands wait until the cluster of rank 0 reports it; it is stored, shown and an event."""
    made = three(gpus=1)
    job_id = ring(made)
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
