"""The event loop of all clusters, used from other threads."""

from __future__ import annotations

import asyncio
import gc
import threading
import time
import weakref
from collections.abc import Iterator
from contextlib import suppress

import pytest

from seaway.adapters.kubernetes.connection.event_loop import EventLoopThread
from seaway.domain.errors import UnavailableError

WAIT_S = 5.0


@pytest.fixture
def reactor() -> Iterator[EventLoopThread]:
    """Create an idle one."""
    made = EventLoopThread()
    yield made
    made.close()


def test_any_thread_may_have_something_called_later(reactor: EventLoopThread) -> None:
    """The call runs on the event loop, and wakes it."""
    called, where = threading.Event(), list[str]()

    def call() -> None:
        where.append(threading.current_thread().name)
        called.set()

    reactor.run(asleep(), WAIT_S)
    reactor.call_later(0.01, call)
    assert called.wait(WAIT_S)
    assert where == ["kubernetes"]


def test_nothing_is_called_by_a_reactor_that_is_closed(reactor: EventLoopThread) -> None:
    """A caller at the end of the process gets no error; new work is rejected."""
    called: list[int] = []
    reactor.close()
    reactor.call_later(0, lambda: called.append(1))
    with pytest.raises(UnavailableError, match="shutting down"):
        reactor.submit(asleep())
    assert not called


def test_errors_keep_nothing_alive(reactor: EventLoopThread) -> None:
    """Objects of a coroutine that failed are freed without garbage collection, also those of its time-outs."""

    class Body:
        pass

    async def fail(_: Body) -> None:
        try:
            async with asyncio.timeout(0):
                await asyncio.sleep(WAIT_S)
        except TimeoutError as error:
            raise UnavailableError("late") from error

    gc.disable()
    try:
        body = Body()
        held = weakref.ref(body)
        with suppress(UnavailableError):
            reactor.run(fail(body), WAIT_S)
        del body
        give_up_s = time.monotonic() + WAIT_S
        while held() and time.monotonic() < give_up_s:  # the event loop ends what it did
            time.sleep(0.001)
        assert held() is None
    finally:
        gc.enable()


async def asleep() -> None:
    """Do nothing."""
