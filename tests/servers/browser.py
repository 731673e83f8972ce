"""A real headless browser.

Debian's package: ``apt-get install chromium-headless-shell``. Debian's whole ``chromium`` also works, at twice the CPU
time. Playwright, a development dependency, drives it.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from tests.servers.missing import MissingError

if TYPE_CHECKING:
    from playwright.sync_api import Browser

NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")

FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
"""Flags that stop the browser's own network requests."""


@contextmanager
def chromium() -> Iterator[Browser]:
    """Run a browser; while it runs, this thread cannot run an event loop.

    Raises
    ------
    MissingError
        If this machine has no browser.
    """
    found = next(filter(None, map(shutil.which, NAMES)), None)
    if not found:
        raise MissingError("there is no Chromium here: apt-get install chromium-headless-shell")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=FLAGS)
        try:
            yield browser
        finally:
            browser.close()
