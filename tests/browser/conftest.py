"""One demo and one browser for all tests of pages.

Debian has the browser: ``apt-get install chromium``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack
from functools import partial
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from tests.browser.looking import Looker, looking
from tests.integration.running import Running, running
from tests.missing import skip_or_fail
from tests.servers.browser import chromium
from tests.servers.missing import MissingError

expect.set_options(timeout=20_000)  # ms: how fast pages are is measured elsewhere, and machines of tests are busy

Look = Callable[..., AbstractContextManager[Looker]]
"""`looking` at the demo: takes a role, and what `looking` takes by name."""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Have a browser; it goes with its file, for beside it no other test of this process can have an event loop."""
    with ExitStack() as stack:
        try:
            browser = stack.enter_context(chromium())
        except MissingError as missing:
            skip_or_fail(missing)
        yield browser


@pytest.fixture(scope="session")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """Have a server with three simulated clusters."""
    folder: Path = tmp_path_factory.mktemp("demo")
    with running(folder) as server:
        yield server


@pytest.fixture(scope="session")
def tokens(demo: Running) -> dict[str, str]:
    """Have a token for each role."""
    made = {"": "", "admin": demo.client.headers["authorization"].removeprefix("Bearer ")}
    for role in ("viewer", "user", "operator"):
        body = {"name": f"a-{role}", "role": role, "tenant": "" if role == "operator" else "default"}
        answer = demo.client.post("/api/v1/tokens", json=body)
        assert answer.status_code == 201, answer.text
        made[role] = answer.json()["secret"]
    return made


@pytest.fixture
def look(browser: Browser, demo: Running, tokens: dict[str, str]) -> Look:
    """Let a user of a role look at the demo's pages; a role of nothing is not logged in."""
    url = str(demo.client.base_url).rstrip("/")

    def as_role(role: str = "admin", **more: object) -> AbstractContextManager[Looker]:
        return partial(looking, browser, url, tokens[role])(**more)  # type: ignore[arg-type]  # as it takes them

    return as_role
