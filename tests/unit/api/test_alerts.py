"""Problems of the fleet, over HTTP."""

from __future__ import annotations

import pytest

from seaway.application.monitoring.conditions import EVERY_S
from tests.unit.api.rig import Rig

pytestmark = pytest.mark.anyio

HUGE = {"cpu": 1, "memory": "1Gi", "gpus": 2, "gpu_memory": "100%"}


async def test_what_is_wrong_is_asked_to_those_who_may_see_it(rig: Rig) -> None:
    """A tenant sees problems of clusters and of its own queues, and none of others' queues and of the database."""
    for _ in range(5):  # two devices each, and there are eight
        await rig.submit("other", queue="theirs", tenant="other", resources=HUGE)
    rig.step(2)
    rig.clock.advance_s(3700)
    for _ in range(int(300 / EVERY_S) + 1):
        rig.plane.alerts.look()
        rig.clock.advance_s(EVERY_S)
    rig.step(1)  # clusters answer
    rig.plane.alerts.look()
    for role, reported in (("operator", ["SeawayQueueLong"]), ("other", ["SeawayQueueLong"]), ("viewer", [])):
        async with rig.client(role) as client:
            answer = await client.get("/api/v1/alerts")
        assert [each["name"] for each in answer.json()["alerts"]] == reported, role
    async with rig.client("operator") as client:
        (alert,) = (await client.get("/api/v1/alerts")).json()["alerts"]
    assert (alert["of"], alert["severity"], alert["bound"]) == ("theirs", "warning", 3600)
    assert alert["value"] > alert["bound"]


async def test_a_queue_at_its_limit_is_reported(rig: Rig) -> None:
    """The figures are those of the live queue; users of other tenants do not see the queue."""
    async with rig.client("operator") as client:
        set_ = await client.put("/api/v1/queues/theirs", json={"tenant": "other", "limit": {"gpus": 6}})
        assert set_.is_success, set_.text
    for _ in range(4):
        await rig.submit("other", queue="theirs", tenant="other", resources=HUGE)
    rig.step(2)
    rig.clock.advance_s(3700)
    for _ in range(int(3600 / EVERY_S) + 1):
        rig.plane.alerts.look()
        rig.clock.advance_s(EVERY_S)
    rig.step(1)  # clusters answer
    rig.plane.alerts.look()
    for role, reported in (("other", ["SeawayQueueLong", "SeawayQueueAtLimit"]), ("viewer", [])):
        async with rig.client(role) as client:
            answer = await client.get("/api/v1/alerts")
        assert [each["name"] for each in answer.json()["alerts"]] == reported, role


async def test_an_operator_acknowledges_an_alert_until_it_clears(rig: Rig) -> None:
    """All see who did; users may not, and an alert that does not fire cannot be acknowledged."""
    for _ in range(5):
        await rig.submit("other", queue="theirs", tenant="other", resources=HUGE)
    rig.step(2)
    rig.clock.advance_s(3700)
    for _ in range(int(300 / EVERY_S) + 1):
        rig.plane.alerts.look()
        rig.clock.advance_s(EVERY_S)
    rig.step(1)  # clusters answer
    rig.plane.alerts.look()
    path, alert = "/api/v1/alerts/acknowledge", {"name": "SeawayQueueLong", "of": "theirs"}
    async with rig.client("other") as user, rig.client("operator") as client:
        assert (await user.post(path, json=alert)).status_code == 403
        assert (await client.post(path, json={**alert, "of": "default"})).status_code == 404
        assert (await client.post(path, json=alert)).status_code == 204
        (seen,) = (await user.get("/api/v1/alerts")).json()["alerts"]
        assert (seen["acknowledged_by"], seen["acknowledged_at"] is None) == ("operator", False)
        audited = [each for each in rig.plane.store.audit(0, 10) if "acknowledge" in each.verb]
        assert [(each.actor, each.target) for each in audited if each.status == 204] == [
            ("operator", "SeawayQueueLong theirs")
        ]
        jobs = (await client.get("/api/v1/jobs", params={"queue": "theirs"})).json()["jobs"]
        for job in jobs:
            assert (await client.post(f"/api/v1/jobs/{job['id']}/cancel")).is_success
        rig.step(3)
        rig.plane.alerts.look()
        assert (await client.get("/api/v1/alerts")).json()["alerts"] == []
        assert (await client.post(path, json=alert)).status_code == 404


async def test_the_latest_changes_of_the_fleet_are_listed(rig: Rig) -> None:
    """Newest first; users of a tenant do not see changes of queues."""
    async with rig.client("operator") as client, rig.client("viewer") as viewer:
        assert (await client.post("/api/v1/cordons", json={"cluster": "a", "reason": "disk"})).is_success
        assert (await client.put("/api/v1/queues/night", json={})).is_success
        listed = (await client.get("/api/v1/fleet/events", params={"limit": 2})).json()["events"]
        assert [each["kind"] for each in listed] == ["queue", "cordoned"]
        seen = (await viewer.get("/api/v1/fleet/events")).json()["events"]
        assert "queue" not in {each["kind"] for each in seen}
        assert "cordoned" in {each["kind"] for each in seen}
        assert (await viewer.get("/api/v1/fleet/events", params={"limit": 0})).status_code == 422
