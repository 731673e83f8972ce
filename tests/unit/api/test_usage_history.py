"""The history of use, from samples of the running fleet to its answers over HTTP."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from seaway.application.fleet.usage_history import UsageHistory
from seaway.application.ports.store import USAGE_STEPS_S, Retention, UsageFilter
from seaway.domain.usage import UsageBy, UsageSpan
from tests.unit.api.rig import Rig

pytestmark = pytest.mark.anyio

PATH = "/api/v1/fleet/history/usage"
WHOLE = {"cpu": 1, "memory": "1Gi", "gpus": 1, "gpu_memory": "100%"}
FOR_GOOD = Retention(None, None, None, None)


def record(rig: Rig, times: int = 1, every_s: float = 60) -> None:
    """Record samples at an interval."""
    for _ in range(times):
        rig.clock.advance_s(every_s)
        rig.plane.history.record()


async def asked(rig: Rig, token: str = "operator", **query: Any) -> dict[str, Any]:  # noqa: ANN401  # query parameters
    """Return the answer to a query."""
    async with rig.client(token) as client:
        answer = await client.get(PATH, params=query)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def reports(rig: Rig) -> list[Any]:
    """Return the series of the last week by all groupings."""
    return [rig.plane.history.report(by, UsageSpan.WEEK, 10).series for by in UsageBy]


async def test_allocations_and_waits_are_recorded_by_cluster_tenant_and_queue(rig: Rig) -> None:
    """Means are over all samples of a step, also over those without jobs; waits count at the placement."""
    rig.clock.advance_s(900 - rig.clock.now_ns() / 1e9 % 900)
    record(rig, 4)
    for _ in range(3):
        await rig.submit(resources=WHOLE)
    await rig.submit("other", queue="theirs", resources={**WHOLE, "gpus": 2})
    rig.step(2)
    record(rig, 4)
    fleet = await asked(rig)
    (step,) = fleet["series"][0]["steps"]
    assert (fleet["by"], fleet["span"], fleet["step_s"], step["gpu_milli"]) == ("fleet", "day", 900, 8000)
    assert (step["gpu_milli_used"], step["running"], step["started"]) == (2500, 2, 4)
    assert step["mean_wait_s"] is not None
    queues = await asked(rig, by="queue")
    assert [(each["name"], each["steps"][0]["gpu_milli_used"]) for each in queues["series"]] == [
        ("default", 1500),
        ("theirs", 1000),
    ]
    assert queues["series"][0]["gpu_hours"] == pytest.approx(3 * 4 / 60)
    clusters = await asked(rig, by="cluster")
    assert sum(each["steps"][0]["gpu_milli_used"] for each in clusters["series"]) == 2500
    assert [each["steps"][0]["gpu_milli"] for each in clusters["series"]] == [4000, 4000]


async def test_a_waiting_job_counts_until_it_is_placed(rig: Rig) -> None:
    """Its wait grows from sample to sample."""
    for _ in range(2):
        await rig.submit(resources={**WHOLE, "gpus": 2}, replicas=4)
    rig.step()
    record(rig, 3)
    steps = (await asked(rig, by="queue", span="hour"))["series"][0]["steps"]
    assert [each["waiting"] for each in steps] == [1, 1, 1]
    waits = [each["longest_wait_s"] for each in steps]
    assert [later - earlier for earlier, later in pairwise(waits)] == [60, 60]
    assert [(each["running"], each["started"]) for each in steps] == [(1, 1), (1, 0), (1, 0)]
    assert [each["mean_wait_s"] is None for each in steps] == [False, True, True]


async def test_waits_count_in_the_cluster_in_which_the_job_starts(rig: Rig) -> None:
    """Once per job, at its start, with the wait until its placement; users do not see waits of other tenants' jobs."""
    first = await rig.submit(resources={**WHOLE, "gpus": 2}, replicas=4)
    rig.step(4)
    record(rig)
    waits = await rig.submit(resources={**WHOLE, "gpus": 2}, replicas=4)
    rig.step()
    rig.clock.advance_s(600)
    async with rig.client("user") as client:
        assert (await client.post(f"/api/v1/jobs/{first['id']}/cancel")).is_success
    rig.step(8)
    async with rig.client("user") as client:
        assert (await client.get(f"/api/v1/jobs/{waits['id']}")).json()["state"] == "running"
    record(rig, 2)
    series = (await asked(rig, by="cluster", span="hour"))["series"]
    found = {each["name"]: [step["started"] for step in each["steps"]] for each in series}
    assert found == {"a": [1, 1, 0], "b": [1, 1, 0]}
    assert all(each["steps"][1]["mean_wait_s"] == pytest.approx(600, abs=5) for each in series)
    own = (await asked(rig, "user", by="cluster", span="hour"))["series"]
    assert {step["started"] for each in own for step in each["steps"]} == {0}


