"""From reports over HTTP to metrics and placements of jobs, in memory."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from seaway.api.metrics import LINK_METRICS
from seaway.application.changes import Change, Record
from seaway.application.records import LinkSample, Role
from tests.unit.api.rig import JOB, Rig, make_rig

pytestmark = pytest.mark.anyio

MS = 1_000_000
NETWORK: dict[str, Any] = {
    "probe": {"interval": "10s"},
    "mesh": False,
    "gateways": [
        {"name": "gw-1", "cluster": "a", "address": "fd00:51d:1::1", "speed": "10Gbps"},
        {"name": "gw-2", "cluster": "b", "address": "fd00:51d:2::1", "speed": "1Gbps"},
        {"name": "gw-4", "site": "office", "address": "fd00:51d:4::1", "speed": "10Gbps"},
    ],
}


@dataclass
class World:
    """A control plane of two clusters, with a network, and the agents of its gateways."""

    rig: Rig
    client: httpx.AsyncClient
    numbers: dict[str, int] = field(default_factory=dict)

    async def begin(self, network: object = NETWORK) -> None:
        """Set the network."""
        answer = await self.client.put("/api/v1/network", json=network)
        assert answer.is_success, answer.text

    async def get(self, path: str, **query: str) -> Any:  # noqa: ANN401  # any JSON
        """Send a GET request."""
        answer = await self.client.get(f"/api/v1{path}", params=query)
        assert answer.status_code == 200, answer.text
        return answer.json()

    async def report(self, gateway: str, **latencies_ms: float | None) -> None:
        """Report a round to some gateways as an agent; None without an answer."""
        number = self.numbers[gateway] = self.numbers.get(gateway, 0) + 1
        at_ns = self.rig.clock.now_ns()
        rounds = [
            {
                "target": name.replace("_", "-"),
                "path": "",
                "at_ns": at_ns,
                "sent": 5,
                "received": 0 if latency_ms is None else 5,
                "latency_ns": None if latency_ms is None else int(latency_ms * MS),
                "jitter_ns": 0 if latency_ms is None else MS,
                "discarded": 0,
            }
            for name, latency_ms in latencies_ms.items()
        ]
        body = {"gateway": gateway, "started_ns": 1, "number": number, "dropped": 0, "rounds": rounds}
        headers = {"authorization": f"Bearer {self.rig.tokens[gateway]}"}
        answer = await self.client.post("/api/v1/network/reports", json=body, headers=headers)
        assert answer.is_success, answer.text

    async def rounds(self, count: int, to_1_ms: float | None, to_2_ms: float | None) -> None:
        """Run some rounds in which the user's gateway measures the clusters', and these each other."""
        for _ in range(count):
            await self.report("gw-4", gw_1=to_1_ms, gw_2=to_2_ms)
            await self.report("gw-1", gw_2=5.0)
            self.rig.step()
            self.rig.clock.advance_s(8)  # a step is two seconds
        self.rig.step()

    async def job(self, name: str, **bounds: str) -> dict[str, Any]:
        """Submit a job from the office with bounds on its network, and return its state."""
        job = await self.rig.submit(name=name, gateway="gw-4", network=bounds)
        self.rig.step(3)
        found: dict[str, Any] = await self.get(f"/jobs/{job['id']}")
        return found

    async def metrics(self, **query: str) -> dict[str, dict[tuple[str, ...], float]]:
        """Return the series of links by metric, each by source, target, cluster and the source's role."""
        answer = await self.client.get("/metrics", params=query)
        assert answer.status_code == 200, answer.text
        found: dict[str, dict[tuple[str, ...], float]] = {}
        for family in text_string_to_metric_families(answer.text):
            if family.name in LINK_METRICS:
                assert family.type == "gauge"
                found[family.name] = {
                    (
                        each.labels["source"],
                        each.labels["target"],
                        each.labels["cluster"],
                        each.labels.get("site") or each.labels["source_cluster"],
                    ): each.value
                    for each in family.samples
                }
        return found


