"""Whether the control loop has its hands full: who can wait, as a page that is looked at, waits while it does."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from seaway.application.ports.clock import Clock

LONG_NS = 20_000_000
"""A round that takes longer has more to do than what comes in one by one."""

LINGER_NS = 100_000_000
"""How long a rush goes on after a long round: in the midst of it there is a round that finds nothing, too."""


@dataclass(slots=True)
class Round:
    """A round of the loop, and whether it found something to do."""

    found: bool = False


class Rush:
    """Watches the rounds of the loop: its thread tells of them, and any other may ask.

    A job now and then is no rush, however often rounds find something to do: what is placed in a moment keeps nobody
    waiting, and nobody has to keep out of its way.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._began_ns: int | None = None
        self._until_ns = 0

    @property
    def on(self) -> bool:
        """Whether a long round is under way, or ended a moment ago."""
        now_ns, began_ns = self._clock.monotonic_ns(), self._began_ns
        return now_ns < self._until_ns or (began_ns is not None and now_ns - began_ns >= LONG_NS)

    @contextmanager
    def round(self) -> Iterator[Round]:
        """Watch a round; who goes it says of it whether it found something to do."""
        this = Round()
        began_ns = self._began_ns = self._clock.monotonic_ns()
        try:
            yield this
        finally:
            now_ns, self._began_ns = self._clock.monotonic_ns(), None
            if this.found and now_ns - began_ns >= LONG_NS:
                self._until_ns = now_ns + LINGER_NS
