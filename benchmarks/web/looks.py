"""Browser measurements."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import datetime
from statistics import median
from typing import Any

import httpx
from playwright.sync_api import Page

from benchmarks.api.server import Served
from benchmarks.record import SkippedError
from seaway.web.cookies import TOKEN
from tests.servers.browser import chromium
from tests.servers.missing import MissingError

WARM = 1
TIMES = 7
MS_PER_S = 1000

JOB = {
    "name": "seen",
    "resources": {"cpu": "500m", "memory": "1GB", "gpus": 1, "gpu_memory": "4GB", "gpu_cores": "10%"},
}

PAINTED = """() => {
    const shown = performance.getEntriesByName('first-contentful-paint')[0];
    return shown ? shown.startTime : null;
}"""
"""Returns the time of the first paint, ms after the request."""

WATCHED = """selector => {
    const text = () => document.querySelector(selector).innerText;
    const before = text();
    window.seenAt = null;
    const watcher = new MutationObserver(() => {
        if (text() === before) return;
        watcher.disconnect();
        requestAnimationFrame(() => setTimeout(() => { window.seenAt = Date.now(); }));
    });
    watcher.observe(document.body, {subtree: true, childList: true, characterData: true});
}"""
"""Makes the page record when the text of an element first changes and is painted, ms since 1970."""


@dataclass(frozen=True, slots=True)
class Seen:
    """Latency of a change until it is painted in a browser, seconds.

    Attributes
    ----------
    of_submit
        Since the request that caused it.
    of_change
        Since the control plane made it, by the timestamp of its event.
    """

    of_submit: float
    of_change: float


@contextmanager
def browser_page(server: Served) -> Iterator[Page]:
    """Yield a page of a browser with a login."""
    with ExitStack() as stack:
        try:
            browser = stack.enter_context(chromium())
        except MissingError as missing:
            raise SkippedError(str(missing)) from None
        context = browser.new_context(viewport={"width": 1440, "height": 900}, reduced_motion="reduce")
        context.add_cookies([{"name": TOKEN, "value": server.token, "url": server.url}])
        yield context.new_page()


def rendered(page: Page, server: Served, path: str, shows: str) -> dict[str, Any]:
    """Load a page repeatedly; return the times until the first paint and until its content is present."""
    painted, there = [], []
    for _ in range(WARM + TIMES):
        began = time.perf_counter()
        page.goto(server.url + path, wait_until="commit")
        page.locator(shows).first.wait_for()
        there.append(time.perf_counter() - began)
        page.wait_for_function(PAINTED)
        painted.append(page.evaluate(PAINTED) / MS_PER_S)
    return {
        "first paint s": round(median(painted[WARM:]), 3),
        "content s": round(median(there[WARM:]), 3),
        "worst s": round(max(there[WARM:]), 3),
        "first ever s": round(there[0], 3),
    }


def submit_seen(page: Page, server: Served, figure: str) -> Seen:
    """Submit a job that starts immediately; return the latency until a figure of the open page shows that it runs."""
    page.evaluate(WATCHED, figure)
    headers = {"authorization": f"Bearer {server.token}"}
    began = time.time()
    job = httpx.post(f"{server.url}/api/v1/jobs", headers=headers, json=JOB, timeout=60).raise_for_status().json()["id"]
    page.wait_for_function("() => window.seenAt !== null")
    seen = page.evaluate("() => window.seenAt") / MS_PER_S
    events = server.get(f"/api/v1/jobs/{job}/events").json()["events"]
    at = next(each["at"] for each in events if each["state"] == "running")
    return Seen(seen - began, seen - datetime.fromisoformat(at).timestamp())
