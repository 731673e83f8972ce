"""Waiting work, off the event loop: a few threads read, others wait for the writer."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import ParamSpec, TypeVar

from anyio import CapacityLimiter, to_thread

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")

READERS = 8
WRITERS = 64
"""They only wait, and what waits together is stored together."""


class Threads:
    """Runs what waits in threads, readers and writers apart, so that none holds up the other."""

    def __init__(self) -> None:
        self._readers = CapacityLimiter(READERS)
        self._writers = CapacityLimiter(WRITERS)

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
