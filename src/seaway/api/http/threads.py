"""Thread pools for blocking work: reads, writes, admission checks and slow responses."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import ParamSpec, TypeVar

from anyio import CapacityLimiter, to_thread

from seaway.domain.errors import UnavailableError

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")

READERS = 8
WRITERS = 64
"""Threads that wait for the writer, which stores concurrent changes together."""

MAX_THREADS = 4
"""Threads for long admission checks."""

HEAVY = 2
"""Concurrent slow responses, such as the objects of thousands of replicas."""

IN_LINE = 14
"""Maximum number of queued slow responses; further requests are rejected and must retry."""

RETRY_AFTER_S = 2


class Threads:
    """Separate thread pools, so that one kind of work does not block another."""

    def __init__(self) -> None:
        self._readers = CapacityLimiter(READERS)
        self._writers = CapacityLimiter(WRITERS)
        self._limiter = CapacityLimiter(MAX_THREADS)
        self._heavy = CapacityLimiter(HEAVY)
        self.heavy_ahead = 0
        """Number of slow responses in progress or queued."""

    async def read(
        self, work: Callable[Arguments, Result], *args: Arguments.args, **kwargs: Arguments.kwargs
    ) -> Result:
        """Run a read."""
        return await to_thread.run_sync(partial(work, *args, **kwargs), limiter=self._readers)

    async def write(
        self, work: Callable[Arguments, Result], *args: Arguments.args, **kwargs: Arguments.kwargs
    ) -> Result:
        """Run a write, which waits for the writer."""
        return await to_thread.run_sync(partial(work, *args, **kwargs), limiter=self._writers)

    async def admit(
        self, work: Callable[Arguments, Result], *args: Arguments.args, **kwargs: Arguments.kwargs
    ) -> Result:
        """Run a long admission check."""
        return await to_thread.run_sync(partial(work, *args, **kwargs), limiter=self._limiter)

    async def heavy(
        self, work: Callable[Arguments, Result], *args: Arguments.args, **kwargs: Arguments.kwargs
    ) -> Result:
        """Run a slow request.

        Raises
        ------
        UnavailableError
            If too many slow requests are queued.
        """
        if self.heavy_ahead >= HEAVY + IN_LINE:
            raise UnavailableError("too many slow requests; try again soon", retry_after_s=RETRY_AFTER_S)
        self.heavy_ahead += 1
        try:
            return await to_thread.run_sync(partial(work, *args, **kwargs), limiter=self._heavy)
        finally:
            self.heavy_ahead -= 1
