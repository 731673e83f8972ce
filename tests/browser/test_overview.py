"""The overview: a drill of faults, each of which it shows soon and clears, and its parts in both languages."""

from __future__ import annotations

import json
import re
import resource
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Event, Thread

import httpx
import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from seaway.adapters.simulated.backends import SimulatedBackends
from seaway.adapters.simulated.server import Server
from seaway.application.ports.clock import SystemClock
from seaway.bootstrap.clusters import read_fleet
from tests.browser.looking import NARROW, SCREENS, WIDE, Looker, hidden_sideways, hindrances, keep_screen, looking
from tests.integration.running import Running, running

pytestmark = pytest.mark.slow

PATIENCE_MS = 60_000
"""Time limit for a fault to be shown or cleared. The measured times are with the screenshots."""

WHOLE = {"cpu": 1, "memory": "1Gi", "gpus": 1, "gpu_memory": "100%"}
CLUSTER, OTHER = "cluster-1", "cluster-2"
NODE, DEVICE = f"{CLUSTER}-n0", f"{OTHER}-n0/0"
GATEWAY = "edge-1"


@dataclass
class World:
    """A server, its simulated clusters in this process, and the agent of a gateway."""

    server: Running
    clusters: httpx.Client
    stopped: Event

    def fault(self, kind: str, cluster: str, target: str = "") -> None:
        """Inject a fault into a cluster, as `seaway simulate fault` does."""
        answer = self.clusters.post(f"/clusters/{cluster}/faults", json={"kind": kind, "target": target})
        assert answer.is_success, answer.text

    def heal(self, kind: str, cluster: str, target: str = "") -> None:
        """End a fault."""
        answer = self.clusters.post(f"/clusters/{cluster}/heal", json={"kind": kind, "target": target})
        assert answer.is_success, answer.text

    def limit_files(self, size: int) -> None:
        """Limit the size of the server's files in bytes, as a full disk does."""
        pid = self.server.process.pid
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (size, resource.prlimit(pid, resource.RLIMIT_FSIZE)[1]))

    def fail_jobs(self, number: int) -> None:
        """Run jobs, and let their containers crash."""
        jobs = [self.server.submit(name=f"crash-{at}", resources=WHOLE) for at in range(number)]
        for job in jobs:
            self.server.await_state(job, "running")
            (attempt,) = self.server.client.get(f"/api/v1/jobs/{job}/attempts").json()["attempts"]
            self.fault("copy", attempt["placements"][0]["cluster"], f"sw-{job}-1")


@contextmanager
def reporting(server: Running) -> Iterator[Event]:
    """Configure a gateway, and send reports of its agent until the end, except while the event is set."""
    gateways = [
        {"name": GATEWAY, "site": "berlin", "address": "192.0.2.1"},
        {"name": "edge-2", "cluster": CLUSTER, "address": "192.0.2.2"},
    ]
    network = {"probe": {"interval": "500ms", "count": 3, "timeout": "100ms"}, "mesh": False, "gateways": gateways}
    server.client.put("/api/v1/network", json=network).raise_for_status()
    body = {"name": GATEWAY, "role": "agent", "gateway": GATEWAY, "tenant": ""}
    secret = server.client.post("/api/v1/tokens", json=body).raise_for_status().json()["secret"]
    headers = {"authorization": f"Bearer {secret}"}
    stopped, over, started_ns = Event(), Event(), time.time_ns()

    def report() -> None:
        number = 0
        while not over.wait(0.5):
            number += 1
            if not stopped.is_set():
                sent = {"gateway": GATEWAY, "started_ns": started_ns, "number": number, "rounds": []}
                with suppress(httpx.HTTPError):  # while the server restarts
                    httpx.post(server.client.base_url.join("/api/v1/network/reports"), json=sent, headers=headers)

    thread = Thread(target=report, daemon=True)
    thread.start()
    try:
        yield stopped
    finally:
        over.set()
        thread.join()


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """Run a server whose clusters are in another process, which is this one."""
    folder: Path = tmp_path_factory.mktemp("drill")
    clusters = Server(SimulatedBackends(read_fleet("demo"), SystemClock()))
    clusters.start()
    try:
        with (
            running(folder / "data", "--simulated", clusters.url) as server,
            httpx.Client(base_url=clusters.url, timeout=30) as client,
            reporting(server) as stopped,
        ):
            yield World(server, client, stopped)
    finally:
        clusters.stop()


def alert(page: Page, text: str) -> Locator:
    """Return an alert by its text."""
    return page.locator('[aria-live="polite"] .alert', has_text=text)


LOOKS = [(theme, language, size) for theme, language in (("light", "en"), ("dark", "zh")) for size in (WIDE, NARROW)]


def viewed(browser: Browser, world: World, **look: object) -> AbstractContextManager[Looker]:
    """Return the pages of the server for its admin."""
    url, token = str(world.server.client.base_url).rstrip("/"), world.server.client.headers["authorization"].split()[-1]
    return looking(browser, url, token, **look)  # type: ignore[arg-type]  # as it accepts them


@pytest.mark.parametrize(("theme", "language", "size"), LOOKS)
def test_a_new_operator_sees_first_steps(
    browser: Browser, world: World, theme: str, language: str, size: tuple[int, int]
) -> None:
    """Until a job is submitted: four steps with links, of which the first is done."""
    with viewed(browser, world, theme=theme, language=language, size=size) as looker:
        page = looker.open("/")
        steps = page.locator(".fragment-tour li")
        expect(steps).to_have_count(4)
        assert [each.get_attribute("href") for each in steps.get_by_role("link").all()] == [
            "/settings?section=clusters", "/queues", "/settings?section=tokens", "/submit",
        ]  # fmt: skip
        expect(page.locator(".fragment-recent li").first).to_be_visible()
        keep_screen(page, f"overview-steps-{theme}-{language}-{size[0]}")
        assert hidden_sideways(page) == []
        assert hindrances(page) == []


