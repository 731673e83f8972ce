"""Real use from exporter through the API server's proxy and the cluster to `/metrics`, JSON, API and CLI."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from time import monotonic
from typing import Any

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from seaway.adapters.kubernetes.backends import KubernetesBackends
from seaway.adapters.kubernetes.cluster import ClusterOptions
from seaway.adapters.kubernetes.karmada import KarmadaBackends
from seaway.adapters.kubernetes.usage.measured import read_exporters
from seaway.adapters.kubernetes.usage.scraping import MAX_BACKOFF_INTERVALS, MAX_BYTES, MAX_CONCURRENT, Scraping
from seaway.api.app import make_app
from seaway.application.control.dispatch import InPlace
from seaway.bootstrap.control_plane import ControlPlane, make_plane
from seaway.bootstrap.settings import ServerSettings, Settings, UsageSettings
from seaway.testing.clocks import VirtualClock
from tests.conformance.test_kubernetes_backends import gpu_node, wait
from tests.fakes.kubernetes import ApiServer, KarmadaWorld
from tests.fakes.kubernetes.pages import Page
from tests.fakes.memory_store import MemoryStore

pytestmark = pytest.mark.anyio

GIB = 1 << 30
EVERY_S = 0.6
HAMI = {"app.kubernetes.io/component": "hami-device-plugin"}
DCGM = {"app": "nvidia-dcgm-exporter"}
MONITOR = """\
hami_host_gpu_memory_used_bytes{device_uuid="GPU-node-1-0",node="node-1"} 2.147483648e+10
hami_host_gpu_utilization_ratio{device_uuid="GPU-node-1-0",node="node-1"} 87
hami_host_gpu_memory_used_bytes{device_uuid="GPU-node-2-0",node="node-2"} 1
hami_vgpu_memory_used_bytes{namespace="default",pod="agent",container="main",device_uuid="GPU-node-1-0"} 1e9
hami_container_device_utilization_ratio{namespace="default",pod="agent",container="main",device_uuid="GPU-node-1-0"} 40
hami_vgpu_memory_used_bytes{namespace="default",pod="nobody",container="main",device_uuid="GPU-node-1-0"} 1e9
"""
EXPORTER = """\
DCGM_FI_DEV_FB_USED{gpu="0",UUID="GPU-node-1-0"} 1
DCGM_FI_DEV_FB_USED{gpu="1",UUID="GPU-node-1-1"} 2048
"""


def add_exporter(  # labels that identify it, and its page
    server: ApiServer,
    name: str,
    labels: dict[str, str],
    page: Page | None,
    node: str = "node-1",
    namespace: str = "",
) -> None:
    """Run an exporter on a node, by default in its usual namespace; without a page nothing listens there."""
    port, usual = (9394, "kube-system") if labels is HAMI else (9400, "gpu-operator")
    namespace = namespace or usual
    server.create(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "namespace": namespace, "labels": labels},
            "spec": {"nodeName": node, "containers": [{"name": "exporter", "image": "exporter"}]},
        }
    )
    if page is not None:
        server.serve_page(namespace, name, port, page)


def furnish(server: ApiServer) -> None:
    """Add two nodes of two cards, a pod with part of one, and the exporters of the first node."""
    for name in ("node-1", "node-2"):
        server.create(gpu_node(name, 2))
    server.create(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": "agent",
                "annotations": {
                    "hami.io/vgpu-node": "node-1",
                    "hami.io/vgpu-devices-allocated": "GPU-node-1-0,NVIDIA,8192,50:;",
                },
            },
            "spec": {"nodeName": "node-1", "containers": [{"name": "main", "image": "agent"}]},
        }
    )
    server.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "gpu-operator"}})
    add_exporter(server, "monitor", HAMI, MONITOR.encode())
    add_exporter(server, "dcgm", DCGM, EXPORTER.encode())


def scraping(interval_s: float = EVERY_S) -> Scraping:
    """Return the default exporters, with a short interval."""
    return Scraping(interval_s, read_exporters(UsageSettings().exporters))


@contextmanager
def plane_of(server: ApiServer, folder: Path, cluster_options: ClusterOptions) -> Iterator[ControlPlane]:
    """Create a control plane over one cluster with known nodes."""
    server.kubeconfig(folder / "east")
    backends = KubernetesBackends(folder, cluster_options, seed=1)
    try:
        yield _plane(backends)
    finally:
        backends.close()


def _plane(backends: KubernetesBackends | KarmadaBackends) -> ControlPlane:
    clock = VirtualClock()
    settings = Settings(server=ServerSettings(no_auth=True))
    plane = make_plane(settings, MemoryStore(), backends, clock, dispatcher=InPlace(clock), random=Random(1))

    def received() -> bool:
        plane.controller.step()
        return len(plane.overview.gpu_uses()) == 4

    wait(received, "the nodes")
    return plane


async def asked(plane: ControlPlane, path: str, **params: str) -> httpx.Response:
    """Send a request to the API, as an admin."""
    transport = httpx.ASGITransport(make_app(plane))
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
        answer = await client.get(path, params=params)
        assert answer.status_code == 200, answer.text
        return answer


async def series(plane: ControlPlane) -> dict[str, list[dict[str, Any]]]:
    """Return the GPU metrics by name, after checking that the text format agrees."""
    data: dict[str, list[dict[str, Any]]] = (await asked(plane, "/api/v1/metrics")).json()["data"]
    text = (await asked(plane, "/metrics")).text
    found = {each.name: each.samples for each in text_string_to_metric_families(text)}
    for name, rows in data.items():
        assert len(found[name]) == len(rows), name
        if not name.endswith("Age"):
            assert [(each.labels, each.value) for each in found[name]] == [
                ({key: text for key, text in row.items() if key != "value"}, row["value"]) for row in rows
            ], name
    return data


def by_device(rows: list[dict[str, Any]]) -> dict[str, float]:
    """Return values by the UUID of their device."""
    return {row["deviceuuid"]: row["value"] for row in rows}


def known(plane: ControlPlane, devices: int = 2) -> Callable[[], bool]:
    """Return a function that reports whether real use of this many devices is known."""
    return lambda: sum(each.used is not None for each in plane.overview.gpu_uses()) == devices


def reported(plane: ControlPlane) -> Callable[[], bool]:
    """Return a function that reports whether both exporters were read: only HAMi's monitor reports cores."""
    both = known(plane)
    return lambda: both() and any(each.used and each.used.core_milli for each in plane.overview.gpu_uses())


