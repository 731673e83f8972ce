"""How a view of a cluster deals with what takes long."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Generic, TypeVar

from seaway.adapters.kubernetes.collect.pod_status import Wait

PATIENCE_S = 10.0
REFUSED_S = 5.0

PATIENCE_SHARE = 2 / 3
"""Of the time after which a silent cluster gets no new work: why it does not answer is said before that."""


@dataclass(frozen=True, slots=True)
class Limits:
    """How a view deals with what takes long.

    Attributes
    ----------
    patience_s
        How long something of a cluster may not answer before nothing that it says counts any more. Its age, which
        decides what becomes of its jobs, begins earlier: with the first failure.
    refused_s
        How long no node takes a pod before it is taken for refused: its cluster's scheduler may only be slow.
    stuck_s
        How long a pod may hold devices that cannot start until somebody mends it, or waits for its volumes or for room
        that is being made on a node, before it fails.
    turn_s
        How long a pod waits for its cluster's scheduler before that is told.
    kept
        Changes that cursors may point back over, at the least.
    """

    patience_s: float = PATIENCE_S
    refused_s: float = REFUSED_S
    stuck_s: float = 300.0
    turn_s: float = 3.0
    kept: int = 20_000

    @classmethod
    def within(cls, stale_s: float, *, stuck_s: float, refused_s: float = REFUSED_S) -> Limits:
        """Return those where a silent cluster gets no new work after so many seconds."""
        return cls(patience_s=min(PATIENCE_S, stale_s * PATIENCE_SHARE), refused_s=refused_s, stuck_s=stuck_s)

    def of(self, wait: Wait) -> float:
        """Return how long a pod may wait for something, seconds."""
        if wait is Wait.TURN:
            return self.turn_s
        return self.stuck_s if wait in {Wait.MENDING, Wait.MADE, Wait.ROOM} else self.refused_s


K = TypeVar("K", bound=Hashable)


class Lasting(Generic[K]):
    """Keeps what goes on, and since when.

    Parameters
    ----------
    later
        Has something called after so many seconds.
    """

    def __init__(self, later: Callable[[float, Callable[[], None]], object]) -> None:
        self._later = later
        self._began: dict[K, tuple[Hashable, object]] = {}
        self._long: set[K] = set()

    def __contains__(self, key: K) -> bool:
        """Tell whether something has gone on for as long as it had to."""
        return key in self._long

    def begin(self, key: K, what: Hashable, seconds: float, told: Callable[[], None]) -> None:
        """Note what goes on; the same again changes nothing, something else begins anew.

        Parameters
        ----------
        seconds
            How long it has to go on before it counts.
        told
            Called when it does.
        """
        if key in self._began and self._began[key][0] == what:
            return
        self.end(key)
        mark = object()
        self._began[key] = (what, mark)

        def lapse() -> None:
            if self._began.get(key) == (what, mark):
                self._long.add(key)
                told()

        self._later(seconds, lapse)

    def end(self, key: K) -> None:
        """Note that nothing goes on any more."""
        self._began.pop(key, None)
        self._long.discard(key)
