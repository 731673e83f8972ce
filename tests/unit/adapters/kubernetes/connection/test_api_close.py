"""Closing the connection to an API server while a request is about to begin."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from seaway.adapters.kubernetes.connection.api import Api
from seaway.adapters.kubernetes.connection.credentials import Credentials, Identity
from seaway.adapters.kubernetes.connection.event_loop import EventLoopThread
from seaway.domain.errors import UnavailableError
from tests.fakes.kubernetes import ApiServer

WAIT_S = 5.0


class Slow(Credentials):
    """Credentials that load when a test allows it."""

    def __init__(self, file: Path) -> None:
        super().__init__(file, "alpha")
        self.asked, self.reported, self.loads = threading.Event(), threading.Event(), 0

    def load(self) -> Identity:
        """Count the load."""
        self.loads += 1
        return super().load()

    def authorization(self) -> str:
        """Wait."""
        self.asked.set()
        self.reported.wait(WAIT_S)
        return super().authorization()


@pytest.fixture
def reactor() -> Iterator[EventLoopThread]:
    """Create an event loop."""
    made = EventLoopThread()
    yield made
    made.close()


@pytest.fixture
def credentials(tmp_path: Path) -> Iterator[Slow]:
    """Run a server, with slow credentials for it."""
    with ApiServer("alpha", controllers=()) as server:
        yield Slow(server.kubeconfig(tmp_path / "alpha"))


async def made(credentials: Credentials) -> Api:
    """Create it on its event loop."""
    await asyncio.sleep(0)
    return Api("alpha", credentials)


def test_who_was_about_to_ask_is_reported_that_no_one_answers(reactor: EventLoopThread, credentials: Slow) -> None:
    """A call between two steps when everything is closed is unavailable, and may be retried elsewhere."""
    api = reactor.run(made(credentials), WAIT_S)
    call = reactor.submit(api.get("/api/v1/nodes"))
    assert credentials.asked.wait(WAIT_S)
    reactor.run(api.close(), WAIT_S)
    credentials.reported.set()
    with pytest.raises(UnavailableError, match=r"alpha: cannot be reached"):
        call.result(WAIT_S)


def test_who_requests_afterwards_gets_no_connection(reactor: EventLoopThread, credentials: Slow) -> None:
    """No connection is opened after the close."""
    credentials.reported.set()
    api = reactor.run(made(credentials), WAIT_S)
    reactor.run(api.get("/api/v1/nodes"), WAIT_S)
    reactor.run(api.close(), WAIT_S)
    with pytest.raises(UnavailableError, match="alpha is not watched any more"):
        reactor.run(api.get("/api/v1/nodes"), WAIT_S)
    assert credentials.loads == 1


def test_who_reads_on_is_reported_that_nothing_comes_any_more(reactor: EventLoopThread, credentials: Slow) -> None:
    """A watch on closed connections ends, also with replaced credentials."""
    credentials.reported.set()
    api = reactor.run(made(credentials), WAIT_S)

    async def follow(opened: asyncio.Event) -> None:
        async with api.stream("/api/v1/nodes", {"watch": "true"}, idle_timeout_s=60) as lines:
            opened.set()
            async for _ in lines:
                pass

    async def close_meanwhile() -> None:
        opened = asyncio.Event()
        reading = asyncio.create_task(follow(opened))
        await opened.wait()
        await api.close()
        with pytest.raises(UnavailableError, match=r"alpha: cannot be reached.*its connections are closed"):
            await asyncio.wait_for(reading, WAIT_S)

    reactor.run(close_meanwhile(), 2 * WAIT_S)
