"""Times of refreshes: soon after a change, limited in frequency, and regularly without a change."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from contextlib import suppress

from seaway.client.aio import AsyncClient
from seaway.client.errors import ForbiddenError, RejectedError, SeawayError, UnauthenticatedError
from seaway.terminal.words import Body, seconds

GAP_S = 0.4
"""Minimum interval between refreshes, in seconds."""

PERIOD_S = 5.0
"""Interval of refreshes without events, in seconds. Measurements cause no events."""

REST = 2.0
"""Pause after a refresh, as a multiple of its duration, so that a slow server is not queried permanently."""


AGAIN_S = 1.0
"""Delay before a retry, in seconds."""


class Due:
    """Timer of refreshes.

    Parameters
    ----------
    period_s
        Maximum interval in seconds.
    clock
        Monotonic clock in seconds.
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
        """Record a change, so that a refresh is due."""
        self._changed = True
        self._bell.set()

    def at_once(self) -> None:
        """Refresh immediately."""
        self._rest_s, self._began_s = 0.0, self._clock() - GAP_S
        self._hurry = True
        self.changed()

    def left_s(self) -> float:
        """Return the seconds until the next refresh; 0 if it is due."""
        least = max(GAP_S, self._rest_s)
        wanted = least if self._changed else max(self._period_s, least)
        return max(self._began_s + wanted - self._clock(), 0.0)

    def begin(self) -> bool:
        """Record the start of a refresh, which may miss later changes; return whether a user waits for it."""
        hurry, self._hurry = self._hurry, False
        self._changed, self._began_s = False, self._clock()
        return hurry

    def end(self, *, failed: bool = False) -> None:
        """Record the end of a refresh. A failed one is due again soon."""
        self._rest_s = max(REST * (self._clock() - self._began_s), AGAIN_S if failed else 0.0)
        self._changed |= failed

    async def turn(self) -> bool:
        """Wait for the next refresh, and begin it; return whether a user waits for it."""
        while (left := self.left_s()) > 0:
            self._bell.clear()
            with suppress(TimeoutError):
                await asyncio.wait_for(self._bell.wait(), left)
        return self.begin()


SLOW_S = 3.0
"""Time without an answer after which the status line reports it, in seconds."""


class Contact:
    """State of the connection to the server.

    Parameters
    ----------
    server
        URL of the server.
    clock
        Monotonic clock in seconds.
    """

    def __init__(self, server: str, clock: Callable[[], float] = time.monotonic) -> None:
        self.server = server
        self._clock = clock
        self._received_s = clock()
        self._asked_s: float | None = None
        self._silence = ""
        self.refusal = ""
        """Reason why the server rejects this token; empty while it accepts the token."""
        self.objection = ""
        """Error message for the last request; empty after a success."""

    def asked(self) -> None:
        """Record a request."""
        self._asked_s = self._asked_s or self._clock()

    def answered(self) -> None:
        """Record an answer."""
        self._received_s, self._asked_s = self._clock(), None
        self._silence = self.refusal = self.objection = ""

    def failed(self, error: SeawayError) -> None:
        """Record an error."""
        self._asked_s = None
        if isinstance(error, UnauthenticatedError):
            self.refusal = str(error)
        elif isinstance(error, RejectedError | ForbiddenError):
            self._received_s, self._silence, self.objection = self._clock(), "", str(error)
        else:
            self._silence = str(error)

    @property
    def lost(self) -> bool:
        """True if the last request could not reach the server."""
        return bool(self._silence)

    def trouble(self) -> str:
        """Describe the problem and its remedy; empty if there is none."""
        if self.refusal:
            return f"the token is refused: {self.refusal}. Sign in with `seaway login`, then press r"
        if self._silence:
            return f"no answer for {seconds(self._clock() - self._received_s)}; the figures are old: {self._silence}"
        if self._asked_s is not None and self._clock() - self._asked_s > SLOW_S:
            return f"{self.server} has not answered for {seconds(self._clock() - self._asked_s)}; still waiting"
        return self.objection


class View:
    """Part of the screen with data of the server. Only the visible view is refreshed."""

    hint = ""
    """Hint for the text after `/`; empty if the view has no search."""

    async def look(self, client: AsyncClient, clusters: Sequence[Body]) -> None:
        """Query the server, and show the result.

        Parameters
        ----------
        clusters
            All clusters, from a query just before.

        Raises
        ------
        SeawayError
            When the server does not answer, or answers with an error.
        """

    def affected_by(self, event: Body) -> bool:
        """Report whether an event can change the view."""
        return True

    def find(self, text: str) -> None:
        """Search for a text; an empty text shows all entries."""

    @property
    def job(self) -> Body | None:
        """Selected job with its `id` and, if known, `name` and `state`; None if no job is selected."""
        return None

    @property
    def place(self) -> Body | None:
        """Selected cluster or node with its `cluster`, `node` (empty for none) and `cordon`."""
        return None

    def focus_on(self) -> None:
        """Move the focus to the view."""
