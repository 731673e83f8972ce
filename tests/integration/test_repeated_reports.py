"""Panels do not change while two targets report the same fleet, in a real Prometheus.

Debian has it: ``apt-get install prometheus``. Its service is not used.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator

import httpx
import pytest

from dashboards.every import DASHBOARDS
from dashboards.language import Language
from tests.integration.test_prometheus import await_series, remembering
from tests.unit.dashboards.asked import Asked, asked

pytestmark = pytest.mark.programs("prometheus", "promtool")

ONE = 'job="seaway",instance="10.0.0.1:8080",endpoint="api"'
ANOTHER = 'job="seaway",instance="10.0.0.2:8080",endpoint="api"'
BY_CLUSTER = 'job="seaway-clusters",instance="berlin"'
ALONE_S, TAKEOVER_S, TWO_JOBS_S = 3600, 2400, 1200
REPORTED_BY = {ALONE_S: (ONE,), TAKEOVER_S: (ONE, ANOTHER), TWO_JOBS_S: (ONE, BY_CLUSTER)}
"""The targets that reported the fleet, by age of their samples."""

EVERY = [
    each
    for name in ("fleet", "device", "vgpu", "network")
    for each in asked(name, DASHBOARDS[name](Language.ENGLISH))
    if "rate(" not in each.query
]
"""Queries of current values."""


def reported() -> Iterator[tuple[str, str, float]]:
    """Yield the samples of a process with two clusters, a device each: metric, labels, value."""
    for number, cluster in enumerate(("a", "b"), 1):
        yield "ClusterGPUCorePercentage", f'cluster="{cluster}"', 50.0 * number
        yield "ClusterGPUMemoryPercentage", f'cluster="{cluster}"', 25.0 * number
        yield "seaway_cluster_last_seen_seconds", f'cluster="{cluster}"', number
        device = f'cluster="{cluster}",nodeid="n",deviceidx="0",deviceuuid="gpu-{cluster}",zone="vGPU"'
        for what, figure in (("Core", 100.0), ("Memory", 800.0)):
            yield f"GPUDevice{what}Limit", device, figure
            yield f"GPUDevice{what}Allocated", device, figure * number / 2
            yield f"GPUDevice{what}Used", device, figure * number / 4
        yield "GPUDeviceSharedNum", device, number
        yield "GPUDeviceUsedAge", device, number
        vgpu = f'{device},namespace="jobs",pod="p-{cluster}",container="main"'
        for name in ("vGPUCorePercentage", "vGPUMemoryPercentage", "vGPUMemoryAllocated", "vGPUPodsDeviceAllocated"):
            yield name, vgpu, 10.0 * number
        yield "vGPUMemoryUsed", vgpu, 5.0 * number
        yield "vGPUCoreUsed", vgpu, 5.0 * number
        for what, figure in (("Latency", 1e6), ("Jitter", 1e5), ("PacketLoss", 0.1), ("Bandwidth", 900.0)):
            users = f'source="gw-u",target="gw-{cluster}",cluster="{cluster}",site="office"'
            yield f"UserToCluster{what}", users, figure * number
            between = f'source="gw-x",target="gw-{cluster}",cluster="{cluster}",source_cluster="x"'
            yield f"ClusterToCluster{what}", between, figure * number
        for direction in ("in", "out"):
            labels = f'gateway="gw-{cluster}",direction="{direction}"'
            yield "seaway_gateway_used_mbps", labels, 100.0 * number
        yield "seaway_gateway_speed_mbps", f'gateway="gw-{cluster}"', 1000
        yield "seaway_agent_last_seen_seconds", f'gateway="gw-{cluster}"', number
    for state in ("measured", "reported", "stale", "unknown"):
        yield "seaway_links", f'state="{state}"', 2


@pytest.fixture(scope="module")
def now_s() -> int:
    """Return the time that the ages refer to."""
    return int(time.time())


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory, now_s: int) -> Iterator[httpx.Client]:
    """Run a Prometheus with samples of one target, and later of two."""
    folder = tmp_path_factory.mktemp("takeover")
    by_name: dict[str, list[str]] = {}
    for name, labels, figure in reported():
        for ago_s, targets in REPORTED_BY.items():
            by_name.setdefault(name, []).extend(
                f"{name}{{{labels},{each}}} {figure} {now_s - ago_s}" for each in targets
            )
    lines = [line for name, series in by_name.items() for line in (f"# TYPE {name} gauge", *series)]
    with remembering(folder, lines) as client:
        await_series(client, f"GPUDeviceCoreLimit @ {now_s - ALONE_S}")
        yield client


def shown(client: httpx.Client, query: str, at_s: int) -> list[tuple[tuple[tuple[str, str], ...], str]]:
    """Return the result of a query at a time: labels and values, in order."""
    requesting = {"query": re.sub(r"\$\w+", ".*", query.replace("$__range", "5m")), "time": str(at_s)}
    answer = client.get("/api/v1/query", params=requesting)
    assert answer.is_success, (query, answer.text)
    found = answer.json()["data"]["result"]
    return sorted((tuple(sorted(each["metric"].items())), each["value"][1]) for each in found)


@pytest.mark.parametrize("each", EVERY, ids=lambda each: f"{each.dashboard}-{each.title}-{each.legend}")
def test_a_panel_shows_the_same_while_a_fleet_is_informed_of_twice(
    each: Asked, client: httpx.Client, now_s: int
) -> None:
    """During a takeover, or with two scrape jobs, no panel fails or counts twice."""
    alone = shown(client, each.query, now_s - ALONE_S)
    assert alone
    assert shown(client, each.query, now_s - TAKEOVER_S) == alone
    assert shown(client, each.query, now_s - TWO_JOBS_S) == alone
