"""Waiting work, off the event loop: a few threads read, others wait for the writer, or work on what takes long."""

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
"""Threads for admission checks that take long, one after the other."""

HEAVY = 2
"""Concurrent responses that take long, such as the objects of thousands of replicas."""

IN_LINE = 14
"""Maximum number of them that are queued; further requests have to retry later."""

RETRY_AFTER_S = 2


class Threads:
    """Runs what waits in threads, each kind apart, so that none holds up the other."""

    def __init__(self) -> None:
        self._readers = CapacityLimiter(READERS)
        self._writers = CapacityLimiter(WRITERS)
        self._limiter = CapacityLimiter(MAX_THREADS)
        self._heavy = CapacityLimiter(HEAVY)
        self.heavy_ahead = 0
        """Number of are answered or wait."""

    async def read(
        self, work: Callable[Arguments, Result], *args: Arguments.args, **kwargs: Arguments.kwargs
    ) -> Result:
        """Run something that reads."""
        return await to_thread.run_sync(partial(work, *args, **kwargs), limiter=self._readers)

    async def write(
        self, work: Callable[Arguments, Result], *args: Arguments.args, **kwargs: Arguments.kwargs
    ) -> Result:
        """Run something that waits for the writer."""
        return await to_thread.run_sync(partial(work, *args, **kwargs), limiter=self._writers)

    async def admit(
        self, work: Callable[Arguments, Result], *args: Arguments.args, **kwargs: Arguments.kwargs
    ) -> Result:
        """Run something that thinks about whether a job may pass."""
        return await to_thread.run_sync(partial(work, *args, **kwargs), limiter=self._limiter)

    async def heavy(
        self, work: Callable[Arguments, Result], *args: Arguments.args, **kwargs: Arguments.kwargs
    ) -> Result:
        """Run something that takes long.

        Raises
        ------
        UnavailableError
            When too much of it waits already.
        """
        if self.heavy_ahead >= HEAVY + IN_LINE:
            raise UnavailableError("too many slow requests; try again soon", retry_after_s=RETRY_AFTER_S)
        self.heavy_ahead += 1
        try:
            return await to_thread.run_sync(partial(work, *args, **kwargs), limiter=self._heavy)
        finally:
            self.heavy_ahead -= 1
