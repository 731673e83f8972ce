"""A control plane in memory, which is never started, to describe its REST API and its metrics."""

from __future__ import annotations

from dataclasses import dataclass

from seaway.adapters.simulated.backends import SimulatedBackends
from seaway.api.app import Application, make_app
from seaway.application.control.dispatch import InPlace
from seaway.bootstrap.clusters import read_fleet
from seaway.bootstrap.control_plane import ControlPlane, make_plane
from seaway.bootstrap.settings import Settings
from seaway.testing.clocks import VirtualClock
from tests.fakes.memory_store import MemoryStore


@dataclass(frozen=True, slots=True)
class Server:
    """A control plane and its REST API."""

    plane: ControlPlane
    app: Application


def make_server() -> Server:
    """Make a control plane over the demo fleet."""
    clock = VirtualClock()
    backends = SimulatedBackends(read_fleet("demo"), clock)
    plane = make_plane(Settings(), MemoryStore(), backends, clock, dispatcher=InPlace(clock))
    return Server(plane, make_app(plane))
