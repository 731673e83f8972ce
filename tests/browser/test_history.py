"""Charts of past use, and the history of finished jobs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from tests.browser.looking import NARROW, WIDE, hidden_sideways, hindrances, keep_screen, looking
from tests.integration.running import Running, running

pytestmark = pytest.mark.slow

WHOLE = {"cpu": 1, "memory": "1Gi", "gpus": 1, "gpu_memory": "100%"}


@pytest.fixture(scope="module")
def sampled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """Run a server that samples each second, with a running job, a finished one, and one that waits."""
    folder: Path = tmp_path_factory.mktemp("history")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SEAWAY_CONTROL_SAMPLE_INTERVAL_S", "1")
        with running(folder / "data") as server:
            server.client.put("/api/v1/queues/narrow", json={"limit": {"gpus": 1}}).raise_for_status()
            done = server.submit(name="done", resources=WHOLE)
            server.await_state(done, "running")
            server.client.post(f"/api/v1/jobs/{done}/cancel").raise_for_status()
            server.await_state(done, "cancelled")
            server.await_state(server.submit(name="holds", queue="narrow", resources=WHOLE), "running")
            server.submit(name="waits", queue="narrow", resources=WHOLE)
            yield server


@pytest.mark.parametrize(("theme", "language"), [("light", "en"), ("dark", "zh")])
@pytest.mark.parametrize("size", [WIDE, NARROW])
def test_charts_show_the_fleet_and_each_queue(
    browser: Browser, sampled: Running, theme: str, language: str, size: tuple[int, int]
) -> None:
    """Charts and figures fit the screen in both languages; the choice is part of the address."""
    url = str(sampled.client.base_url).rstrip("/")
    token = sampled.client.headers["authorization"].removeprefix("Bearer ")
    named = {"en": ("Queue", "Hour", "Waiting tasks"), "zh": ("队列", "小时", "等待中的任务")}[language]
    with looking(browser, url, token, theme=theme, language=language, size=size) as looker:  # type: ignore[arg-type]
        page = looker.open("/history")
        expect(page.locator(".charts .chart svg path[stroke='var(--core)']").first).to_be_attached()
        expect(page.locator(".fragment-history tbody tr")).to_have_count(1)
        keep_screen(page, f"history-fleet-{theme}-{language}-{size[0]}")
        for each in named[:2]:
            page.get_by_role("button", name=each, exact=True).click()
        expect(page).to_have_url(re.compile(r"by=queue&span=hour"))
        row = page.locator(".fragment-history tr", has_text="narrow")
        expect(row).to_be_visible()
        expect(page.get_by_role("img", name=named[2])).to_be_visible()
        keep_screen(page, f"history-queue-{theme}-{language}-{size[0]}")
        assert hidden_sideways(page) == []
        assert hindrances(page) == []
        looker.go(page, "/history?by=queue&span=hour")
        expect(page.locator(".fragment-history tr", has_text="narrow")).to_be_visible()
