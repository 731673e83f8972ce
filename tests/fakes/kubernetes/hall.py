"""The thread that all servers of a process share, with one event loop."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Sequence
from typing import TypeVar

import uvloop

T = TypeVar("T")
Follow = Callable[[Callable[[object], None]], Callable[[], None]]


class Hall:
    """An event loop on its own thread, which runs while at least one user holds it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._holders = 0
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        """The loop, while it is held."""
        assert self._loop is not None
        return self._loop

    def hold(self) -> None:
        """Register a user; start the thread if necessary."""
        with self._lock:
            self._holders += 1
            if self._thread is None:
                self._loop = uvloop.new_event_loop()
                self._thread = threading.Thread(target=self._loop.run_forever, name="kubernetes", daemon=True)
                self._thread.start()

    def release(self) -> None:
        """Unregister a user; end the thread with the last one."""
        with self._lock:
            self._holders -= 1
            if self._holders or self._thread is None or self._loop is None:
                return
            asyncio.run_coroutine_threadsafe(_end_tasks(), self._loop).result()
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            self._loop.close()
            self._loop = self._thread = None

    def run(self, work: Coroutine[object, object, T]) -> T:
        """Await a coroutine on the thread and return its result."""
        return asyncio.run_coroutine_threadsafe(work, self.loop).result()

    def call(self, work: Callable[[], T]) -> T:
        """Call a function on the thread and return its result."""
        if threading.current_thread() is self._thread:
            return work()

        async def carry_out() -> T:
            return work()

        return self.run(carry_out())


async def with_template_traits(idle: Callable[[], bool]) -> None:
    """Wait until no immediate work is left."""
    while not idle():
        await asyncio.sleep(0)


async def met(condition: Callable[[], bool], follow: Sequence[Follow], seconds: float) -> bool:
    """Wait until a condition is met, and check it after every change; report whether it was in time."""
    changed = asyncio.Event()
    ends = [one(lambda _: changed.set()) for one in follow]
    try:
        async with asyncio.timeout(seconds):
            while not condition():
                await changed.wait()
                changed.clear()
    except TimeoutError:
        return condition()
    else:
        return True
    finally:
        for end in ends:
            end()


async def _end_tasks() -> None:
    others = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)
    await asyncio.get_running_loop().shutdown_asyncgens()


HALL = Hall()
