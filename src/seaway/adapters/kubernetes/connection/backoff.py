"""Delays between retries."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from random import Random

from seaway.domain.backoff import backoff

MIN_S = 0.2
MAX_S = 5.0
"""Maximum delay in seconds. It is short, so that Seaway soon detects a recovered cluster without a wake signal."""


class WakeSignal:
    """Signal that ends the delays of all waiting retries, and skips the delay after a try in progress."""

    def __init__(self) -> None:
        self._events: list[asyncio.Event] = []

    def subscribe(self) -> asyncio.Event:
        """Return an event for one waiting task. Each signal sets it."""
        self._events.append(asyncio.Event())
        return self._events[-1]

    def notify(self) -> None:
        """Wake all waiting tasks; call it on the event loop."""
        for each in self._events:
            each.set()


class Backoff:
    """Exponential back-off with jitter of up to half of the delay, so that retries do not coincide.

    Parameters
    ----------
    random
        Source of jitter.
    wake_signal
        Signal that ends a delay early; None for no signal.
    """

    def __init__(
        self, random: Random, min_s: float = MIN_S, max_s: float = MAX_S, wake_signal: WakeSignal | None = None
    ) -> None:
        self._random = random
        self._least_s = min_s
        self._most_s = max_s
        self._failures = 0
        self._woken = (wake_signal or WakeSignal()).subscribe()

    def failed(self) -> float:
        """Count a failure; return the delay in seconds."""
        self._failures += 1
        return backoff(self._failures, self._least_s, self._most_s, self._random)

    async def pause(self, min_s: float = 0.0) -> None:
        """Count a failure and wait until the delay ends or the signal comes, but at least `min_s`."""
        wait_s = self.failed()
        await asyncio.sleep(min_s)
        with suppress(TimeoutError):
            async with asyncio.timeout(wait_s - min_s):
                await self._woken.wait()
        self._woken.clear()

    def reset(self) -> None:
        """Reset the delay after a success."""
        self._failures = 0
        self._woken.clear()
