"""A live demo fleet with all possible measurements, for external observation.

Its clusters, network, agents and exporters are simulated; the control plane, its server, the requests and the time are
real.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from random import Random
from socket import create_server
from threading import Event, Thread
from typing import Any

import httpx

from seaway.adapters.simulated.backends import SimulatedBackends
from seaway.adapters.simulated.cluster import SimulatedCluster
from seaway.adapters.simulated.faults import Options
from seaway.adapters.sqlalchemy.store import open_store
from seaway.api.app import make_app
from seaway.api.http.server import make_server
from seaway.application.maintenance import Maintenance
from seaway.application.ports.backend import CollectorState
from seaway.application.ports.clock import SystemClock
from seaway.application.ports.usage import Held, NodeUsage, Used
from seaway.application.records import Role
from seaway.bootstrap.bandwidth import BandwidthSettings, NetworkSettings
from seaway.bootstrap.control_plane import ControlPlane, make_plane
from seaway.bootstrap.policies import warm_up
from seaway.bootstrap.scheduled_tasks import scheduled_tasks
from seaway.bootstrap.settings import DatabaseSettings, PolicySettings, ServerSettings, Settings
from seaway.learning.policies.file import pack
from seaway.simulation.demo import demo_fleet
from seaway.web.cookies import TOKEN
from seaway.web.mount import mount
from tests.documented import scraper_role
from tests.fakes.policies import cluster_policy, node_policy

TIMEOUT_S = 120
PERIOD_S = 0.5
MS = 1_000_000

NETWORK = {
    "probe": {"interval": "5s"},
    "gateways": [
        {"name": f"gw-{number}", "cluster": f"cluster-{number}", "address": f"fd00:51d:{number}::1", "interface": "wan"}
        for number in (1, 2, 3)
    ]
    + [{"name": "gw-4", "site": "office", "address": "fd00:51d:4::1", "interface": "wan"}],
}
SIZES = ({"gpus": 1, "gpu_memory": "8GiB", "gpu_cores": "30%"}, {"gpus": 1}, {"gpus": 2})


class MeasuredCluster(SimulatedCluster):
    """A simulated cluster with real use and collector state."""

    def usage(self) -> Mapping[str, NodeUsage]:
        """Return half of the allocation as used, and a little more, as of drivers."""
        nodes: dict[str, tuple[dict[str, Used], dict[Held, dict[str, Used]]]] = {}
        changes = self.changes("", 0)
        assert changes.inventory is not None
        for node in changes.inventory.nodes:
            nodes[node.name] = ({each.uuid: Used(256 << 20, 0) for each in node.devices}, {})
        for copy in changes.workloads:
            for replica in copy.replicas:
                devices, containers = nodes[replica.node]
                for taken, container in zip(replica.slices, replica.holders, strict=True):
                    used = Used(taken.memory_mib << 19, taken.core_milli // 2)
                    before = devices[taken.uuid]
                    assert before.memory_bytes is not None
                    assert before.core_milli is not None
                    devices[taken.uuid] = Used(
                        before.memory_bytes + (taken.memory_mib << 19), before.core_milli + taken.core_milli // 2
                    )
                    namespace, _, pod = (replica.pod or f"/{copy.name}-{replica.replica}").partition("/")
                    containers[taken.uuid, namespace, pod] = {container: used}
        return {name: NodeUsage(1.0, devices, containers) for name, (devices, containers) in nodes.items()}

    def collector_state(self) -> CollectorState:
        """Return a healthy state."""
        return CollectorState({"broken": 0, "unusable": 0}, {"pods": 0.0, "nodes": 0.0}, {"read": 1})


class MeasuredBackends(SimulatedBackends):
    """The demo's clusters, with measurements."""

    def __init__(self, clock: SystemClock) -> None:
        super().__init__(demo_fleet(), clock)
        made: dict[str, SimulatedCluster] = {
            each.name: MeasuredCluster(each, clock, Options(start_delay_s=0.2)) for each in demo_fleet().clusters
        }
        self._clusters = made


