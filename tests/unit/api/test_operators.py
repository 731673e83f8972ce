"""The fleet, cordons, queues, pools and tenants over HTTP."""

from __future__ import annotations

import pytest

from seaway.api.http.queries import page_token
from seaway.application.changes import Change, Record
from tests.fakes.records import shadow_result
from tests.unit.api.rig import Rig

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("of", ["nodes", "devices", "slices", "map", "models"])
async def test_a_filter_by_an_unknown_cluster_is_an_error(rig: Rig, of: str) -> None:
    """An empty list would hide a wrong name; the error lists the clusters."""
    async with rig.client("viewer") as client:
        answer = await client.get(f"/api/v1/fleet/{of}", params={"cluster": "no"})
        assert (answer.status_code, answer.json()["detail"]) == (422, "cluster: unknown cluster 'no'; available: a, b")


async def test_the_fleet_is_shown_in_pages(rig: Rig) -> None:
    """Nodes and devices are listed by page, in their order, with filters."""
    async with rig.client("viewer") as client:
        first = (await client.get("/api/v1/fleet/nodes", params={"limit": 3})).json()
        rest = (await client.get("/api/v1/fleet/nodes", params={"limit": 3, "after": first["next"]})).json()
        names = [(each["cluster"], each["name"]) for each in first["nodes"] + rest["nodes"]]
        assert names == [("a", "node-0"), ("a", "node-1"), ("b", "node-0"), ("b", "node-1")]
        assert rest["next"] is None
        devices = await client.get("/api/v1/fleet/devices", params={"cluster": "b", "node": "node-1"})
        assert [each["index"] for each in devices.json()["devices"]] == [0, 1]
        assert (await client.get("/api/v1/fleet/nodes", params={"after": "MTp4"})).status_code == 422
        assert (await client.get("/api/v1/fleet/clusters/b")).json()["gpus"] == 4
        assert (await client.get("/api/v1/fleet/clusters/no")).status_code == 404
        assert len((await client.get("/api/v1/fleet/links")).json()["links"]) == 2
        assert len((await client.get("/api/v1/fleet/gateways")).json()["gateways"]) == 3


async def test_history_begins_where_it_is_asked_to(rig: Rig) -> None:
    """Samples are listed oldest first, from the given time."""
    rig.step(60)
    async with rig.client("viewer") as client:
        path = "/api/v1/fleet/history"
        all_of_a = (await client.get(f"{path}/clusters", params={"cluster": "a"})).json()["samples"]
        assert len(all_of_a) > 1
        later = await client.get(f"{path}/clusters", params={"cluster": "a", "since": all_of_a[1]["at"]})
        assert later.json()["samples"] == all_of_a[1:]
        links = (await client.get(f"{path}/links", params={"source": "site", "target": "gw-a"})).json()["samples"]
        assert links[0]["latency_ns"] == 1_000_000


@pytest.mark.parametrize("kind", ["clusters", "links"])
@pytest.mark.parametrize("limit", [1, 2, 3])
async def test_history_comes_in_pages(rig: Rig, kind: str, limit: int) -> None:
    """The pages together equal one page, also with several samples of one moment; the last has no next."""
    rig.step(60)
    path = f"/api/v1/fleet/history/{kind}"
    async with rig.client("viewer") as client:
        whole = (await client.get(path)).json()
        assert len({each["at"] for each in whole["samples"]}) < len(whole["samples"])
        assert whole["next"] is None
        found = []
        after: str | None = ""
        while after is not None:
            page = (await client.get(path, params={"limit": limit, "after": after})).json()
            assert len(page["samples"]) <= limit
            found += page["samples"]
            after = page["next"]
        assert found == whole["samples"]
        for wrong in ("x", page_token("7"), page_token("[7]"), page_token('[-1, "a"]'), page_token('["a", 7, 7]')):
            assert (await client.get(path, params={"after": wrong})).status_code == 422


async def test_comparisons_come_in_pages(rig: Rig) -> None:
    """Shadow comparisons are listed new to old, of one queue or of all, over the whole retention."""
    rows: list[Record] = [shadow_result(id=at, queue="q" if at % 2 else "r") for at in range(1, 7)]
    rig.plane.writer.require(Change(insert=rows))
    async with rig.client("operator") as client:
        page = (await client.get("/api/v1/shadows", params={"queue": "q", "limit": 2})).json()
        assert [each["id"] for each in page["shadows"]] == [5, 3]
        page = (await client.get("/api/v1/shadows", params={"queue": "q", "limit": 2, "after": page["next"]})).json()
        assert ([each["id"] for each in page["shadows"]], page["next"]) == ([1], None)
        assert (await client.get("/api/v1/shadows", params={"after": page_token("x")})).status_code == 422


async def test_a_cordon_keeps_new_work_away(rig: Rig) -> None:
    """A cordoned cluster is listed with the author, and accepts jobs again after uncordon."""
    async with rig.client("operator") as client:
        made = await client.post("/api/v1/cordons", json={"cluster": "a", "reason": "repair"})
        assert (made.status_code, made.json()["actor"]) == (201, "operator")
        assert len((await client.get("/api/v1/cordons")).json()["cordons"]) == 1
        rig.step()
        shown = (await client.get("/api/v1/fleet/clusters/a")).json()["cordon"]
        assert (shown["reason"], shown["drain"]) == ("repair", False)
        assert (await client.delete("/api/v1/cordons", params={"cluster": "a"})).status_code == 204
        assert (await client.get("/api/v1/cordons")).json()["cordons"] == []
        for body in ({"cluster": "no"}, {"cluster": "a", "node": "no"}):
            assert (await client.post("/api/v1/cordons", json=body)).status_code == 404


