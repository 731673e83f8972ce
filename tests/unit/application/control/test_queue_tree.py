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


def test_a_limit_of_an_ancestor_bounds_all_its_queues() -> None:
    """Jobs beyond the limit wait and say so, jobs of other queues pass them, and they start when the use falls."""
    made = with_queues(gpus(6), Queue("lab", limit={"gpus": 3000}), Queue("x", parent="lab"), Queue("y", parent="lab"))
    jobs = made.plane.submit(*[spec(queue=name) for name in ("x", "y", "x", "y", "default")])
    placed = running(made, jobs)
    assert (sum(placed), placed[-1], held(made, "lab")) == (4, True, 3000)
    waits = jobs[placed.index(False)]
    said = made.job(waits).reason
    assert said == "queue 'lab' holds 3 of its limit of 3 gpus"
    reason = DryRuns(made.plane.controller).reason(made.job(waits), None)
    assert (reason.code, reason.message) == ("queue_limit", f"waits: {said}")
    assert reason.params == {"queue": "lab", "held": "3", "limit": "3 gpus", "requested": "1"}
    made.plane.jobs.cancel(jobs[placed.index(True)], "ada")
    made.plane.run(5)
    assert made.state(waits) == "running"
    assert held(made, "lab") == 3000


def test_a_higher_limit_takes_effect_at_once() -> None:
    """Waiting jobs start when an operator raises the limit; a lower limit stops no running job."""
    made = with_queues(gpus(4), Queue("x", limit={"gpus": 1000}))
    jobs = made.plane.submit(*[spec(queue="x") for _ in range(3)])
    assert sum(running(made, jobs)) == 1
    made.plane.writer.commit([Change(put=[Queue("x", limit={"gpus": 2000})])])
    assert sum(running(made, jobs)) == 2
    made.plane.writer.commit([Change(put=[Queue("x", limit={"gpus": 0})])])
    assert sum(running(made, jobs)) == 2
    assert (
        "holds 2 of its limit of 0 gpus"
        in DryRuns(made.plane.controller)
        .reason(made.job(next(each for each in jobs if not made.plane.state(each).placed)), None)
        .message
    )


def test_a_limit_survives_a_restart() -> None:
    """The use of queues is counted again when everything is read."""
    made = with_queues(gpus(4), Queue("x", limit={"gpus": 2000}))
    jobs = made.plane.submit(*[spec(queue="x") for _ in range(3)])
    assert sum(running(made, jobs)) == 2
    made.plane.restart()
    assert sum(running(made, jobs)) == 2
    assert held(made, "x") == 2000


def test_a_share_counts_by_the_device_that_it_gets() -> None:
    """Memory in MiB counts as a share of the device, known only after the placement, and stays within the limit."""
    made = with_queues(gpus(4, memory_mib=40_000), Queue("x", limit={"gpus": 1000}))
    jobs = made.plane.submit(*[spec(queue="x", gpu_memory_mib=20_000) for _ in range(3)])
    assert sum(running(made, jobs)) == 2
    assert held(made, "x") == 1000
    made.plane.jobs.cancel(jobs[running(made, jobs).index(True)], "ada")
    made.plane.run(5)
    assert sum(running(made, jobs)) == 2


def test_a_limit_of_a_model_leaves_other_models() -> None:
    """Jobs that may use any model run on others once one is exhausted, and jobs that need it wait."""
    parts = fleet(
        cluster(node(gpu(model="A100"), gpu(model="A100")), name="alpha"),
        cluster(node(gpu(model="L4"), gpu(model="L4")), name="beta"),
    )
    made = with_queues(parts, Queue("x", limit={"gpus/a100": 1000}))
    jobs = made.plane.submit(*[spec(queue="x") for _ in range(4)], spec(queue="x", models={"A100"}))
    made.plane.settle()
    used = [made.where(each) for each in jobs if made.plane.state(each).placed]
    assert sorted(used) == ["alpha", "beta", "beta"]
    assert made.job(jobs[-1]).reason == "queue 'x' holds 1 of its limit of 1 gpus/a100"
    left = next(each for each in jobs[:-1] if not made.plane.state(each).placed)
    assert (
        "queue 'x' holds 1 of its limit of 1 gpus/a100"
        in DryRuns(made.plane.controller).reason(made.job(left), None).message
    )