class WatchedDemo:
    """A control plane over the demo fleet behind a server, its agents, and an exporter for all gateways.

    Attributes
    ----------
    client
        Client of an admin.
    """

    def __init__(self, folder: Path) -> None:
        clock = SystemClock()
        self.backends = MeasuredBackends(clock)
        network = NetworkSettings(bandwidth=BandwidthSettings(interval_s=1, exporter_networks="127.0.0.0/8"))
        self.plane: ControlPlane = make_plane(
            Settings(network=network, policies=PolicySettings(budget_ms=5000)),
            open_store(f"sqlite:///{folder / 'seaway.db'}"),
            self.backends,
            clock,
            random=Random(1),
        )
        tasks = scheduled_tasks(DatabaseSettings(), self.plane.store, clock, folder / "backups", Path.touch)
        self._maintenance = Maintenance(tasks, clock, self.plane.overview.failing_tasks)
        app = make_app(self.plane, home=False)
        mount(app, app.inside)
        self._server = make_server(app, ServerSettings())
        self._socket = create_server(("127.0.0.1", 0))
        self.place = f"127.0.0.1:{self._socket.getsockname()[1]}"
        secrets = {
            name: self.plane.access.create(name, Role.AGENT, "", None, "demo", gateway=name)[1]
            for name in ("gw-1", "gw-2", "gw-3", "gw-4")
        }
        self._agents = {name: {"authorization": f"Bearer {secret}"} for name, secret in secrets.items()}
        self.token = self.plane.access.create("prometheus", scraper_role(), "", None, "demo")[1]
        admin = self.plane.access.create("admin", Role.ADMIN, "", None, "demo")[1]
        self.client = httpx.Client(
            base_url=f"http://{self.place}", headers={"authorization": f"Bearer {admin}"}, timeout=TIMEOUT_S
        )
        self._browser = {"cookie": f"{TOKEN}={admin}"}
        self._exporter = ThreadingHTTPServer(("127.0.0.1", 0), Exporter)
        self._reported = 0
        self._resting = Event()
        self._over = Event()
        self._threads = [
            Thread(target=self._server.run, kwargs={"sockets": [self._socket]}),
            Thread(target=self._exporter.serve_forever),
            Thread(target=self._live),
        ]

    def start(self) -> None:
        """Start it, with its network, its policies, and permanent jobs."""
        self.plane.start()
        self._maintenance.start()
        for thread in self._threads[:2]:
            thread.start()
        until = time.monotonic() + TIMEOUT_S
        while not (self._server.started and not self.plane.controller.unready()):
            assert time.monotonic() < until
            time.sleep(0.02)
        exporter = f"http://127.0.0.1:{self._exporter.server_port}/metrics"
        gateways = [{**each, "exporter": exporter} for each in NETWORK["gateways"]]  # type: ignore[dict-item]
        self.put("/network", {**NETWORK, "gateways": gateways})
        for name, file in (("tiny", node_policy()), ("narrow", cluster_policy("narrow"))):
            self.plane.policies.import_policy(pack(file), "demo")
            self.put(f"/queues/{name}", {"shadow": name, "guarantee": {"gpus": 1}, "limit": {"gpus": 1000}})
        quota = {"guarantee": {"gpus": 1}, "limit": {"gpus": 1000, "jobs": 1000}}
        self.put("/tenants/default", {"quotas": {"default": quota}})
        self._threads[2].start()

    def stay(self, count: int) -> None:
        """Submit jobs without an end: of all sizes, some more than there is room for; and services with standbys."""
        for number, kind in enumerate(("warm", "cold")):
            service = {"template": "deployment", "run": {"ports": [8080]}}
            self.submit(f"serves-{number}", **service, standby={"mode": kind})
        for number in range(count):
            self.submit(f"stays-{number}", resources=SIZES[number % 3])
        for number in range(2):
            self.submit(f"huge-{number}", resources={"gpus": 8}, replicas=5)

    def submit(self, name: str, **fields: object) -> None:
        """Submit a job."""
        body = {"name": name, "resources": SIZES[0], **fields}
        answer = self.client.post("/api/v1/jobs", json=body)
        assert answer.status_code == 201, answer.text

    def put(self, path: str, body: object) -> None:
        """Send a PUT request."""
        answer = self.client.put(f"/api/v1{path}", json=body)
        assert answer.is_success, answer.text

    def get(self, path: str, **query: object) -> Any:  # noqa: ANN401  # any JSON
        """Send a GET request."""
        answer = self.client.get(f"/api/v1{path}", params={key: str(value) for key, value in query.items()})
        assert answer.is_success, answer.text
        return answer.json()

    def rest(self) -> None:
        """Stop the changes; agents, and clients of a page, continue."""
        self._resting.set()

    def stop(self) -> None:
        """End it."""
        self._over.set()
        self._server.should_exit = True
        self._exporter.shutdown()
        for thread in self._threads:
            thread.join(TIMEOUT_S)
        self._exporter.server_close()
        self._socket.close()
        self.client.close()
        self._maintenance.stop()
        self.plane.stop()
        self.backends.close()

    def _live(self) -> None:
        """Submit jobs that soon complete or fail, query a page, and report agents' measurements, until the end."""
        number = 0
        while not self._over.wait(PERIOD_S):
            number += 1
            self._report()
            self.client.get("/jobs", headers=self._browser)
            if self._resting.is_set():
                continue
            queue = ("default", "tiny", "narrow")[number % 3]
            self.submit(f"short-{number}", queue=queue, expected_duration="1s")
            broken = self.backends.cluster("cluster-2")
            broken.fail_starts("no such image" if number % 8 == 0 else "")

    def _report(self) -> None:
        """Let each agent report the same round to every other gateway; to one some probes are lost."""
        self._reported += 1
        now_ns = time.time_ns()
        for source, headers in self._agents.items():
            rounds = [
                {
                    "target": target,
                    "path": "",
                    "at_ns": now_ns,
                    "sent": 5,
                    "received": 4 if (source, target) == ("gw-4", "gw-3") else 5,
                    "latency_ns": (ord(source[-1]) + ord(target[-1])) * MS // 10,
                    "jitter_ns": MS,
                    "discarded": 0,
                }
                for target in self._agents
                if target != source
            ]
            body = {"gateway": source, "started_ns": 1, "number": self._reported, "dropped": 0, "rounds": rounds}
            self.client.post("/api/v1/network/reports", json=body, headers=headers)


class Exporter(BaseHTTPRequestHandler):
    """A node-exporter of an interface of 1 Gbit/s through which 100 Mbit/s pass each way."""

    def do_GET(self) -> None:
        """Answer a scrape."""
        count = int(time.time() * 12_500_000)
        labels = '{device="wan"}'
        text = (
            f"node_network_receive_bytes_total{labels} {count}\nnode_network_transmit_bytes_total{labels} {count}\n"
            f"node_network_speed_bytes{labels} 125000000\n"
        ).encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/plain; version=0.0.4")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_: object) -> None:
        """Log nothing."""


@contextmanager
def watched_demo(folder: Path) -> Iterator[WatchedDemo]:
    """Run the demo."""
    warm_up()
    demo = WatchedDemo(folder)
    try:
        demo.start()
        yield demo
    finally:
        demo.stop()