async def test_a_tenant_sees_its_own_jobs_only(rig: Rig) -> None:
    """The use of clusters is known to all; jobs, waits and queues of others are hidden, and so is their tenant."""
    await rig.submit(resources=WHOLE)
    await rig.submit("other", queue="theirs", resources={**WHOLE, "gpus": 2})
    rig.step(2)
    record(rig)
    (step,) = (await asked(rig, "user"))["series"][0]["steps"]
    assert (step["gpu_milli_used"], step["running"], step["started"]) == (3000, 1, 1)
    assert [each["name"] for each in (await asked(rig, "user", by="queue"))["series"]] == ["default"]
    assert [each["name"] for each in (await asked(rig, "user", by="tenant"))["series"]] == ["default"]
    assert [each["name"] for each in (await asked(rig, by="tenant"))["series"]] == ["other", "default"]
    assert [each["name"] for each in (await asked(rig, by="tenant", queue="default"))["series"]] == ["default"]
    rest = await asked(rig, by="tenant", limit=1)
    assert ([each["name"] for each in rest["series"]], rest["others"]["steps"][0]["gpu_milli_used"]) == (
        ["other"],
        1000,
    )
    async with rig.client("user") as client:
        assert (await client.get(PATH, params={"by": "queue", "tenant": "other"})).status_code == 404
        wrong = await client.get(PATH, params={"by": "cluster", "queue": "default"})
        assert (wrong.status_code, wrong.json()["errors"][0]["field"]) == (422, "queue")
        assert (await client.get(PATH, params={"span": "year"})).status_code == 422


async def test_old_samples_become_longer_steps_that_survive_a_restart(rig: Rig) -> None:
    """A week looks the same after the short steps are removed, also if a restart came between."""
    await rig.submit(resources=WHOLE)
    rig.step(2)
    record(rig, 200)
    store, plane = rig.store, rig.plane
    again = UsageHistory(plane.controller, plane.overview, store, plane.writer, rig.clock, 60)
    for _ in range(100):
        rig.clock.advance_s(60)
        again.record()
    before = reports(rig)
    rig.clock.advance_s(10 * 60)
    rig.plane.history.record()
    hours = [series.gpu_hours for report in reports(rig) for series in report]
    assert hours == pytest.approx([301 / 60] * 2 + [0] + [301 / 60] * 2)
    now_ns = rig.clock.now_ns()
    store.prune(FOR_GOOD, now_ns + 6 * 3600 * 10**9)
    assert not store.usage_samples(UsageFilter(60, 0, now_ns - 60 * 10**9, 60))
    assert sum(row.samples for row in store.usage_samples(UsageFilter(900, 0, now_ns, 900, kind="fleet"))) >= 300 - 15
    assert len(before[0][0].steps) == 6


async def test_time_without_a_running_seaway_has_no_steps(rig: Rig) -> None:
    """A gap is no use of 0. A history has a limited number of rows, however long it is."""
    record(rig, 3)
    rig.clock.advance_s(1800)
    record(rig, 3)
    assert len((await asked(rig, span="hour"))["series"][0]["steps"]) == 6
    record(rig, 300, every_s=600)
    rig.store.prune(FOR_GOOD, rig.clock.now_ns())
    for step_s, keep_s in USAGE_STEPS_S.items():
        rows = rig.store.usage_samples(UsageFilter(step_s, 0, rig.clock.now_ns() + 1, step_s, kind="fleet"))
        assert len(rows) <= keep_s / step_s