def test_jobs_beyond_a_limit_get_no_reservation() -> None:
    """They keep no capacity from other queues, though they wait first in theirs."""
    made = with_queues(gpus(2), Queue("x", limit={"gpus": 1000}))
    first, waits = made.plane.submit(spec(queue="x"), spec(queue="x"))
    assert running(made, [first, waits]) == [True, False]
    assert not made.plane.controller.scheduler.reservations.made()
    assert running(made, made.plane.submit(spec())) == [True]


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


def test_guarantees_come_before_priorities_and_weights() -> None:
    """Of six GPUs, a guarantee of two is met, and the rest goes by priority and weight."""
    made = with_queues(
        gpus(8),
        Queue("guaranteed", guarantee={"gpus": 2000}, weight=0),
        Queue("urgent", priority=1, limit={"gpus": 2000}),
        Queue("heavy", weight=3),
        Queue("light"),
        reservations=False,
    )
    names = ("light", "heavy", "urgent", "guaranteed")
    running(
        made,
        made.plane.submit(
            *[spec(queue=name, gpu_milli=500, gpu_memory_percent=50) for name in names for _ in range(20)]
        ),
    )
    assert {name: held(made, name) for name in names} == {
        "guaranteed": 2000,
        "urgent": 2000,
        "heavy": 3000,
        "light": 1000,
    }


def test_a_fair_queue_serves_the_tenant_that_holds_least() -> None:
    """Tenants get the same share, whatever the order of their jobs, in a fair queue; in a FIFO queue they do not."""
    for order, expected in ((Order.FAIR, {"a": 2000, "b": 2000}), (Order.FIFO, {"a": 4000})):
        made = with_queues(gpus(4), Queue("x", order=order), reservations=False)
        many = [spec(queue="x", tenant="a") for _ in range(6)]
        made.plane.submit(*many)
        made.clock.advance_s(1)
        running(made, made.plane.submit(*[spec(queue="x", tenant="b") for _ in range(2)]))
        tree = made.plane.controller.live.tree
        found = {tenant: tree.use("x", tenant).held.get("gpus", 0) for tenant in expected}
        assert found == expected, order


@pytest.mark.parametrize(
    ("backfill", "small", "reserved"),
    [(Backfill.NONE, False, 1), (Backfill.EASY, True, 1), (Backfill.GREEDY, True, 0)],
)
def test_backfill_decides_what_passes_a_large_job(backfill: Backfill, small: bool, reserved: int) -> None:
    """Behind a job that does not fit, nothing starts, or what ends before its start, or everything that fits."""
    made = with_queues(gpus(3), Queue("x", backfill=backfill))
    made.submit(queue="default", gpus=2, time_limit_s=600)
    large, short = made.plane.submit(
        spec(queue="x", gpus=3, priority=1), spec(queue="x", time_limit_s=60, expected_duration_s=60)
    )
    assert running(made, [large, short]) == [False, small]
    assert len(made.plane.controller.scheduler.reservations.made()) == reserved
    other = made.plane.submit(spec(queue="default", time_limit_s=60, expected_duration_s=60))
    assert running(made, other) == [not small], "jobs of other queues may pass"


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


def test_without_backfill_a_batch_ends_at_the_first_job_that_does_not_fit() -> None:
    """Jobs that were decided together start only as far as none before them waits, and all start in order later."""
    made = with_queues(gpus(3), Queue("x", backfill=Backfill.NONE, order=Order.FIFO), reservations=False)
    jobs = made.plane.submit(*[spec(queue="x", gpus=count) for count in (2, 2, 1)])
    assert running(made, jobs) == [True, False, False]
    made.plane.jobs.cancel(jobs[0], "ada")
    made.plane.run(5)
    assert running(made, jobs) == [False, True, True]


def test_a_change_of_its_order_applies_to_waiting_jobs() -> None:
    """Waiting jobs are sorted again when the order of their queue changes."""
    made = with_queues(gpus(1), Queue("x", order=Order.FIFO), reservations=False)
    jobs = made.plane.submit(*[spec(queue="x", priority=at) for at in range(3)])
    assert running(made, jobs) == [True, False, False]
    made.plane.writer.commit([Change(put=[Queue("x", order=Order.PRIORITY)])])
    made.plane.settle()
    made.plane.jobs.cancel(jobs[0], "ada")
    made.plane.run(5)
    assert running(made, jobs) == [False, False, True]


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


