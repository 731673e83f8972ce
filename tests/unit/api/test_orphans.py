"""Orphaned workloads, over HTTP."""

from __future__ import annotations

from dataclasses import replace

import pytest

from seaway.application.control.state import deployment
from tests.fakes.records import draw_id
from tests.unit.api.rig import Rig

pytestmark = pytest.mark.anyio


async def test_orphans_are_listed_and_removed_by_operators(rig: Rig) -> None:
    """An orphan is listed with its resources; its removal is an event, and audited."""
    held = await rig.submit()
    rig.step(5)
    attempt = rig.store.attempts(held["id"])[-1]
    where, strange = attempt.clusters[0], draw_id()
    controller = rig.plane.controller
    backend = next(each for each in controller._topology._backends.clusters() if each.cluster == where)  # noqa: SLF001  # the rig's
    assert backend.send([replace(deployment(attempt, where), job_id=strange)])[0].done
    rig.step(3)
    async with rig.client("operator") as client:
        (shown,) = (await client.get("/api/v1/fleet/orphans")).json()["orphans"]
        assert (shown["cluster"], shown["name"], shown["job_id"]) == (where, f"sw-{strange}-1", strange)
        assert (shown["cpu_milli"], shown["memory_mib"], shown["gpu_memory_mib"]) == (1000, 1024, 8192)
        assert (await client.get("/api/v1/fleet/orphans", params={"cluster": "no"})).json() == {"orphans": []}
        path = f"/api/v1/fleet/clusters/{where}/orphans"
        assert (await client.delete(path, params={"name": "sw-no-1"})).status_code == 404
        answer = await client.delete(path, params={"name": shown["name"]})
        assert (answer.status_code, answer.json()) == (202, {"removed": [shown["name"]]})
        rig.step(3)
        assert (await client.get("/api/v1/fleet/orphans")).json() == {"orphans": []}
        assert (await client.delete(path)).json() == {"removed": []}
        assert (await client.delete("/api/v1/fleet/clusters/no/orphans")).status_code == 404
    assert ("DELETE remove_orphans", 202) in [(entry.verb, entry.status) for entry in rig.store.audit(0, 100)]
