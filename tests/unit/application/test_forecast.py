"""Expected order and starts of waiting jobs."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

import pytest

from seaway.application.control import arrays
from seaway.application.control.scheduler import forecast
from seaway.domain.arrays import TaskArray
from seaway.domain.queues import Backfill, Order, Preemption, Queue
from seaway.domain.tenancy import Tenant
from seaway.wire.explanations import reason_fields
from tests.unit.application.scene import START_S, Scene, scene, spec

NS = 1_000_000_000


def starts_s(made: Scene) -> dict[str, float | None]:
    """Return the expected start of each waiting job by name, in order, seconds from now."""
    now_ns = made.plane.clock.now_ns()
    return {
        place.job.spec.name: None if place.starts_ns is None else (place.starts_ns - now_ns) / NS
        for place in made.plane.overview.waiting()
    }


def submit_all(made: Scene, names: Iterable[str], **fields: object) -> None:
    """Submit equal jobs, each for half of the fleet."""
    for name in names:
        made.submit(**{"name": name, "gpus": 2, "expected_duration_s": 100, **fields})


@pytest.fixture(params=["nodes", "amounts"])
def counts(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return what expected starts count: as usual, or if there is only time to look at what starts now."""
    if request.param == "amounts":
        monkeypatch.setattr(forecast, "LOOK_NS", 0)
    return str(request.param)


def test_jobs_start_as_expected(counts: str) -> None:
    """With exact durations, each job starts as it was expected to when it was submitted."""
    made = scene()
    submit_all(made, "abcdef")
    made.plane.run(10)
    expected = starts_s(made)
    assert expected == {"c": 90 + START_S, "d": 90 + START_S, "e": 190 + START_S, "f": 190 + START_S}
    assert {each.by_amounts for each in made.plane.controller.forecast.plan().values()} == {counts == "amounts"}
    for _ in range(8):
        made.plane.run(30)
        error = made.plane.overview.start_errors()
    assert sum(error.counts) == 4
    assert error.total_s <= 4 * 3 * START_S


def test_the_errors_of_short_jobs_count() -> None:
    """A job that starts and ends between two looks at the figures is in them; one that was cancelled is not."""
    made = scene()
    submit_all(made, "ab")
    submit_all(made, "c", expected_duration_s=5)
    submit_all(made, "d")
    made.plane.run(10)
    assert starts_s(made)["c"] == 90 + START_S
    (last,) = [each.job.id for each in made.plane.overview.waiting() if each.job.spec.name == "d"]
    made.plane.jobs.cancel(last, "ada")
    made.plane.run(200)
    error = made.plane.overview.start_errors()
    assert sum(error.counts) == 1
    assert error.total_s <= 3 * START_S


def test_room_of_a_winner_is_not_expected_to_be_free() -> None:
    """A job that goes before one that displaced another is expected after it, since its room is reserved."""
    made = scene()
    made.plane.operations.put_tenant(Tenant("other"), "ada")
    rules = Queue("x", limit={"gpus": 2000}, preemption=Preemption.PREEMPT_LOWER_PRIORITY)
    made.plane.operations.put_queue(rules, "ada")
    submit_all(made, ["low"], queue="x", expected_duration_s=1000)
    made.plane.run(10)
    for name in ("alpha", "beta"):
        made.cluster(name).disconnect(for_s=10)
    submit_all(made, ["high"], queue="x", priority=5)
    submit_all(made, ["next"], queue="x", tenant="other")
    made.plane.settle()
    found = starts_s(made)
    assert found["next"] == pytest.approx((found["high"] or 0) + 100, abs=1)


def test_jobs_are_expected_in_the_order_of_their_queue() -> None:
    """The list of waiting jobs has the order of the queue."""
    made = scene()
    made.plane.operations.put_queue(Queue("q", order=Order.PRIORITY), "ada")
    submit_all(made, "ab")
    for name, priority in (("low", 1), ("high", 9), ("middle", 5)):
        submit_all(made, [name], queue="q", priority=priority)
    assert list(starts_s(made)) == ["high", "middle", "low"]


@pytest.mark.usefixtures("counts")
@pytest.mark.parametrize(("limit", "expected_s"), [(0, 300), (1, 600)])
def test_all_tasks_of_an_array_delay_the_jobs_behind_it(
    monkeypatch: pytest.MonkeyPatch, limit: int, expected_s: int
) -> None:
    """Also those that are not in the queue yet, and with a limit of tasks at once, one after the other."""
    monkeypatch.setattr(arrays, "MAX_QUEUED", 2)
    made = scene()
    made.plane.operations.put_queue(Queue("default", order=Order.FIFO), "ada")
    made.plane.settle()
    sweep = spec(gpus=2, expected_duration_s=100, array=TaskArray("0-5", limit))
    asyncio.run(made.plane.jobs.submit([sweep], "ada"))
    made.plane.run(10)
    made.submit(name="whole", gpus=2, replicas=2, gang=True, expected_duration_s=100)
    assert starts_s(made)["whole"] == expected_s - 10 + START_S
    assert len(made.plane.overview.waiting()) == (4 if limit == 0 else 2)  # with the array and its tasks in the queue


@pytest.mark.parametrize(("backfill", "counts"), [(Backfill.EASY, "nodes"), (Backfill.CONSERVATIVE, "amounts")])
def test_an_explanation_says_what_the_expected_start_counts(backfill: Backfill, counts: str) -> None:
    """A GPU on each of two nodes is no room for a job of two. Queues that need a plan themselves count amounts."""
    made = scene()
    made.plane.operations.put_queue(Queue("q", backfill=backfill), "ada")
    for lasts_s in (100, 200, 100, 200):
        made.submit(queue="q", gpus=1, expected_duration_s=lasts_s)
    made.plane.run(10)
    waits = made.submit(queue="q", gpus=2, expected_duration_s=50)
    made.plane.run(10)
    reason = made.plane.overview.reason(made.job(waits))
    assert reason_fields(reason)["start_counts"] == counts
    assert reason.estimated_start_ns is not None
    assert (reason.estimated_start_ns - made.clock.now_ns()) / NS == pytest.approx(180, abs=2 * START_S)
