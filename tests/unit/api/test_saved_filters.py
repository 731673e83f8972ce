"""Saved filters, and the order of lists of jobs, over HTTP."""

from __future__ import annotations

import pytest

from seaway.application.saved_filters import MAX_FILTERS
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
