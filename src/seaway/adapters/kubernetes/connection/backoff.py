"""How long to wait before something is tried again."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from random import Random

LEAST_S = 0.2
MOST_S = 5.0
"""Short enough that a cluster which comes back is seen soon, also where nothing rings."""


class Bell:
    """Wakes those who wait to try again; a try that was under way when it rang is made once more at once."""

    def __init__(self) -> None:
        self._rung: list[asyncio.Event] = []

    def heard_by(self) -> asyncio.Event:
        """Return what is set at every ring, for one who waits."""
        self._rung.append(asyncio.Event())
        return self._rung[-1]

    def ring(self) -> None:
        """Wake everybody; on the event loop."""
        for each in self._rung:
            each.set()


class Backoff:
    """Doubles the wait with every failure, and takes up to half off by chance, so that no two come together.

    Parameters
    ----------
    random
        Where the chance comes from.
    bell
        Ends a wait early; None for nothing.
    """

    def __init__(
        self, random: Random, least_s: float = LEAST_S, most_s: float = MOST_S, bell: Bell | None = None
    ) -> None:
        self._random = random
        self._least_s = least_s
        self._most_s = most_s
        self._failures = 0
        self._rung = (bell or Bell()).heard_by()

    def failed(self) -> float:
        """Note a failure; return how long to wait, seconds."""
        longest_s: float = min(self._least_s * 2 ** min(self._failures, 20), self._most_s)
        self._failures += 1
        return longest_s * self._random.uniform(0.5, 1)

    async def pause(self, least_s: float = 0.0) -> None:
        """Note a failure and wait, until the bell rings at the longest; at least for so long, whatever rings."""
        wait_s = self.failed()
        await asyncio.sleep(least_s)
        with suppress(TimeoutError):
            async with asyncio.timeout(wait_s - least_s):
                await self._rung.wait()
        self._rung.clear()

    def worked(self) -> None:
        """Note that it worked."""
        self._failures = 0
        self._rung.clear()
