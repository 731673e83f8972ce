"""How long to wait before something is tried again."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from random import Random

MIN_S = 0.2
MAX_S = 5.0
"""Short enough that a cluster which comes back is seen soon, also where nothing rings."""


class WakeSignal:
    """Wakes those who wait to try again; a try that was under way when it rang is made once more at once."""

    def __init__(self) -> None:
        self._events: list[asyncio.Event] = []

    def subscribe(self) -> asyncio.Event:
        """Return what is set at every ring, for one who waits."""
        self._events.append(asyncio.Event())
        return self._events[-1]

    def notify(self) -> None:
        """Wake everybody; on the event loop."""
        for each in self._events:
            each.set()


class Backoff:
    """Doubles the wait with every failure, and takes up to half off by chance, so that no two come together.

    Parameters
    ----------
    random
        Where the chance comes from.
    wake_signal
        Ends a wait early; None for nothing.
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
        """Note a failure; return how long to wait, seconds."""
        longest_s: float = min(self._least_s * 2 ** min(self._failures, 20), self._most_s)
        self._failures += 1
        return longest_s * self._random.uniform(0.5, 1)

    async def pause(self, min_s: float = 0.0) -> None:
        """Note a failure and wait, until the bell rings at the longest; at least for so long, whatever rings."""
        wait_s = self.failed()
        await asyncio.sleep(min_s)
        with suppress(TimeoutError):
            async with asyncio.timeout(wait_s - min_s):
                await self._woken.wait()
        self._woken.clear()

    def reset(self) -> None:
        """Note that it worked."""
        self._failures = 0
        self._woken.clear()
