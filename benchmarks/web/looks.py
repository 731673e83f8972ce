"""A browser that takes the time."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from statistics import median
from typing import Any

from playwright.sync_api import Page

from benchmarks.api.server import Served
from benchmarks.record import SkippedError
from seaway.testing.browser import chromium
from seaway.testing.missing import MissingError
from seaway.web.cookies import TOKEN

WARM = 2
TIMES = 7

PAINTED = """() => {
    const shown = performance.getEntriesByName('first-contentful-paint')[0];
    return shown ? shown.startTime : null;
}"""
"""When something was seen first, ms after the page was asked for."""


@contextmanager
def browser_page(server: Served) -> Iterator[Page]:
    """Have a page of a browser that is logged in."""
    with ExitStack() as stack:
        try:
            browser = stack.enter_context(chromium())
        except MissingError as missing:
            raise SkippedError(str(missing)) from None
        context = browser.new_context(viewport={"width": 1440, "height": 900}, reduced_motion="reduce")
        context.add_cookies([{"name": TOKEN, "value": server.token, "url": server.url}])
        yield context.new_page()


def rendered(page: Page, server: Served, path: str, shows: str) -> dict[str, Any]:
    """Load a page again and again; return the medians of when it was painted, and when what it is about was there."""
    painted, there = [], []
    for number in range(WARM + TIMES):
        began = time.perf_counter()
        page.goto(server.url + path, wait_until="commit")
        page.locator(shows).first.wait_for()
        took = time.perf_counter() - began
        if number >= WARM:
            there.append(took)
            page.wait_for_function(PAINTED)
            painted.append(page.evaluate(PAINTED) / 1000)
    return {"page": path, "first paint s": round(median(painted), 3), "content s": round(median(there), 3)}


def until_seen(page: Page, figure: str, change: Any) -> float:  # noqa: ANN401  # anything that can be called
    """Return how long after a change a figure of the page shows another text, seconds."""
    locator = page.locator(figure)
    before = locator.inner_text()
    change()
    began = time.perf_counter()
    page.wait_for_function(
        "([selector, before]) => document.querySelector(selector).innerText !== before",
        arg=[figure, before],
        polling=20,
    )
    return time.perf_counter() - began