async def test_from_exporter_to_metrics(tmp_path: Path) -> None:
    """Used is shown beside allocated, by device and container; of two exporters of a card, the first setting wins.

    An exporter only reports its own node, and unmeasured values are missing.
    """
    with ApiServer("east") as server:
        furnish(server)
        with plane_of(server, tmp_path, ClusterOptions(scraping=scraping())) as plane:
            wait(reported(plane), "real use")
            data = await series(plane)
            assert by_device(data["GPUDeviceMemoryUsed"]) == {"GPU-node-1-0": 20 * GIB, "GPU-node-1-1": 2 * GIB}
            assert by_device(data["GPUDeviceMemoryAllocated"])["GPU-node-1-0"] == 8 * GIB
            assert by_device(data["GPUDeviceCoreUsed"]) == {"GPU-node-1-0": 87}
            assert all(0 <= row["value"] <= 3 * EVERY_S for row in data["GPUDeviceUsedAge"])
            (memory,), (cores,) = data["vGPUMemoryUsed"], data["vGPUCoreUsed"]
            assert (memory["pod"], memory["container"], memory["value"], cores["value"]) == ("agent", "main", 1e9, 40)
            text = (await asked(plane, "/metrics")).text
            assert 'seaway_usage_scrapes_total{cluster="east",outcome="read"}' in text


async def test_from_exporter_to_the_fleet(tmp_path: Path) -> None:
    """Nodes and devices show used beside allocated; null if it is not known."""
    with ApiServer("east") as server:
        furnish(server)
        with plane_of(server, tmp_path, ClusterOptions(scraping=scraping())) as plane:
            wait(reported(plane), "real use")
            devices = (await asked(plane, "/api/v1/fleet/devices")).json()["devices"]
            used = {each["uuid"]: each["used"] for each in devices}
            assert used["GPU-node-2-0"] is None
            assert (used["GPU-node-1-0"]["memory_bytes"], used["GPU-node-1-0"]["core_milli"]) == (20 * GIB, 870)
            assert (used["GPU-node-1-1"]["memory_bytes"], used["GPU-node-1-1"]["core_milli"]) == (2 * GIB, None)
            nodes = (await asked(plane, "/api/v1/fleet/nodes")).json()["nodes"]
            assert nodes[0]["devices"][0]["used"].keys() == {"memory_bytes", "core_milli", "age_s"}


async def test_what_is_not_reported_any_more_grows_old_and_goes(tmp_path: Path) -> None:
    """A value ends after three periods, or immediately with the exporter, and returns with it. It is never zero."""
    with ApiServer("east") as server:
        furnish(server)
        with plane_of(server, tmp_path, ClusterOptions(scraping=scraping())) as plane:
            wait(known(plane), "real use")
            fault = server.faults.error(503, "*/pods/*/proxy/*")
            wait(known(plane, 0), "old figures to go")
            data = await series(plane)
            assert [data[name] for name in data if "Used" in name] == [[]] * 5
            assert by_device(data["GPUDeviceMemoryAllocated"])["GPU-node-1-0"] == 8 * GIB
            server.faults.end(fault)
            wait(known(plane), "real use again")


async def test_it_is_on_by_default_and_can_be_turned_off(tmp_path: Path) -> None:
    """By default exporters are read; with an interval of 0 none is, and no use is shown."""
    assert Settings().clusters.usage.interval_s > 0
    with ApiServer("east") as server:
        furnish(server)
        with plane_of(server, tmp_path, ClusterOptions(scraping=scraping(0))) as plane:
            data = await series(plane)
            assert data["GPUDeviceMemoryUsed"] == []
            assert "seaway_usage_scrapes_total{" not in (await asked(plane, "/metrics")).text
        assert server.pages.asked == {}


