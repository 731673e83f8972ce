"""Traffic of a real interface, from a real node-exporter and a real Prometheus.

The interface is in an isolated network namespace that ends with the exporter. The exporter still answers
on the loopback interface of this machine, because its socket was opened outside.

Debian has both: ``apt-get install prometheus-node-exporter prometheus``. Their services are not used.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from ipaddress import ip_address
from pathlib import Path
from random import Random
from socket import create_server

import pytest
from prometheus_client.parser import text_string_to_metric_families

from seaway.application.network.bandwidth import TrafficWatch
from seaway.application.ports.clock import SystemClock
from seaway.application.ports.traffic import Traffic
from seaway.bootstrap.bandwidth import BandwidthSettings, NetworkSettings, PrometheusSettings, make_bandwidths
from seaway.domain.gateways import GatewayConfig
from tests.integration.running import Running, running
from tests.integration.test_prometheus import prometheus
from tests.missing import skip_or_fail

TIMEOUT_S = 60.0

RATE_MBPS = 40
ERROR = 0.05
"""Relative tolerance of a measured rate."""

EXPORTER = """
set -e
mount -t sysfs none /sys
ip link add wan type veth peer name far
ip link add asleep type veth peer name beyond-it
ip link set wan up
ip link set far up
export LISTEN_FDS=1 LISTEN_PID=$$
exec prometheus-node-exporter --web.systemd-socket --collector.disable-defaults --collector.netdev --collector.netclass
"""

SENDER = """
import socket, sys, time
into, rate_mbps = sys.argv[1], float(sys.argv[2])
out = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
out.bind((into, 0))
frame = bytes([2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x88, 0xB5]) + bytes(1486)  # a type for experiments
begun, sent = time.monotonic(), 0
while True:
    if sent * 8 < (time.monotonic() - begun) * rate_mbps * 1e6:
        sent += out.send(frame)
    else:
        time.sleep(0.002)
"""


def missing() -> str:
    """Return the reason to skip these tests; empty if they can run."""
    programs = {"prometheus-node-exporter": "prometheus-node-exporter", "ip": "iproute2", "nsenter": "util-linux"}
    if lacks := [package for program, package in programs.items() if not shutil.which(program)]:
        return f"apt-get install {' '.join(lacks)}"
    tried = subprocess.run(
        ["unshare", "--net", "--mount", "ip", "link", "add", "wan", "type", "veth"], capture_output=True, check=False
    )
    return "" if tried.returncode == 0 else "no network namespace or no veth can be made here: this requires root"


pytestmark = pytest.mark.slow


@dataclass(frozen=True)
class Gateway:
    """A machine with an exporter; ``far`` is the other end of its interface ``wan``, and ``asleep`` is down."""

    pid: int
    place: str

    def config(self, interface: str = "wan", speed_mbps: int = 0) -> GatewayConfig:
        """Return its configuration in Seaway."""
        return GatewayConfig(
            "gw-1",
            ip_address("fd00::1"),
            interface=interface,
            exporter=f"http://{self.place}/metrics?collect[]=netdev&collect[]=netclass",
            speed_mbps=speed_mbps,
        )

    @contextmanager
    def sending(self, interface: str, rate_mbps: float) -> Iterator[None]:
        """Send data at a rate through an interface."""
        command = ["nsenter", f"--net=/proc/{self.pid}/ns/net", sys.executable, "-c", SENDER, interface, f"{rate_mbps}"]
        process = subprocess.Popen(command)
        try:
            yield
            assert process.poll() is None
        finally:
            process.kill()
            process.wait(TIMEOUT_S)


@pytest.fixture(scope="module")
def gateway() -> Iterator[Gateway]:
    """Create a machine with an exporter."""
    if why_not := missing():
        skip_or_fail(OSError(why_not))
    with create_server(("127.0.0.1", 0)) as listener:
        place = f"127.0.0.1:{listener.getsockname()[1]}"
        fd = listener.fileno()
        process = subprocess.Popen(
            ["unshare", "--net", "--mount", "bash", "-c", f"exec 3<&{fd}\n{EXPORTER}"],
            pass_fds=[fd],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
    try:
        yield Gateway(process.pid, place)
    finally:
        process.kill()
        process.wait(TIMEOUT_S)


@contextmanager
def watching(settings: NetworkSettings, config: GatewayConfig) -> Iterator[Callable[[], Traffic | None]]:
    """Watch a gateway like a control plane; yields a function that returns the latest traffic."""
    clock = SystemClock()
    bandwidths = make_bandwidths(settings, clock)
    watch = TrafficWatch(bandwidths, lambda: [config], settings.bandwidth.interval_s, clock, Random(1))
    watch.start()
    try:
        yield lambda: bandwidths.of(config)
    finally:
        watch.stop()


def await_that(latest: Callable[[], Traffic | None], wanted: Callable[[Traffic], bool]) -> Traffic:
    """Wait for a suitable measurement."""
    until = time.monotonic() + TIMEOUT_S
    while True:
        found = latest()
        if found is not None and wanted(found):
            return found
        assert time.monotonic() < until, found
        time.sleep(0.05)


def near(found: Traffic, in_mbps: float, out_mbps: float) -> bool:
    """Report whether the measured rates equal those of the sent data, in each direction."""
    return (
        abs(found.in_used_mbps - in_mbps) <= ERROR * in_mbps and abs(found.out_used_mbps - out_mbps) <= ERROR * out_mbps
    )


FAST = NetworkSettings(BandwidthSettings(interval_s=0.5, exporter_networks="127.0.0.0/8"))


def test_directions_of_traffic_are_measured_separately(gateway: Gateway) -> None:
    """Each end receives the traffic of the other; the reported speed overrides the configured one."""
    with watching(FAST, gateway.config(speed_mbps=7)) as latest:
        quiet = await_that(latest, lambda found: found.in_used_mbps == found.out_used_mbps == 0)
        assert quiet.speed_mbps == 10_000
        with gateway.sending("wan", RATE_MBPS):
            await_that(latest, lambda found: near(found, 0, RATE_MBPS))
            with gateway.sending("far", 2 * RATE_MBPS):
                await_that(latest, lambda found: near(found, 2 * RATE_MBPS, RATE_MBPS))
        await_that(latest, lambda found: found.in_used_mbps == found.out_used_mbps == 0)


def test_interface_without_a_speed_uses_the_configured_one(gateway: Gateway) -> None:
    """Without a configured speed it has none; an interface that is down reports no traffic."""
    for configured, speed_mbps in ((0, None), (1000, 1000)):
        with watching(FAST, gateway.config("asleep", configured)) as latest:
            assert await_that(latest, lambda _: True).speed_mbps == speed_mbps


def test_recreated_interface_is_measured_again(gateway: Gateway) -> None:
    """A missing interface is unknown, and counters that restart at 0 are no traffic."""
    inside = ["nsenter", f"--net=/proc/{gateway.pid}/ns/net", "ip", "link"]
    config = gateway.config("fleeting")
    subprocess.run([*inside, "add", "fleeting", "type", "veth", "peer", "name", "beyond"], check=True)
    subprocess.run([*inside, "set", "fleeting", "up"], check=True)
    subprocess.run([*inside, "set", "beyond", "up"], check=True)
    with watching(FAST, config) as latest:
        with gateway.sending("fleeting", RATE_MBPS):
            await_that(latest, lambda found: near(found, 0, RATE_MBPS))
        subprocess.run([*inside, "del", "fleeting"], check=True)
        until = time.monotonic() + TIMEOUT_S
        while latest() is not None:
            assert time.monotonic() < until
            time.sleep(0.05)
        subprocess.run([*inside, "add", "fleeting", "type", "veth", "peer", "name", "beyond"], check=True)
        assert await_that(latest, lambda _: True).out_used_mbps == 0


@pytest.mark.programs("prometheus")
def test_prometheus_agrees_with_the_exporter(gateway: Gateway, tmp_path: Path) -> None:
    """Prometheus reports the rates and the speed of the exporter, with the age of its latest scrape."""
    (tmp_path / "prometheus.yml").write_text(
        f"""
