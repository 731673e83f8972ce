"""The end of a log, looked at again and again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

MAX_LINES = 2_000
"""Lines of a log that a page keeps."""


@dataclass(frozen=True, slots=True)
class News:
    """What a log has that was not there before.

    Attributes
    ----------
    lines
        What is to be added.
    left_out
        How many lines came before these that are not among them.
    joins
        Whether nothing else is missing; else more than `left_out` are.
    again
        Whether the log started over: what was there before is of another.
    """

    lines: list[str]
    left_out: int = 0
    joins: bool = True
    restart: bool = False


def news(before: Sequence[str], now: Sequence[str], *, whole: bool) -> News:
    """Return what is new in a log since its end was looked at before.

    Parameters
    ----------
    before, now
        Its last lines.
    whole
        Whether `now` is all that there is of it.

    Examples
    --------
    >>> news(["a", "b"], ["b", "c"], whole=False)
    News(lines=['c'], left_out=0, joins=True, again=False)
    >>> news(["a", "b"], ["d", "e"], whole=False)
    News(lines=['d', 'e'], left_out=0, joins=False, again=False)
    """
    new = added(before, now, whole=whole)
    retained = list(now if new is None else new)[-MAX_LINES:]
    left_out = len(now if new is None else new) - len(retained)
    return News(retained, left_out, joins=new is not None or whole, restart=new is None and whole)


def added(before: Sequence[str], now: Sequence[str], *, whole: bool = False) -> list[str] | None:
    """Return the lines that came since a log's end was looked at before; None where the two do not join.

    Parameters
    ----------
    before, now
        Its last lines; where they repeat themselves, as few as can be count as new.
    whole
        Whether `now` is all that there is of it.

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
