"""A control plane in memory behind the API, and a client for it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import httpx
from fastapi import FastAPI

from seaway.adapters.simulated.backends import SimulatedBackends
from seaway.api.app import make_app
from seaway.application.access import Bearer
from seaway.application.control.dispatch import InPlace
from seaway.application.control.settings import ControlSettings
from seaway.application.records import Role
from seaway.bootstrap.control_plane import ControlPlane, make_plane
from seaway.bootstrap.notifications import NotificationSettings
from seaway.bootstrap.settings import PolicySettings, ServerSettings, Settings
from seaway.domain.cluster import Cluster
from seaway.domain.network import Link
from seaway.domain.queues import Queue
from seaway.domain.tenancy import Tenant
from seaway.testing.clocks import VirtualClock
from seaway.testing.plugins import cluster, fleet, gpu, node
from tests.fakes.memory_store import MemoryStore

JOB = {"name": "train", "resources": {"cpu": 1, "memory": "1Gi", "gpus": 1, "gpu_memory": "8Gi"}}


def small_cluster(name: str, gateway: str) -> Cluster:
    """Create a cluster of two nodes of two devices."""
    return cluster(*(node(gpu(), gpu()) for _ in range(2)), name=name, gateway=gateway, region="eu")


@dataclass
class Rig:
    """A control plane, its application, and tokens by role, with ``other`` for a user of another tenant."""

    plane: ControlPlane
    app: FastAPI
    store: MemoryStore
    clock: VirtualClock
    tokens: dict[str, str] = field(default_factory=dict)

    def step(self, times: int = 1) -> None:
        """Run cycles of the control loop."""
        for _ in range(times):
            self.plane.controller.step()
            self.clock.advance_s(2)

    @asynccontextmanager
    async def client(self, token: str = "admin") -> AsyncIterator[httpx.AsyncClient]:
        """Create a client with one of the tokens; none for an empty name."""
        transport = httpx.ASGITransport(self.app)
        headers = {"authorization": f"Bearer {self.tokens[token]}"} if token else {}
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1", headers=headers) as client:
            yield client

    async def submit(self, token: str = "user", **fields: object) -> dict[str, Any]:
        """Submit a job."""
        async with self.client(token) as client:
            answer = await client.post("/api/v1/jobs", json={**JOB, **fields})
            assert answer.status_code == 201, answer.text
            submitted: dict[str, Any] = answer.json()
            return submitted


def make_rig(
    *,
    no_auth: bool = False,
    bearer: Bearer | None = None,
    server: Mapping[str, Any] | None = None,
    policies: PolicySettings | None = None,
    control: ControlSettings | None = None,
    notifications: NotificationSettings | None = None,
    folder: Path | None = None,
) -> Rig:
    """Create a control plane over two small clusters, with the tenants ``default`` and ``other``."""
    clock, store = VirtualClock(), MemoryStore()
    links = [Link("site", "gw-a", 1_000_000, bandwidth_mbps=1000), Link("site", "gw-b", 9_000_000, bandwidth_mbps=1000)]
    world = fleet(small_cluster("a", "gw-a"), small_cluster("b", "gw-b"), links=links)
    settings = Settings(
        server=ServerSettings(no_auth=no_auth, **(server or {})),
        policies=policies or PolicySettings(),
        control=control or ControlSettings(),
        notifications=notifications or NotificationSettings(),
    )
    plane = make_plane(
        settings,
        store,
        SimulatedBackends(world, clock),
        clock,
        dispatcher=InPlace(clock),
        bearer=bearer,
        random=Random(1),
        folder=folder,
    )
    plane.operations.put_tenant(Tenant("other"), "rig")
    plane.operations.put_queue(Queue("theirs", tenant="other"), "rig")
    plane.controller.step()
    rig = Rig(plane, make_app(plane), store, clock)
    for role in Role:
        tenant = "default" if role in {Role.VIEWER, Role.USER} else ""
        gateway = "gw-a" if role is Role.AGENT else ""
        rig.tokens[role.value] = plane.access.create(role.value, role, tenant, None, "rig", gateway=gateway)[1]
    rig.tokens["other"] = plane.access.create("other", Role.USER, "other", None, "rig")[1]
    return rig
