"""Saved filters, and the order of lists of jobs, over HTTP."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from seaway.application.access import Caller, tenant_of_owner
from seaway.application.changes import Change, Outcome
from seaway.application.fleet.costs import Costs
from seaway.application.ports.store import JobFilter, JobSort, Retention
from seaway.application.records import Role
from seaway.application.saved_filters import MAX_FILTERS
from seaway.domain.job_state import AttemptState, JobState
from seaway.domain.tenancy import Tenant
from tests.fakes import records as make
from tests.unit.api.rig import Rig

pytestmark = pytest.mark.anyio

PATH = "/api/v1/saved-filters"
WHOLE = {"cpu": 1, "memory": "1Gi", "gpus": 1, "gpu_memory": "100%"}


async def test_each_user_has_their_own_filters(rig: Rig) -> None:
    """A viewer may save some, replace and delete them; others neither see nor change them."""
    async with rig.client("viewer") as client, rig.client("user") as other:
        for query in ("state=failed", "state=failed&sort=-ended"):
            answer = await client.put(f"{PATH}/my failures", json={"query": query})
            assert (answer.status_code, answer.json()["query"]) == (200, query)
        listed = (await client.get(PATH)).json()["filters"]
        assert [(each["name"], each["query"]) for each in listed] == [("my failures", "state=failed&sort=-ended")]
        assert (await other.get(PATH)).json()["filters"] == []
        assert (await other.delete(f"{PATH}/my failures")).status_code == 404
        assert (await client.delete(f"{PATH}/my failures")).status_code == 204
        assert (await client.get(PATH)).json()["filters"] == []


async def test_filters_belong_to_a_user_of_a_tenant(rig: Rig) -> None:
    """A token of another tenant with the same name sees none of them, and the end of the tenant removes them."""
    rig.plane.operations.put_tenant(Tenant("red"), "rig")

    async def names(tenant: str, *, put: bool = False) -> list[str]:
        token, rig.tokens["robot"] = rig.plane.access.create("robot", Role.USER, tenant, None, "rig")
        async with rig.client("robot") as client:
            if put:
                assert (await client.put(f"{PATH}/launch", json={"query": "label=secret"})).status_code == 200
            found = [each["name"] for each in (await client.get(PATH)).json()["filters"]]
        rig.plane.access.revoke(token.id)
        return found

    assert await names("red", put=True) == ["launch"]
    assert await names("red") == ["launch"]  # a new token of the same user
    assert await names("other") == []
    rig.plane.operations.delete_tenant("red", "rig")
    rig.plane.operations.put_tenant(Tenant("red"), "rig")
    assert await names("red") == []


@pytest.mark.parametrize(
    ("issuer", "tenant", "name"), [("", "", "a/b"), ("", "red", "x blue/y"), ("https://idp.example/r", "red", "ada")]
)
def test_the_tenant_of_an_owner(issuer: str, tenant: str, name: str) -> None:
    """The tenant can be read from the owner, whatever the name has in it."""
    assert tenant_of_owner(Caller(name, Role.USER, tenant, issuer=issuer).owner) == tenant


async def test_bad_and_too_many_filters_are_rejected(rig: Rig) -> None:
    """Names have up to 63 characters and queries one line; a user has a limited number."""
    async with rig.client("viewer") as client:
        assert (await client.put(f"{PATH}/{'x' * 64}", json={"query": ""})).status_code == 422
        for body in ({"query": "a\nb"}, {"query": "x" * 2001}, {}, {"query": "", "more": 1}):
            assert (await client.put(f"{PATH}/new", json=body)).status_code == 422, body
        for at in range(MAX_FILTERS):
            assert (await client.put(f"{PATH}/filter {at}", json={"query": f"name={at}"})).status_code == 200
        full = await client.put(f"{PATH}/one more", json={"query": ""})
        assert (full.status_code, "delete one first" in full.json()["detail"]) == (409, True)
        assert (await client.put(f"{PATH}/filter 3", json={"query": "name=x"})).status_code == 200


async def test_lists_of_jobs_are_sorted_with_pages_and_gpu_hours(rig: Rig) -> None:
    """Pages follow each other in any order; GPU-hours are those of all attempts; an unknown order is rejected."""
    jobs = {name: await rig.submit(name=name, resources={**WHOLE, "gpus": gpus}) for name, gpus in (("b", 2), ("a", 1))}
    rig.step(3)
    rig.clock.advance_s(3600)
    async with rig.client("user") as client:
        assert (await client.post(f"/api/v1/jobs/{jobs['b']['id']}/cancel")).is_success
        rig.step(3)
        rig.clock.advance_s(3600)
        query: dict[str, str | int] = {"sort": "-gpu_hours", "gpu_hours": "true", "limit": 1}
        first = (await client.get("/api/v1/jobs", params=query)).json()
        second = (await client.get("/api/v1/jobs", params={**query, "after": first["next"]})).json()
        found = [each for page in (first, second) for each in page["jobs"]]
        hours = {each["name"]: each["gpu_hours"] for each in found}
        assert hours == {"a": pytest.approx(2, rel=0.02), "b": pytest.approx(2, rel=0.02)}
        assert (await client.get("/api/v1/jobs", params={"sort": "name"})).json()["jobs"][0]["name"] == "a"
        ended = (await client.get("/api/v1/jobs", params={"ended_from": jobs["a"]["submitted_at"]})).json()["jobs"]
        assert [(each["name"], each.get("gpu_hours")) for each in ended] == [("b", None)]
        for wrong, field in ({"sort": "price"}, "sort"), ({"sort": "name", "after": "eA"}, "after"):
            answer = await client.get("/api/v1/jobs", params=wrong)
            assert (answer.status_code, answer.json()["errors"][0]["field"]) == (422, field)
        count = await client.get("/api/v1/job-counts", params={"ended_from": jobs["a"]["submitted_at"]})
        assert count.json()["total"] == 1


async def test_costs_are_prices_times_held_time(rig: Rig) -> None:
    """Jobs, attempts and lists agree; a part without a price is counted apart, and never as free of charge."""
    path = "/api/v1/jobs"
    async with rig.client("operator") as client:
        cheap, dear = (f"/api/v1/fleet/clusters/{name}/facts" for name in ("a", "b"))
        await client.patch(dear, json={"price_per_gpu_hour": "2.5"})
        jobs = {}
        for name, gpus, cluster in (("a", 2, "b"), ("b", 1, "a"), ("c", 2, "b")):
            resources, placement = {**WHOLE, "gpus": gpus}, {"clusters": [cluster]}
            jobs[name] = (await rig.submit(name=name, resources=resources, placement=placement))["id"]
        await rig.submit(name="later", replicas=2, resources={**WHOLE, "gpus": 2})
        rig.step(3)
        rig.clock.advance_s(3600)
        found = (await client.get(f"{path}/{jobs['a']}/cost")).json()
        assert found["gpu_hours"] == pytest.approx(2, rel=0.02)
        assert float(found["cost"]) == pytest.approx(5, rel=0.02)
        assert found["cost_per_hour"] == "5.00"
        unknown = (await client.get(f"{path}/{jobs['b']}/cost")).json()
        assert (unknown["cost"], unknown["cost_per_hour"], unknown["unpriced_gpus"]) == (None, None, 1)
        assert unknown["unpriced_gpu_hours"] == unknown["gpu_hours"] > 0
        (attempt,) = (await client.get(f"{path}/{jobs['a']}/attempts")).json()["attempts"]
        assert (attempt["cost"], attempt["expected_end"]) == (found, None)
        assert (await client.post(f"{path}/{jobs['a']}/cancel")).is_success
        rig.step(3)
        rig.clock.advance_s(3600)
        assert (await client.get(f"{path}/{jobs['a']}/cost")).json()["cost_per_hour"] == "0.00"
        await client.patch(cheap, json={"price_per_gpu_hour": "0.1"})
        rig.step(1)
        query: dict[str, str | int] = {"sort": "-cost", "cost": "true", "limit": 2}
        first = (await client.get(path, params=query)).json()
        second = (await client.get(path, params={**query, "after": first["next"]})).json()
        ranked = [(each["name"], float(each["cost"]["cost"])) for page in (first, second) for each in page["jobs"]]
        assert ranked == sorted(ranked, key=lambda each: -each[1])
        assert dict(ranked)["a"] == pytest.approx(5, rel=0.02)
        assert "cost" not in (await client.get(path)).json()["jobs"][0]
        usage = (await client.get("/api/v1/queue-usage")).json()
        total = sum(cost for _, cost in ranked)
        for sums in (usage["queues"], usage["tenants"]):
            costs = {each.get("queue", each.get("tenant")): each["cost"] for each in sums}
            assert float(costs["default"]["cost"]) == pytest.approx(total, rel=0.01)
            assert costs["default"]["unpriced_gpu_hours"] == 0


def test_costs_follow_attempts_that_end_and_prices_that_change(rig: Rig) -> None:
    """Sums follow new attempts, those that are stored late, removed ones, and changed prices."""
    costs, hour_ns = rig.plane.overview.costs, 3600 * 10**9

    def ended(name: str, gpus: int, ended_ns: int) -> None:
        job = make.job_record(spec=make.spec(name), state=JobState.COMPLETED, ended_ns=ended_ns)
        where = (replace(make.attempt_of(job).placements[0], cluster="a"),)
        held: dict[str, Any] = {"placements": where, "amounts": {"gpus": gpus, "gpus/T4": gpus}}
        at: dict[str, Any] = {"created_ns": ended_ns - hour_ns, "ended_ns": ended_ns, "state": AttemptState.ENDED}
        assert rig.store.commit([Change(insert=[job, make.attempt_of(job, **held, **at)])]) == [Outcome.STORED]

    def ranked() -> list[str]:
        rig.clock.advance_s(61)
        fresh = Costs(rig.plane.controller, rig.store)
        for sort in (JobSort.COST, JobSort.GPU_HOURS):
            wanted = JobFilter(sort=sort, descending=True)
            assert costs.ranked(wanted, 9) == fresh.ranked(wanted, 9)
        assert costs.by_lane() == fresh.by_lane()
        rows = map(rig.store.job, costs.ranked(JobFilter(sort=JobSort.GPU_HOURS), 9))
        return [row.spec.name for row in rows if row]

    now_ns = rig.clock.now_ns()
    ended("old", 3000, now_ns - 90 * 24 * hour_ns)
    ended("b", 2000, now_ns - 10**9)
    assert ranked() == ranked() == ["b", "old"]
    ended("new", 1000, rig.clock.now_ns())
    assert ranked() == ranked() == ["new", "b", "old"]
    ended("late", 4000, now_ns - hour_ns)
    assert ranked() == ["new", "b", "old", "late"]
    rig.plane.operations.set_facts("a", lambda facts: replace(facts, prices={"T4": 5_000_000}), "ada")
    rig.step()
    ranked()
    rig.store.prune(Retention(30 * 24 * hour_ns, None, None, None), rig.clock.now_ns())
    assert ranked() == ["new", "b", "late"]
    (cost,) = costs.by_lane().values()
    assert cost.micros == 7 * 5_000_000


async def test_an_attempt_counts_once_while_the_control_loop_learns_of_its_end(rig: Rig) -> None:
    """Uses of running attempts are those of the control loop, and of ended ones those of the database."""
    job_id, costs = (await rig.submit())["id"], Costs(rig.plane.controller, rig.store)
    rig.step(5)
    (running,) = rig.store.attempts(job_id)
    gpus, hour_ns = running.amounts["gpus"] / 1000, 3600 * 10**9
    rig.clock.advance_s(3600)
    for ended_ns in (None, running.created_ns + hour_ns):
        if ended_ns:
            ended = replace(running, state=AttemptState.ENDED, ended_ns=ended_ns)
            assert rig.store.commit([Change(update=[ended])]) == [Outcome.STORED]
        rig.clock.advance_s(61)
        (cost,) = costs.by_lane().values()
        assert cost.gpu_hours == pytest.approx(gpus, rel=0.1)
