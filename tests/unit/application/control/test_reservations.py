from __future__ import annotations

from dataclasses import replace

import pytest

from seaway.application.changes import Change
from seaway.domain.queues import Queue
from seaway.scheduling.columns import DEVICE_CORE_FREE
from seaway.testing.plugins import cluster, fleet, gpu, node
from tests.unit.application.scene import Scene, scene, spec

NS_PER_S = 1_000_000_000


def one_node(gpus: int = 4, **settings: float) -> Scene:
    """Create one node of some GPUs."""
    return scene(fleet(cluster(node(*[gpu() for _ in range(gpus)]), name="alpha")), **settings)


def reserved_for(made: Scene) -> set[str]:
    """Return the jobs with a reservation."""
    return {each.entry.id for each in made.plane.controller.scheduler.reservations.made()}


def test_a_head_that_does_not_fit_does_not_block_the_others() -> None:
    """While the first job waits for room, the rest is used."""
    made = one_node(4)
    made.submit(gpus=2, expected_duration_s=100)
    head = made.submit(gpus=3, expected_duration_s=10)
    assert made.state(head) == "queued"
    assert reserved_for(made) == {head}
    assert made.state(made.submit(gpus=1, expected_duration_s=1000)) == "deploying", "it needs no reserved device"


def stream_of_small_jobs(*, reserve: bool) -> str:
    """Submit small jobs one after the other beside a large one; return its final state."""
    made = one_node(2, reservations=reserve)
    made.submit(gpus=1, expected_duration_s=30)
    made.plane.run(15)
    made.submit(gpus=1, expected_duration_s=30)
    head = made.submit(gpus=2, expected_duration_s=10)
    for _ in range(10):
        made.plane.submit(spec(gpus=1, expected_duration_s=30))
        made.plane.run(15)
    return made.state(head)


def test_a_head_is_not_starved() -> None:
    """A large job beside an endless stream of small ones starts with a reservation, and never without."""
    assert stream_of_small_jobs(reserve=True) == "completed"
    assert stream_of_small_jobs(reserve=False) == "queued"


@pytest.mark.parametrize("needed", range(1, 9))
def test_a_reservation_begins_when_the_last_job_that_has_to_end_ends(needed: int) -> None:
    """A head that needs some of eight GPUs, which jobs free one by one, waits for no further job."""
    made = one_node(8)
    made.plane.submit(*[spec(gpus=1, expected_duration_s=100 * at) for at in range(1, 9)])
    made.plane.settle()
    head = made.submit(gpus=needed, expected_duration_s=10)
    (reservation,) = made.plane.controller.scheduler.reservations.made()
    assert reservation.entry.id == head
    assert reservation.starts_ns == made.clock.monotonic_ns() + 100 * needed * NS_PER_S
    plain = made.plane.controller.live.fleet.snapshot.copy()
    made.plane.controller.scheduler.reservations.lift_from(plain)
    assert (plain.arrays.devices[DEVICE_CORE_FREE] == 0).all(), "all devices are still in use"


@pytest.mark.parametrize("together", [False, True])
def test_jobs_that_start_in_the_same_cycle_end_for_a_head(together: bool) -> None:
    """A head gets the same reservation whether the jobs before it came earlier or with it, and none delays it."""
    made = one_node(4)
    jobs = [spec(gpus=2, expected_duration_s=100), spec(gpus=4, expected_duration_s=10), spec(expected_duration_s=999)]
    ids: list[str] = []
    for each in [jobs] if together else [[job] for job in jobs]:
        ids += made.plane.submit(*each)
        made.plane.settle()
    assert [made.state(each) for each in ids] == ["deploying", "queued", "queued"]
    assert reserved_for(made) == {ids[1]}


def test_short_jobs_use_a_reservation() -> None:
    """A job that ends before the head can start may use its reservation; a longer one may not."""
    made = one_node(2)
    made.submit(gpus=1, expected_duration_s=100)
    head = made.submit(gpus=2, expected_duration_s=10)
    long, short = made.submit(gpus=1, expected_duration_s=200), made.submit(gpus=1, expected_duration_s=20)
    assert (made.state(long), made.state(short)) == ("queued", "deploying")
    made.plane.run(110)
    assert made.job(head).started_ns is not None
    assert made.state(head) in {"running", "deploying"}


