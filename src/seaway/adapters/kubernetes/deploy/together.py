"""Doing much at the same time, without taking every turn from others."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable


async def together(works: Iterable[Callable[[], Awaitable[None]]], most: int) -> None:
    """Do works, so many at the same time; once one has failed no other is begun.

    Parameters
    ----------
    works
        Each called when its turn comes.
    most
        At the same time.

    Raises
    ------
    Exception
        Of the first that failed, when those under way have ended.
    """
    free = asyncio.Semaphore(most)
    failed: list[Exception] = []

    async def do(work: Callable[[], Awaitable[None]]) -> None:
        async with free:
            if failed:
                return
            try:
                await work()
            except Exception as error:  # noqa: BLE001  # it is raised below
                failed.append(error)

    await asyncio.gather(*(do(each) for each in works))
    if failed:
        raise failed[0]