global: {{scrape_interval: 500ms}}
scrape_configs:
  - job_name: node
    static_configs: [{{targets: ["{gateway.place}"]}}]
""",
        encoding="utf-8",
    )
    with gateway.sending("wan", RATE_MBPS), gateway.sending("far", 2 * RATE_MBPS), prometheus(tmp_path) as client:
        asked = PrometheusSettings(f"{client.base_url}", labels='job="node",instance="{exporter}"', window_s=2)
        with watching(replace(FAST, prometheus=asked), gateway.config()) as latest:
            found = await_that(latest, lambda found: near(found, 2 * RATE_MBPS, RATE_MBPS))
            assert found.speed_mbps == 10_000
            assert found.age_s is not None
            assert found.age_s < 2.5


OUT = ("seaway_gateway_used_mbps", "gw-1", "out")


def figures(server: Running) -> dict[tuple[str, str, str], float]:
    """Return the metrics of a control plane by metric, gateway and direction."""
    return {
        (each.name, each.labels["gateway"], each.labels.get("direction", "")): each.value
        for family in text_string_to_metric_families(server.client.get("/metrics").text)
        for each in family.samples
        if each.name in ("seaway_gateway_used_mbps", "seaway_gateway_speed_mbps", "seaway_gateway_scrape_failed")
    }


def test_control_plane_measures_the_gateways_of_its_network(gateway: Gateway, tmp_path: Path) -> None:
    """Its metrics have the traffic, the capacity, and the unreadable interfaces."""
    exporter = gateway.config().exporter
    network = {
        "gateways": [
            {"name": "gw-1", "cluster": "alpha", "address": "fd00::1", "interface": "wan", "exporter": exporter},
            {"name": "gw-2", "cluster": "beta", "address": "fd00::2", "interface": "nowhere", "exporter": exporter},
            {"name": "gw-3", "site": "office", "address": "fd00::3", "speed": "2Gbps"},
        ]
    }
    config = tmp_path / "seaway.toml"
    config.write_text(
        "[network]\nbandwidth.interval_s = 1\nbandwidth.exporter_networks = '127.0.0.0/8'\n", encoding="utf-8"
    )
    (tmp_path / "data").mkdir()
    with running(tmp_path / "data", "--config", f"{config}") as server:
        put = server.client.put("/api/v1/network", json=network)
        assert put.is_success, put.text
        with gateway.sending("wan", RATE_MBPS):
            until = time.monotonic() + TIMEOUT_S
            while not (RATE_MBPS * (1 - ERROR) <= (said := figures(server)).get(OUT, 0) <= RATE_MBPS * (1 + ERROR)):
                assert time.monotonic() < until, said
                time.sleep(0.1)
        server.end()
    assert {name: value for name, value in said.items() if name != OUT} == {
        ("seaway_gateway_used_mbps", "gw-1", "in"): 0,
        ("seaway_gateway_speed_mbps", "gw-1", ""): 10_000,
        ("seaway_gateway_speed_mbps", "gw-3", ""): 2000,
        ("seaway_gateway_scrape_failed", "gw-1", ""): 0,
        ("seaway_gateway_scrape_failed", "gw-2", ""): 1,
    }
