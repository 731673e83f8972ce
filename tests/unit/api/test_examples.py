"""The jobs in examples/ are valid."""

from __future__ import annotations

from pathlib import Path
from random import Random

import httpx
import pytest

from seaway.adapters.simulated.backends import SimulatedBackends
from seaway.api.app import make_app
from seaway.application.control.dispatch import InPlace
from seaway.bootstrap.control_plane import make_plane
from seaway.bootstrap.settings import ServerSettings, Settings
from seaway.simulation.demo import demo_fleet
from seaway.testing.clocks import VirtualClock
from tests.fakes.memory_store import MemoryStore

EXAMPLES = sorted((Path(__file__).parents[3] / "examples" / "jobs").glob("*.yaml"))

pytestmark = pytest.mark.anyio


async def test_each_example_starts_on_the_demo_fleet() -> None:
    """Every example can be submitted unchanged, and starts immediately."""
    clock = VirtualClock()
    settings = Settings(server=ServerSettings(no_auth=True))
    backends = SimulatedBackends(demo_fleet(), clock)
    plane = make_plane(settings, MemoryStore(), backends, clock, dispatcher=InPlace(clock), random=Random(1))
    plane.controller.step()
    transport = httpx.ASGITransport(make_app(plane))
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
        for path in EXAMPLES:
            answer = await client.post(
                "/api/v1/jobs?dry_run=true",
                content=path.read_bytes(),
                headers={"content-type": "application/yaml"},
            )
            assert answer.status_code == 200, answer.text
            assert answer.json()["fits"], f"{path.name}: {answer.json()['message']}"
    plane.stop()
    assert len(EXAMPLES) >= 3
