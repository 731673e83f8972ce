from __future__ import annotations

import pytest

from seaway.application.control.scheduler import score_breakdown as module
from seaway.domain.queues import Queue
from seaway.domain.tenancy import DEFAULT
from seaway.testing.plugins import cluster, fleet, gpu, node
from tests.unit.application.scene import Scene, scene, spec


def four_nodes() -> Scene:
    """Create two clusters of two nodes, of one to four GPUs."""
    sizes = {"alpha": (4, 3), "beta": (2, 1)}
    return scene(fleet(*[cluster(*[node(*[gpu()] * size) for size in sizes[name]], name=name) for name in sizes]))


def test_an_attempt_keeps_the_scores_that_decided() -> None:
    """The best places are stored with their totals, and a later explanation of the job shows them."""
    made = four_nodes()
    job_id = made.submit()
    why = made.plane.attempt(job_id).why
    where = f"{made.where(job_id)}/{made.job(job_id).nodes[0]}"
    chosen, _, scores = why.partition("; scores: ")
    assert chosen == f"bestfit chose {where}"
    places = [each.rpartition(" ") for each in scores.split(", ")]
    assert len(places) == module.BEST
    assert places[0][0] == where
    totals = [int(total.replace(",", "")) for _, _, total in places]
    assert totals == sorted(totals, reverse=True)
    made.plane.run(5)
    for _ in range(5):
        made.submit()
    assert made.plane.overview.reason(made.job(job_id)).placement_reason == why


def test_a_note_that_fails_holds_up_no_job(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    """A score breakdown that cannot be made is left out; the log has the reason."""

    def fail(*_: object, **__: object) -> None:
        raise IndexError("out of bounds")

    monkeypatch.setattr(module, "explain", fail)
    made = four_nodes()
    job_id = made.submit()
    assert made.plane.attempt(job_id).why == f"bestfit chose {made.where(job_id)}/{made.job(job_id).nodes[0]}"
    assert "could not be recorded" in caplog.text


def test_each_job_of_a_batch_is_noted_as_it_was_decided() -> None:
    """The second job of a batch was decided after the first, and its scores show that."""
    together, apart = four_nodes(), four_nodes()
    ids = together.plane.submit(*[spec(gpus=gpus) for gpus in (1, 2, 3)])
    together.plane.settle()
    alone = [apart.submit(gpus=gpus) for gpus in (1, 2, 3)]
    assert [together.plane.attempt(job_id).why for job_id in ids] == [
        apart.plane.attempt(job_id).why for job_id in alone
    ]


def test_of_replicas_the_first_is_noted() -> None:
    """A gang names the replica whose scores it shows."""
    made = four_nodes()
    assert "; scores for its first replica: " in made.plane.attempt(made.submit(replicas=3, gang=True)).why


def test_a_overload_and_a_large_fleet_are_not_noted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where score breakdowns would delay placing, there are none."""
    made = four_nodes()
    ids = made.plane.submit(*[spec() for _ in range(module.MAX_JOBS + 1)])
    made.plane.settle()
    assert not any("scores" in made.plane.attempt(job_id).why for job_id in ids)
    for _ in range(2):
        noted = [" scores: " in made.plane.attempt(made.submit(gpus=0)).why for _ in range(module.AT_ONCE + 5)]
        assert module.AT_ONCE - 1 <= sum(noted) <= module.AT_ONCE
        made.plane.run(60)
    monkeypatch.setattr(module, "MAX_NODES", 3)
    assert "scores" not in made.plane.attempt(made.submit()).why


def test_notes_change_nothing_of_what_is_decided() -> None:
    """Long names are cut, and the fleet of the decisions is unchanged."""
    made = scene(fleet(cluster(node(gpu(), gpu(), name="n" * 60), name="c" * 60)))
    live = made.plane.controller.live
    job_id = made.submit()
    assert len(made.plane.attempt(job_id).why.partition("scores: ")[2]) < module.MAX_NAME + 20
    made.plane.operations.put_queue(Queue(DEFAULT, policy="random"), "ada")
    made.submit()
    made.plane.run(5)
    before = live.fleet.snapshot.arrays.devices.copy()
    live.fleet.rebuild()
    assert (live.fleet.snapshot.arrays.devices == before).all()
