from __future__ import annotations

from typing import Any

import pytest

from seaway.application.changes import Change
from seaway.application.records import LinkSample
from tests.unit.api.rig import JOB as SMALL
from tests.unit.api.rig import Rig

pytestmark = pytest.mark.anyio

JOB: dict[str, Any] = {"gateway": "site", "network": {"min_bandwidth": "400Mbps"}}


@pytest.mark.parametrize("path", ["/api/v1/links", "/api/v1/fleet/links"])
@pytest.mark.parametrize("name", ["source", "target", "cluster"])
async def test_gateways_and_clusters_that_are_not_there_are_refused(rig: Rig, path: str, name: str) -> None:
    """A mistyped name is an error with the field and the existing names, not an empty list."""
    async with rig.client("viewer") as client:
        answer = await client.get(path, params={name: "nope"})
        assert answer.status_code == 422
        assert name in answer.text
        assert "available: " in answer.text
        known = "a" if name == "cluster" else "gw-a"
        assert (await client.get(path, params={name: known})).status_code == 200


async def test_history_that_ends_before_it_begins_is_refused(rig: Rig) -> None:
    """Such a range would always be empty; a single moment is valid."""
    async with rig.client("viewer") as client:
        query = {"since": "2026-11-21T10:00:00Z", "until": "2026-11-21T09:59:59Z"}
        answer = await client.get("/api/v1/links", params=query)
        assert answer.status_code == 422
        assert "until" in answer.text
        same = {"since": "2026-11-21T10:00:00Z", "until": "2026-11-21T10:00:00Z"}
        assert (await client.get("/api/v1/links", params=same)).status_code == 200


async def test_a_parameter_that_is_given_twice_is_refused(rig: Rig) -> None:
    """A duplicate parameter is an error."""
    async with rig.client("viewer") as client:
        answer = await client.get("/api/v1/links?source=site&source=gw-a")
        assert answer.status_code == 422
        assert "more than once" in answer.text


async def test_links_and_candidates_show_what_is_promised_and_what_is_free(rig: Rig) -> None:
    """With 400 of 1000 reserved 600 are free, on the link and for the next tried job."""
    await rig.submit(**JOB, placement={"clusters": ["a"]})
    rig.plane.controller.step()
    rig.plane.controller.step()
    async with rig.client("user") as client:
        links = (await client.get("/api/v1/fleet/links", params={"target": "gw-a"})).json()["links"]
        assert [(each["reserved_mbps"], each["free_mbps"], each["bandwidth_mbps"]) for each in links] == [
            (400, 600, 1000)
        ]
        tried = await client.post("/api/v1/jobs?dry_run=true", json={**SMALL, **JOB, "placement": {"clusters": ["a"]}})
        link = tried.json()["candidates"][0]["link"]
        assert link["bandwidth_mbps"] - link["used_mbps"] == 600


@pytest.mark.parametrize(("name", "known"), [("gateway", "gw-a"), ("site", "site")])
async def test_links_at_a_gateway_or_a_site_are_those_that_begin_or_end_there(rig: Rig, name: str, known: str) -> None:
    """A filter selects both directions; an unknown name is rejected by name."""
    async with rig.client("viewer") as client:
        found = (await client.get("/api/v1/fleet/links", params={name: known})).json()["links"]
        assert found
        assert all(known in (each["source"], each["target"]) for each in found)
        refused = await client.get("/api/v1/fleet/links", params={name: "nope"})
        assert refused.status_code == 422
        assert name in refused.text


async def test_the_worst_links_come_first_and_the_others_are_counted(rig: Rig) -> None:
    """Of two links the slower one is the worst; with a limit of one the total still counts both."""
    async with rig.client("viewer") as client:
        found = (await client.get("/api/v1/fleet/links", params={"worst": "latency", "limit": 1})).json()
        assert [(each["source"], each["target"]) for each in found["links"]] == [("site", "gw-b")]
        assert found["total"] == 2
        assert (await client.get("/api/v1/fleet/links", params={"worst": "colour"})).status_code == 422


async def test_a_link_has_its_usual_figures_and_the_change_from_them(rig: Rig) -> None:
    """They are the medians of a day of samples, which a fault does not move. Links with few samples have none."""
    hour_ns, now_ns = 3600 * 10**9, rig.clock.now_ns()
    latencies = {("site", "gw-b"): [3_000_000] * 9 + [90_000_000] * 3, ("site", "gw-a"): [1_000_000] * 2}
    samples = [
        LinkSample(now_ns - (1 + at) * hour_ns + 1, *ends, latency_ns, 2_000, 5_000, 1_000, 700)
        for ends, values in latencies.items()
        for at, latency_ns in enumerate(values)
    ]
    rig.plane.writer.require(Change(put=[*samples]))
    async with rig.client("viewer") as client:
        found = (await client.get("/api/v1/fleet/links", params={"worst": "change"})).json()["links"]
        matrix = (await client.get("/api/v1/fleet/links/matrix", params={"figure": "change"})).json()
    names = ("target", "usual_latency_ns", "usual_jitter_ns", "usual_loss_ppm", "usual_traffic_mbps")
    usual = [tuple(each[name] for name in (*names, "changed", "change_percent")) for each in found]
    assert usual == [("gw-b", 3_000_000, 2_000, 5_000, 700, "latency", 300), ("gw-a", *[None] * 6)]
    assert matrix["values"][2] == [None, 300, None]


async def test_the_matrix_has_a_figure_of_each_link_and_nothing_where_there_is_none(rig: Rig) -> None:
    """Rows are sources, columns are targets; each gateway has its cluster or site."""
    async with rig.client("viewer") as client:
        matrix = (await client.get("/api/v1/fleet/links/matrix")).json()
        assert [(each["name"], each["clusters"], each["site"]) for each in matrix["gateways"]] == [
            ("gw-a", ["a"], ""),
            ("gw-b", ["b"], ""),
            ("site", [], "site"),
        ]
        assert matrix["values"] == [[None] * 3, [None] * 3, [1_000_000, 9_000_000, None]]
        assert matrix["states"] == [[None] * 3, [None] * 3, ["reported", "reported", None]]
        free = (await client.get("/api/v1/fleet/links/matrix", params={"figure": "free"})).json()
        assert free["values"][2] == [1000, 1000, None]