@pytest.fixture(name="world")
def _world() -> World:
    rig = make_rig()
    for name in ("gw-1", "gw-2", "gw-4"):
        rig.tokens[name] = rig.plane.access.create(name, Role.AGENT, "", None, "test", gateway=name)[1]
    headers = {"authorization": f"Bearer {rig.tokens['admin']}"}
    return World(
        rig, httpx.AsyncClient(transport=httpx.ASGITransport(rig.app), base_url="http://127.0.0.1", headers=headers)
    )


async def test_what_agents_report_is_shown_in_the_form_that_others_share(world: World) -> None:
    """The shared format has names, addresses and nanoseconds exactly; unmeasured values are left out."""
    await world.begin()
    await world.rounds(1, 10.0, None)
    assert await world.get("/links", source="gw-4") == [
        {
            "sourceName": "gw-4",
            "targetName": "gw-1",
            "sourceIP": "fd00:51d:4::1",
            "targetIP": "fd00:51d:1::1",
            "net": {"jitter": MS, "latency": 10 * MS, "packetLoss": 0, "bandwidth": 10_000, "capacity": 10_000},
        },
        {
            "sourceName": "gw-4",
            "targetName": "gw-2",
            "sourceIP": "fd00:51d:4::1",
            "targetIP": "fd00:51d:2::1",
            "net": {"jitter": None, "latency": None, "packetLoss": 1, "bandwidth": 1_000, "capacity": 1_000},
        },
    ]


async def test_links_are_filtered_by_source_target_and_cluster(world: World) -> None:
    """Filters work alone and combined; a cluster's links are those of its gateway."""
    await world.begin()
    await world.rounds(1, 10.0, 20.0)

    async def ends(**query: str) -> set[tuple[str, str]]:
        short = {(each["sourceName"], each["targetName"]) for each in await world.get("/links", **query)}
        rich = (await world.get("/fleet/links", **query))["links"]
        assert short == {(each["source"], each["target"]) for each in rich if each["state"] == "measured"} | {
            (each["source"], each["target"]) for each in rich if each["state"] == "reported"
        }
        return short

    assert await ends(target="gw-2") == {("gw-4", "gw-2"), ("gw-1", "gw-2")}
    assert await ends(cluster="a") == {("gw-4", "gw-1"), ("gw-1", "gw-2")}
    assert await ends(cluster="b", source="gw-4") == {("gw-4", "gw-2")}


async def test_what_was_is_found_by_time(world: World) -> None:
    """There is a sample per minute and link, each with its time; the requested time range applies."""
    await world.begin()
    await world.rounds(7, 10.0, 20.0)
    await world.rounds(14, 30.0, None)
    everything = await world.get("/links", source="gw-4", since="2026-01-01T00:00:00Z")
    to_1 = [each for each in everything if each["targetName"] == "gw-1"]
    assert [each["at"] for each in to_1] == sorted(each["at"] for each in to_1)
    assert to_1[0]["net"]["latency"] == 10 * MS
    assert to_1[-1]["net"]["latency"] == 30 * MS
    unreachable = everything[-1]["net"]
    assert [unreachable[name] for name in ("latency", "jitter", "packetLoss")] == [None, None, 1]
    last = to_1[-1]["at"]
    assert [each["at"] for each in await world.get("/links", target="gw-1", source="gw-4", since=last)] == [last]
    assert last not in {each["at"] for each in await world.get("/links", until=to_1[-2]["at"])}
    history = await world.get("/fleet/history/links", source="gw-4", target="gw-1")
    assert [each["latency_ns"] for each in history["samples"]] == [each["net"]["latency"] for each in to_1]


async def test_what_was_comes_in_pages(world: World) -> None:
    """A page has a thousand samples; a header links to the next, with all parameters."""
    await world.begin()
    rows: list[Record] = [LinkSample(at + 1, "gw-4", "gw-1", 5, 1, 0, 0, 0) for at in range(1500)]
    world.rig.plane.writer.commit([Change(insert=rows)])
    path, latencies = "/api/v1/links?source=gw-4&until=2025-01-01T00:00:00Z", 0
    for more in (True, False):
        answer = await world.client.get(path)
        assert answer.status_code == 200, answer.text
        latencies += sum(each["net"]["latency"] for each in answer.json())
        assert ("link" in answer.headers) is more
        path = answer.headers.get("link", "").partition(">")[0].removeprefix("<")
    assert latencies == 5 * 1500


