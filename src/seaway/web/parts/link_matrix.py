"""Links as a matrix: a row for each gateway that is looked at, a column for each other, and a colour for a figure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from seaway.web.fragment import written
from seaway.web.link_figures import FIGURES, NONE, Scale, scale_of
from seaway.web.words import Words

if TYPE_CHECKING:
    from seaway.wire.fleet import GatewayOut
    from seaway.wire.links import LinkMatrix

WRITTEN = 20
"""Up to so many gateways have figures in their cells, and cells that lead to links; more have colours alone."""

Wanted = Callable[["GatewayOut"], bool]
"""Tells whether links that begin or end at a gateway are looked at."""


@dataclass(frozen=True, slots=True)
class Cell:
    """A link in a matrix.

    Attributes
    ----------
    look
        Its classes: a colour, and what else is to be told apart; empty where there is no link.
    text
        Its figure without the unit.
    """

    look: str
    text: str
    source: str
    target: str
    state: str


@dataclass(frozen=True, slots=True)
class Row:
    """A gateway, and its links to all others, or those of all others to it."""

    name: str
    outward: bool
    cells: list[Cell]


@dataclass(frozen=True, slots=True)
class Rows:
    """A matrix.

    Attributes
    ----------
    both
        Whether there is a row for each direction of those that are looked at, not one for each gateway.
    """

    scale: Scale
    columns: list[str]
    rows: list[Row]
    both: bool

    @property
    def written(self) -> bool:
        """True if there is room for figures."""
        return len(self.columns) <= WRITTEN


def rows_of(matrix: LinkMatrix, wanted: Wanted, words: Words) -> Rows:
    """Return the rows that are looked at, and the colours that tell their figures apart."""
    figure = FIGURES[matrix.figure]
    names = [each.name for each in matrix.gateways]
    chosen = [at for at, each in enumerate(matrix.gateways) if wanted(each)]
    both = len(chosen) < len(names)
    ways = [(at, outward) for at in chosen for outward in ((True, False) if both else (True,))]
    pairs = [[(at, to) if outward else (to, at) for to in range(len(names))] for at, outward in ways]
    known = [value for row in pairs for near, far in row if (value := matrix.values[near][far]) is not None]
    scale = scale_of(figure, known)
    cells = [[_cell(matrix, names, near, far, scale, words) for near, far in row] for row in pairs]
    rows = [Row(names[at], outward, row) for (at, outward), row in zip(ways, cells, strict=True)]
    return Rows(scale, names, rows, both)


@dataclass(frozen=True, slots=True)
class Drawn:
    """A matrix as it is shown: its colours, and its HTML."""

    scale: Scale
    html: str


_DRAWN: dict[tuple[object, ...], tuple[LinkMatrix, Drawn]] = {}
"""What was drawn last for whoever looks at the same."""

MAX_CACHED = 32


def drawn(matrix: LinkMatrix, chosen: tuple[str, ...], wanted: Wanted, words: Words) -> Drawn:
    """Return a matrix as it is shown.

    It is written once for all who look at the same answer in the same way: 9,900 cells take a while.

    Parameters
    ----------
    chosen
        What `wanted` goes by.
    """
    key = matrix.figure, chosen, words.language
    known = _DRAWN.pop(key, None)
    if known is None or known[0] is not matrix:
        figure, rows = FIGURES[matrix.figure], rows_of(matrix, wanted, words)
        caption = words("{figure} of links, in {unit}", figure=words(figure.title), unit=figure.unit)
        known = matrix, Drawn(rows.scale, written("link_matrix", words, matrix=rows, unit=figure.unit, caption=caption))
    _DRAWN[key] = known
    while len(_DRAWN) > MAX_CACHED:
        del _DRAWN[next(iter(_DRAWN))]
    return known[1]


def _cell(  # a link, and all that says how it looks
    matrix: LinkMatrix, names: Sequence[str], near: int, far: int, scale: Scale, words: Words
) -> Cell:
    value, state = matrix.values[near][far], matrix.states[near][far]
    if state is None:
        return Cell("", "", names[near], names[far], "")
    if state == "unknown":
        look, text = "unknown", "?"
    elif value is None:
        nothing_answers = scale.figure.name in ("latency", "jitter")
        look, text = ("dead", words("dead")) if nothing_answers else ("unknown", NONE)
    else:
        look, text = f"h{scale.step(value)}", scale.figure.number(value)
    return Cell(f"{look} stale" if state == "stale" else look, text, names[near], names[far], words(state))
