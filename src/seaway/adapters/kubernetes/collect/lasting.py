"""What goes on for so long that it counts: until then it may mend itself."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

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
