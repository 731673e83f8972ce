"""Guarantees, limits and orders of queues, through the control loop."""

from __future__ import annotations

from dataclasses import replace

import pytest

from seaway.application.changes import Change
from seaway.application.control.scheduler.waiting_reasons import DELAYS
from seaway.application.whatif.dry_run import DryRuns
from seaway.application.whatif.question import Question
from seaway.application.whatif.trial import NewNodes
from seaway.application.whatif.whatif import WhatIf
from seaway.domain.cluster import Fleet
from seaway.domain.errors import RejectedError
from seaway.domain.queues import Backfill, Order, Queue
from seaway.domain.tenancy import Quota, Tenant
from seaway.testing.plugins import cluster, fleet, gpu, node
from tests.unit.application.scene import Scene, scene, spec


def gpus(count: int, **figures: object) -> Fleet:
    """Return a fleet of one node."""
    return fleet(cluster(node(*[gpu(**figures) for _ in range(count)]), name="alpha"))


def with_queues(parts: Fleet, *queues: Queue, **settings: object) -> Scene:
    """Create a control plane with queues and two tenants."""
    made = scene(parts, **settings)
    made.plane.writer.commit([Change(put=[Tenant("a"), Tenant("b"), *queues])])
    made.plane.settle()
    return made


def running(made: Scene, jobs: list[str]) -> list[bool]:
    """Report which jobs have a place."""
    made.plane.settle()
    return [made.plane.state(job_id).placed for job_id in jobs]


def held(made: Scene, queue: str) -> int:
    """Return the GPUs that a queue holds, thousandths."""
    return made.plane.controller.live.tree.use(queue).held.get("gpus", 0)


def test_a_limit_survives_a_restart() -> None:
    """The use of queues is counted again when everything is read."""
    made = with_queues(gpus(4), Queue("x", limit={"gpus": 2000}))
    jobs = made.plane.submit(*[spec(queue="x") for _ in range(3)])
    assert sum(running(made, jobs)) == 2
    made.plane.restart()
    assert sum(running(made, jobs)) == 2
    assert held(made, "x") == 2000


def test_many_jobs_beyond_a_limit_are_not_tried() -> None:
    """However many different jobs wait beyond a limit, the loop tries none of them, also when other jobs end."""
    made = with_queues(gpus(4), Queue("x", limit={"gpus": 1000}))
    made.plane.submit(*[spec(queue="x", cpu_milli=100 + at, priority=-at) for at in range(300)])
    other = made.plane.submit(spec())
    assert running(made, other) == [True]
    tally, before = made.plane.controller.scheduler.tally, made.plane.controller.scheduler.tally.decided
    made.plane.jobs.cancel(other[0], "ada")
    made.plane.run(5)
    assert running(made, made.plane.submit(spec())) == [True]
    assert tally.decided - before <= 2
    assert held(made, "x") == 1000


@pytest.mark.parametrize(("backfill", "long"), [(Backfill.EASY, True), (Backfill.CONSERVATIVE, False)])
def test_conservative_backfill_delays_no_planned_start(backfill: Backfill, long: bool) -> None:
    """A job that leaves the first job its place, but not the second one, starts only with `easy`."""
    made = with_queues(gpus(4), Queue("x", order=Order.FIFO, backfill=backfill))
    made.submit(queue="default", gpus=2, time_limit_s=600)
    jobs = made.plane.submit(
        spec(queue="x", gpus=3, expected_duration_s=600),
        spec(queue="x", gpus=4, expected_duration_s=600),
        spec(queue="x", expected_duration_s=5000),
        spec(queue="x", expected_duration_s=60),
    )
    made.plane.run(5)
    assert running(made, jobs) == [False, False, long, True]
    if not long:
        assert made.job(jobs[2]).reason == DELAYS
        reason = DryRuns(made.plane.controller).reason(made.job(jobs[2]), None)
        assert (reason.code, reason.message) == (
            "delays_earlier_jobs",
            f"waits: 1 of 1 nodes fit, best alpha/node-0; but {DELAYS}",
        )
        made.plane.run(1900)
        assert running(made, jobs)[2], "its planned start has come"