async def test_without_the_right_little_is_asked_until_it_is_there(tmp_path: Path) -> None:
    """A refusal holds for all exporters of its namespace for ten periods; once the right is granted, use appears."""
    with ApiServer("east") as server:
        furnish(server)
        for number in range(40):
            add_exporter(server, f"monitor-{number}", HAMI, MONITOR.encode(), "node-2")
        fault = server.faults.error(403, "*/namespaces/kube-system/pods/*/proxy/*")
        began_s = monotonic()
        with plane_of(server, tmp_path, ClusterOptions(scraping=scraping())) as plane:
            other = "/api/v1/namespaces/gpu-operator/pods/dcgm:9400/proxy/metrics"
            wait(lambda: server.pages.asked.get(other, 0) >= 4, "readings of the other namespace")
            refused = plane.overview.figures().collecting["east"].scrapes["refused"]
            tries = 1 + (monotonic() - began_s) // (MAX_BACKOFF_INTERVALS * EVERY_S)
            assert 0 < refused <= MAX_CONCURRENT * tries
            server.faults.end(fault)
            wait(known(plane, 3), "real use of both namespaces")


async def endless() -> AsyncIterator[bytes]:
    """Create a page without an end."""
    while True:
        yield b"x" * 65_536
        await asyncio.sleep(0)


async def dripping() -> AsyncIterator[bytes]:
    """Create a page that sends slowly without end."""
    while True:
        yield b"#"
        await asyncio.sleep(0.01)


async def test_broken_and_hostile_exporters_harm_no_one(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Huge, endless, slow, silent or invalid pages are counted and logged once, and do not affect the others."""
    pages: dict[str, Page | None] = {
        "huge": b"#" * (MAX_BYTES + 1),
        "endless": endless,
        "drips": dripping,
        "senseless": b'DCGM_FI_DEV_FB_USED{UUID="GPU-node-2-0"} NaN\nDCGM_FI_DEV_GPU_UTIL{UUID="GPU-node-2-0"} -1\n',
        "deaf": None,
    }
    with ApiServer("east") as server:
        furnish(server)
        for name, page in pages.items():
            add_exporter(server, name, DCGM, page, "node-2")
        with plane_of(server, tmp_path, ClusterOptions(request_timeout_s=0.5, scraping=scraping())) as plane:

            def all_met() -> bool:
                counts = plane.overview.figures().collecting["east"].scrapes
                return counts["unreadable"] >= 3 and counts["unreachable"] >= 3 and counts["broken"] >= 2

            wait(all_met, "every trouble")
            wait(reported(plane), "the others' figures")
            data = await series(plane)
            assert by_device(data["GPUDeviceMemoryUsed"]) == {"GPU-node-1-0": 20 * GIB, "GPU-node-1-1": 2 * GIB}
            plane.controller.step()
            assert plane.overview.figures().clusters == {"up": 1}
    said = [each for each in caplog.messages if "real use" in each]
    assert 3 <= len(said) <= 8, said  # a problem that ends for all is logged again when it returns


async def test_a_slow_node_delays_no_other(tmp_path: Path) -> None:
    """While exporters of one node hang, those of another are read as often as before."""
    with ApiServer("east") as server:
        furnish(server)
        for number in range(4):
            add_exporter(server, f"slow-{number}", DCGM, b"", "node-2")
        server.faults.hang("*/pods/slow-*/proxy/*")
        with plane_of(server, tmp_path, ClusterOptions(request_timeout_s=30, scraping=scraping())) as plane:
            wait(known(plane), "real use")
            path = "/api/v1/namespaces/kube-system/pods/monitor:9394/proxy/metrics"
            before = server.pages.asked.get(path, 0)
            wait(lambda: server.pages.asked.get(path, 0) >= before + 4, "more readings")
            assert known(plane)()


async def test_exporters_of_members_are_read_through_karmada(tmp_path: Path) -> None:
    """The existing connection to a member is enough."""
    world = KarmadaWorld(["alpha"])
    world.open()
    try:
        furnish(world.members["alpha"])
        backends = KarmadaBackends(world.kubeconfig(tmp_path / "karmada"), ClusterOptions(scraping=scraping()), seed=1)
        try:
            wait(known(_plane(backends)), "real use")
        finally:
            backends.close()
    finally:
        world.close()


async def test_only_pods_of_the_namespace_are_believed(tmp_path: Path) -> None:
    """A tenant's pod with the labels of an exporter is not read."""
    with ApiServer("east") as server:
        furnish(server)
        server.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "seaway-vision"}})
        for name, labels in (("hami", HAMI), ("dcgm", DCGM)):
            add_exporter(server, name, labels, EXPORTER.encode(), "node-2", namespace="seaway-vision")
        with plane_of(server, tmp_path, ClusterOptions(scraping=scraping())) as plane:
            wait(known(plane), "real use")
            paths = ("kube-system/pods/monitor:9394", "gpu-operator/pods/dcgm:9400")
            genuine = {f"/api/v1/namespaces/{each}/proxy/metrics" for each in paths}
            wait(lambda: server.pages.asked.keys() >= genuine, "both exporters read")
        assert server.pages.asked.keys() == genuine
