"""A real Prometheus scrapes a real server, with the shipped configuration.

Debian has it: ``apt-get install prometheus``. Its service is not used.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from dashboards.every import DASHBOARDS
from dashboards.language import Language
from seaway.api.metrics import LINK_METRICS
from seaway.application.changes import Change
from seaway.bootstrap.scaling import ScalingSettings, make_metrics
from seaway.domain.queues import Queue
from seaway.domain.scaling import Metric, Trigger
from seaway.wire.metrics import METRICS
from tests.documented import scraper_role
from tests.integration.running import TIMEOUT_S, Running, running
from tests.servers.databases import free_port
from tests.unit.application.control.test_resizer import nodes_of_four
from tests.unit.application.scene import spec
from tests.unit.dashboards.asked import asked

pytestmark = [pytest.mark.slow, pytest.mark.programs("prometheus", "promtool")]

SHIPPED = Path(__file__).parents[2] / "deploy" / "prometheus"
GIB = 1 << 30


@contextmanager
def prometheus(folder: Path) -> Iterator[httpx.Client]:
    """Run a Prometheus with the configuration of a folder; yields a client for its own API."""
    url, port = "http://127.0.0.1", free_port()
    command = ["prometheus", f"--config.file={folder / 'prometheus.yml'}", f"--storage.tsdb.path={folder / 'data'}"]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen([*command, f"--web.listen-address=127.0.0.1:{port}"], stdout=log, stderr=log)
    try:
        with httpx.Client(base_url=f"{url}:{port}", timeout=10) as client:
            yield client
    finally:
        process.kill()
        process.wait(TIMEOUT_S)


@contextmanager
def remembering(folder: Path, lines: Iterable[str]) -> Iterator[httpx.Client]:
    """Run a Prometheus without targets, with the given samples in OpenMetrics format with timestamps."""
    (folder / "metrics").write_text("\n".join([*lines, "# EOF", ""]), encoding="utf-8")
    made = subprocess.run(
        ["promtool", "tsdb", "create-blocks-from", "openmetrics", str(folder / "metrics"), str(folder / "data")],
        capture_output=True, text=True, check=False, timeout=TIMEOUT_S,
    )  # fmt: skip
    assert made.returncode == 0, made.stderr
    (folder / "prometheus.yml").write_text("scrape_configs: []\n", encoding="utf-8")
    with prometheus(folder) as client:
        yield client


def await_series(client: httpx.Client, query: str) -> list[dict[str, Any]]:
    """Query Prometheus until it has a result."""
    until = time.monotonic() + TIMEOUT_S
    while True:
        said = ""
        try:
            answer = client.get("/api/v1/query", params={"query": query})
        except httpx.TransportError:
            pass  # it does not listen yet
        else:
            said = answer.text  # while it starts, that is not JSON
            found: list[dict[str, Any]] = answer.json()["data"]["result"] if answer.is_success else []
            if found:
                return found
        assert time.monotonic() < until, said
        time.sleep(0.1)


def set_up(server: Running, folder: Path) -> None:
    """Follow the shipped configuration: write a token, and set the server's address."""
    shutil.copytree(SHIPPED, folder)
    made = server.client.post("/api/v1/tokens", json={"name": "scraper", "role": scraper_role().value})
    assert made.status_code == 201, made.text
    (folder / "token").write_text(made.json()["secret"], encoding="utf-8")
    place = server.client.base_url.netloc.decode()
    (folder / "targets" / "seaway.yml").write_text(f'- targets: ["{place}"]\n', encoding="utf-8")


def scrape_often(folder: Path) -> None:
    """Set the scrape interval of the shipped configuration to a second, instead of a quarter of a minute."""
    shipped = (folder / "prometheus.yml").read_text(encoding="utf-8")
    often = re.sub(r"(?m)^  (scrape_\w+): 1\ds$", r"  \1: 1s", shipped)
    assert often.count(": 1s") == 2
    (folder / "prometheus.yml").write_text(often, encoding="utf-8")


