"""Query cache: each call runs once for all visitors with the same permissions, which are a role and a tenant.

A hundred visitors of a page cause one query at a time. Each follower gets the answer when it changes.
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
from seaway.web.api_client import ApiClient

T = TypeVar("T")

Callback = Callable[[T], Awaitable[None] | None]
"""Function that receives an answer."""

EVERY_S = 0.5
"""Default interval of queries in seconds, so that a change is visible within a second."""

REST = 20.0
"""Pause after a query during a scheduling cycle, as a multiple of the query's duration.

Queries then run one at a time.
"""

MAX_REST_S = 1.0
"""Maximum pause, in seconds."""

LOOK_S = 0.02
"""Interval in seconds at which the first waiting query checks for its turn. Later queries check less often."""

MAX_LOOK_S = 0.2
"""Maximum interval of these checks, in seconds."""

Busy = Callable[[], bool]
"""Function that reports whether a scheduling cycle is running."""

SLOWER = 4.0
"""Minimum interval between queries, as a multiple of a query's duration."""

LARGE_BYTES = 256 << 10
"""Size of an answer above which queries also wait for its size."""

LARGE_BYTES_PER_S = 50_000
"""Rate at which large answers are read at most, such as a map of 10,000 nodes every half minute."""

log = logging.getLogger(__name__)


@dataclass(eq=False, slots=True)
class Follower(Generic[T]):
    """Visitor that follows a call.

    Attributes
    ----------
    asker
        API client with the visitor's token.
    callback
        Receives new answers.
    failed
        Receives errors of later queries, and None after a success.
    """

    asker: ApiClient
    callback: Callback[T]
    failed: Callable[[SeawayError | None], None]
    knows: int = 0
    """Number of the latest answer that it received, from 1."""
    listens: bool = False
    """True while its callback runs. It then receives the newest answer."""
    left: bool = False
    """True after it has stopped following."""
    looks: Callable[[], bool] = lambda: True
    """Reports whether it can show answers. If no follower can, queries pause."""

    def leave(self) -> None:
        """Stop following. Without its functions, which refer to the page, the page's memory is free at once."""
        self.left = True
        self.callback = self.failed = _ignore
        self.looks = bool


@dataclass(eq=False, slots=True)
class _Subscription(Generic[T]):
    """Repeated call with its followers."""

    call: Call[T]
    interval_s: float
    followers: list[Follower[T]] = field(default_factory=list)
    content: bytes = b""
    value: T | None = None
    number: int = 0
    """Number of answers that differ from the previous one."""
    asked_s: float = float("-inf")
    failing: bool = False
    again: asyncio.Event = field(default_factory=asyncio.Event)
    """Event that triggers a query immediately."""
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    task: asyncio.Task[None] | None = None

    def is_looked_at(self) -> bool:
        """Report whether a follower can show answers."""
        return any(each.looks() for each in self.followers)


