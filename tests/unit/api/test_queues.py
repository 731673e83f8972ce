"""Usage and pending jobs of queues, over HTTP."""

from __future__ import annotations

import pytest

from tests.unit.api.rig import Rig

pytestmark = pytest.mark.anyio

HUGE = {"cpu": 1, "memory": "1Gi", "gpus": 2, "gpu_memory": "100%"}


async def test_allocations_and_waits_is_summed_up_by_queue_and_tenant(rig: Rig) -> None:
    """Each queue has the usage of its jobs and the number of pending ones; tenants see only their own jobs."""
    for _ in range(5):  # two devices each, and there are eight
        await rig.submit(resources=HUGE)
    await rig.submit("other", queue="theirs", tenant="other", resources=HUGE)
    rig.step(8)
    async with rig.client("operator") as client:
        ours, theirs = (await client.get("/api/v1/queue-usage")).json()["uses"]
    assert (ours["queue"], ours["tenant"], theirs["queue"], theirs["tenant"]) == (
        "default",
        "default",
        "theirs",
        "other",
    )
    assert ours["waiting"] + theirs["waiting"] == 2
    assert ours["gpus"] == 2 * ours["running"]
    assert ours["cpu_milli"] == 1000 * ours["running"]
    assert ours["gpu_memory_mib"] == 2 * 81_920 * ours["running"]
    assert max(ours["longest_wait_s"], theirs["longest_wait_s"]) > 0
    async with rig.client("other") as client:
        assert (await client.get("/api/v1/queue-usage")).json()["uses"] == [theirs]


async def test_what_waits_replaces_the_order_in_which_it_is_tried(rig: Rig) -> None:
    """Jobs are ordered by priority, then by submit time; each has its position and reason, page by page."""
    for name in ("one", "two", "three", "four"):
        await rig.submit(name=name, resources=HUGE)
    rig.step(5)
    for name, priority in (("late", 0), ("later", 0), ("urgent", 5)):
        await rig.submit(name=name, priority=priority, resources=HUGE)
        rig.step()
    async with rig.client("viewer") as client:
        path = "/api/v1/queues/default/waiting"
        first = (await client.get(path, params={"limit": 2})).json()
        assert [(each["name"], each["position"]) for each in first["jobs"]] == [("urgent", 1), ("late", 2)]
        assert (first["total"], "0 of 4 nodes fit" in first["jobs"][1]["message"]) == (3, True)
        waits = first["jobs"][1]
        assert (waits["code"], waits["nodes_evaluated"], waits["params"]) == ("no_node_fits", 4, {})
        assert [(each["code"], each["nodes"]) for each in waits["filtered"]] == [("DeviceFit.8", 4)]
        rest = (await client.get(path, params={"limit": 2, "after": first["next"]})).json()
        assert ([each["name"] for each in rest["jobs"]], rest["next"]) == (["later"], None)
        assert (await client.get("/api/v1/queues/theirs/waiting")).status_code == 404
        assert (await client.get("/api/v1/queues/no/waiting")).status_code == 404