async def test_links_have_raw_smoothed_and_published_figures(world: World) -> None:
    """One slow round is raw immediately, weighs a quarter in the average, and changes nothing within the band."""
    await world.begin()
    await world.rounds(5, 100.0, 20.0)
    await world.report("gw-4", gw_1=140.0)
    world.rig.step()
    (link,) = (await world.get("/fleet/links", source="gw-4", target="gw-1"))["links"]
    assert link["raw"]["latency_ns"] == 140 * MS
    assert link["smoothed"]["latency_ns"] == pytest.approx(109.7 * MS, rel=0.001)
    assert link["latency_ns"] == 100 * MS
    assert (link["state"], link["path"], link["raw"]["sent"]) == ("measured", "", 5)
    assert 0 <= link["age_s"] <= 10
    assert (link["loss_ppm"], link["loss_bound_ppm"]) == (0, -(-1_000_000 // 30))
    matrix = await world.get("/fleet/links/matrix", figure="loss")
    names = [each["name"] for each in matrix["gateways"]]
    assert matrix["bounds"][names.index("gw-4")][names.index("gw-1")] == link["loss_bound_ppm"]
    assert (await world.get("/fleet/links/matrix"))["bounds"] == []


async def test_metrics_are_from_users_to_clusters_and_between_clusters(world: World) -> None:
    """Ten metrics; a link without an answer has a loss of 1 and no latency or jitter; other links have none."""
    await world.begin()
    await world.rounds(1, 10.0, None)
    metrics = await world.metrics()
    to_1, to_2, between = (
        ("gw-4", "gw-1", "a", "office"),
        ("gw-4", "gw-2", "b", "office"),
        ("gw-1", "gw-2", "b", "a"),
    )
    assert metrics.keys() == LINK_METRICS.keys()
    reported = ("site", "gw-a", "", ""), ("site", "gw-b", "", "")
    assert not any(each[:2] in {one[:2] for one in reported} for series in metrics.values() for each in series)
    assert metrics["UserToClusterLatency"] == {to_1: 10 * MS}
    assert metrics["UserToClusterJitter"] == {to_1: MS}
    assert metrics["UserToClusterPacketLoss"] == {to_1: 0, to_2: 1}
    assert metrics["UserToClusterPacketLossBound"] == {to_1: 0.2}, "one of the five probes so far"
    assert metrics["UserToClusterBandwidth"] == {to_1: 10_000, to_2: 1_000}
    assert metrics["ClusterToClusterLatency"] == {between: 5 * MS}
    assert metrics["ClusterToClusterPacketLoss"] == {between: 0}
    assert await world.metrics(metric="UserToClusterLatency") == {"UserToClusterLatency": {to_1: 10 * MS}}
    assert (await world.metrics(cluster="b"))["UserToClusterLatency"] == {}
    body = await world.get("/metrics", metric="ClusterToClusterJitter")
    assert body["data"] == {
        "ClusterToClusterJitter": [
            {"cluster": "b", "source": "gw-1", "target": "gw-2", "source_cluster": "a", "value": MS}
        ]
    }


async def test_a_training_over_clusters_is_a_ring_over_measured_links(world: World) -> None:
    """Ranks follow the ring, its links have the bandwidth while it runs, and a refusal names the link that lacks it."""
    await world.begin()
    fields: dict[str, Any] = {"replicas": 6, "spread": "clusters", "resources": {"gpus": 1}}

    async def submit(name: str, bandwidth: str) -> dict[str, Any]:
        job = await world.rig.submit(name=name, between_replicas={"min_bandwidth": bandwidth}, **fields)
        world.rig.step(6)  # the cluster of rank 0 first, then the others with its address
        found: dict[str, Any] = await world.get(f"/jobs/{job['id']}")
        return found

    async def measure() -> None:
        await world.report("gw-1", gw_2=5.0)
        await world.report("gw-2", gw_1=5.0)
        world.rig.step(6)

    async def links() -> dict[tuple[str, str], tuple[int, int]]:
        found = (await world.get("/fleet/links"))["links"]
        return {(each["source"], each["target"]): (each["reserved_mbps"], each["free_mbps"]) for each in found}

    await measure()
    wide = {**JOB, "name": "wide", **fields, "between_replicas": {"min_bandwidth": "2Gbps"}}
    answer = await world.client.post("/api/v1/jobs", json=wide)
    assert answer.status_code == 422
    assert answer.json()["detail"].endswith(
        "it would fit with 4 replicas or without between_replicas (gw-1 to gw-2: 1Gbps free, bound 2Gbps; "
        "gw-2 to gw-1: 1Gbps free, bound 2Gbps)"
    )
    ring = await submit("ring", "600Mbps")
    assert ring["state"] == "running"
    (attempt,) = (await world.get(f"/jobs/{ring['id']}/attempts"))["attempts"]
    where = [each["cluster"] for each in sorted(attempt["placements"], key=lambda each: int(each["replica"]))]
    first, second = dict.fromkeys(where)
    assert where == [first] * 4 + [second] * 2
    assert f"ring {first} → {second} → {first}, 600Mbps on each link" in attempt["placement_reason"]["message"]
    assert (await links())["gw-1", "gw-2"] == (await links())["gw-2", "gw-1"] == (600, 400)
    why = await world.get(f"/jobs/{(await submit('late', '600Mbps'))['id']}/explain")
    assert why["explanation"]["links"][0]["message"].startswith("gw-1 to gw-2: 400Mbps free, bound 600Mbps")
    answer = await world.client.post(f"/api/v1/jobs/{ring['id']}/cancel")
    assert answer.is_success, answer.text
    await measure()
    assert (await world.get(f"/jobs/{ring['id']}"))["state"] == "cancelled"
    (late,) = (await world.get("/jobs", name="late"))["jobs"]
    assert late["state"] == "running", "it gets the room and the bandwidth of the first one"
    assert (await links())["gw-1", "gw-2"] == (600, 400)


async def test_a_cluster_is_reached_through_another_gateway_when_the_first_is_lost(world: World) -> None:
    """Decisions, routes and views use the other one, until that is lost too; jobs continue and new ones are placed."""
    second = {"name": "gw-3", "cluster": "a", "address": "fd00:51d:3::1", "speed": "1Gbps"}
    await world.begin({**NETWORK, "gateways": [*NETWORK["gateways"], second]})

    async def serves(expected: str, other: str) -> None:
        gateways = {each["name"]: each for each in (await world.get("/fleet/gateways"))["gateways"]}
        assert {name: gateways[name]["standby"] for name in (expected, other)} == {expected: False, other: True}
        assert gateways[expected]["clusters"] == gateways[other]["clusters"] == ["a"]
        assert (await world.get("/network/gateways/gw-4"))["serving"] == {"a": expected, "b": "gw-2"}

    async def measure(gw_1_ms: float | None, gw_3_ms: float | None) -> None:
        for _ in range(2):
            await world.report("gw-4", gw_1=gw_1_ms, gw_3=gw_3_ms, gw_2=90.0)
            world.rig.step()
            world.rig.clock.advance_s(8)
        world.rig.step()

    await measure(10.0, 30.0)
    await serves("gw-1", "gw-3")
    job = await world.job("first", max_latency="50ms", min_bandwidth="900Mbps")
    assert job["state"] == "running"
    await measure(None, 30.0)
    await serves("gw-3", "gw-1")
    events = [each.reason for each in world.rig.store.events(0, 1000) if each.kind == "path"]
    assert events == ["traffic of cluster a takes gw-3: gw-1 does not answer"]
    (link,) = (await world.get("/fleet/links", source="gw-4", target="gw-3"))["links"]
    assert link["reserved_mbps"] == 900, "the bandwidth of the running job is reserved at the other gateway"
    assert (await world.get(f"/jobs/{job['id']}"))["state"] == "running"
    assert (await world.job("narrow", max_latency="50ms", min_bandwidth="100Mbps"))["state"] == "running"
    assert (await world.job("wide", max_latency="50ms", min_bandwidth="10Mbps"))["state"] == "queued"
    await measure(10.0, 30.0)
    await serves("gw-3", "gw-1")
    await measure(10.0, None)
    await serves("gw-1", "gw-3")


async def test_links_of_a_unreachable_agent_leave_the_metrics_first_and_decisions_later(world: World) -> None:
    """Old values would look fresh in metrics, so they end there first; decisions use them longer, and state that."""
    await world.begin()
    await world.rounds(1, 10.0, 20.0)
    world.rig.clock.advance_s(30)
    world.rig.step()
    assert (await world.metrics())["UserToClusterLatency"] == {}
    (link,) = (await world.get("/fleet/links", source="gw-4", target="gw-1"))["links"]
    assert (link["state"], link["latency_ns"]) == ("stale", 10 * MS)
    assert "seaway_agent_last_seen_seconds" in (await world.client.get("/metrics")).text
    world.rig.clock.advance_s(60)
    world.rig.step()
    (link,) = (await world.get("/fleet/links", source="gw-4", target="gw-1"))["links"]
    assert (link["state"], link["latency_ns"], link["loss_ppm"]) == ("unknown", None, None)
    assert (await world.job("late", max_latency="100ms"))["state"] == "queued"


async def test_a_job_goes_elsewhere_when_its_link_gets_worse_and_is_reported_why(world: World) -> None:
    """The bound is met by the first cluster, then by the second only, then by none."""
    await world.begin()
    await world.rounds(2, 10.0, 15.0)
    first = await world.job("first", max_latency="12ms")
    assert first["clusters"] == ["a"]
    await world.rounds(10, 40.0, 11.0)
    second = await world.job("second", max_latency="12ms")
    assert second["clusters"] == ["b"]
    await world.rounds(10, 40.0, None)
    third = await world.job("third", max_latency="12ms")
    assert third["state"] == "queued"
    why = await world.get(f"/jobs/{third['id']}/explain")
    refusals = {each["message"] for each in why["explanation"]["filtered"]}
    assert "latency above the bound" in refusals, why
    assert any("answer" in each for each in refusals), why


async def test_clusters_stand_behind_the_gateway_that_is_configured(world: World) -> None:
    """The configured gateway overrides a cluster's own report; without a network the report applies again."""
    await world.begin()
    world.rig.step()
    clusters = (await world.get("/fleet/clusters"))["clusters"]
    assert {each["name"]: each["gateway"] for each in clusters} == {"a": "gw-1", "b": "gw-2"}
    answer = await world.client.delete("/api/v1/network", headers={"if-match": "*"})
    assert answer.is_success, answer.text
    world.rig.step()
    clusters = (await world.get("/fleet/clusters"))["clusters"]
    assert {each["name"]: each["gateway"] for each in clusters} == {"a": "gw-a", "b": "gw-b"}
    assert {each["state"] for each in (await world.get("/fleet/links"))["links"]} == {"reported"}


async def test_bandwidth_is_promised_and_what_is_promised_is_not_given_twice(world: World) -> None:
    """Of a gigabit, two jobs of 400 Mbit/s leave room for one of 200 and no more, whether they send yet or not."""
    await world.begin()
    await world.rounds(2, None, 15.0)
    for name, mbps in (("one", 400), ("two", 400), ("three", 200)):
        assert (await world.job(name, min_bandwidth=f"{mbps}Mbps"))["clusters"] == ["b"]
    assert (await world.job("four", min_bandwidth="1Mbps"))["state"] == "queued"


async def test_a_job_is_not_refused_for_links_that_may_be_better_tomorrow(world: World) -> None:
    """Before any measurement a job waits; it is rejected only if no interface could ever carry it."""
    await world.begin()
    world.rig.step()
    early = await world.job("early", max_latency="12ms", min_bandwidth="1Gbps")
    assert early["state"] == "queued"
    await world.rounds(3, 10.0, 10.0)
    assert (await world.get(f"/jobs/{early['id']}"))["state"] in {"scheduled", "deploying", "running"}
    asked = {"name": "wide", "gateway": "gw-4", "network": {"min_bandwidth": "20Gbps"}}
    refused = await world.client.post("/api/v1/jobs", json=asked)
    assert refused.status_code == 422
    assert "bandwidth" in refused.json()["detail"]
