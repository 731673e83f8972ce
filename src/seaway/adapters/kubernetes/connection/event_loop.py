"""Event loop in a separate thread, for all communication with clusters."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from contextlib import suppress
from typing import Any, TypeVar

import uvloop

from seaway.domain.errors import SeawayError, UnavailableError

log = logging.getLogger(__name__)

Result = TypeVar("Result")

CLOSE_S = 5.0


class EventLoopThread:
    """Event loop that runs coroutines for other threads."""

    def __init__(self) -> None:
        self._loop = uvloop.new_event_loop()
        self._end = asyncio.Event()
        self._thread = threading.Thread(target=self._run, name="kubernetes", daemon=True)
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, Result], timeout_s: float) -> Result:
        """Run a coroutine and wait for its result.

        Raises
        ------
        UnavailableError
            When the coroutine takes longer than `timeout_s`. It is then cancelled.
        """
        future = self.submit(work)
        try:
            return future.result(timeout_s)
        except TimeoutError:
            future.cancel()
            raise UnavailableError(f"nothing was answered within {timeout_s:g} s") from None
        finally:
            del future  # which holds an error whose frame holds the future

    def submit(self, work: Coroutine[Any, Any, Result]) -> Future[Result]:
        """Start a coroutine. Cancel the future to end it.

        Raises
        ------
        UnavailableError
            When the event loop is closed.
        """
        if self._loop.is_closed() or not self._thread.is_alive():
            work.close()
            raise UnavailableError("shutting down")
        return asyncio.run_coroutine_threadsafe(_without_frames(work), self._loop)

    def run_forever(self, name: str, work: Coroutine[Any, Any, None]) -> Future[None]:
        """Run a coroutine that follows `name` until it is cancelled; log an unexpected error that ends it."""

        def ended(following: Future[None]) -> None:
            if not following.cancelled() and (error := following.exception()):
                log.error("%s is not watched any more", name, exc_info=error)

        following = self.submit(work)
        following.add_done_callback(ended)
        return following

    def call_later(self, seconds: float, call: Callable[[], None]) -> None:
        """Schedule a call on the event loop after a delay. Any thread may call it.

        Calls are dropped after the event loop is closed.
        """
        with suppress(RuntimeError):  # raised when the loop is closed
            self._loop.call_soon_threadsafe(self._loop.call_later, seconds, call)

    def close(self) -> None:
        """Stop all coroutines and the thread."""
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._end.set)
            self._thread.join(CLOSE_S)

    def _run(self) -> None:
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            runner.run(self._end.wait())


async def _without_frames(work: Coroutine[Any, Any, Result]) -> Result:
    """Run a coroutine, and drop the frames of its error.

    They refer to timeouts, which refer to the task that holds the error. Such cycles stay for long, see `tuned_gc`.
    """
    try:
        return await work
    except SeawayError as error:
        error.__context__ = error.__cause__ = None
        raise error.with_traceback(None) from None


def in_thread(work: Callable[[], Result]) -> Future[Result]:
    """Run a function in its own daemon thread, which does not prevent the process from exiting."""
    future: Future[Result] = Future()

    def run() -> None:
        if not future.set_running_or_notify_cancel():
            return
        try:
            result = work()
        except BaseException as error:  # noqa: BLE001  # the future passes it to the caller
            future.set_exception(error)
        else:
            future.set_result(result)

    threading.Thread(target=run, name="credentials", daemon=True).start()
    return future
