"""Two clocks: one that only runs (steady), and one that can be set (wall)."""

from __future__ import annotations

PRECISION_NS = 100_000
"""How exactly the two clocks can be compared, nanoseconds: a process may be held up between two readings."""


class Clocks:
    """Tells whether the wall clock was set.

    The kernel stamps packets with the wall clock. It is slewed together with the steady clock, so the distance of the
    two changes only when somebody sets it. What is read between two looks may have come just before the earlier one,
    so three have to agree.

    Parameters
    ----------
    offset_ns
        How far the wall clock is ahead of the steady one.
    """

    def __init__(self, offset_ns: int) -> None:
        self._looks = (offset_ns, offset_ns, offset_ns)

    def look(self, offset_ns: int) -> None:
        """Compare the clocks, after stamps were read."""
        self._looks = (*self._looks[1:], offset_ns)

    @property
    def agree(self) -> bool:
        """Whether the wall clock was left alone, so that stamps since the look before last can be believed."""
        return max(self._looks) - min(self._looks) <= PRECISION_NS
