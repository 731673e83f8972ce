"""Notifications over HTTP, with messages to a real receiver on loopback."""

from __future__ import annotations

import json
import time
from collections.abc import Callable

import pytest

from seaway.bootstrap.notifications import NotificationSettings
from seaway.domain.notifications import DeliveryState
from tests.unit.adapters.test_notifications import PATIENCE_S, receiving
from tests.unit.api.rig import Rig, make_rig

pytestmark = pytest.mark.anyio

WEBHOOK = {"channel": "webhook", "url": "https://example.com/hook", "on": ["started", "failed"]}
PATH = "/api/v1/notifications"


def until(done: Callable[[], object], rig: Rig) -> None:
    """Let the notifier work until something is true."""
    for _ in range(PATIENCE_S * 50):
        rig.plane.notifications.notifier.step()
        if done():
            return
        time.sleep(0.02)
    raise AssertionError("it did not happen")


async def test_a_started_job_reaches_its_webhook() -> None:
    """The message of a job has its name, and is signed with the secret of the answer."""
    rig = make_rig(notifications=NotificationSettings(allowed_hosts="127.0.0.0/8"))
    rig.plane.notifications.notifier.step()
    with receiving() as receiver:
        url = f"http://127.0.0.1:{receiver.port}/"
        async with rig.client("user") as client:
            made = await client.put(f"{PATH}/ops", json={**WEBHOOK, "url": url})
            assert (made.status_code, made.headers["cache-control"]) == (200, "no-store")
            assert made.json()["secret"].startswith("whsec_")
            assert "secret" not in (await client.get(f"{PATH}/ops")).json()
            assert (await client.post(f"{PATH}/ops/test")).json() == {"delivered": True, "error": ""}
        job = await rig.submit(name="train")
        rig.step(8)
        until(lambda: len(receiver.requests) == 2, rig)
        until(lambda: not rig.store.deliveries(limit=1, state=DeliveryState.WAITING), rig)
        async with rig.client("user") as client, rig.client("other") as other:
            (done,) = (await client.get("/api/v1/deliveries")).json()["deliveries"]
            assert (done["notification"], done["state"], done["job_name"]) == ("ops", "delivered", "train")
            assert done["delivered_at"] >= done["created_at"]
            assert (await other.get("/api/v1/deliveries")).json()["deliveries"] == []
            assert (await other.get("/api/v1/deliveries?tenant=default")).status_code == 404
    test, started = (json.loads(body) for _, _, body in receiver.requests)
    assert (test["type"], started["type"]) == ("test", "job.started")
    assert (started["data"]["job"], started["data"]["name"]) == (job["id"], "train")
    rig.plane.notifications.notifier.stop()


async def test_dead_letters_are_listed_and_sent_again() -> None:
    """A private address makes dead letters with the reason, until an operator allows it."""
    rig = make_rig()
    rig.plane.notifications.notifier.step()
    async with rig.client("user") as client:
        await client.put(f"{PATH}/ops", json={**WEBHOOK, "url": "http://127.0.0.1:9/"})
        await rig.submit(name="train")
        rig.step(8)
        until(lambda: rig.plane.overview.figures().notified.dead, rig)
        page = (await client.get(f"{PATH}/ops/deliveries?state=dead")).json()
        (dead,) = page["deliveries"]
        assert (dead["job_name"], dead["occasion"], "not public" in dead["error"]) == ("train", "started", True)
        assert (await client.get(f"{PATH}/ops")).json()["dead"] == 1
        text = (await client.get("/metrics")).text
        assert "seaway_notifications" not in text
        again = await client.post(f"{PATH}/ops/resend", json={"ids": [dead["id"]]})
        assert again.json() == {"count": 1}
        until(lambda: (found := rig.store.delivery(dead["id"])) and found.state.value == "dead", rig)
        assert (await client.request("DELETE", f"{PATH}/ops/deliveries")).json() == {"count": 1}
        assert (await client.get(f"{PATH}/ops/deliveries")).json() == {"deliveries": [], "next": None}
    async with rig.client("monitor") as client:
        assert 'seaway_notifications_failed_total{channel="webhook"} 2.0' in (await client.get("/metrics")).text
    rig.plane.notifications.notifier.stop()


