"""The end of a log, looked at again and again."""

from __future__ import annotations

from collections.abc import Sequence


def added(before: Sequence[str], now: Sequence[str]) -> list[str] | None:
    """Return the lines that came since a log's end was looked at before; None where the two do not join.

    Parameters
    ----------
    before, now
        Its last lines, of which both looks want as many.

    Examples
    --------
    >>> added(["a", "b"], ["b", "c"]), added(["a", "b"], ["a", "b"]), added(["a"], ["c"])
    (['c'], [], None)
    """
    if not before:
        return list(now)
    for shared in range(min(len(before), len(now)), 0, -1):
        if now[shared - 1] == before[-1] and list(before[-shared:]) == list(now[:shared]):
            return list(now[shared:])
    return None
