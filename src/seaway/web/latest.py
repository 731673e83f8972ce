"""Choices in quick succession: a page shows only the latest one, in whatever order the answers arrive."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeVar

from nicegui import ui

from seaway.domain.errors import SeawayError
from seaway.web.query_cache import EVERY_S

if TYPE_CHECKING:
    from seaway.client.call import Call
    from seaway.web.visit import Visit

T = TypeVar("T")

AGAIN_S = 5.0
"""Delay before a retry after an error, in seconds."""


class Turn:
    """One choice and the calls that it follows."""

    def __init__(self, visit: Visit) -> None:
        self._visit = visit
        self._ended = False
        self._stops: list[Callable[[], None]] = []

    def counts(self) -> bool:
        """Report whether this is still the latest choice."""
        return not self._ended

    async def follow(
        self, call: Call[T], callback: Callable[[T], Awaitable[None] | None], interval_s: float = EVERY_S
    ) -> bool:
        """Follow a call like `Visit.follow` while this is the latest choice; return whether it still is.

        Raises
        ------
        SeawayError
            When the first answer is an error and this is still the latest choice.
        """

        def receive(value: T) -> Awaitable[None] | None:
            return callback(value) if self.counts() else None

        if not self.counts():
            return False
        try:
            stop = await self._visit.follow(call, receive, interval_s)
        except SeawayError:
            if self.counts():
                raise
            return False
        if self.counts():
            self._stops.append(stop)
        else:
            stop()
        return self.counts()

    async def pause(self, seconds: float) -> bool:
        """Wait for a number of seconds; return whether this is still the latest choice."""
        await asyncio.sleep(seconds)
        return self.counts()

    def again(self, do: Callable[[], Awaitable[None]]) -> None:
        """Schedule a retry after `AGAIN_S`. It runs only if this is still the latest choice."""

        async def try_it() -> None:
            if self.counts():
                await do()

        ui.timer(AGAIN_S, try_it, once=True)

    def end(self) -> None:
        """Mark the choice as outdated, and stop all calls that it follows."""
        self._ended = True
        for stop in self._stops:
            stop()
        self._stops.clear()


class Latest:
    """Part of a page that shows the latest choice."""

    def __init__(self, visit: Visit) -> None:
        self._visit = visit
        self._turn: Turn | None = None

    def begin(self) -> Turn:
        """Begin a choice, and end the previous one."""
        self.end()
        self._turn = Turn(self._visit)
        return self._turn

    def end(self) -> None:
        """End the current choice."""
        if self._turn is not None:
            self._turn.end()
