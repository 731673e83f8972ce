"""What is being looked at, asked once for everybody who may see the same.

A hundred people on one page cost the control plane one question at a time: whoever follows a call hears of its answer
when it has changed. Who may see the same is a role and a tenant.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from nicegui import background_tasks

from seaway.client.call import Bytes, Call
from seaway.domain.errors import SeawayError, UnauthenticatedError
from seaway.web.asking import Asker

T = TypeVar("T")

Heard = Callable[[T], Awaitable[None] | None]
"""Takes an answer."""

EVERY_S = 0.5
"""How often the same is asked again while somebody looks: a change is to be seen within a second."""

SLOWER = 4.0
"""An answer that takes long is asked for more seldom: so many times as long as it takes at the least."""

log = logging.getLogger(__name__)


@dataclass(eq=False, slots=True)
class Follower(Generic[T]):
    """Somebody who looks at an answer.

    Attributes
    ----------
    asker
        In whose name it is asked.
    heard
        Takes answers that are new.
    failed
        Takes what goes wrong when it is asked again, and None once all is well.
    """

    asker: Asker
    heard: Heard[T]
    failed: Callable[[SeawayError | None], None]


@dataclass(eq=False, slots=True)
class _Line(Generic[T]):
    """A call that is made again and again."""

    call: Call[T]
    every_s: float
    followers: list[Follower[T]] = field(default_factory=list)
    content: bytes = b""
    value: T | None = None
    asked_s: float = float("-inf")
    failing: bool = False
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    task: asyncio.Task[None] | None = None


class Board:
    """Has answers at hand for all who look."""

    def __init__(self) -> None:
        self._lines: dict[tuple[object, ...], _Line[Any]] = {}

    async def follow(
        self, scope: object, call: Call[T], follower: Follower[T], every_s: float = EVERY_S
    ) -> Callable[[], None]:
        """Tell a follower the answer of a call now, and whenever it has changed; return what ends that.

        Parameters
        ----------
        scope
            Who sees the same answer.

        Raises
        ------
        SeawayError
            What goes wrong with the first answer.
        """
        key = (scope, call.path, tuple(call.parameters), every_s)
        line = self._lines.setdefault(key, _Line(call, every_s))
        line.followers.append(follower)

        def stop() -> None:
            with suppress(ValueError):
                line.followers.remove(follower)
            if not line.followers:
                self._lines.pop(key, None)
                if line.task is not None:
                    line.task.cancel()

        try:
            await self._fresh(line, follower)
        except SeawayError:
            stop()
            raise
        if line.task is None:
            line.task = background_tasks.create(self._keep_asking(line), name=f"follow {call.path}")
        return stop

    async def _fresh(self, line: _Line[T], follower: Follower[T]) -> None:
        async with line.lock:
            if line.value is None or time.monotonic() - line.asked_s > line.every_s:
                await self._ask(line, follower.asker)
        assert line.value is not None
        await _tell(follower, line.value)

    async def _ask(self, line: _Line[T], asker: Asker) -> bool:
        """Make the call; return whether the answer is another than before."""
        call = line.call
        content = await asker.ask(Call(call.method, call.path, Bytes(), call.query, call.headers))
        line.asked_s = time.monotonic()
        if content == line.content and line.value is not None:
            return False
        line.content, line.value = content, line.call.answer.read(content)
        return True

    async def _keep_asking(self, line: _Line[T]) -> None:
        pause_s = line.every_s
        while line.followers:
            await asyncio.sleep(pause_s)
            if not line.followers:
                return
            began_s = time.monotonic()
            changed = await self._ask_again(line)
            pause_s = max(line.every_s, SLOWER * (time.monotonic() - began_s))
            if changed:
                for follower in list(line.followers):
                    await _tell(follower, line.value)

    async def _ask_again(self, line: _Line[Any]) -> bool:
        """Make the call for those who follow; return whether the answer is another than before."""
        first = line.followers[0]
        try:
            async with line.lock:
                changed = await self._ask(line, first.asker)
        except UnauthenticatedError as error:  # it is his token alone: another's may still hold
            line.followers.append(line.followers.pop(0))
            first.failed(error)
            return False
        except SeawayError as error:
            line.failing = True
            for follower in list(line.followers):
                follower.failed(error)
            return False
        if line.failing:
            line.failing = False
            for follower in list(line.followers):
                follower.failed(None)
        return changed


async def _tell(follower: Follower[T], value: T | None) -> None:
    """Tell a follower; what is wrong with one page is no matter of others."""
    assert value is not None
    try:
        done = follower.heard(value)
        if inspect.isawaitable(done):
            await done
    except Exception:
        log.exception("a page could not show what is new")
