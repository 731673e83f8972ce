"""Two clocks: one that only runs (steady), and one that can be set (wall)."""

from __future__ import annotations

PRECISION_NS = 100_000
"""How exactly the two clocks can be compared, nanoseconds: a process may be held up between two readings."""


class Clocks:
    """Turns times of the wall clock into those of the steady one, unless it was set in the meantime.

    The kernel stamps packets with the wall clock. It is slewed together with the steady clock, so the distance of the
    two changes only when somebody sets it. What arrived between the look before last and the last one can be
    believed when all of them agree.

    Parameters
    ----------
    offset_ns
        How far the wall clock is ahead of the steady one.
    """

    def __init__(self, offset_ns: int) -> None:
        self._looks = (offset_ns, offset_ns, offset_ns)

    def look(self, offset_ns: int) -> None:
        """Compare the clocks, after whatever is asked for next arrived."""
        self._looks = (*self._looks[1:], offset_ns)

    def steady_ns(self, wall_ns: int) -> int | None:
        """Return what the steady clock said then; None when the wall clock may have been set since."""
        if max(self._looks) - min(self._looks) > PRECISION_NS:
            return None
        return wall_ns - self._looks[-1]
