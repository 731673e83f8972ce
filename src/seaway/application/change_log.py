"""What changed last in a cluster: a bounded log of names that backends let cursors point into."""

from __future__ import annotations

from collections.abc import Hashable
from secrets import token_hex
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)


class ChangeLog(Generic[Key]):
    """Names what changed, in order.

    Parameters
    ----------
    kept
        How many changes to keep at the least.

    Attributes
    ----------
    count
        Changes since the log began.
    """

    def __init__(self, kept: int) -> None:
        self.count = 0
        self._kept = kept
        self._keys: list[Key] = []
        self._run = token_hex(4)  # a log that began anew knows the cursors of another as too old

    @property
    def cursor(self) -> str:
        """Where the log is now."""
        return f"{self._run}-{self.count}"

    def add(self, key: Key) -> None:
        """Note that something changed."""
        self._keys.append(key)
        self.count += 1
        if len(self._keys) > 2 * self._kept:
            del self._keys[: self._kept]

    def clear(self) -> None:
        """Have every cursor so far be too old."""
        self._keys.clear()
        self.count += 1

    def since(self, cursor: str) -> dict[Key, None] | None:
        """Return what changed since `cursor`, each once; None when that is not known any more."""
        run, _, number = cursor.partition("-")
        if run != self._run or not number.isdecimal():
            return None
        behind = self.count - int(number)
        if not 0 <= behind <= len(self._keys):
            return None
        return dict.fromkeys(self._keys[len(self._keys) - behind :])