async def test_notifications_belong_to_a_tenant(rig: Rig) -> None:
    """Tenants have names of their own and see no others; an operator has those for all tenants."""
    async with rig.client("user") as client, rig.client("other") as other, rig.client("operator") as operator:
        assert (await client.put(f"{PATH}/ops", json=WEBHOOK)).json()["tenant"] == "default"
        assert (await other.get(f"{PATH}/ops")).status_code == 404
        assert (await other.get(PATH)).json() == {"notifications": []}
        assert (await other.put(f"{PATH}/ops?tenant=default", json=WEBHOOK)).status_code == 404
        assert (await other.delete(f"{PATH}/ops")).status_code == 404
        assert (await operator.put(f"{PATH}/ops", json=WEBHOOK)).json()["tenant"] == ""
        rows = (await operator.get(PATH)).json()["notifications"]
        assert [row["tenant"] for row in rows] == ["", "default"]
        assert (await operator.get(f"{PATH}/ops?tenant=default")).json()["tenant"] == "default"
        assert (await operator.delete(f"{PATH}/ops?tenant=default")).status_code == 204
        assert (await client.get(PATH)).json() == {"notifications": []}
    async with rig.client("viewer") as viewer:
        assert (await viewer.get(PATH)).status_code == 403


async def test_the_receivers_of_a_job_are_checked_at_submit(rig: Rig) -> None:
    """A job names notifications of its own tenant; others, and e-mails without a server, are errors of the field."""
    async with rig.client("user") as client, rig.client("other") as other:
        await client.put(f"{PATH}/ops", json={**WEBHOOK, "on": []})
        job = {"name": "train", "notify": ["ops=failed", "ada@example.com"]}
        (error,) = (await client.post("/api/v1/jobs", json=job)).json()["errors"]
        assert (error["field"], "smtp_host" in error["message"]) == ("notify[1].to", True)
        (error,) = (await other.post("/api/v1/jobs", json={**job, "notify": "ops"})).json()["errors"]
        assert (error["field"], error["message"][:31]) == ("notify[0].to", "unknown notification 'ops' of t")
        stored = await client.post("/api/v1/jobs", json={**job, "notify": "ops=failed"})
        assert (stored.status_code, stored.json()["spec"]["notify"]) == (201, [{"to": "ops", "when": ["failed"]}])
        path = f"/api/v1/jobs/{stored.json()['id']}"
        assert (await client.patch(path, json={"notify": "team"})).status_code == 422
        await client.delete(f"{PATH}/ops")
        changed = await client.patch(path, json={"priority": 1})
        assert (changed.status_code, changed.json()["spec"]["notify"]) == (200, [{"to": "ops", "when": ["failed"]}])


async def test_a_change_names_the_version_that_it_is_based_on(rig: Rig) -> None:
    """A stale change is refused."""
    async with rig.client("user") as client:
        made = await client.put(f"{PATH}/ops", json=WEBHOOK, headers={"if-none-match": "*"})
        tag = made.headers["etag"]
        rig.clock.advance_s(1)
        changed = await client.put(f"{PATH}/ops", json={**WEBHOOK, "wait_limit": "2h"}, headers={"if-match": tag})
        assert (changed.status_code, changed.json()["secret"], changed.json()["wait_limit"]) == (200, "", "2h")
        assert (await client.put(f"{PATH}/ops", json=WEBHOOK, headers={"if-match": tag})).status_code == 412


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"channel": "webhook"}, "url"),
        ({"channel": "pager", "url": "https://example.com/"}, "channel"),
        ({**WEBHOOK, "on": ["sometimes"]}, "on[0]"),
        ({**WEBHOOK, "secret": "short"}, "secret"),
        ({"channel": "slack", "url": "https://hooks.slack.com"}, "url"),
        ({"channel": "email", "addresses": ["ada@example.com"]}, "addresses[0]"),
        ({**WEBHOOK, "queue": "theirs"}, "queue"),
    ],
)
async def test_bad_notifications_are_rejected_with_the_field(rig: Rig, body: dict[str, object], field: str) -> None:
    """The answer names the field; e-mails need an SMTP server."""
    async with rig.client("user") as client:
        answer = await client.put(f"{PATH}/ops", json=body)
    (error,) = answer.json()["errors"]
    assert (answer.status_code, error["field"]) == (422, field)
