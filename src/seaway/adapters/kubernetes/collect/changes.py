"""What changed in a cluster, for those who wait to be told."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable, Iterable, Iterator
from threading import Condition
from time import monotonic, perf_counter
from typing import Generic, TypeVar

from seaway.adapters.kubernetes.collect.health import Health
from seaway.adapters.kubernetes.collect.limits import Limits
from seaway.application.ports.backend import ChangeLog
from seaway.domain.errors import UnavailableError

RELIST_DELAY_S = 1.0
"""How long after a list everything is told: other kinds are listed then, too, and watches have told what came since."""

TIME_SLICE_S = 0.01
"""For how long things are taken over in one go."""

K = TypeVar("K", bound=Hashable)
T = TypeVar("T")


class ChangeNotifier(Generic[K]):
    """Keeps what changed last, by the keys of that, and who waits for it: told on the event loop, asked by threads.

    Parameters
    ----------
    cluster
        Its name.
    health
        Whether its sources answer.
    schedule
        Has something called after so many seconds, on the event loop.

    Attributes
    ----------
    lock
        Held by whoever changes what is there, or looks at it.
    """

    def __init__(
        self, cluster: str, health: Health, limits: Limits, schedule: Callable[[float, Callable[[], None]], object]
    ) -> None:
        self._cluster = cluster
        self._health = health
        self._unreachable_timeout_s = limits.unreachable_timeout_s
        self._schedule = schedule
        self._log: ChangeLog[K] = ChangeLog(limits.history_size)
        self._closed = False
        self._processing = False
        self._relist_scheduled = False
        self.lock = Condition()
        health.on_complete = self.wake

    @property
    def cursor(self) -> str:
        """Up to where everything was told that was asked for now."""
        return self._log.cursor

    def since(self, cursor: str, wait_s: float) -> dict[K, None] | None:
        """Return what changed since `cursor`, None for everything; see the port `Backend`. For who holds the lock.

        While everything is listed for the first time, that is waited for, too: who is told all at once, and at
        once, need not ask again and again.
        """
        give_up_s = monotonic() + wait_s
        while True:
            left_s = give_up_s - monotonic()
            over = left_s <= 0 or self._closed
            if why := self._health.unreachable_reason(self._unreachable_timeout_s):
                if over or not self._health.listing:
                    raise UnavailableError(why if why.startswith(self._cluster) else f"{self._cluster}: {why}")
            else:
                found = self._log.since(cursor)
                if found is None or found or over:
                    return found
            self.lock.wait(left_s)

    def add(self, key: K) -> None:
        """Note that something changed. For who holds the lock."""
        self._log.add(key)
        if not self._processing:
            self.lock.notify_all()

    async def process(self, items: Iterable[T], take: Callable[[T], None]) -> None:
        """Take many things over, in turns: other clusters' news are told on the same event loop.

        Waiting calls look again once a turn; asked for at any time, all that was taken over shows.
        """
        rest = iter(items)
        while self._process_slice(rest, take):
            await asyncio.sleep(0)

    def _process_slice(self, rest: Iterator[T], take: Callable[[T], None]) -> bool:
        """Take things over for as long as a turn is; return whether there are more."""
        end_s = perf_counter() + TIME_SLICE_S
        self._processing = True
        try:
            for each in rest:
                take(each)
                if perf_counter() >= end_s:
                    return True
            return False
        finally:
            self._processing = False
            self.wake()

    def schedule_relist(self) -> None:
        """Have everything told again before long."""
        if not self._relist_scheduled:
            self._relist_scheduled = True
            self._schedule(RELIST_DELAY_S, self._clear)

    def call_later(self, seconds: float, call: Callable[[], None]) -> None:
        """Have something done after so many seconds, while no one else looks."""

        def locked() -> None:
            with self.lock:
                call()

        self._schedule(seconds, locked)

    def wake(self) -> None:
        """Have waiting calls look whether the cluster is still heard."""
        with self.lock:
            self.lock.notify_all()

    def close(self) -> None:
        """Let waiting calls return."""
        with self.lock:
            self._closed = True
            self.lock.notify_all()

    def _clear(self) -> None:
        with self.lock:
            self._relist_scheduled = False
            self._log.clear()
            self.lock.notify_all()