async def test_queues_pools_and_tenants_come_and_go(rig: Rig) -> None:
    """They are created, changed, read and removed by name; objects in use and defaults cannot be removed."""
    async with rig.client("admin") as client:
        assert (await client.put("/api/v1/pools/east", json={"clusters": ["a"]})).status_code == 200
        assert (await client.put("/api/v1/tenants/new", json={"description": "x"})).json()["name"] == "new"
        queue = {"pool": "east", "tenant": "new", "policy": "greedy", "shadow": "bestfit"}
        assert (await client.put("/api/v1/queues/fast", json=queue)).json()["policy"] == "greedy"
        for kind in ("pools/east", "tenants/new", "queues/fast"):
            assert (await client.get(f"/api/v1/{kind}")).status_code == 200
        assert (await client.delete("/api/v1/pools/east")).status_code == 409
        assert (await client.delete("/api/v1/tenants/new")).status_code == 409
        for kind in ("queues/fast", "pools/east", "tenants/new"):
            assert (await client.delete(f"/api/v1/{kind}")).status_code == 204
            assert (await client.delete(f"/api/v1/{kind}")).status_code == 404
        for kind in ("queues", "pools", "tenants"):
            assert (await client.delete(f"/api/v1/{kind}/default")).status_code == 409
            assert (await client.get(f"/api/v1/{kind}/no")).status_code == 404
            assert (await client.put(f"/api/v1/{kind}/No!", json={})).status_code == 422
        for wrong in ({"policy": "no"}, {"pool": "no"}, {"tenant": "no"}, {"shadow": "no"}):
            answer = await client.put("/api/v1/queues/fast", json=wrong)
            assert answer.json()["errors"][0]["field"] in wrong


@pytest.mark.parametrize("kind", ["queues", "pools", "tenants"])
async def test_a_change_counts_for_the_version_that_it_names(rig: Rig, kind: str) -> None:
    """A change or removal with an old version is rejected; one with the current version succeeds."""
    path = f"/api/v1/{kind}/new"
    async with rig.client("admin") as client:
        first = await client.put(path, json={"description": "one"}, headers={"if-none-match": "*"})
        assert (first.status_code, first.headers["etag"]) == (200, f'"{first.json()["version"]}"')
        assert (await client.put(path, json={}, headers={"if-none-match": "*"})).status_code == 412
        read = await client.get(path)
        assert (read.json(), read.headers["etag"]) == (first.json(), first.headers["etag"])
        known = await client.get(path, headers={"if-none-match": read.headers["etag"]})
        assert (known.status_code, known.content) == (304, b"")
        seen = {"if-match": read.headers["etag"]}
        second = await client.put(path, json={"description": "two"}, headers=seen)
        assert (second.status_code, second.json()["description"]) == (200, "two")
        assert second.headers["etag"] != read.headers["etag"]
        late = await client.put(path, json={"description": "three"}, headers=seen)
        assert (late.status_code, "read it again" in late.json()["detail"]) == (412, True)
        assert (await client.delete(path, headers=seen)).status_code == 412
        assert (await client.get(path)).json() == second.json()
        both = {"if-match": f'"other", {second.headers["etag"]}'}
        assert (await client.delete(path, headers=both)).status_code == 204
        assert (await client.put(path, json={}, headers={"if-match": "*"})).status_code == 412
        assert (await client.get(path)).status_code == 404


async def test_policies_can_be_chosen_from(rig: Rig) -> None:
    """Each policy has a description and its queues, as far as the user may see them."""
    async with rig.client("user") as client:
        policies = {each["name"]: each for each in (await client.get("/api/v1/policies")).json()["policies"]}
        assert policies["bestfit"]["queues"] == ["default"]
        assert policies["fgd"]["description"]
    async with rig.client("operator") as client:
        assert (await client.get("/api/v1/shadows")).json() == {"shadows": [], "next": None}


async def test_what_left_the_fleet_is_forgotten_by_operators(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    """A removed cluster is shown while resources are held there; its removal is an event, and audited."""
    held = await rig.submit()
    rig.step(5)
    where = (rig.plane.jobs.find(held["id"]).clusters)[0]
    known = rig.plane.controller._topology._backends  # noqa: SLF001  # the clusters that the rig made
    staying = [each for each in known.clusters() if each.cluster != where]
    async with rig.client("operator") as client:
        path = f"/api/v1/fleet/clusters/{where}"
        assert (await client.delete(path)).status_code == 409
        monkeypatch.setattr(known, "clusters", lambda: staying)
        rig.step()
        shown = (await client.get(path)).json()
        assert (shown["state"], shown["jobs"]) == ("gone", 1)
        assert (await client.delete(path)).status_code == 204
        assert (await client.delete("/api/v1/fleet/clusters/no")).status_code == 404
        rig.step(5)
        assert (await client.get(path)).status_code == 404
        assert rig.plane.jobs.find(held["id"]).clusters == (staying[0].cluster,)
    async with rig.client("user") as client:
        assert (await client.delete(path)).status_code == 403
    verbs = [(entry.verb, entry.status) for entry in rig.store.audit(0, 100)]
    assert ("DELETE remove_cluster", 204) in verbs