def test_prometheus_scrapes_what_is_allocated(tmp_path: Path) -> None:
    """It has the allocation of every device, and of a job's pod."""
    (tmp_path / "seaway").mkdir()
    with running(tmp_path / "seaway") as server:
        job = server.submit(resources={"gpus": 1, "gpu_memory": "8GiB", "gpu_cores": "30%"})
        server.await_state(job, "running")
        folder = tmp_path / "prometheus"
        set_up(server, folder)
        checked = subprocess.run(
            ["promtool", "check", "config", str(folder / "prometheus.yml")], capture_output=True, text=True, check=False
        )
        assert checked.returncode == 0, checked.stdout + checked.stderr
        scrape_often(folder)
        with prometheus(folder) as client:
            rows = await_series(client, "GPUDeviceMemoryAllocated")
            devices = server.client.get("/api/v1/fleet/devices", params={"limit": 1000}).json()["devices"]
            assert {row["metric"]["deviceuuid"] for row in rows} == {each["uuid"] for each in devices}
            (taken,) = [row for row in rows if row["value"][1] != "0"]
            assert float(taken["value"][1]) == 8 * GIB
            labels = {"cluster", "nodeid", "deviceidx", "deviceuuid", "zone"}
            assert taken["metric"].keys() - {"__name__", "job", "instance"} == labels
            for name in METRICS.keys() - {"vGPUMemoryUsed", "vGPUCoreUsed"}:  # simulated containers are not measured
                assert await_series(client, name), name
            (vgpu,) = await_series(client, "vGPUMemoryAllocated")
            assert vgpu["metric"]["pod"] == f"sw-{job}-1-0"
            assert len(await_series(client, 'up{job="seaway"} == 1')) == 1
        server.end()


def test_a_large_fleet_is_scraped_cluster_by_cluster_and_nothing_twice(tmp_path: Path) -> None:
    """Every series exists once, so that dashboards show the API's values: of GPUs, and of Seaway itself."""
    (tmp_path / "seaway").mkdir()
    with running(tmp_path / "seaway") as server:
        server.await_state(server.submit(resources={"gpus": 1, "gpu_memory": "8GiB"}), "running")
        folder = tmp_path / "prometheus"
        set_up(server, folder)
        clusters = [each["name"] for each in server.client.get("/api/v1/fleet/clusters").json()["clusters"]]
        text = (folder / "large.yml").read_text(encoding="utf-8")
        assert len(clusters) > 1
        assert text.count("[berlin, paris]") == text.count("127.0.0.1:8080") == 1
        text = text.replace("[berlin, paris]", f"[{', '.join(clusters)}]")
        text = text.replace("127.0.0.1:8080", server.client.base_url.netloc.decode())
        text = re.sub(r"(?m)^( +scrape_\w+): \d+s$", r"\1: 1s", text)
        (folder / "prometheus.yml").write_text(text, encoding="utf-8")
        before = server.client.get("/metrics").text
        with prometheus(folder) as client:
            await_series(client, f"count(up == 1) == {len(clusters) + 1}")
            await_series(client, "seaway_ready and on () vGPUMemoryAllocated")
            devices = server.client.get("/api/v1/fleet/devices", params={"limit": 1000}).json()["devices"]
            sums = {
                ("fleet", "GPUs"): len(devices),
                ("fleet", "vGPUs"): sum(len(each["slices"]) for each in devices),
                ("device", "Devices"): len(devices),
                ("vgpu", "Memory held"): sum(each["memory_mib"]["used"] for each in devices) << 20,
            }
            for (name, title), figure in sums.items():
                panel = next(each for each in asked(name, DASHBOARDS[name](Language.ENGLISH)) if each.title == title)
                (shown,) = await_series(client, re.sub(r"\$\w+", ".*", panel.query))
                assert float(shown["value"][1]) == figure, title
            reported = [each["metric"] for each in await_series(client, '{__name__=~".+"}')]
            scraped = Counter(
                frozenset((label, value) for label, value in each.items() if label not in {"job", "instance"})
                for each in reported
                if each["__name__"] != "up" and not each["__name__"].startswith(("scrape_", "ALERTS"))
            )
            assert [each for each, times in scraped.items() if times > 1] == []
            names = {each["__name__"] for each in reported}
            assert names >= {re.split(r"[{ ]", line)[0] for line in before.splitlines() if not line.startswith("#")}
        server.end()