def test_a_dry_run_uses_the_same_limits() -> None:
    """A job that its queue has no room for would wait, and the answer names the limit."""
    made = with_queues(gpus(4), Queue("x", limit={"gpus": 1500}))
    made.submit(queue="x")
    dry = DryRuns(made.plane.controller).dry_run(spec(queue="x"))
    assert not dry.placements
    assert dry.message.endswith("queue 'x' holds 1 of its limit of 1.5 gpus, and this job requests 1")
    assert DryRuns(made.plane.controller).dry_run(spec(queue="default")).placements


def test_what_if_uses_the_same_limits() -> None:
    """A job that its queue has no room for would wait also on a larger fleet; after a drain, the limit still holds."""
    made = with_queues(gpus(2), Queue("x", limit={"gpus": 2000}))
    made.plane.submit(*[spec(queue="x") for _ in range(2)])
    made.plane.run(5)
    what_if = WhatIf(made.plane.controller, made.plane.admission, made.plane.store)
    more = NewNodes("alpha", "node-0", 1)
    answer = what_if.ask(Question(add_nodes=(more,), jobs=(spec(queue="x"), spec(queue="default"))))
    assert [move.asked for move in answer.started] == [True]
    assert [move.why for move in answer.waiting] == ["queue 'x' holds 2 of its limit of 2 gpus"]
    moved = what_if.ask(Question(add_nodes=(more,), drain=("alpha/node-0",), jobs=(spec(queue="x"),)))
    assert (len(moved.moved), len(moved.waiting)) == (2, 1)


def test_a_job_beyond_a_limit_is_rejected() -> None:
    """Admission names the queue, its limit and what is left; a queue with children names its leaves."""
    made = with_queues(
        gpus(4),
        Queue("lab", limit={"gpus": 2000, "gpus/a100": 1000}),
        Queue("x", parent="lab"),
        Queue("y", parent="lab"),
    )
    made.submit(queue="x")
    admission = made.plane.admission
    with pytest.raises(RejectedError) as beyond:
        admission.admit(spec(queue="x", gpus=3))
    assert beyond.value.where == "queue"
    assert beyond.value.message == "the job requests 3, but queue 'lab' has a limit of 2 gpus, of which 1 is left"
    with pytest.raises(RejectedError, match="limit of 1 gpus/a100, of which 0 is left"):
        admission.admit(spec(queue="x", gpus=2, models={"A100"}))
    with pytest.raises(RejectedError, match="queue 'lab' only divides its share among its children; use 'x' or 'y'"):
        admission.admit(replace(spec(), queue="lab"))
    admission.admit(spec(queue="y", gpus=2))


def test_a_job_beyond_what_its_queue_may_borrow_is_refused() -> None:
    """The guarantee and the borrowing limit together are a limit, also if the guarantee is that of children."""
    made = with_queues(
        gpus(8),
        Queue("lab", borrowing_limit={"gpus": 1000}),
        Queue("x", parent="lab", guarantee={"gpus": 3000}, borrowing_limit={"gpus": 2000}),
        Queue("y", parent="lab", borrowing_limit={"gpus": 2000}),
    )
    admission = made.plane.admission
    with pytest.raises(RejectedError, match="queue 'y' has a limit of 2 gpus, of which 2 is left"):
        admission.admit(spec(queue="y", gpus=1, replicas=3, gang=True))
    with pytest.raises(RejectedError, match="queue 'lab' has a limit of 4 gpus"):
        admission.admit(spec(queue="x", gpus=5))
    admission.admit(spec(queue="x", gpus=4))


