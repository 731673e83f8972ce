"""How it stands with the server: whether it answers, and what to do where it does not."""

from __future__ import annotations

import time
from collections.abc import Callable

from seaway.client.errors import ForbiddenError, RejectedError, SeawayError, UnauthenticatedError
from seaway.terminal.words import seconds

SLOW_S = 3.0
"""Seconds without an answer after which that is said."""


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
        self._heard_s = clock()
        self._asked_s: float | None = None
        self._silence = ""
        self.refusal = ""
        """Why the server lets nobody in with this token; empty while it does."""
        self.objection = ""
        """What the server said against what was asked last; empty where it had nothing against it."""

    def asked(self) -> None:
        """Take note that an answer is waited for."""
        self._asked_s = self._asked_s or self._clock()

    def answered(self) -> None:
        """Take note of an answer."""
        self._heard_s, self._asked_s = self._clock(), None
        self._silence = self.refusal = self.objection = ""

    def failed(self, error: SeawayError) -> None:
        """Take note of a failure."""
        self._asked_s = None
        if isinstance(error, UnauthenticatedError):
            self.refusal = str(error)
        elif isinstance(error, RejectedError | ForbiddenError):
            self._heard_s, self._silence, self.objection = self._clock(), "", str(error)
        else:
            self._silence = str(error)

    @property
    def lost(self) -> bool:
        """Whether the server could not be reached when it was asked last."""
        return bool(self._silence)

    def trouble(self) -> str:
        """Say what is wrong and what comes next; empty where nothing is."""
        if self.refusal:
            return f"the token is refused: {self.refusal}. Sign in with `seaway login`, then come back; r asks again"
        if self._silence:
            return f"silent for {seconds(self._clock() - self._heard_s)}, what you see is old: {self._silence}"
        if self._asked_s is not None and self._clock() - self._asked_s > SLOW_S:
            return f"{self.server} has not answered for {seconds(self._clock() - self._asked_s)}; still waiting"
        return self.objection