def test_promtool_finds_nothing_wrong_but_the_names_that_were_asked_for(tmp_path: Path) -> None:
    """Every line is well-formed and has help; names in mixed case are the required ones."""
    with running(tmp_path) as server:
        server.await_state(server.submit(), "running")
        text = server.client.get("/metrics").text
        server.end()
    checked = subprocess.run(
        ["promtool", "check", "metrics"], input=text, capture_output=True, text=True, check=False, timeout=TIMEOUT_S
    )
    said = (checked.stdout + checked.stderr).splitlines()
    ours = [line for line in said if line.split(" ")[0] not in [*METRICS, *LINK_METRICS]]
    assert ours == []
    assert all("camelCase" in line for line in said), said


def served(jobs: Iterable[str], per_s: float, latency_s: float) -> Iterator[str]:
    """Yield the metrics of servers with a constant load, from some minutes ago until some minutes ahead."""
    now_s, pods = int(time.time()), [f'pod="sw-{each}-1-0"' for each in jobs]
    times = [(at_s, now_s + at_s - 600) for at_s in range(0, 1800, 15)]
    yield "# TYPE http_requests counter"
    for pod in pods:
        yield from (f"http_requests_total{{{pod}}} {per_s * after_s} {at_s}" for after_s, at_s in times)
    yield "# TYPE http_request_duration_seconds histogram"
    for pod in pods:
        for le, share in ((str(latency_s), 0.9), (str(2 * latency_s), 1), ("+Inf", 1)):
            name = f'http_request_duration_seconds_bucket{{{pod},le="{le}"}}'
            yield from (f"{name} {per_s * share * after_s} {at_s}" for after_s, at_s in times)


def test_triggers_follow_the_metrics_of_a_real_prometheus(tmp_path: Path) -> None:
    """The shipped queries have one value for a job, and a service gets the number of replicas that it needs.

    Without an answer, the number stays, and the event has the reason.
    """
    made = nodes_of_four(4)
    made.plane.writer.commit([Change(put=[Queue("default", grow_cooldown_s=0)])])
    mine = Trigger(Metric.QUERY, 10_000, query='sum(http_requests_total{pod=~"{pods}"}) * 0 + 25')
    triggers = {"requests": Trigger(Metric.REQUESTS, 20_000), "latency": Trigger(Metric.LATENCY, 100), "query": mine}
    bounds = {"replicas": 1, "min_replicas": 1, "max_replicas": 8, "template": "deployment", "restarts": True}
    jobs = {name: made.plane.submit(spec(**bounds, scale=(each,)))[0] for name, each in triggers.items()}
    made.plane.run(10)
    with remembering(tmp_path, served(jobs.values(), 50.0, 0.2)) as client:
        await_series(client, "sum(http_requests_total)")
        settings = ScalingSettings(str(client.base_url).rstrip("/"), user_queries=True)
        metrics = made.plane.controller.scaler.metrics = make_metrics(settings)
        assert metrics is not None
        made.plane.run(20, 5)
        assert [len(made.plane.attempt(each).placements) for each in jobs.values()][::2] == [3, 3]
        assert len(made.plane.attempt(jobs["latency"]).placements) > 2
        texts = {name: made.plane.store.events(0, 1000, job_id=each) for name, each in jobs.items()}
        found = {name: next(each.reason for each in of if each.kind == "updated") for name, of in texts.items()}
        assert found["requests"].startswith(
            "wants 3 replicas instead of 1: there are 50 requests a second, the target is"
        )
        assert found["latency"].startswith("wants 3 replicas instead of 1: requests take 0.3 s, the target is 0.1 s")
        assert found["query"].startswith("wants 3 replicas instead of 1: its query has the value 25, the target is 10")
    made.plane.run(40, 5)
    last = made.plane.store.events(0, 1000, job_id=jobs["requests"])[-1]
    assert (last.kind, len(made.plane.attempt(jobs["requests"]).placements)) == ("blocked", 3)
    assert f"the number of replicas cannot be reduced: Prometheus at {settings.url}" in last.reason