class QueryCache:
    """Repeated calls with their latest answers, shared by all visitors.

    Parameters
    ----------
    busy
        As `Busy`.
    """

    def __init__(self, busy: Busy = lambda: False) -> None:
        self._busy = busy
        self._waiting: list[_Subscription[Any]] = []
        self._next_s = 0.0
        self._lines: dict[tuple[object, str, tuple[object, ...], float], _Subscription[Any]] = {}
        self._tellings: set[asyncio.Task[None]] = set()

    async def follow(
        self, scope: object, call: Call[T], follower: Follower[T], interval_s: float = EVERY_S
    ) -> Callable[[], None]:
        """Call a follower with the answer of a call, now and after each change; return a function that stops it.

        Parameters
        ----------
        scope
            Key of followers that receive the same answer.

        Raises
        ------
        SeawayError
            When the first query fails.
        """
        key = (scope, call.path, tuple(call.parameters), interval_s)
        line = self._lines.setdefault(key, _Subscription(call, interval_s))
        line.followers.append(follower)

        def stop() -> None:
            follower.leave()
            with suppress(ValueError):
                line.followers.remove(follower)
            if not line.followers and self._lines.get(key) is line:
                del self._lines[key]
                if line.task is not None:
                    line.task.cancel()

        try:
            await self._fresh(line, follower)
        except BaseException:  # a page beyond its time limit is cancelled here
            stop()
            raise
        self._go_on(line)
        return stop

    def come(self, follower: Follower[Any]) -> None:
        """Send a follower the latest answers, and resume its calls, when its browser has connected."""
        for line in self._lines.values():
            if follower in line.followers:
                self._tell(line, follower)
                self._go_on(line)

    def ask_again(self, scope: object, call: Call[Any]) -> None:
        """Query a followed call immediately, because its answer has changed."""
        for (of, path, parameters, _), line in self._lines.items():
            if (of, path, parameters) == (scope, call.path, tuple(call.parameters)):
                line.again.set()

    async def _fresh(self, line: _Subscription[T], follower: Follower[T]) -> None:
        async with line.lock:
            if not line.number or time.monotonic() - line.asked_s > line.interval_s:
                await self._ask(line, follower.asker)
        await _tell(line, follower)

    async def _ask(self, line: _Subscription[T], asker: ApiClient) -> None:
        """Run the call; count its answer if it differs from the previous one."""
        call = line.call
        content = await asker.ask(Call(call.method, call.path, Bytes(), call.query, call.headers))
        line.asked_s = time.monotonic()
        if content != line.content or not line.number:
            line.value = line.call.answer.read(content)
            line.content, line.number = content, line.number + 1

    def _go_on(self, line: _Subscription[T]) -> None:
        """Start queries if a follower can show answers."""
        if line.task is None and line.is_looked_at():
            line.task = asyncio.create_task(self._poll(line), name=f"follow {line.call.path}")

    async def _poll(self, line: _Subscription[T]) -> None:
        pause_s = line.interval_s
        while line.is_looked_at():
            if not await _within(line.again.wait(), pause_s):
                await self._turn(line)
            line.again.clear()
            self._next_s = time.monotonic() + MAX_REST_S  # limits the delay of others if a query hangs
            took_s = await self._go_round(line)
            self._next_s = time.monotonic() + min(REST * took_s, MAX_REST_S)
            pause_s = pause_of(line.interval_s, took_s, len(line.content))
        line.task = None

    async def _turn(self, line: _Subscription[Any]) -> None:
        """Wait for this call's turn during a scheduling cycle; `ask_again` ends the wait."""
        self._waiting.append(line)
        try:
            while self._busy() and (self._waiting[0] is not line or time.monotonic() < self._next_s):
                behind = self._waiting.index(line)
                if await _within(line.again.wait(), min(LOOK_S * (1 + behind), MAX_LOOK_S)):
                    break
        finally:
            self._waiting.remove(line)

    async def _go_round(self, line: _Subscription[T]) -> float:
        """Query again, and notify followers of a new answer; return the duration in seconds."""
        began_s = time.monotonic()
        await self._ask_again(line)
        for follower in list(line.followers):
            self._tell(line, follower)
            await asyncio.sleep(0)  # yields to other tasks: each follower renders for itself
        return time.monotonic() - began_s

    def _tell(self, line: _Subscription[T], follower: Follower[T]) -> None:
        """Notify a follower in its own task. A slow follower does not delay others, and skips outdated answers."""
        if not follower.listens and follower.looks() and follower.knows != line.number:
            load_script = asyncio.create_task(_tell(line, follower), name=f"tell {line.call.path}")
            self._tellings.add(load_script)
            load_script.add_done_callback(self._tellings.discard)

    async def _ask_again(self, line: _Subscription[T]) -> None:
        """Run the call, and report errors to the affected followers."""
        first = line.followers[0]
        try:
            async with line.lock:
                await self._ask(line, first.asker)
        except UnauthenticatedError as error:  # only this token is invalid, and others may be valid
            line.followers.append(line.followers.pop(0))
            first.failed(error)
        except SeawayError as error:
            line.failing = True
            _notify_error(line, error)
        except Exception:  # queries continue after any error
            log.exception("%s could not be queried", line.call.path)
            line.failing = True
            _notify_error(line, UnavailableError("internal error of the control plane; see its log"))
        else:
            if line.failing:
                line.failing = False
                _notify_error(line, None)


def pause_of(interval_s: float, took_s: float, size: int) -> float:
    """Return the pause after a query in seconds, given its interval, its duration and the bytes of its answer."""
    return max(interval_s, SLOWER * took_s, size / LARGE_BYTES_PER_S if size > LARGE_BYTES else 0.0)


def _ignore(_: object) -> None:
    """Do nothing with an answer or error."""


async def _within(event: Awaitable[object], seconds: float) -> bool:
    """Wait for at most a number of seconds; return whether the awaitable completed."""
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await event
            return True
    return False


def _notify_error(line: _Subscription[Any], error: SeawayError | None) -> None:
    for follower in list(line.followers):
        follower.failed(error)


async def _tell(line: _Subscription[T], follower: Follower[T]) -> None:
    """Send a follower new answers, one after the other. Its exceptions do not affect other followers."""
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
