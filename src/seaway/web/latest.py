"""The latest counts: of choices that come quickly one after another a page shows the last, whenever it is answered."""

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
"""After how long something is tried again that went wrong."""


class Turn:
    """One choice, and what is asked and followed for it."""

    def __init__(self, visit: Visit) -> None:
        self._visit = visit
        self._ended = False
        self._stops: list[Callable[[], None]] = []

    def counts(self) -> bool:
        """Tell whether no other choice was made since."""
        return not self._ended

    async def follow(
        self, call: Call[T], callback: Callable[[T], Awaitable[None] | None], interval_s: float = EVERY_S
    ) -> bool:
        """Follow a call as `Visit.follow` does, for as long as the choice counts; return whether it still does.

        Raises
        ------
        SeawayError
            What goes wrong with the first answer, as long as it counts.
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
        """Wait for a while; return whether the choice still counts."""
        await asyncio.sleep(seconds)
        return self.counts()

    def again(self, do: Callable[[], Awaitable[None]]) -> None:
        """Have something that went wrong be tried again after a while, if the choice still counts."""

        async def try_it() -> None:
            if self.counts():
                await do()

        ui.timer(AGAIN_S, try_it, once=True)

    def end(self) -> None:
        """Have it count no longer, and follow nothing for it any more."""
        self._ended = True
        for stop in self._stops:
            stop()
        self._stops.clear()


class Latest:
    """A place on a page that shows what was chosen last."""

    def __init__(self, visit: Visit) -> None:
        self._visit = visit
        self._turn: Turn | None = None

    def begin(self) -> Turn:
        """Take a choice: the one before counts no longer."""
        self.end()
        self._turn = Turn(self._visit)
        return self._turn

    def end(self) -> None:
        """Have no choice count."""
        if self._turn is not None:
            self._turn.end()
