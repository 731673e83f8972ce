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

from seaway.client.call import Bytes, Call
from seaway.domain.errors import SeawayError, UnauthenticatedError, UnavailableError
from seaway.web.api_client import Asker

T = TypeVar("T")

Callback = Callable[[T], Awaitable[None] | None]
"""Takes an answer."""

EVERY_S = 0.5
"""How often the same is asked again while a user looks: a change is to be seen within a second."""

REST = 20.0
"""While jobs are being placed one thing is asked at a time, and then nothing for so many times as long as that took."""

MAX_REST_S = 1.0
"""For so long at most."""

LOOK_S = 0.02
"""How often the next in turn sees meanwhile whether that is over; who is behind does so more seldom."""

MAX_LOOK_S = 0.2
"""But so often."""

Busy = Callable[[], bool]
"""Tells whether jobs are being placed just now."""

SLOWER = 4.0
"""An answer that takes long is asked for more seldom: so many times as long as it takes at least."""

log = logging.getLogger(__name__)


@dataclass(eq=False, slots=True)
class Follower(Generic[T]):
    """A user who looks at an answer.

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
    callback: Callback[T]
    failed: Callable[[SeawayError | None], None]
    knows: int = 0
    """Which answer he was told last, counted from 1."""
    listens: bool = False
    """True if he is being told something; he hears the newest once he has taken it in."""
    left: bool = False
    """True if he looks no longer."""
    looks: Callable[[], bool] = lambda: True
    """True if he is there to see something new. For who is not nothing is asked again."""


@dataclass(eq=False, slots=True)
class _Line(Generic[T]):
    """A call that is made again and again."""

    call: Call[T]
    interval_s: float
    followers: list[Follower[T]] = field(default_factory=list)
    content: bytes = b""
    value: T | None = None
    number: int = 0
    """Number of answers that differ from the one before."""
    asked_s: float = float("-inf")
    failing: bool = False
    again: asyncio.Event = field(default_factory=asyncio.Event)
    """Set where it is to be asked at once."""
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    task: asyncio.Task[None] | None = None

    def is_looked_at(self) -> bool:
        """Tell whether anybody is there to see something new."""
        return any(each.looks() for each in self.followers)


class QueryCache:
    """Has answers at hand for all who look.

    Parameters
    ----------
    busy
        As `Busy`.
    """

    def __init__(self, busy: Busy = lambda: False) -> None:
        self._busy = busy
        self._waiting: list[_Line[Any]] = []
        self._next_s = 0.0
        self._lines: dict[tuple[object, str, tuple[object, ...], float], _Line[Any]] = {}
        self._tellings: set[asyncio.Task[None]] = set()

    async def follow(
        self, scope: object, call: Call[T], follower: Follower[T], interval_s: float = EVERY_S
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
        key = (scope, call.path, tuple(call.parameters), interval_s)
        line = self._lines.setdefault(key, _Line(call, interval_s))
        line.followers.append(follower)

        def stop() -> None:
            follower.left = True
            with suppress(ValueError):
                line.followers.remove(follower)
            if not line.followers and self._lines.get(key) is line:
                del self._lines[key]
                if line.task is not None:
                    line.task.cancel()

        try:
            await self._fresh(line, follower)
        except BaseException:  # a page that took too long is cancelled here
            stop()
            raise
        self._go_on(line)
        return stop

    def come(self, follower: Follower[Any]) -> None:
        """Tell a follower who has just come what is new, and ask again from now on."""
        for line in self._lines.values():
            if follower in line.followers:
                self._tell(line, follower)
                self._go_on(line)

    def ask_again(self, scope: object, call: Call[Any]) -> None:
        """Have a call that is followed be asked at once, for its answer is known to have changed."""
        for (of, path, parameters, _), line in self._lines.items():
            if (of, path, parameters) == (scope, call.path, tuple(call.parameters)):
                line.again.set()

    async def _fresh(self, line: _Line[T], follower: Follower[T]) -> None:
        async with line.lock:
            if not line.number or time.monotonic() - line.asked_s > line.interval_s:
                await self._ask(line, follower.asker)
        await _tell(line, follower)

    async def _ask(self, line: _Line[T], asker: Asker) -> None:
        """Make the call; count its answer where it is another than before."""
        call = line.call
        content = await asker.ask(Call(call.method, call.path, Bytes(), call.query, call.headers))
        line.asked_s = time.monotonic()
        if content != line.content or not line.number:
            line.value = line.call.answer.read(content)
            line.content, line.number = content, line.number + 1

    def _go_on(self, line: _Line[T]) -> None:
        """Ask again and again, for as long as anybody looks."""
        if line.task is None and line.is_looked_at():
            line.task = asyncio.create_task(self._poll(line), name=f"follow {line.call.path}")

    async def _poll(self, line: _Line[T]) -> None:
        pause_s = line.interval_s
        while line.is_looked_at():
            if not await _within(line.again.wait(), pause_s):
                await self._turn(line)
            line.again.clear()
            self._next_s = time.monotonic() + MAX_REST_S  # who hangs, as on a database, holds up no one for longer
            took_s = await self._go_round(line)
            self._next_s = time.monotonic() + min(REST * took_s, MAX_REST_S)
            pause_s = max(line.interval_s, SLOWER * took_s)
        line.task = None

    async def _turn(self, line: _Line[Any]) -> None:
        """While jobs are placed, wait until it is this line's turn; who is asked for again waits for none."""
        self._waiting.append(line)
        try:
            while self._busy() and (self._waiting[0] is not line or time.monotonic() < self._next_s):
                behind = self._waiting.index(line)
                if await _within(line.again.wait(), min(LOOK_S * (1 + behind), MAX_LOOK_S)):
                    break
        finally:
            self._waiting.remove(line)

    async def _go_round(self, line: _Line[T]) -> float:
        """Ask again and tell who looks what is new; return how long that took, seconds."""
        began_s = time.monotonic()
        await self._ask_again(line)
        for follower in list(line.followers):
            self._tell(line, follower)
            await asyncio.sleep(0)  # others have their turn: what is shown to many is written for each
        return time.monotonic() - began_s

    def _tell(self, line: _Line[T], follower: Follower[T]) -> None:
        """Tell a follower what is new, at his own pace: who is slow holds up nobody, and skips what is old by then."""
        if not follower.listens and follower.looks() and follower.knows != line.number:
            telling = asyncio.create_task(_tell(line, follower), name=f"tell {line.call.path}")
            self._tellings.add(telling)
            telling.add_done_callback(self._tellings.discard)

    async def _ask_again(self, line: _Line[T]) -> None:
        """Make the call for those who follow, and say what goes wrong to whom it concerns."""
        first = line.followers[0]
        try:
            async with line.lock:
                await self._ask(line, first.asker)
        except UnauthenticatedError as error:  # it is his token alone: another's may still hold
            line.followers.append(line.followers.pop(0))
            first.failed(error)
        except SeawayError as error:
            line.failing = True
            _say(line, error)
        except Exception:  # whatever it was, the line goes on
            log.exception("%s could not be queried", line.call.path)
            line.failing = True
            _say(line, UnavailableError("internal error of the control plane; see its log"))
        else:
            if line.failing:
                line.failing = False
                _say(line, None)


async def _within(event: Awaitable[object], seconds: float) -> bool:
    """Wait for something for so long; tell whether it came."""
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await event
            return True
    return False


def _say(line: _Line[Any], error: SeawayError | None) -> None:
    for follower in list(line.followers):
        follower.failed(error)


async def _tell(line: _Line[T], follower: Follower[T]) -> None:
    """Tell a follower what he does not know yet, one answer after the other; what goes wrong there is his alone."""
    if follower.listens:
        return
    follower.listens = True
    try:
        while follower.knows != line.number and not follower.left:
            follower.knows = line.number
            assert line.value is not None
            done = follower.callback(line.value)
            if inspect.isawaitable(done):
                await done
    except Exception:
        log.exception("a page could not be updated")
    finally:
        follower.listens = False