def test_a_job_without_an_end_uses_no_reservation() -> None:
    """Without an expected duration a job may not use a reservation."""
    made = one_node(2)
    made.submit(gpus=1, expected_duration_s=100)
    made.submit(gpus=2)
    assert made.state(made.submit(gpus=1)) == "queued"


def test_the_reservation_goes_to_the_first_job() -> None:
    """When a more urgent job arrives, the reservation is for that."""
    made = one_node(2)
    made.submit(gpus=1, expected_duration_s=100)
    head = made.submit(gpus=2)
    assert reserved_for(made) == {head}
    urgent = made.submit(gpus=2, priority=5)
    assert reserved_for(made) == {urgent}
    made.plane.jobs.cancel(urgent, "ada")
    made.plane.settle()
    assert reserved_for(made) == {head}


def test_a_job_that_left_has_no_reservation() -> None:
    """When the head is cancelled or changed to fit, its reservation is released immediately."""
    made = one_node(2)
    made.submit(gpus=1, expected_duration_s=100)
    head, other = made.submit(gpus=2), made.submit(gpus=1)
    assert made.state(other) == "queued"
    made.plane.jobs.cancel(head, "ada")
    made.plane.settle()
    assert not reserved_for(made)
    assert made.state(other) == "deploying"


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


def test_three_infeasible_jobs_do_not_keep_the_fourth_from_its_place() -> None:
    """Jobs that fit nowhere even on an empty fleet get no reservation, and do not block others from one."""
    made = one_node(2)
    made.submit(gpus=1, expected_duration_s=60)
    infeasible = [made.submit(gpus=3 + at, priority=9) for at in range(4)]
    head = made.submit(gpus=2, expected_duration_s=10, priority=5)
    for _ in range(10):
        made.plane.submit(spec(gpus=1, expected_duration_s=30), spec(gpus=1, expected_duration_s=30))
        made.plane.run(15)
    assert made.state(head) == "completed"
    assert {made.state(each) for each in infeasible} == {"queued"}


def test_each_queue_has_a_reservation_of_its_own() -> None:
    """The heads of two queues both get a reservation, and a third job may use neither."""
    made = one_node(4)
    made.plane.writer.commit([Change(put=[Queue("other")])])
    made.submit(gpus=3, expected_duration_s=50)
    heads = {made.submit(gpus=2), made.submit(gpus=2, queue="other")}
    assert reserved_for(made) == heads
    assert made.state(made.submit(gpus=1)) == "queued"


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


def test_a_reservation_without_a_start_alternates_with_a_pause() -> None:
    """If it is not known when a place becomes free, others wait for it for a limited time."""
    made = one_node(2, reservation_timeout_s=100)
    made.submit(gpus=1)
    head, other = made.submit(gpus=2), made.submit(gpus=1)
    assert reserved_for(made) == {head}
    made.plane.run(90)
    assert made.state(other) == "queued"
    made.plane.run(20)
    assert made.state(other) in {"deploying", "running"}
    assert not reserved_for(made)
    made.plane.run(110)
    made.plane.jobs.cancel(other, "ada")
    made.plane.settle()
    assert reserved_for(made) == {head}


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


def test_a_job_without_a_place_beside_a_reservation_gets_one_when_that_is_gone() -> None:
    """A search that failed because of a reservation is made again at once, not a minute later."""
    made = one_node(4)
    made.plane.writer.commit([Change(put=[Queue("other")])])
    made.plane.run(1)
    made.submit(gpus=4, expected_duration_s=100)
    heads = {made.submit(gpus=4, expected_duration_s=10, queue=each) for each in ("default", "other")}
    (holder,) = reserved_for(made)
    made.plane.jobs.cancel(holder, "ada", "enough")
    made.plane.run(2)
    assert reserved_for(made) == heads - {holder}
