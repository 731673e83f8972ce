"""Tenants see nothing of each other."""

from __future__ import annotations

import re
import threading
from dataclasses import replace
from pathlib import Path

import anyio
import pytest

from seaway.api.hub import SHARED, Subscription
from seaway.application.records import Event
from seaway.domain.queues import Queue
from seaway.wire.fields import moment
from tests.unit.api.rig import JOB, Rig

pytestmark = pytest.mark.anyio
JOBS = "/api/v1/jobs"


async def test_queues_of_others_are_not_there(rig: Rig) -> None:
    """For a user, another tenant's queue is the same as a missing one; an operator sees it."""
    reported = {}
    for name in ("theirs", "nowhere"):
        async with rig.client("user") as client:
            answer = await client.post(JOBS, json={**JOB, "queue": name})
            reported[name] = answer.json()["detail"].replace(name, "")
        async with rig.client("operator") as client:
            operators = await client.post(JOBS, json={**JOB, "queue": name})
        assert ("another tenant" in operators.text) is (name == "theirs")
    assert reported["theirs"] == reported["nowhere"]
    assert "available: default" in reported["theirs"]


async def test_orphans_are_not_named_to_tenants(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    """Names of orphans contain ids of others' jobs: clusters and events show them to operators and admins alone."""
    views = [replace(each, orphans=("sw-x-1",)) for each in rig.plane.overview.clusters()]
    monkeypatch.setattr(rig.plane.overview, "clusters", lambda: views)
    for token, names in (("viewer", []), ("user", []), ("operator", ["sw-x-1"]), ("admin", ["sw-x-1"])):
        async with rig.client(token) as client:
            listed = (await client.get("/api/v1/fleet/clusters")).json()["clusters"]
            assert [each["orphans"] for each in listed] == [names, names]
            assert (await client.get("/api/v1/fleet/clusters/a")).json()["orphans"] == names


async def test_tenants_see_only_events_of_shared_kinds(rig: Rig) -> None:
    """A new kind of event is hidden from tenants until it is listed; reservations are shown to their tenant."""
    for kind in ("orphans_removed", "queue", "pool", "tenant", "policy", "reservation", "a-new-kind"):
        event = Event(1, kind, "said", "op")
        assert not Subscription("default", "", confined=True).wants(event)
        assert Subscription("", "", confined=False).wants(event)
    assert all(Subscription("default", "", confined=True).wants(Event(1, kind, "said", "op")) for kind in SHARED)
    table = re.findall(r"^\| (`.*?) \|", Path("docs/events.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert set(re.findall(r"`(\w+)`", " ".join(table))) >= SHARED
    own = rig.clock.now_ns()
    body = {"starts": moment(own + 60 * 10**9), "ends": moment(own + 120 * 10**9), "tenant": "other", "gpus": 1}
    async with rig.client("operator") as client:
        answer = await client.put("/api/v1/reservations/launch", json=body)
        assert answer.status_code == 200, answer.text
    for token, seen in (("user", False), ("other", True), ("operator", True)):
        async with rig.client(token) as client:
            assert ("launch" in (await client.get("/api/v1/events/history")).text) is seen


async def test_everybodys_figures_are_not_for_tenants(rig: Rig) -> None:
    """Total numbers of jobs and requests are for tokens without a tenant."""
    await rig.submit("other", queue="theirs")
    rig.step()
    for token, sees in (("viewer", False), ("operator", True)):
        async with rig.client(token) as client:
            text = (await client.get("/metrics")).text
        assert "seaway_clusters{" in text
        for name in ("jobs", "jobs_waiting", "jobs_placed_total", "http_requests_total"):
            assert (f"# HELP seaway_{name} " in text) is sees, name


async def test_a_key_finds_its_job_whatever_happened_since(rig: Rig) -> None:
    """A repeated submit with its key returns its job, even if its queue is closed now."""
    key = {"idempotency-key": "k1"}
    rig.plane.operations.put_queue(Queue("batch"), "rig")
    rig.step()
    async with rig.client("user") as client:
        first = await client.post(JOBS, json={**JOB, "queue": "batch"}, headers=key)
        rig.plane.operations.put_queue(Queue("batch", open=False), "rig")
        rig.step()
        again = await client.post(JOBS, json={**JOB, "queue": "batch"}, headers=key)
        assert (first.status_code, again.status_code) == (201, 200)
        assert again.json()["id"] == first.json()["id"]
        assert (await client.post(JOBS, json={**JOB, "queue": "batch"})).status_code == 422
        sooner = await client.patch(f"{JOBS}/{first.json()['id']}", json={"priority": 5})
        assert (sooner.status_code, sooner.json()["priority"]) == (200, 5)


async def test_who_has_to_be_thought_about_holds_up_no_one(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    """While admission checks one job, others are answered, and jobs like known ones are admitted."""
    await rig.submit()
    thinking, go_on = threading.Event(), threading.Event()
    judge = rig.plane.admission._infeasibility  # noqa: SLF001  # what takes long

    def slow(*given: object) -> str:
        thinking.set()
        go_on.wait(10)
        return judge(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(rig.plane.admission, "_infeasibility", slow)
    async with rig.client("user") as client, anyio.create_task_group() as group:

        async def ask() -> None:
            assert (await client.post(JOBS, json={"name": "a", "resources": {"gpus": 3}})).status_code == 422

        group.start_soon(ask)
        while not thinking.is_set():
            await anyio.sleep(0)
        assert (await client.post(JOBS, json=JOB)).status_code == 201
        assert (await client.get(JOBS)).status_code == 200
        go_on.set()