@pytest.mark.parametrize("replicas", [1, 2])
def test_the_limit_of_a_tenant_refuses_no_other_tenant(replicas: int) -> None:
    """A job that fits only on a model beyond its tenant's limit does not keep an equal one of another waiting."""
    parts = fleet(
        cluster(node(gpu(model="A100"), gpu(model="A100")), name="alpha"),
        cluster(node(gpu(model="L4")), name="beta"),
    )
    made = with_queues(parts, Queue("x"))
    limited = Tenant("a", quotas={"default": Quota(limit={"gpus/a100": 0})})
    made.plane.writer.commit([Change(put=[limited])])
    made.plane.settle()
    blocker = made.submit(queue="x", tenant="b", models={"L4"})
    first, second = (made.submit(queue="x", tenant=name, replicas=replicas, gang=replicas > 1) for name in "ab")
    assert [made.plane.state(each).placed for each in (blocker, first, second)] == [True, False, True]


def test_what_if_keeps_the_limit_of_a_model() -> None:
    """A job that needs the last GPU of a model under a limit would start, and the next one would wait."""
    made = with_queues(gpus(2, model="A100"), Queue("x", limit={"gpus/a100": 1000}))
    needs = spec(queue="x", models={"A100"})
    answer = WhatIf(made.plane.controller, made.plane.admission, made.plane.store).ask(Question(jobs=(needs, needs)))
    assert (len(answer.started), len(answer.waiting)) == (1, 1)
    assert answer.waiting[0].why == "queue 'x' holds 1 of its limit of 1 gpus/a100"


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


def test_a_borrowing_limit_bounds_what_a_queue_holds_beyond_its_guarantee() -> None:
    """With a guarantee of one GPU and a borrowing limit of two, a queue never holds more than three."""
    made = with_queues(gpus(6), Queue("x", guarantee={"gpus": 1000}, borrowing_limit={"gpus": 2000}))
    jobs = made.plane.submit(*[spec(queue="x") for _ in range(5)])
    assert sum(running(made, jobs)) == 3
    waits = jobs[running(made, jobs).index(False)]
    assert made.job(waits).reason == "queue 'x' holds 3 of its limit of 3 gpus"


def test_a_lending_limit_keeps_a_part_of_the_guarantee() -> None:
    """Of a guarantee of three GPUs, others use one; the queue itself gets its guarantee at once."""
    made = with_queues(gpus(6), Queue("x", guarantee={"gpus": 3000}, lending_limit={"gpus": 1000}), Queue("y"))
    others = made.plane.submit(*[spec(queue="y") for _ in range(6)])
    assert sum(running(made, others)) == 4
    waits = others[running(made, others).index(False)]
    reason = DryRuns(made.plane.controller).reason(made.job(waits), None)
    assert reason.code == "lending_limit"
    assert "pool 'default', beside what queues keep for themselves, holds 4 of its limit of 4 gpus" in reason.message
    own = made.plane.submit(*[spec(queue="x") for _ in range(2)])
    assert running(made, own) == [True, True]
    made.plane.jobs.cancel(others[running(made, others).index(True)], "ada")
    made.plane.run(5)
    assert (held(made, "x"), held(made, "y")) == (2000, 4000)  # all that is kept is in use


def test_gpus_count_with_the_weight_of_their_model() -> None:
    """A queue with an A100 of weight 3 waits until the other has as much in L4."""
    parts = fleet(
        cluster(node(*[gpu(model="A100") for _ in range(2)]), name="alpha"),
        cluster(node(*[gpu(model="L4") for _ in range(6)]), name="beta"),
    )
    made = with_queues(parts, Queue("x"), Queue("y"), gpu_weights="A100=3")
    blocker = made.plane.submit(spec(queue="default", gpus=6, models={"L4"}), spec(queue="x", models={"A100"}))
    made.plane.settle()
    jobs = made.plane.submit(*[spec(queue=name, models={"L4"}) for name in "xy" for _ in range(6)])
    made.plane.jobs.cancel(blocker[0], "ada")
    made.plane.run(5)
    assert (held(made, "x"), held(made, "y")) == (1000 + 2000, 4000)
    assert sum(running(made, jobs)) == 6


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


def test_a_waiting_job_gains_priority_with_its_age() -> None:
    """With a stream of jobs of a higher priority, a job starts once its age makes up for the difference."""
    made = with_queues(gpus(1), Queue("x", order=Order.PRIORITY, ageing_s=100))
    made.plane.submit(spec(queue="x", priority=5, expected_duration_s=20))
    made.plane.settle()
    old, waited_s = made.plane.submit(spec(queue="x", expected_duration_s=20))[0], 0
    while made.state(old) in {"pending", "queued"} and waited_s < 1000:
        made.plane.submit(spec(queue="x", priority=5, expected_duration_s=20))
        made.plane.run(20)
        waited_s += 20
    assert 500 <= waited_s <= 600


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
