"""Concurrent calls with a limit."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from seaway.adapters.kubernetes.deploy.writing import run_concurrently
from seaway.domain.errors import UnavailableError


def test_no_more_are_done_at_once_than_may_be() -> None:
    """Other callers of the same server need capacity, too."""
    running, most = 0, 0

    async def work() -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0)
        running -= 1

    asyncio.run(run_concurrently([work] * 10, 3))
    assert (running, most) == (0, 3)


def test_after_one_failed_none_is_begun() -> None:
    """Calls in progress are awaited: none continues after the caller gets the failure."""
    begun: list[int] = []
    ended: list[int] = []

    def work(number: int) -> Callable[[], Awaitable[None]]:
        async def do() -> None:
            begun.append(number)
            await asyncio.sleep(0)
            if number == 0:
                raise UnavailableError("it does not answer")
            await asyncio.sleep(0)
            ended.append(number)

        return do

    with pytest.raises(UnavailableError, match="does not answer"):
        asyncio.run(run_concurrently([work(number) for number in range(10)], 3))
    assert (begun, ended) == ([0, 1, 2], [1, 2])
