"""The tree of queues over HTTP."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from seaway.adapters.simulated.backends import SimulatedBackends
from seaway.application.control.dispatch import InPlace
from seaway.application.control.settings import ControlSettings
from seaway.application.views import ClusterState
from seaway.application.whatif.trace import InTurn
from seaway.bootstrap.control_plane import make_plane
from seaway.bootstrap.settings import load_settings
from seaway.terminal.queues import COLUMNS
from seaway.terminal.summary import Summary
from seaway.testing.clocks import VirtualClock
from seaway.testing.plugins import fleet
from seaway.web.pages.fleet.alerts import Seen
from seaway.web.pages.fleet.overview import tiles_of
from seaway.web.pages.queues.rows import held
from seaway.web.words import Words
from seaway.wire.fleet import ClusterList
from seaway.wire.job_out import JobCount
from seaway.wire.queues import QueueUsageList
from tests.fakes.memory_store import MemoryStore
from tests.unit.api.rig import Rig, make_rig, small_cluster

pytestmark = pytest.mark.anyio
TREE = {
    "parent": "all",
    "weight": 2,
    "priority": -3,
    "guarantee": {"gpus": 1.5, "gpus/A100": 1, "memory": "64Gi"},
    "limit": {"gpus": 2, "gpu_memory": "640GB", "cpu": "500m"},
    "order": "shortest",
    "backfill": "greedy",
}


async def test_a_queue_shows_its_tree_as_it_was_set(rig: Rig) -> None:
    """Parent, share, amounts, order and backfill are read back, accepted again, and default where they are omitted."""
    async with rig.client("operator") as client:
        assert (await client.put("/api/v1/queues/all", json={})).status_code == 200
        made = (await client.put("/api/v1/queues/a", json=TREE)).json()
        written = {
            **TREE,
            "guarantee": {"gpus": 1.5, "gpus/a100": 1, "memory": "64Gi"},
            "limit": {"cpu": 0.5, "gpu_memory": "640GB", "gpus": 2},
        }
        assert {name: made[name] for name in TREE} == written
        again = {name: value for name, value in made.items() if name not in {"name", "version"}}
        assert (await client.put("/api/v1/queues/a", json=again)).json() == made
        plain = (await client.put("/api/v1/queues/a", json={})).json()
        assert {name: plain[name] for name in TREE} == {
            "parent": "",
            "weight": 1,
            "priority": 0,
            "guarantee": {},
            "limit": {},
            "order": "fair",
            "backfill": "easy",
        }


async def test_a_queue_chooses_a_policy_with_its_options(rig: Rig) -> None:
    """Its weights decide where its jobs go; another policy does not take over the options."""
    price = {"free": 0, "distance": 0, "topology": 0, "hardware": 0, "price": 1}
    async with rig.client("operator") as client:
        for name, per_hour in (("a", "3.00"), ("b", "1.00")):
            facts = {"price_per_gpu_hour": per_hour}
            answer = await client.patch(f"/api/v1/fleet/clusters/{name}/facts", json=facts)
            assert answer.json()["price_per_gpu_hour"] == per_hour
        chosen = {"name": "balanced", "options": {"weights": price}}
        made = (await client.put("/api/v1/queues/cheap", json={"policy": chosen})).json()
        assert (made["policy"], made["policy_options"]) == ("balanced", {"weights": price})
        same = {"policy": "balanced", "policy_options": {"weights": price}}
        assert (await client.put("/api/v1/queues/cheap", json=same)).json() == made
        level = {"policy": {"name": "utilization", "options": {"level": "cluster"}}}
        assert (await client.put("/api/v1/queues/other", json=level)).status_code == 200
        assert rig.plane.controller.scheduler.readiness.wait("balanced", "utilization", most_s=120)
        rig.step(3)
        job = await rig.submit(queue="cheap")
        rig.step(3)
        assert (await client.get(f"/api/v1/jobs/{job['id']}")).json()["clusters"] == ["b"]
        plain = (await client.put("/api/v1/queues/cheap", json={"policy": "bestfit"})).json()
        assert plain["policy_options"] == {}
        own = {"policy": {"name": "fgd", "options": {"mix": "cheap"}}}
        assert (await client.put("/api/v1/queues/cheap", json=own)).json()["policy_options"] == {"mix": "cheap"}
        rig.step(1)
        assert rig.plane.controller.scheduler.policy_of("cheap") == 'fgd{"mix":"cheap"}'
        assert rig.plane.controller.scheduler.readiness.wait('fgd{"mix":"cheap"}', most_s=120)
        mixed = await rig.submit(queue="cheap")
        rig.step(3)
        assert (await client.get(f"/api/v1/jobs/{mixed['id']}")).json()["state"] == "running"
        twice = await client.put("/api/v1/queues/cheap", json={"policy": chosen, "policy_options": {"level": "node"}})
        assert [each["field"] for each in twice.json()["errors"]] == ["policy_options"]


@pytest.mark.parametrize(
    ("fields", "field", "says"),
    [
        ({"policy": "balanced", "policy_options": {"weights": {"prize": 1}}}, "policy_options.weights.prize", "aim"),
        ({"policy": {"name": "spread", "options": {"level": "rack"}}}, "policy_options.level", "must be one of"),
        ({"policy": "fgd", "policy_options": {"level": "node"}}, "policy_options.level", "its options are: mix"),
        ({"policy": "nearest", "policy_options": {"level": "node"}}, "policy_options.level", "it has none"),
        ({"policy": "fgd", "policy_options": {"mix": "nowhere"}}, "policy_options.mix", "unknown queue 'nowhere'"),
        ({"policy": "fgd", "policy_options": {"mix": 7}}, "policy_options.mix", "name of a queue"),
        ({"guarantee": {"gpu": 1}}, "guarantee.gpu", "unknown resource"),
        ({"limit": {"memory": "64"}}, "limit.memory", "memory with its unit"),
        ({"limit": {"gpus": True}}, "limit.gpus", "is not valid"),
        ({"limit": {"gpus/a": 1, "gpus/A": 1}}, "limit.gpus/A", "given twice"),
        ({"guarantee": {"gpus": 4}, "limit": {"gpus": 2}}, "guarantee.gpus", "4 gpus, more than its limit of 2 gpus"),
        ({"weight": -1}, "weight", "at least 0"),
        ({"order": "lifo"}, "order", "must be one of"),
        ({"backfill": "some"}, "backfill", "must be one of"),
        ({"parent": "nowhere"}, "parent", "unknown queue 'nowhere'"),
    ],
)
async def test_mistakes_are_at_their_field(rig: Rig, fields: dict[str, Any], field: str, says: str) -> None:
    """The error of a queue names the field and the figures."""
    async with rig.client("operator") as client:
        answer = await client.put("/api/v1/queues/a", json=fields)
    (error,) = answer.json()["errors"]
    assert (answer.status_code, error["field"], says in error["message"]) == (422, field, True), error


async def test_the_use_of_a_queue_counts_for_its_parents(rig: Rig) -> None:
    """Parents have the sums of their descendants; use beyond the guarantee is borrowed."""
    async with rig.client("operator") as client:
        for name, fields in (
            ("all", {"limit": {"gpus": 4}}),
            ("a", {"parent": "all", "guarantee": {"gpus": 1}}),
            ("b", {"parent": "all", "guarantee": {"gpus": 2}}),
        ):
            assert (await client.put(f"/api/v1/queues/{name}", json=fields)).status_code == 200
        rig.step()
        for _ in range(2):
            await rig.submit(queue="a", resources={"gpus": 1, "cpu": 1})
        await rig.submit("other", queue="b", resources={"gpus": 1}, tenant="other")
        rig.step(3)
        used = {each["queue"]: each for each in (await client.get("/api/v1/queue-usage")).json()["queues"]}
    assert {
        name: (each["used"]["gpus"], each["borrowed"].get("gpus", 0)) for name, each in used.items() if each["used"]
    } == {
        "all": (3, 0),
        "a": (2, 1),
        "b": (1, 0),
    }
    assert (used["all"]["guarantee"], used["all"]["limit"], used["all"]["running"]) == ({"gpus": 3}, {"gpus": 4}, 3)
    assert used["a"]["used"]["cpu"] == 2


async def test_tenants_see_the_totals_of_the_queues_that_accept_their_jobs(rig: Rig) -> None:
    """A queue of all tenants counts the jobs of all, without names; a queue of another tenant is hidden."""
    await rig.submit()
    await rig.submit("other", tenant="other", name="quiet-name")
    await rig.submit("other", queue="theirs", tenant="other")
    rig.step(3)
    seen = {}
    for token in ("user", "other", "operator"):
        async with rig.client(token) as client:
            found = (await client.get("/api/v1/queue-usage")).json()
        seen[token] = {each["queue"]: (each["running"] + each["waiting"]) for each in found["queues"]}
        if token == "user":
            assert {each["tenant"] for each in (*found["uses"], *found["tenants"])} == {"default"}
            assert "other" not in str(found)
            assert "quiet-name" not in str(found)
    assert seen == {
        "user": {"default": 2},
        "other": {"default": 2, "theirs": 1},
        "operator": {"default": 2, "theirs": 1},
    }


async def test_waiting_jobs_are_listed_with_their_expected_start(rig: Rig) -> None:
    """All queues are in one list, filtered by queue and tenant; a tenant sees only its own jobs."""
    for _ in range(3):
        await rig.submit(resources={"gpus": 2}, expected_duration="10m")
        await rig.submit("other", queue="theirs", resources={"gpus": 2}, tenant="other")
    rig.step(3)
    async with rig.client("operator") as client:
        everything = (await client.get("/api/v1/waiting-jobs")).json()
        theirs = (await client.get("/api/v1/waiting-jobs", params={"queue": "theirs"})).json()
        assert (await client.get("/api/v1/waiting-jobs", params={"queue": "nowhere"})).status_code == 404
    async with rig.client("other") as client:
        assert (await client.get("/api/v1/waiting-jobs")).json() == theirs
        assert (await client.get("/api/v1/waiting-jobs", params={"tenant": "default"})).status_code == 404
    assert {each["queue"] for each in everything["jobs"]} == {"default", "theirs"}
    assert everything["total"] == len(everything["jobs"]) > theirs["total"] > 0
    assert any(each["estimated_start"] for each in everything["jobs"])


async def test_a_queue_shows_arrays_whose_other_tasks_wait(rig: Rig) -> None:
    """Tasks that an array does not let into its queue yet are one row, last, with their number and what holds them."""
    rig.step(2)
    sweep = await rig.submit(name="sweep", array="0-9%2")
    rig.step(4)
    async with rig.client("user") as client:
        page = (await client.get("/api/v1/queues/default/waiting")).json()
        (use,) = (await client.get("/api/v1/queue-usage")).json()["queues"]
        await rig.submit(name="large", replicas=4, gang=True, resources={"cpu": 1, "gpus": 2})
        rig.step(2)
        both = (await client.get("/api/v1/queues/default/waiting")).json()
    (row,) = page["jobs"]
    assert (row["id"], row["position"], row["later_tasks"], use["waiting"]) == (sweep["id"], 0, 8, 8)
    assert (row["why"]["code"], row["tasks"]["states"]["pending"]) == ("array_limit", 8)
    assert ([each["name"] for each in both["jobs"]], both["total"]) == (["large", "sweep"], 2)


async def test_learned_durations_are_listed_with_their_runs() -> None:
    """A waiting job with past runs has a learned duration, and the error of an estimate is a metric."""
    rig = make_rig(control=ControlSettings(learn_durations=True))
    for name in ("train-1", "train-2"):
        await rig.submit(name=name, resources={"gpus": 2}, expected_duration="10m")
    rig.step(310)
    for number in range(6):
        await rig.submit(name=f"train-{number}", resources={"gpus": 2})
    rig.step(3)
    async with rig.client("operator") as client:
        waiting = (await client.get("/api/v1/waiting-jobs")).json()["jobs"][0]
        explained = (await client.get(f"/api/v1/jobs/{waiting['id']}/explain")).json()
        metrics = (await client.get("/metrics")).text
    assert (waiting["learned_runs"], explained["learned_runs"]) == (2, 2)
    assert waiting["learned_duration"] == explained["learned_duration"]
    assert waiting["learned_duration"].startswith("10m")
    assert "seaway_duration_estimate_error_seconds_count 0.0" in metrics
    rig.plane.stop()


async def test_shares_and_the_factors_of_a_waiting_job(rig: Rig) -> None:
    """Each queue and tenant has its share, and a waiting job the factors of each level. Tenants see their own."""
    async with rig.client("operator") as client:
        for name, fields in (
            ("all", {"limit": {"gpus": 2}}),
            ("a", {"parent": "all", "weight": 3, "ageing": "1h"}),
            ("b", {"parent": "all"}),
        ):
            assert (await client.put(f"/api/v1/queues/{name}", json=fields)).status_code == 200
        rig.step()
        running = (await rig.submit("other", queue="b", resources={"gpus": 1}, tenant="other"))["id"]
        rig.step(3)
        await rig.submit("other", queue="b", resources={"gpus": 2}, tenant="other")
        waiting = (await rig.submit(queue="a", priority=5, resources={"gpus": 2}))["id"]
        rig.step(3)
        shares = (await client.get("/api/v1/shares")).json()["shares"]
        factors = (await client.get(f"/api/v1/jobs/{waiting}/priority")).json()
        placed = await client.get(f"/api/v1/jobs/{running}/priority")
    assert (placed.status_code, "does not wait" in placed.json()["detail"]) == (409, True)
    by_name = {(each["queue"], each["tenant"]): each for each in shares}
    assert by_name["a", ""]["weight_share"] == 0.75
    assert by_name["b", ""]["used"] == by_name["b", "other"]["used"] == by_name["all", ""]["used"] > 0
    assert [(each["level"], each["name"], each["place"], each["of"]) for each in factors["factors"]] == [
        ("queue", "all", 1, 1),
        ("queue", "a", 1, 2),
        ("tenant", "default", 1, 1),
        ("job", "train", 1, 1),
    ]
    assert factors["factors"][-1]["value"] == pytest.approx(5, abs=0.1)
    async with rig.client("other") as client:
        theirs = (await client.get("/api/v1/shares")).json()["shares"]
        assert (await client.get(f"/api/v1/jobs/{waiting}/priority")).status_code == 404
    assert {each["tenant"] for each in theirs} <= {"", "other"}


async def test_a_question_tries_changes_of_queues_and_tenants(rig: Rig) -> None:
    """Changed fields are merged with the stored ones, and the answer has waits and starts before and after."""
    async with rig.client("operator") as client:
        for name, fields in (("all", {}), ("a", {"parent": "all", "limit": {"gpus": 2}, "order": "fifo"})):
            assert (await client.put(f"/api/v1/queues/{name}", json=fields)).status_code == 200
        rig.step()
        for _ in range(3):
            await rig.submit(queue="a", resources={"gpus": 2}, expected_duration="10m")
        rig.step(2)
        change = {"name": "a", "limit": {"gpus": 4}, "ageing": "1h"}
        tenant = {"name": "default", "weight": 2, "quotas": {"default": {"max_waiting": 9}}}
        question = {"queues": [change], "tenants": [tenant], "window": "20m"}
        answer = (await client.post("/api/v1/whatif", json={"question": question})).json()
        stored = (await client.get("/api/v1/queues/a")).json()
    waits = answer["waits"]
    rows = {each["name"]: each for each in waits["queues"]}
    assert [each["depth"] for each in (rows["all"], rows["a"])] == [0, 1]
    assert (rows["a"]["before"]["waiting"], rows["a"]["before"]["unknown"]) == (2, 0)
    assert rows["a"]["before"]["mean_s"] == pytest.approx(900, abs=10)
    assert rows["a"]["after"]["mean_s"] == pytest.approx(300, abs=10)
    assert rows["a"]["before"]["gpu_share"] == pytest.approx(2 / 8, abs=0.01)
    assert rows["a"]["after"]["gpu_share"] == pytest.approx(3 / 8, abs=0.01)
    assert [waits[key] for key in ("window", "earlier", "later")] == ["20m", 2, 0]
    assert waits["tenants"][0]["after"] == rows["all"]["after"]
    first = waits["earlier_jobs"][0]
    assert first["before"] > first["after"]
    assert len(answer["started"]) == 1
    assert (stored["limit"], stored["order"]) == ({"gpus": 2}, "fifo")


@pytest.mark.parametrize(
    ("question", "field", "says"),
    [
        ({"queues": [{"weight": 2}]}, "question.queues[0].name", "is missing"),
        ({"queues": [{"name": "a", "weights": 2}]}, "question.queues[0].weights", "did you mean 'weight'"),
        ({"queues": [{"name": "a", "limit": {"gpu": 2}}]}, "queues.0.limit.gpu", "unknown resource"),
        ({"tenants": [{"name": "default", "quotas": {"gold": {}}}]}, "tenants.0.quotas.gold", "unknown pool 'gold'"),
        ({"remove_queues": "default"}, "remove_queues.0", "cannot be removed"),
        ({"move_jobs": [{"queue": "default"}]}, "question.move_jobs[0].to", "is missing"),
        ({"drain": "a", "window": 0}, "window", "must be at least 1s"),
    ],
)
async def test_a_question_with_a_wrong_change_names_its_field(
    rig: Rig, question: dict[str, Any], field: str, says: str
) -> None:
    """The error of a change is that of the queue or tenant, at its place in the question."""
    async with rig.client("operator") as client:
        answer = await client.post("/api/v1/whatif", json={"question": question})
    assert answer.status_code == 422, answer.text
    assert (answer.json()["errors"][0]["field"], says in answer.text) == (field, True)


WINDOW = {"starts": "2099-11-28T14:00:00+01:00", "ends": "2099-11-28T18:00:00Z"}


async def test_a_reservation_is_seen_by_its_tenant_and_operators(rig: Rig) -> None:
    """It is read back as it was set, with what is reserved; users of other tenants do not see it."""
    async with rig.client("operator") as client:
        await client.put("/api/v1/tenants/other", json={})
        given = {**WINDOW, "tenant": "other", "gpus": 1}
        made = (await client.put("/api/v1/reservations/demo", json=given)).json()
        shown = {name: made[name] for name in ("starts", "ends", "state", "gpus", "gpus_reserved", "gpus_ready")}
        assert shown == {
            "starts": "2099-11-28T13:00:00.000000Z",
            "ends": "2099-11-28T18:00:00.000000Z",
            "state": "planned",
            "gpus": 1,
            "gpus_reserved": 1,
            "gpus_ready": 1,
        }
        assert (await client.get("/api/v1/reservations")).json() == {"reservations": [made]}
        stale = await client.put("/api/v1/reservations/demo", json=given, headers={"If-Match": '"x"'})
        assert stale.status_code == 412
        async with rig.client("user") as other:
            assert (await other.get("/api/v1/reservations")).json() == {"reservations": []}
            assert (await other.put("/api/v1/reservations/demo", json=given)).status_code == 403
        assert (await client.delete("/api/v1/reservations/demo")).status_code == 204
        assert (await client.delete("/api/v1/reservations/demo")).status_code == 404


@pytest.mark.parametrize(
    ("fields", "field", "says"),
    [
        ({"starts": "14:00"}, "starts", "is not a time with a zone"),
        ({"ends": "2099-11-28T10:00:00Z"}, "ends", "must be after the start"),
        ({"ends": "9999-11-28T10:00:00Z"}, "ends", "at most 366 days after"),
        ({"starts": "9999-11-28T09:00:00Z", "ends": "9999-11-28T10:00:00Z"}, "ends", "too far in the future"),
        ({"tenant": "x"}, "clusters", "name a cluster, or the number of GPUs"),
        ({"gpus": 1}, "gpus", "needs a tenant or a queue"),
        ({"tenant": "default", "gpus": 10**6}, "gpus", "healthy GPUs"),
        ({"clusters": ["nowhere"]}, "cluster", "not found"),
    ],
)
async def test_mistakes_of_reservations_are_at_their_field(
    rig: Rig, fields: dict[str, Any], field: str, says: str
) -> None:
    """The error of a reservation names the field and the figures."""
    async with rig.client("operator") as client:
        answer = await client.put("/api/v1/reservations/demo", json={**WINDOW, **fields})
    (error,) = answer.json()["errors"]
    assert (error["field"], says in error["message"]) == (field, True), error


async def test_the_schedule_has_running_and_planned_jobs(rig: Rig) -> None:
    """Running jobs have their expected ends and clusters, waiting ones expected starts. A tenant sees only its own."""
    for _ in range(2):
        await rig.submit(resources={"gpus": 2}, expected_duration="10m")
        await rig.submit("other", queue="theirs", resources={"gpus": 2}, tenant="other", expected_duration="10m")
    await rig.submit(name="next", resources={"gpus": 2}, expected_duration="5m")
    await rig.submit(name="bound", resources={"gpus": 2}, placement={"clusters": ["b"]}, expected_duration="5m")
    rig.step(3)
    async with rig.client("operator") as client:
        by_cluster = (await client.get("/api/v1/schedule")).json()
        of_b = (await client.get("/api/v1/schedule", params={"cluster": "b"})).json()
        by_queue = (await client.get("/api/v1/schedule", params={"by": "queue", "queue": "theirs"})).json()
        early = (await client.get("/api/v1/schedule", params={"within_s": 60})).json()
        few = (await client.get("/api/v1/schedule", params={"limit": 2})).json()
        for wrong, status in (({"queue": "nowhere"}, 404), ({"by": "node"}, 422), ({"limit": 0}, 422)):
            assert (await client.get("/api/v1/schedule", params=wrong)).status_code == status
    async with rig.client("other") as client:
        own = (await client.get("/api/v1/schedule", params={"by": "queue"})).json()
        assert (await client.get("/api/v1/schedule", params={"tenant": "default"})).status_code == 404
    groups = {each["name"]: each for each in by_cluster["groups"]}
    assert {name: (each["running"], each["planned"]) for name, each in groups.items()} == {
        "a": (2, 1),
        "b": (2, 1),
    }
    (planned,) = (each for each in groups["a"]["jobs"] if each["planned"])
    assert (planned["name"], planned["clusters"]) == ("next", ["a"]), "it has a reservation there"
    ends = {each["end"] for name in "ab" for each in groups[name]["jobs"] if not each["planned"]}
    assert min(ends) <= planned["start"] <= max(ends)
    assert planned["start"] < planned["end"]
    assert [each["name"] for each in of_b["groups"]] == ["b"]
    assert by_queue["groups"] == own["groups"]
    assert (early["unplanned"], sum(each["planned"] for each in early["groups"])) == (2, 0)
    assert [(each["name"], len(each["jobs"])) for each in few["groups"]] == [("a", 1), ("b", 1)]


async def test_a_question_replays_a_trace(rig: Rig) -> None:
    """Kinds are jobs, and rows their times; the answer has the measures and waits of both sides."""
    rig.plane.whatif.spread = InTurn()
    kinds = [{"name": "job", "tenant": "other", "resources": {"gpus": 1}}, {"name": "job", "resources": {"gpus": 9}}]
    trace = {"kinds": kinds, "jobs": [*([0, 0, 60] for _ in range(16)), [1, 30, None]]}
    question = {"trace": trace, "add_nodes": {"cluster": "a", "like": "node-0", "count": 4}}
    async with rig.client("operator") as client:
        answer = (await client.post("/api/v1/whatif", json={"question": question})).json()
    found = answer["trace"]
    assert [found[key] for key in ("jobs", "skipped", "defaulted", "policy", "span")] == [17, 0, 0, "bestfit", "30s"]
    assert [found[side]["rejected"] for side in ("before", "after")] == [1, 1]
    assert [found[side]["queue_wait_mean_s"] for side in ("before", "after")] == [30, 0]
    assert [found[side]["placed"] for side in ("before", "after")] == [16, 16]
    assert {each["name"]: each["after"]["unknown"] for each in found["tenants"]} == {"default": 1, "other": 0}


@pytest.mark.parametrize(
    ("question", "field", "says"),
    [
        ({"trace": {"kinds": [], "jobs": [[0, 0, 5]]}}, "trace.jobs.0", "kind 0 does not exist; there are 0"),
        ({"trace": {"kinds": [], "jobs": [[0, -1, 5]]}}, "question.trace.jobs[0][1]", "must be at least 0"),
        (
            {"trace": {"kinds": [{"name": "j"}], "jobs": [[0, 0, 1]]}, "last": "1d"},
            "last",
            "cannot be combined with trace",
        ),
        ({"trace": {"kinds": [], "jobs": []}}, "question.trace.jobs", "at least 1"),
        ({"last": "1d"}, "trace", "has no job to replay"),
        ({"last": "1y"}, "question.last", "is not valid"),
    ],
)
async def test_a_wrong_trace_names_its_field(rig: Rig, question: dict[str, Any], field: str, says: str) -> None:
    """The error of a trace says what is wrong with it."""
    rig.plane.whatif.spread = InTurn()
    async with rig.client("operator") as client:
        answer = await client.post("/api/v1/whatif", json={"question": question})
    assert answer.status_code == 422, answer.text
    assert answer.json()["errors"][0]["field"] == field
    assert says in answer.text


async def test_quotas_without_effect_are_stored_with_warnings(rig: Rig) -> None:
    """The answer to a change names models of no GPU and guarantees beyond the pool; the queue itself has neither."""
    given = {"limit": {"gpus/H999": 1, "gpus/A100": 1}, "guarantee": {"gpus/A100": 1, "cpu": 10**6}}
    async with rig.client("admin") as client:
        stored = (await client.put("/api/v1/queues/warned", json=given)).json()
        assert [each["code"] for each in stored["warnings"]] == ["model_in_quota", "guarantee_beyond_pool"]
        message = stored["warnings"][0]["message"]
        assert message.startswith("limit.gpus/h999: no GPU is of the model 'h999'; models here: ")
        assert "warnings" not in (await client.get("/api/v1/queues/warned")).json()
        quotas = {"default": {"user_limit": {"gpus/H999": 1}}}
        tenant = (await client.put("/api/v1/tenants/warned", json={"quotas": quotas})).json()
        assert [each["params"]["field"] for each in tenant["warnings"]] == ["quotas.default.user_limit.gpus/h999"]


@pytest.mark.parametrize(("given", "cost_s"), [({}, 60), ({"SEAWAY_SCHEDULER_RESTART_COST": "7"}, 7)])
async def test_the_setting_of_the_restart_cost_reaches_the_queues(given: dict[str, str], cost_s: float) -> None:
    """`restart_cost` of `[scheduler]` counts in the decisions of the control loop, with a default of 60 s."""
    clock, settings = VirtualClock(), load_settings(None, given, {})
    clusters = SimulatedBackends(fleet(small_cluster("a", "")), clock)
    plane = make_plane(settings, MemoryStore(), clusters, clock, dispatcher=InPlace(clock), random=Random(1))
    plane.controller.step()
    tree = plane.controller.live.tree
    assert (tree.restart_cost_s, tree.fork().restart_cost_s) == (cost_s, cost_s)


@pytest.mark.parametrize(("given", "stored"), [({}, "all"), ({"preempts": "own"}, "own")])
async def test_a_queue_says_where_it_displaces_by_priority(rig: Rig, given: dict[str, str], stored: str) -> None:
    """The default is all queues, and another value is rejected."""
    async with rig.client("operator") as client:
        put = await client.put("/api/v1/queues/x", json={"preemption": "PreemptLowerPriority", **given})
        assert (put.status_code, put.json()["preempts"]) == (200, stored)
        assert (await client.get("/api/v1/queues/x")).json()["preempts"] == stored
        assert (await client.put("/api/v1/queues/x", json={"preempts": "some"})).status_code == 422


async def test_jobs_tasks_and_gpus_have_one_meaning_everywhere(rig: Rig) -> None:
    """An array is one job with several tasks, and GPUs are those of clusters that answer, in all answers and pages."""
    rig.step(2)
    big = {"cpu": 1, "gpus": 2}
    await rig.submit(name="gang", replicas=2, gang=True, resources=big)
    rig.step(3)
    await rig.submit(name="sweep", array="0-19%3")
    await rig.submit(name="large", replicas=4, gang=True, resources=big)
    rig.step(4)
    rig.plane.controller.live.fleet.set_state("b", ClusterState.LOST)
    async with rig.client() as client:

        async def get(path: str) -> Any:  # noqa: ANN401  # any JSON
            return (await client.get(f"/api/v1/{path}")).json()

        counted, usage, clusters = await get("job-counts"), await get("queue-usage"), await get("fleet/clusters")
        asked = (await client.post("/api/v1/whatif", json={"question": {"replay": True}})).json()
        listed = (await get("jobs"))["jobs"]
        assert (await get("job-counts?name=e"))["running_tasks"] is None
    waiting, running = {"pending", "queued", "preempted"}, {"scheduled", "deploying", "running"}
    jobs = tuple(sum(each["state"] in states for each in listed) for states in (waiting, running))
    assert jobs == (counted["waiting"], counted["running"]) == (1, 2)
    tasks = counted["waiting_tasks"], counted["running_tasks"]
    assert tasks == (18, 4), "the array has 17 tasks that wait and 3 that run, the gang and the large job are one each"
    (row,) = usage["queues"][:1]
    for one in (row, usage["tenants"][0], usage["uses"][0]):
        assert (one["waiting_jobs"], one["running_jobs"], one["waiting"], one["running"]) == (*jobs, *tasks)
    assert (asked["before"]["placed"], asked["before"]["waiting"]) == (4, 18)
    seen = ClusterList.model_validate(clusters).clusters
    tiles = {each["label"]: each for each in tiles_of(Seen(seen, {}, jobs=JobCount.model_validate(counted)), Words())}
    assert [tiles[name]["figure"] for name in ("Running jobs", "Waiting jobs")] == ["2", "1"]
    assert tiles["Waiting jobs"]["note"] == "18 tasks"
    sums = held(QueueUsageList.model_validate(usage).uses)
    assert (sums.waiting_jobs, sums.running_jobs, sums.waiting, sums.running) == (*jobs, *tasks)
    summary = Summary.of(clusters["clusters"], counted)
    assert summary.jobs_line().plain.strip() == "jobs 1 waiting (18 tasks)  2 running (4 tasks)"
    titles = {"RUNNING", "WAITING"}
    cells = {each.title: each.cell({"totals": row}) for each in COLUMNS if each.title in titles}
    assert cells == {"RUNNING": "2 (4 tasks)", "WAITING": "1 (18 tasks)"}
    up = sum(each["gpus"] for each in clusters["clusters"] if each["state"] == "up")
    assert (tiles["GPUs in use"]["of"], summary.gpus) == (str(up), up)
    assert tiles["GPUs in use"]["note"] == f"GPUs on clusters that do not answer: {summary.unreachable_gpus}"
    assert summary.fleet_line().plain.endswith(f"({summary.unreachable_gpus} GPUs)")
