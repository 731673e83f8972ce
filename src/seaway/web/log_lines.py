"""Tail of a log, which pages read again and again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

MAX_LINES = 2_000
"""Lines of a log that a page shows."""


@dataclass(frozen=True, slots=True)
class News:
    """New lines of a log.

    Attributes
    ----------
    lines
        Lines to add.
    left_out
        Omitted lines before these.
    joins
        Whether no other lines are missing; if not, more than `left_out` are.
    restart
        Whether the log started over, so that earlier lines belong to another log.
    """

    lines: list[str]
    left_out: int = 0
    joins: bool = True
    restart: bool = False


def news(before: Sequence[str], now: Sequence[str], *, whole: bool) -> News:
    """Return the new lines of a log since it was last read.

    Parameters
    ----------
    before, now
        Last lines of the log.
    whole
        Whether `now` is the whole log.

    Examples
    --------
    >>> news(["a", "b"], ["b", "c"], whole=False)
    News(lines=['c'], left_out=0, joins=True, restart=False)
    >>> news(["a", "b"], ["d", "e"], whole=False)
    News(lines=['d', 'e'], left_out=0, joins=False, restart=False)
    """
    new = added(before, now, whole=whole)
    retained = list(now if new is None else new)[-MAX_LINES:]
    left_out = len(now if new is None else new) - len(retained)
    return News(retained, left_out, joins=new is not None or whole, restart=new is None and whole)


def added(before: Sequence[str], now: Sequence[str], *, whole: bool = False) -> list[str] | None:
    """Return the new lines of a log since it was last read; None if the two parts do not join.

    Parameters
    ----------
    before, now
        Last lines of the log. For repeated lines, the smallest number counts as new.
    whole
        Whether `now` is the whole log.

    Examples
    --------
    >>> added(["a", "b"], ["b", "c"]), added(["a", "b"], ["0", "a", "b", "c"]), added(["a"], ["c"])
    (['c'], ['c'], None)
    """
    if whole and list(now[: len(before)]) == list(before):
        return list(now[len(before) :])
    if not before:
        return list(now)
    for end in range(len(now), 0, -1):
        shared = min(end, len(before))
        if now[end - 1] == before[-1] and list(before[-shared:]) == list(now[end - shared : end]):
            return list(now[end:])
    return None
