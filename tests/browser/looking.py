"""Views of a real server's pages in a real browser."""

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
"""Folder of a run's screenshots."""

SERIOUS = frozenset({"serious", "critical"})
"""Impacts that count among the findings of the accessibility check."""

LANDMARKS = ("landmark-", "region")
"""Prefixes of rules that count with any impact: screen readers navigate by landmarks."""


@dataclass
class Looker:
    """A user with a browser.

    Attributes
    ----------
    url
        URL of the server.
    context
        Browser context with the cookies.
    wrong
        Errors of the browser, and requests to other hosts.
    """

    url: str
    context: BrowserContext
    wrong: list[str] = field(default_factory=list)

    def open(self, path: str) -> Page:
        """Open a page in a new tab, and wait until it is live."""
        page = self.context.new_page()
        page.on("console", self._said)
        page.on("pageerror", lambda error: self.wrong.append(f"error: {error}"))
        page.on("request", self._asked)
        self.go(page, path)
        return page

    def go(self, page: Page, path: str) -> None:
        """Go to a page of the server, and wait until it is live."""
        page.goto(self.url + path)
        self.settled(page)

    def settled(self, page: Page) -> None:
        """Wait until a page is loaded and, if it has one, its connection to the server is open."""
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
    zone: str = "UTC",
) -> Iterator[Looker]:
    """Yield a user who is logged in by a token; at the end there may be no errors."""
    context = browser.new_context(
        viewport={"width": size[0], "height": size[1]},
        color_scheme=theme,
        locale=language,
        timezone_id=zone,
        reduced_motion="reduce",
    )
    context.set_default_timeout(60_000)
    if token:
        context.add_cookies([{"name": cookies.TOKEN, "value": token, "url": url}])
    looker = Looker(url, context)
    try:
        yield looker
    finally:
        context.close()
    assert looker.wrong == []


def keep_screen(page: Page, name: str) -> None:
    """Save a screenshot of a whole page."""
    SCREENS.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=SCREENS / f"{re.sub(r'[^a-z0-9-]+', '-', name.lower()).strip('-')}.png", full_page=True)


def hindrances(page: Page) -> list[str]:
    """Return the accessibility findings of a page: labels, contrast, roles, landmarks."""
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
    """Return the parts of a page that are wider than their place: the page, or a table that scrolls.

    On a phone a table may scroll if its edge shows that it continues.
    """
    found: list[str] = page.evaluate(SIDEWAYS)
    return found


SPILLED = """() => {
    const OWN = '.hidden-label, .visually-hidden, svg, canvas, .q-field, .cm-editor, .xterm, .q-tabs, .q-notifications';
    const found = new Set(), styles = new Map();
    const style = each => styles.get(each) ?? styles.set(each, getComputedStyle(each)).get(each);
    const name = each => `${each.localName}.${[...each.classList].join('.')} (${each.textContent.trim().slice(0, 40)})`;
    const isCard = each => parseFloat(style(each).borderLeftWidth) && parseFloat(style(each).borderRightWidth);
    for (const each of document.querySelectorAll('.frame *, .q-dialog *')) {
        const box = each.getBoundingClientRect();
        if (!box.width || !box.height || each.closest(OWN) || style(each).visibility !== 'visible') continue;
        for (let above = each.parentElement; above && above !== document.body; above = above.parentElement) {
            if (style(above).overflowX !== 'visible') break;
            const edges = above.getBoundingClientRect();
            if (isCard(above) && (box.right > edges.right + 1 || box.left < edges.left - 1)) {
                found.add(`${name(each)} is wider than ${name(above)}`);
            }
        }
        const hides = side => /hidden|clip/.test(style(each)[`overflow${side}`]);
        const clipped = (hides('X') && each.scrollWidth > each.clientWidth + 1)
            || (hides('Y') && each.scrollHeight > each.clientHeight + 2);
        if (clipped && each.clientWidth && each.textContent.trim() && !each.closest('[title], [data-tip]')) {
            found.add(`${name(each)} is clipped`);
        }
        if (each.matches('.tab, .sections a, .act') && box.height > 48) found.add(`${name(each)} has several lines`);
        for (const text of each.childNodes) {
            const letters = text.nodeType === Node.TEXT_NODE ? text.data.trim() : '';
            if (letters.length < 2 || style(each).writingMode !== 'horizontal-tb') continue;
            const range = document.createRange();
            range.selectNodeContents(text);
            const parts = [...range.getClientRects()].filter(part => part.width);
            const lines = new Set(parts.map(part => Math.round(part.top))).size;
            const fewest = /[\u4e00-\u9fff]/.test(letters) ? 2 : 3;
            if (lines > 1 && letters.length < fewest * lines) found.add(`${name(each)} has ${lines} lines of letters`);
        }
    }
    return [...found];
}"""


def spilled(page: Page) -> list[str]:
    """Return elements that are wider than their card, text that is clipped without a tooltip, and folded tabs.

    It also returns text with hardly more than one letter per line.
    """
    found: list[str] = page.evaluate(SPILLED)
    return found


ENGLISH = r"""() => {
    const OWN = 'code, pre, script, style, .log, .cm-editor, .xterm, .q-icon';
    const found = new Set();
    const check = (text, where) => {
        if (!/(?:[A-Za-z][a-z']+[ ,;:]+){2,}[A-Za-z][a-z']+/.test(text)) return;
        found.add(`${where}: ${text.trim().slice(0, 80)}`);
    };
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) {
        const above = walker.currentNode.parentElement;
        if (!above.closest(OWN)) check(walker.currentNode.data, `${above.localName}.${above.className}`);
    }
    for (const each of document.querySelectorAll('[title], [aria-label], [data-tip]')) {
        for (const name of ['title', 'aria-label', 'data-tip']) {
            if (each.closest(OWN)) continue;
            check(each.getAttribute(name) ?? '', `${name} of ${each.localName}.${each.className}`);
        }
    }
    return [...found];
}"""


def english(page: Page) -> list[str]:
    """Return texts and tooltips of a page with three English words in a row, besides code and logs."""
    found: list[str] = page.evaluate(ENGLISH)
    return found
