from __future__ import annotations

from dataclasses import replace

from seaway.testing.plugins import cluster, fleet, gpu, node
from tests.unit.application.scene import Scene, scene, spec


def one_node(gpus: int = 4, **settings: float) -> Scene:
    """Create one node of some GPUs."""
    return scene(fleet(cluster(node(*[gpu() for _ in range(gpus)]), name="alpha")), **settings)


def reserved_for(made: Scene) -> set[str]:
    """Return the jobs with a reservation."""
    return {each.entry.id for each in made.plane.controller.scheduler.reservations.made()}


def test_a_place_that_fails_is_not_reserved() -> None:
    """When the reserved node fails, another place is reserved, so that the head does not starve."""
    made = scene(fleet(cluster(node(gpu(), gpu()), node(gpu(), gpu()), name="alpha")))
    made.submit(gpus=1, expected_duration_s=50)
    made.submit(gpus=1, expected_duration_s=50)
    made.submit(gpus=2, expected_duration_s=90)
    head = made.submit(gpus=2, expected_duration_s=10)
    ((_, retained),) = next(iter(made.plane.controller.scheduler.reservations.made())).nodes
    made.cluster("alpha").fail_node(retained)
    made.plane.run(2)
    ((_, now),) = next(iter(made.plane.controller.scheduler.reservations.made())).nodes
    assert now != retained
    assert reserved_for(made) == {head}


def test_a_reservation_that_is_overdue_ends() -> None:
    """When a job runs for longer than expected, the head's place is reserved where something ends sooner."""
    made = scene(fleet(cluster(node(gpu(), gpu()), name="alpha"), cluster(node(gpu(), gpu()), name="beta")))
    overdue = made.submit(gpus=2, expected_duration_s=20)
    made.plane.run(3)
    made.submit(gpus=2, expected_duration_s=200)
    made.plane.run(3)
    head = made.submit(gpus=2, expected_duration_s=10)
    ((first, _),) = next(iter(made.plane.controller.scheduler.reservations.made())).nodes
    assert first == made.where(overdue)
    made.cluster(first)._state.records[overdue, 1].made = replace(  # noqa: SLF001  # it will never end
        made.cluster(first)._state.records[overdue, 1].made,  # noqa: SLF001
        ends_ns=None,
    )
    made.plane.run(230)
    assert made.job(head).started_ns is not None


def test_a_restart_forgets_and_finds_reservations() -> None:
    """Reservations are only in memory: after a restart they are computed again."""
    made = one_node(2)
    made.submit(gpus=1, expected_duration_s=100)
    made.plane.run(5)
    head = made.submit(gpus=2)
    made.plane.restart()
    made.plane.settle()
    assert reserved_for(made) == {head}


def test_what_runs_for_ever_is_not_waited_for() -> None:
    """A job that would have to wait for a deployment, which never ends, gets no reservation."""
    made = one_node(2)
    made.submit(gpus=1, template="deployment")
    head = made.submit(gpus=2)
    assert made.state(head) == "queued"
    assert not reserved_for(made)
    assert made.state(made.submit(gpus=1)) == "deploying"


def test_reserved_capacity_does_not_count_as_used() -> None:
    """Explanations, dry runs and what-if queries see running jobs, and name reservations for others."""
    from seaway.application.whatif.question import Question
    from seaway.application.whatif.whatif import WhatIf

    made = one_node(2)
    runs = made.submit(gpus=1, expected_duration_s=100)
    made.submit(gpus=2, expected_duration_s=10)
    other = made.submit(gpus=1)
    reason = made.plane.overview.reason(made.job(other))
    assert reason.explanation is not None
    assert not reason.explanation.fits
    assert "1 node reserved for job work (starts at about " in reason.message
    assert not made.plane.overview.dry_run(spec(gpus=1)).fits
    assert made.plane.overview.dry_run(spec(gpus=1, expected_duration_s=10)).fits
    answer = WhatIf(made.plane.controller, made.plane.admission, made.plane.store).ask(Question(policy="bestfit"))
    assert answer.before.allocation_percent == 50
    assert runs not in {move.job_id for move in answer.stopped}
