"""Forks control planes: ``python -m benchmarks.kill.nursery FOLDER DATABASE-URL CLUSTERS-URL PORT``.

Modules are imported and compiled only once, and a first control plane runs before any is forked. Each line on standard
input is the `Fatal` step at which the next control plane is killed. Each line on standard output reports a start
or an end.
"""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sys
import threading
from pathlib import Path
from tempfile import TemporaryDirectory

import httpx

from benchmarks.kill.deadly import DeadlyBackends, DeadlyStore, Fatal, Fate
from seaway.adapters.simulated.backends import SimulatedBackends
from seaway.adapters.simulated.client import RemoteSimulatedBackends
from seaway.adapters.sqlalchemy.store import open_store
from seaway.api.app import make_app
from seaway.api.http.server import make_server
from seaway.application.control.dispatch import InPlace
from seaway.application.control.settings import ControlSettings
from seaway.application.ports.clock import SystemClock
from seaway.bootstrap.control_plane import make_plane
from seaway.bootstrap.policies import warm_up
from seaway.bootstrap.settings import ServerSettings, Settings
from seaway.simulation.demo import demo_fleet

CONTROL = ControlSettings(
    assume_timeout_s=20,
    stale_after_s=5,
    grace_period_s=30,
    poll_interval_s=0.2,
    initial_backoff_s=0.2,
    ttl_after_finished_s=2,
)


def main() -> None:
    """Fork control planes one after the other."""
    folder, database, clusters, port = Path(sys.argv[1]), sys.argv[2], sys.argv[3], int(sys.argv[4])
    warm_up()
    rehearse()
    print("ready", flush=True)
    for line in sys.stdin:
        child = os.fork()
        if not child:
            live(Fate(Fatal.of(line), folder / "graves"), database, clusters, port)
            os._exit(0)
        print(f"began {child}", flush=True)
        _, status = os.waitpid(child, 0)
        print(f"ended {'killed' if os.WIFSIGNALED(status) else os.waitstatus_to_exitcode(status)}", flush=True)


def rehearse() -> None:
    """Place a job in a control plane without threads, so that forked ones find everything loaded.

    They otherwise spend about half of their lives on it.
    """
    with TemporaryDirectory() as folder:
        store, clock = open_store(f"sqlite:///{folder}/seaway.db"), SystemClock()
        backends = SimulatedBackends(demo_fleet(), clock)
        settings = Settings(server=ServerSettings(no_auth=True), control=CONTROL)
        plane = make_plane(settings, store, backends, clock, dispatcher=InPlace(clock))
        plane.controller.step()
        asyncio.run(_submit(httpx.ASGITransport(make_app(plane))))
        plane.controller.step()
        store.close()


async def _submit(transport: httpx.ASGITransport) -> None:
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1/api/v1") as client:
        answer = await client.post("/jobs", json={"name": "rehearsal", "resources": {"gpus": 1}})
        answer.raise_for_status()
        (await client.get(f"/jobs/{answer.json()['id']}")).raise_for_status()


def live(fate: Fate, database: str, clusters: str, port: int) -> None:
    """Run a control plane until a step or a signal ends it."""
    settings = Settings(server=ServerSettings(port=port, no_auth=True), control=CONTROL)
    sys.setswitchinterval(0.0005)
    store = open_store(database)
    backends = DeadlyBackends(RemoteSimulatedBackends(clusters), fate)
    plane = make_plane(settings, DeadlyStore(store, fate), backends, SystemClock())
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind((settings.server.host, port))
    listener.listen(128)
    plane.start()
    server = make_server(make_app(plane), settings.server)
    signal.signal(signal.SIGTERM, lambda *_: server.end())
    server.run(sockets=[listener])
    plane.stop()


if __name__ == "__main__":
    threading.excepthook = lambda _: os.kill(os.getpid(), signal.SIGABRT)  # a thread that dies is a failure
    main()