@pytest.mark.parametrize(
    ("half_life_s", "restart", "expected"),
    [(0, False, (2000, 2000)), (600, False, (1000, 3000)), (600, True, (1000, 3000))],
)
def test_heavy_users_of_the_past_wait_longer(*, half_life_s: float, restart: bool, expected: tuple[int, int]) -> None:
    """With a half-life, the queue that used all GPUs before gets fewer than the other, also after a restart."""
    made = with_queues(gpus(4), Queue("x"), Queue("y"), usage_half_life_s=half_life_s)
    made.plane.submit(*[spec(queue="x", expected_duration_s=600) for _ in range(4)])
    made.plane.run(610)
    if restart:
        made.plane.restart()
    made.plane.submit(*[spec(queue=name, expected_duration_s=60) for name in "xy" for _ in range(8)])
    made.plane.settle()
    assert (held(made, "x"), held(made, "y")) == expected
    past = {each.queue: each.past for each in made.plane.overview.shares() if not each.tenant}
    assert past == {"default": 0, "x": pytest.approx(0.5 if half_life_s else 0, abs=0.02), "y": 0}


@pytest.mark.parametrize(
    ("queue", "replicas", "unlent"),
    [("y", 3, 0), ("y", 4, 3), ("z", 5, 0), ("z", 6, 1), ("x1", 3, 0), ("x1", 4, 3), ("x2", 4, 0), ("x2", 5, 2)],
)
def test_a_gang_beyond_the_room_that_others_lend_is_refused(queue: str, replicas: int, unlent: int) -> None:
    """Queues that keep a part of their guarantees leave only the rest to others, even if nothing runs."""
    made = with_queues(
        gpus(6),
        Queue("y"),
        Queue("z", guarantee={"gpus": 3000}, lending_limit={"gpus": 1000}),
        Queue("top"),
        Queue("x1", parent="top"),
        Queue("x2", parent="top", guarantee={"gpus": 1000}, lending_limit={"gpus": 0}),
    )
    made.plane.settle()
    gang = spec(queue=queue, replicas=replicas, gang=True)
    if not unlent:
        made.plane.admission.admit(gang)
        assert running(made, made.plane.submit(gang)) == [True]
        return
    said = f"queue '{queue}' can get {6 - unlent} gpus at most, since other queues do not lend {unlent}"
    with pytest.raises(RejectedError, match=said):
        made.plane.admission.admit(gang)


def test_a_reason_names_the_limit_of_the_tenant_before_that_of_a_queue() -> None:
    """A job at the limits of its tenant and of the parent queue waits for its tenant: room in the queue is no use."""
    made = with_queues(gpus(4), Queue("r", limit={"gpus": 2000}), Queue("x", parent="r"))
    tenant = Tenant("a", quotas={"default": Quota(limit={"gpus": 1000})})
    made.plane.writer.commit([Change(put=[tenant])])
    own = made.submit(queue="x", tenant="a")
    made.submit(queue="x")
    made.plane.run(5)
    waits = made.submit(queue="x", tenant="a")
    made.plane.run(5)
    reason = DryRuns(made.plane.controller).reason(made.job(waits), None)
    assert made.state(own) == "running"
    assert (reason.code, made.job(waits).reason) == (
        "tenant_quota",
        "tenant 'a' in pool 'default' holds 1 of its limit of 1 gpu",
    )


def test_a_reason_names_one_reservation() -> None:
    """The first job of a queue has a place, so its reason names no capacity that is reserved for others elsewhere."""
    parts = fleet(*[cluster(node(gpu(), gpu()), name=name) for name in ("alpha", "beta")])
    made = with_queues(parts, Queue("x"), Queue("y"))
    for name in ("alpha", "beta"):
        made.submit(queue="x", clusters={name}, expected_duration_s=600)
    made.plane.run(5)
    firsts = [made.submit(queue=queue, gpus=2, expected_duration_s=3600) for queue in "xy"]
    made.plane.run(5)
    said = [DryRuns(made.plane.controller).reason(made.job(each), None).message for each in firsts]
    both = [each for each in said if "is reserved for it" in each]
    assert both
    assert not [each for each in both if "reserved for job" in each or "another tenant" in each]
