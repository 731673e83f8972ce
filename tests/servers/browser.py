"""A real browser without a screen, to look at pages with.

Debian has it: ``apt-get install chromium``. Playwright drives it, which comes with the tools for development.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from tests.servers.missing import MissingError

if TYPE_CHECKING:
    from playwright.sync_api import Browser

NAMES = ("chromium", "chromium-browser", "google-chrome")

FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
"""With these the browser asks no one for anything by itself."""


@contextmanager
def chromium() -> Iterator[Browser]:
    """Have a browser run; meanwhile no event loop can be run by this thread.

    Raises
    ------
    MissingError
        When this machine has none.
    """
    found = next(filter(None, map(shutil.which, NAMES)), None)
    if not found:
        raise MissingError("there is no Chromium here: apt-get install chromium")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=FLAGS)
        try:
            yield browser
        finally:
            browser.close()
