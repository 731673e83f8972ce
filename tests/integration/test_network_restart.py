"""Reports of agents and settings of operators outlive a restart of the control plane on its database."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random

import httpx
import pytest

from seaway.adapters.simulated.backends import SimulatedBackends
from seaway.adapters.sqlalchemy import open_store
from seaway.api.app import make_app
from seaway.application.control.dispatch import InPlace
from seaway.application.records import Role
from seaway.bootstrap.control_plane import ControlPlane, make_plane
from seaway.bootstrap.settings import Settings
from seaway.testing.clocks import VirtualClock
from seaway.testing.plugins import fleet
from seaway.wire.network_in import EXAMPLE

pytestmark = pytest.mark.anyio

REPORTS = "/api/v1/network/reports"


@asynccontextmanager
async def started(url: str, clock: VirtualClock) -> AsyncIterator[tuple[ControlPlane, httpx.AsyncClient]]:
    """Run a control plane on a database, with its writer, and a client for it."""
    backends = SimulatedBackends(fleet(), clock)
    plane = make_plane(Settings(), open_store(url), backends, clock, dispatcher=InPlace(clock), random=Random(1))
    plane.writer.start()
    transport = httpx.ASGITransport(make_app(plane))
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
        yield plane, client
    plane.writer.stop()
    plane.store.close()


async def test_a_replay_is_known_after_a_restart(tmp_path: Path) -> None:
    """A report from before the restart is rejected after it, the next is accepted, and nothing else is lost."""
    url, clock = f"sqlite:///{tmp_path / 'store.sqlite3'}", VirtualClock()
    async with started(url, clock) as (plane, client):
        operator = plane.access.create("op", Role.OPERATOR, "", None, "test")[1]
        agent = plane.access.create("gw-3", Role.AGENT, "", None, "test", gateway="gw-3")[1]
        as_operator, as_agent = ({"authorization": f"Bearer {token}"} for token in (operator, agent))
        assert (await client.put("/api/v1/network", json=EXAMPLE, headers=as_operator)).status_code == 200
        one = {"target": "gw-1", "at_ns": clock.now_ns(), "sent": 5, "received": 5, "latency_ns": 7}
        report = {"gateway": "gw-3", "started_ns": clock.now_ns(), "number": 3, "rounds": [one]}
        assert (await client.post(REPORTS, json=report, headers=as_agent)).status_code == 204
        written = {"version": "1", "active": {"gw-1": "direct"}}
        applied = "/api/v1/network/gateways/gw-3/applied"
        assert (await client.post(applied, json=written, headers=as_agent)).status_code == 204
    async with started(url, clock) as (plane, client):
        assert (await client.post(REPORTS, json=report, headers=as_agent)).status_code == 409
        assert plane.controller.live.link_table.links(clock.now_ns()) == ()
        agents = (await client.get("/api/v1/network/agents", headers=as_operator)).json()
        assert (agents["version"], agents["agents"][2]["reports"]) == ("1", 1)
        wanted = (await client.get("/api/v1/network/gateways/gw-3", headers=as_agent)).json()
        assert wanted["applied"] == {"gw-1": "direct"}
        assert (await client.post(REPORTS, json={**report, "number": 4}, headers=as_agent)).status_code == 204
        assert len(plane.controller.live.link_table.links(clock.now_ns())) == 1
