"""Queries for nodes, devices and slices over HTTP."""

from __future__ import annotations

import pytest

from seaway.application.views import ClusterState
from tests.unit.api.rig import Rig

pytestmark = pytest.mark.anyio

FLEET = "/api/v1/fleet"


async def test_what_is_free_is_found_and_counted(rig: Rig) -> None:
    """Filters apply to all pages; the answer has the number of matches, and their free resources."""
    await rig.submit(resources={"gpus": 1, "gpu_memory": "8Gi", "gpu_cores": "50%"})
    rig.step(3)
    async with rig.client("viewer") as client:
        page = (await client.get(f"{FLEET}/devices", params={"limit": 3})).json()
        assert (page["found"]["nodes"], page["found"]["devices"], page["first"], len(page["devices"])) == (4, 8, 0, 3)
        held = page["found"]["core_milli"]["used"]
        assert held > 0
        free = (await client.get(f"{FLEET}/devices", params={"free_core_milli": 1000})).json()
        assert free["found"]["devices"] == 7
        assert all(each["core_milli"]["free"] == 1000 for each in free["devices"])
        nodes = (await client.get(f"{FLEET}/nodes", params={"name": "NODE-1", "limit": 1})).json()
        assert [each["name"] for each in nodes["nodes"]] == ["node-1"]
        rest = (await client.get(f"{FLEET}/nodes", params={"name": "NODE-1", "after": nodes["next"]})).json()
        assert (rest["first"], rest["nodes"][0]["cluster"], rest["next"]) == (1, "b", None)
        uuid = page["devices"][0]["uuid"]
        one = (await client.get(f"{FLEET}/devices", params={"device": uuid.lower()})).json()
        assert uuid in [each["uuid"] for each in one["devices"]]
        none = (await client.get(f"{FLEET}/nodes", params={"model": "no such"})).json()
        assert (none["nodes"], none["next"], none["found"]["nodes"]) == ([], None, 0)
        models = (await client.get(f"{FLEET}/models")).json()["models"]
        assert [(each["devices"], each["free"], each["core_milli"]["used"]) for each in models] == [(8, 7, held)]


@pytest.mark.parametrize(
    ("name", "value"), [("free_memory_mib", "-1"), ("free_core_milli", "much"), ("ready", "perhaps"), ("colour", "red")]
)
async def test_wrong_filters_are_refused_by_name(rig: Rig, name: str, value: str) -> None:
    """An invalid filter is rejected, with its name."""
    async with rig.client("viewer") as client:
        answer = await client.get(f"{FLEET}/nodes", params={name: value})
    assert answer.status_code == 422
    assert [each["field"] for each in answer.json()["errors"]] == [name]


@pytest.mark.parametrize("limit", [1, 2, 3, 100])
async def test_slices_come_in_pages_with_their_devices(rig: Rig, limit: int) -> None:
    """The pages have each slice once, with its share of the device; other tenants' names stay hidden."""
    for token, queue in (("user", "default"), ("other", "theirs"), ("user", "default"), ("user", "default")):
        await rig.submit(token, queue=queue, resources={"gpus": 2, "gpu_memory": "8Gi", "gpu_cores": "10%"})
    rig.step(3)
    rows = []
    async with rig.client("viewer") as client:
        after: str | None = ""
        while after is not None:
            page = (await client.get(f"{FLEET}/slices", params={"limit": limit, "after": after})).json()
            assert len(page["slices"]) <= limit
            rows += page["slices"]
            after = page["next"]
    assert len(rows) == 8
    assert sum(each["tenant"] == "default" for each in rows) == 6
    for each in rows:
        assert each["memory_mib"] <= each["device_memory_mib"]
        assert each["core_milli"] <= each["device_core_milli"]
        assert bool(each["pod"]) <= (each["tenant"] == "default")
    assert len({(each["uuid"], each["job_id"], each["replica"]) for each in rows}) == 8


async def test_the_map_has_all_nodes_and_hides_the_names_of_other_tenants(rig: Rig) -> None:
    """The map of an operator has all tenants; that of another tenant has an empty name for them."""
    async with rig.client("operator") as client, rig.client("other") as other:
        await rig.submit(resources={"gpus": 1})
        rig.step()
        whole = (await client.get(f"{FLEET}/map")).json()
        assert (len(whole["nodes"]), whole["found"]["nodes"]) == (4, 4)
        assert [(each["tenants"], each["gpu_milli_used"]) for each in whole["nodes"] if each["jobs"]] == [
            (["default"], 1000)
        ]
        hidden = (await other.get(f"{FLEET}/map")).json()["nodes"]
        assert [each["tenants"] for each in hidden if each["jobs"]] == [[""]]


async def test_nodes_that_take_no_work_are_reported_from_those_that_do(rig: Rig) -> None:
    """A cordoned node is listed among nodes that accept no jobs, and not among the others."""
    async with rig.client("operator") as client:
        await client.post("/api/v1/cordons", json={"cluster": "a", "node": "node-1", "reason": "repair"})
        rig.step()
        closed = (await client.get(f"{FLEET}/nodes", params={"ready": "false"})).json()
        assert [(each["cluster"], each["name"]) for each in closed["nodes"]] == [("a", "node-1")]
        assert (await client.get(f"{FLEET}/nodes", params={"ready": "true"})).json()["found"]["nodes"] == 3


async def test_the_first_report_of_a_cluster_is_no_event(rig: Rig) -> None:
    """A start is no news of healthy clusters. One that was reported as silent, and answers again, is."""
    rig.step(2)
    async with rig.client() as client:

        async def events() -> list[str]:
            rows = (await client.get("/api/v1/events/history")).json()["events"]
            return [each["message"] for each in rows if each["kind"] == "cluster"]

        assert await events() == []
        rig.plane.controller.live.fleet.clusters["a"].reported_unreachable = True
        rig.plane.controller.live.fleet.set_state("a", ClusterState.STALE)
        rig.step(2)
        assert await events() == ["a answers (it was stale)"]