def test_each_fault_is_shown_with_a_link_and_clears(browser: Browser, world: World) -> None:
    """Nodes, GPUs, clusters, gateways, jobs and the disk: in words, and gone when the fault has ended."""
    server, took = world.server, dict[str, float]()

    def drill(name: str, cause: Callable[[], object], text: str, href: str, end: Callable[[], object] | None) -> None:
        shown = alert(page, text)
        expect(shown).to_have_count(0)
        cause()
        try:
            began_s = time.monotonic()
            expect(shown).to_be_visible(timeout=PATIENCE_MS)
            took[name] = time.monotonic() - began_s
            expect(shown.get_by_role("link")).to_have_attribute("href", re.compile(re.escape(href)))
            keep_screen(page, f"overview-drill-{name}")
        finally:
            if end is not None:
                end()
        if end is not None:
            began_s = time.monotonic()
            expect(shown).to_have_count(0, timeout=PATIENCE_MS)
            took[f"{name} cleared"] = time.monotonic() - began_s

    with viewed(browser, world) as looker:
        page = looker.open("/")
        expect(page.locator(".fragment-clusters tbody tr")).to_have_count(3)
        broken = f"/fleet?cluster={CLUSTER}&ready=no", f"/fleet?cluster={OTHER}&ready=no"
        drill(
            "node", lambda: world.fault("node", CLUSTER, NODE), f"1 node of {CLUSTER} not ready",
            broken[0], lambda: world.heal("node", CLUSTER, NODE),
        )  # fmt: skip
        drill(
            "gpu", lambda: world.fault("device", OTHER, DEVICE), f"1 unhealthy GPU of {OTHER}",
            broken[1], lambda: world.heal("device", OTHER, DEVICE),
        )  # fmt: skip
        drill(
            "cluster", lambda: world.fault("cut", CLUSTER), f"{CLUSTER} does not answer",
            f"/fleet?cluster={CLUSTER}", lambda: world.heal("cut", CLUSTER),
        )  # fmt: skip
        drill("gateway", world.stopped.set, f"The agent of {GATEWAY} does not report", "/network", world.stopped.clear)

        def clear() -> None:
            answer = server.client.post("/api/v1/jobs", json={"name": "refused", "resources": WHOLE})
            world.limit_files(resource.RLIM_INFINITY)
            assert answer.status_code == 503

        drill(
            "disk", lambda: world.limit_files(1), "The database does not store changes. New jobs are refused",
            "/settings?section=server", clear,
        )  # fmt: skip
        drill(
            "jobs", lambda: world.fail_jobs(5), "5 jobs failed within 15 minutes",
            "/jobs?state=failed&ended_from=", None,
        )  # fmt: skip
        tile = page.locator(".tile", has_text="Failed within 24 hours")
        expect(tile.locator(".tile-figure")).to_have_text("5")
    (SCREENS / "overview-drill.json").write_text(json.dumps(took), encoding="utf-8")


def test_an_acknowledged_alert_stays_acknowledged_after_a_restart(browser: Browser, world: World) -> None:
    """All see who did, last in the list, until the fault ends; the next one is new."""
    with viewed(browser, world) as looker:
        page, text = looker.open("/"), f"1 node of {OTHER} not ready"
        shown = alert(page, text)
        world.fault("node", OTHER, f"{OTHER}-n1")
        shown.get_by_role("button", name="Acknowledge").click()
        expect(shown).to_contain_text("acknowledged by admin")
        looker.wrong.clear()
    world.server.restart()
    with viewed(browser, world) as looker:
        page = looker.open("/")
        shown = alert(page, text)
        expect(shown).to_contain_text("acknowledged by admin", timeout=PATIENCE_MS)
        expect(shown.get_by_role("button")).to_have_count(0)
        world.heal("node", OTHER, f"{OTHER}-n1")
        expect(shown).to_have_count(0, timeout=PATIENCE_MS)
        world.fault("node", OTHER, f"{OTHER}-n1")
        expect(shown.get_by_role("button", name="Acknowledge")).to_be_visible(timeout=PATIENCE_MS)


@pytest.mark.parametrize(("theme", "language", "size"), LOOKS)
def test_alerts_fit_in_both_languages(
    browser: Browser, world: World, theme: str, language: str, size: tuple[int, int]
) -> None:
    """With an alert that someone takes care of, and another, on a screen and on a phone."""
    world.fault("node", OTHER, f"{OTHER}-n1")
    world.fault("device", OTHER, f"{OTHER}-n2/0")
    named = {
        "en": ("unhealthy GPU", "not ready", "acknowledged by"),
        "zh": ("异常的 GPU", "未就绪", "确认"),
    }[language]
    with viewed(browser, world, theme=theme, language=language, size=size) as looker:
        page = looker.open("/")
        for each in named[:2]:
            expect(alert(page, each)).to_be_visible(timeout=PATIENCE_MS)
        known = {"name": "SeawayNodesNotReady", "of": OTHER}
        world.server.client.post("/api/v1/alerts/acknowledge", json=known).raise_for_status()
        expect(alert(page, named[2]).last).to_be_visible(timeout=PATIENCE_MS)
        keep_screen(page, f"overview-alerts-{theme}-{language}-{size[0]}")
        assert hidden_sideways(page) == []
        assert hindrances(page) == []
