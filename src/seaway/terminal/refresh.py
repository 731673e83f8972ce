"""Times of refreshes: soon after a change, limited in frequency, and regularly without one."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress

from seaway.client.errors import ForbiddenError, RejectedError, SeawayError, UnauthenticatedError
from seaway.terminal.words import seconds

GAP_S = 0.4
"""Seconds from one look to the next at least, however much changes."""

PERIOD_S = 5.0
"""Seconds after which to look though nothing is known to have changed: what is measured has no events."""

REST = 2.0
"""Pause after a refresh, as a multiple of its duration: a slow server is not queried all the time."""


AGAIN_S = 1.0
"""Seconds after which to try again what failed."""


class Due:
    """Says when it is time for the next look.

    Parameters
    ----------
    period_s
        Seconds after which to look at the latest.
    clock
        Seconds of a clock that is never set.
    """

    def __init__(self, period_s: float = PERIOD_S, clock: Callable[[], float] = time.monotonic) -> None:
        self._period_s = period_s
        self._clock = clock
        self._bell = asyncio.Event()
        self._changed = True
        self._hurry = True
        self._began_s = -period_s
        self._rest_s = 0.0

    def changed(self) -> None:
        """Take note that what was seen holds no longer."""
        self._changed = True
        self._bell.set()

    def at_once(self) -> None:
        """Refresh immediately."""
        self._rest_s, self._began_s = 0.0, self._clock() - GAP_S
        self._hurry = True
        self.changed()

    def left_s(self) -> float:
        """Return in how many seconds to look; 0 for now."""
        least = max(GAP_S, self._rest_s)
        wanted = least if self._changed else max(self._period_s, least)
        return max(self._began_s + wanted - self._clock(), 0.0)

    def begin(self) -> bool:
        """Take note that a look begins, which may not see what changes from here on; tells whether it is waited for."""
        hurry, self._hurry = self._hurry, False
        self._changed, self._began_s = False, self._clock()
        return hurry

    def end(self, *, failed: bool = False) -> None:
        """Take note that the look is over, and whether there must be another soon."""
        self._rest_s = max(REST * (self._clock() - self._began_s), AGAIN_S if failed else 0.0)
        self._changed |= failed

    async def turn(self) -> bool:
        """Wait until it is time, and begin; tells whether a user waits for it."""
        while (left := self.left_s()) > 0:
            self._bell.clear()
            with suppress(TimeoutError):
                await asyncio.wait_for(self._bell.wait(), left)
        return self.begin()


SLOW_S = 3.0
"""Seconds without an answer after which this is shown."""


class Contact:
    """Remembers what came of asking.

    Parameters
    ----------
    server
        Its URL.
    clock
        Seconds of a clock that is never set.
    """

    def __init__(self, server: str, clock: Callable[[], float] = time.monotonic) -> None:
        self.server = server
        self._clock = clock
        self._received_s = clock()
        self._asked_s: float | None = None
        self._silence = ""
        self.refusal = ""
        """Reason why the server lets no one in with this token; empty while it does."""
        self.objection = ""
        """What the server said against what was asked last; empty where it had nothing against it."""

    def asked(self) -> None:
        """Take note that an answer is waited for."""
        self._asked_s = self._asked_s or self._clock()

    def answered(self) -> None:
        """Take note of an answer."""
        self._received_s, self._asked_s = self._clock(), None
        self._silence = self.refusal = self.objection = ""

    def failed(self, error: SeawayError) -> None:
        """Take note of a failure."""
        self._asked_s = None
        if isinstance(error, UnauthenticatedError):
            self.refusal = str(error)
        elif isinstance(error, RejectedError | ForbiddenError):
            self._received_s, self._silence, self.objection = self._clock(), "", str(error)
        else:
            self._silence = str(error)

    @property
    def lost(self) -> bool:
        """True if the server could not be reached when it was asked last."""
        return bool(self._silence)

    def trouble(self) -> str:
        """Say what is wrong and what comes next; empty where nothing is."""
        if self.refusal:
            return f"the token is refused: {self.refusal}. Sign in with `seaway login`, then press r"
        if self._silence:
            return f"no answer for {seconds(self._clock() - self._received_s)}; the figures are old: {self._silence}"
        if self._asked_s is not None and self._clock() - self._asked_s > SLOW_S:
            return f"{self.server} has not answered for {seconds(self._clock() - self._asked_s)}; still waiting"
        return self.objection
