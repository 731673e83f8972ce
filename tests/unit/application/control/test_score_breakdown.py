from __future__ import annotations

import re
from dataclasses import replace

import pytest

from seaway.application.control.scheduler import score_breakdown as module
from seaway.domain.job import DataSource, GpuTopology
from seaway.domain.placement import Candidate
from seaway.domain.queues import Queue
from seaway.domain.tenancy import DEFAULT
from seaway.testing.plugins import cluster, fleet, gpu, node
from tests.unit.application.scene import Scene, scene, spec


def four_nodes() -> Scene:
    """Create two clusters of two nodes, of one to four GPUs."""
    sizes = {"alpha": (4, 3), "beta": (2, 1)}
    return scene(fleet(*[cluster(*[node(*[gpu()] * size) for size in sizes[name]], name=name) for name in sizes]))


def test_an_attempt_keeps_what_decided() -> None:
    """The score that decided is stored with that of the next best node, and shown later with its time."""
    made = four_nodes()
    job_id = made.submit()
    why = made.plane.attempt(job_id).why
    where = f"{made.where(job_id)}/{made.job(job_id).nodes[0]}"
    chosen, _, decided = why.partition("; ")
    assert chosen == f"bestfit chose {where}"
    compared = re.fullmatch(r"BestFit decided: (\d+) against (\d+) of (\S+), the next best", decided)
    assert compared is not None
    assert int(compared[1]) > int(compared[2])
    assert compared[3] != where
    decided_ns = made.plane.attempt(job_id).created_ns
    made.plane.run(5)
    for _ in range(5):
        made.submit()
    reason = made.plane.overview.reason(made.job(job_id))
    assert (reason.placement_reason, reason.decided_ns) == (why, decided_ns)


def test_equal_nodes_are_called_that() -> None:
    """Without a lower score, order decided; without another node that fits, nothing did."""
    made = scene(fleet(cluster(node(gpu()), node(gpu()), name="alpha")))
    texts = [made.plane.attempt(made.submit(gpus=1)).why.partition("; ")[2] for _ in range(2)]
    assert texts == ["the first in order of 2 nodes with equal scores", "no other node fits"]


@pytest.mark.parametrize(
    ("sizes", "why"),
    [
        ((1, 2), "its GPUs are connected better than those of alpha/node-0, the next best"),
        ((4, 2), "of 2 nodes with equal scores, the one that breaks NVLink islands least"),
        ((2, 2), "the first in order of 2 nodes with equal scores"),
    ],
)
def test_connections_of_gpus_decide_before_scores_and_among_equal_ones(sizes: tuple[int, ...], why: str) -> None:
    """A job that prefers connected GPUs says whether their connection, or the islands that stay whole, decided."""
    parts = [node(*(gpu(island=at // size) for at in range(4))) for size in sizes]
    made = scene(fleet(cluster(*parts, name="alpha")))
    job_id = made.submit(gpus=2, topology=GpuTopology.BEST_EFFORT)
    assert made.plane.attempt(job_id).why.partition("; ")[2] == why


def test_the_term_with_the_largest_lead_decided() -> None:
    """Of several scores, the decisive one is named with both totals, against the next node that is not equal."""
    best = Candidate("a", "n1", {"BestFit": 10, "Price": 90, "Distance": 5}, 105)
    other = Candidate("b", "n2", {"BestFit": 20, "Price": 40, "Distance": 0}, 60)
    reported = module.decided_by([best, replace(best, node="n3"), other], {"a": 0, "b": 0})
    assert reported == (
        "Price decided: 90 against 40 of b/n2, the next best (in total 105 against 60); "
        "the first in order of 2 nodes with equal scores"
    )


def test_closeness_to_data_decides_before_scores() -> None:
    """A node whose cluster is closer to the job's data is chosen for that, and the reason says so."""
    sites = [cluster(*[node(gpu())] * 1, name=name, gateway=f"gw-{name}") for name in ("alpha", "beta")]
    made = scene(fleet(*sites))
    why = made.plane.attempt(made.submit(data=DataSource("beta", 1_000))).why
    assert why.startswith("bestfit chose beta/node-0; ")
    assert why.endswith("; its data is closer than to alpha/node-0, the next best")


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
    assert "; for its first replica, BestFit decided: " in made.plane.attempt(made.submit(replicas=3, gang=True)).why


def test_a_overload_and_a_large_fleet_are_not_noted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where score breakdowns would delay placing, there are none."""
    made = four_nodes()
    for _ in range(2):
        noted = ["; " in made.plane.attempt(made.submit(gpus=0)).why for _ in range(module.AT_ONCE + 5)]
        assert module.AT_ONCE - 1 <= sum(noted) <= module.AT_ONCE
        made.plane.run(60)
    monkeypatch.setattr(module, "MAX_NODES", 3)
    assert "; " not in made.plane.attempt(made.submit()).why


def test_notes_change_nothing_of_what_is_decided() -> None:
    """Long names are cut, and the fleet of the decisions is unchanged."""
    made = scene(fleet(cluster(*[node(gpu(), name=letter * 60) for letter in "mn"], name="c" * 60)))
    live = made.plane.controller.live
    job_id = made.submit()
    assert len(made.plane.attempt(job_id).why.partition("; ")[2]) < module.MAX_NAME + 130
    made.plane.operations.put_queue(Queue(DEFAULT, policy="random"), "ada")
    made.submit()
    made.plane.run(5)
    before = live.fleet.snapshot.arrays.devices.copy()
    live.fleet.rebuild()
    assert (live.fleet.snapshot.arrays.devices == before).all()
