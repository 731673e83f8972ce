"""Where traffic can be steered, by what was measured; fills `seaway.application.control.steer.PathDesk`."""

from __future__ import annotations

from seaway.application.control.steer import Crossing
from seaway.application.network.active import ActivePaths
from seaway.application.network.book import LinkBook
from seaway.application.network.paths import Measured
from seaway.application.ports.clock import Clock


class Desk:
    """Puts together which paths are taken and what the link book knows of them."""

    def __init__(self, active: ActivePaths, book: LinkBook, clock: Clock) -> None:
        self._active = active
        self._book = book
        self._clock = clock

    def crossings(self) -> list[Crossing]:
        """Return the pairs of gateways whose traffic can be steered now."""
        now_ns = self._clock.now_ns()
        return [
            Crossing(*ends, current, measured)
            for ends, current in self._active.steerable().items()
            if (measured := tuple(Measured(*each) for each in self._book.along(ends, now_ns)))
        ]

    def choose(self, source: str, target: str, path: str, why: str) -> None:
        """Have traffic take a path from now on."""
        self._active.choose(source, target, path, why)
