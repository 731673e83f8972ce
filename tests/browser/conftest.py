"""One demo and one browser for all tests of pages.

Debian has the browser: ``apt-get install chromium-headless-shell``.
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

expect.set_options(timeout=60_000)  # ms: the speed of pages is measured elsewhere, and test machines are busy

Look = Callable[..., AbstractContextManager[Looker]]
"""`looking` at the demo: accepts a role, and the keyword arguments of `looking`."""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Run a browser; it ends with its file, because other tests of this process cannot have an event loop beside it."""
    with ExitStack() as stack:
        try:
            browser = stack.enter_context(chromium())
        except MissingError as missing:
            skip_or_fail(missing)
        yield browser


@pytest.fixture(scope="session")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """Run a server with three simulated clusters. It may send messages to this machine."""
    folder: Path = tmp_path_factory.mktemp("demo")
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("SEAWAY_NOTIFICATIONS_ALLOWED_HOSTS", "127.0.0.0/8")
        with running(folder) as server:
            yield server


@pytest.fixture(scope="session")
def tokens(demo: Running) -> dict[str, str]:
    """Return a token for each role."""
    made = {"": "", "admin": demo.client.headers["authorization"].removeprefix("Bearer ")}
    for role in ("viewer", "user", "operator"):
        body = {"name": f"a-{role}", "role": role, "tenant": "" if role == "operator" else "default"}
        answer = demo.client.post("/api/v1/tokens", json=body)
        assert answer.status_code == 201, answer.text
        made[role] = answer.json()["secret"]
    return made


@pytest.fixture
def look(browser: Browser, demo: Running, tokens: dict[str, str]) -> Look:
    """Return a function that opens the demo's pages for a role; an empty role is not logged in."""
    url = str(demo.client.base_url).rstrip("/")

    def as_role(role: str = "admin", **more: object) -> AbstractContextManager[Looker]:
        return partial(looking, browser, url, tokens[role])(**more)  # type: ignore[arg-type]  # as it takes them

    return as_role
