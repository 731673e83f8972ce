"""A real browser looks at the pages of a real server."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, Request

from seaway.web import cookies

Theme = Literal["light", "dark"]
WIDE = (1440, 900)
NARROW = (390, 844)

SCREENS = Path(os.environ.get("SEAWAY_TEST_SCREENS", "build/screens"))
"""Where screenshots of a run are kept."""

SERIOUS = frozenset({"serious", "critical"})
"""What counts of what the check of accessibility finds, by how much it hinders."""

LANDMARKS = ("landmark-", "region")
"""How rules begin that count, too, however little that hinders: by landmarks readers of screens find their way."""


@dataclass
class Looker:
    """A user at a browser.

    Attributes
    ----------
    url
        Where the server is.
    context
        His window, with his cookies.
    wrong
        What the browser had to complain of, and what was asked of other hosts.
    """

    url: str
    context: BrowserContext
    wrong: list[str] = field(default_factory=list)

    def open(self, path: str) -> Page:
        """Open a page in a new tab, and wait until it lives."""
        page = self.context.new_page()
        page.on("console", self._said)
        page.on("pageerror", lambda error: self.wrong.append(f"error: {error}"))
        page.on("request", self._asked)
        self.go(page, path)
        return page

    def go(self, page: Page, path: str) -> None:
        """Go to a page of the server, and wait until it lives."""
        page.goto(self.url + path)
        self.settled(page)

    def settled(self, page: Page) -> None:
        """Wait until a page is loaded and, if it is to have one, has its connection to the server."""
        page.wait_for_load_state()
        page.wait_for_function("() => window.did_handshake === true || !window.socket")

    def _said(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self.wrong.append(f"{message.type}: {message.text}")

    def _asked(self, request: Request) -> None:
        if not request.url.startswith((self.url, "data:", "blob:")):
            self.wrong.append(f"asked elsewhere: {request.url}")


@contextmanager
def looking(
    browser: Browser,
    url: str,
    token: str = "",
    *,
    theme: Theme = "light",
    size: tuple[int, int] = WIDE,
    language: str = "en",
) -> Iterator[Looker]:
    """Have a user look, logged in by a token; at the end nothing may have been wrong."""
    context = browser.new_context(
        viewport={"width": size[0], "height": size[1]}, color_scheme=theme, locale=language, reduced_motion="reduce"
    )
    context.set_default_timeout(30_000)
    if token:
        context.add_cookies([{"name": cookies.TOKEN, "value": token, "url": url}])
    looker = Looker(url, context)
    try:
        yield looker
    finally:
        context.close()
    assert looker.wrong == []


def keep_screen(page: Page, name: str) -> None:
    """Keep a picture of all of a page."""
    SCREENS.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=SCREENS / f"{re.sub(r'[^a-z0-9-]+', '-', name.lower()).strip('-')}.png", full_page=True)


def hindrances(page: Page) -> list[str]:
    """Return what keeps people who see or move otherwise from using a page: labels, contrast, roles, landmarks."""
    found = [
        each
        for each in Axe().run(page).response["violations"]
        if each["impact"] in SERIOUS or each["id"].startswith(LANDMARKS)
    ]
    return [f"{each['id']}: {node['html']}" for each in found for node in each["nodes"]]


SIDEWAYS = """() => {
    const cut = [];
    const page = document.documentElement;
    if (page.scrollWidth > window.innerWidth) cut.push(`the page: ${page.scrollWidth} in ${window.innerWidth}`);
    for (const each of document.querySelectorAll('.scroll')) {
        if (each.scrollWidth <= each.clientWidth + 1) continue;
        const hinted = window.innerWidth <= 640 && getComputedStyle(each).backgroundAttachment.includes('local');
        const said = each.querySelector('caption, th')?.textContent.trim();
        if (!hinted) cut.push(`${each.parentElement.className} (${said}): ${each.scrollWidth} in ${each.clientWidth}`);
    }
    return cut;
}"""


def hidden_sideways(page: Page) -> list[str]:
    """Return what of a page is wider than its place: all of it, or a table that scrolls.

    On a phone a table may scroll, where its edge shows that there is more of it.
    """
    found: list[str] = page.evaluate(SIDEWAYS)
    return found
