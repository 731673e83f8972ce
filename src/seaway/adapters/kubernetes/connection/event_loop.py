"""One event loop, in a thread of its own, for all that is said to and heard from clusters."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from contextlib import suppress
from typing import Any, TypeVar

import uvloop

from seaway.domain.errors import UnavailableError

log = logging.getLogger(__name__)

Result = TypeVar("Result")

CLOSE_S = 5.0


class EventLoopThread:
    """Runs coroutines for threads that wait for them, or that do not."""

    def __init__(self) -> None:
        self._loop = uvloop.new_event_loop()
        self._end = asyncio.Event()
        self._thread = threading.Thread(target=self._run, name="kubernetes", daemon=True)
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, Result], timeout_s: float) -> Result:
        """Run something and wait for it.

        Raises
        ------
        UnavailableError
            When it takes longer than `timeout_s`; it is cancelled.
        """
        future = self.submit(work)
        try:
            return future.result(timeout_s)
        except TimeoutError:
            future.cancel()
            raise UnavailableError(f"nothing was answered within {timeout_s:g} s") from None

    def submit(self, work: Coroutine[Any, Any, Result]) -> Future[Result]:
        """Have something run; cancelling the future ends it.

        Raises
        ------
        UnavailableError
            When the reactor was closed.
        """
        if self._loop.is_closed() or not self._thread.is_alive():
            work.close()
            raise UnavailableError("shutting down")
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def run_forever(self, name: str, work: Coroutine[Any, Any, None]) -> Future[None]:
        """Have something run that follows `name` until it is cancelled; it is logged if a mistake of ours ends it."""

        def ended(following: Future[None]) -> None:
            if not following.cancelled() and (error := following.exception()):
                log.error("%s is not followed any more", name, exc_info=error)

        following = self.submit(work)
        following.add_done_callback(ended)
        return following

    def call_later(self, seconds: float, call: Callable[[], None]) -> None:
        """Have something called on the event loop after so many seconds; this may be called by any thread.

        Once the reactor is closed nothing is called any more.
        """
        with suppress(RuntimeError):  # what it raises when the loop is closed, perhaps right now
            self._loop.call_soon_threadsafe(self._loop.call_later, seconds, call)

    def close(self) -> None:
        """End everything that runs."""
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._end.set)
            self._thread.join(CLOSE_S)

    def _run(self) -> None:
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            runner.run(self._end.wait())


def in_thread(work: Callable[[], Result]) -> Future[Result]:
    """Begin something in a thread of its own, which keeps neither the process from ending nor others from theirs."""
    future: Future[Result] = Future()

    def run() -> None:
        if not future.set_running_or_notify_cancel():
            return
        try:
            result = work()
        except BaseException as error:  # noqa: BLE001  # whatever it is, whoever waits has to hear of it
            future.set_exception(error)
        else:
            future.set_result(result)

    threading.Thread(target=run, name="credentials", daemon=True).start()
    return future
