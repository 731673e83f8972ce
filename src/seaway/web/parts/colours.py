"""Which colour stands for whom: the same name has the same one everywhere, unless two of a page would look alike."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from zlib import crc32

COLOURS = 10
"""How many there are; `static/fleet.css` has them."""


def colours_of(names: Iterable[str]) -> Mapping[str, int]:
    """Give each name a colour, 0 to `COLOURS` - 1; two have the same one only where there are more than that."""
    found: dict[str, int] = {}
    taken: set[int] = set()
    for name in sorted(set(names)):
        at = crc32(name.encode()) % COLOURS
        if len(taken) == COLOURS:
            taken.clear()
        while at in taken:
            at = (at + 1) % COLOURS
        taken.add(at)
        found[name] = at
    return found
