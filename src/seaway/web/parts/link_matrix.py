"""Matrix of links: a row for each selected gateway, a column for each gateway, and colours for a figure."""

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
"""Number of gateways up to which cells have figures and links; larger matrices have only colours."""

Wanted = Callable[["GatewayOut"], bool]
"""Function that reports whether the filters select a gateway's links."""


@dataclass(frozen=True, slots=True)
class Cell:
    """Cell of a matrix for a link.

    Attributes
    ----------
    look
        CSS classes of its colour and state; empty for no link.
    text
        Figure without the unit.
    """

    look: str
    text: str
    source: str
    target: str
    state: str


@dataclass(frozen=True, slots=True)
class Row:
    """Row of a gateway: its links to all others, or the links of all others to it."""

    name: str
    outward: bool
    cells: list[Cell]


@dataclass(frozen=True, slots=True)
class Rows:
    """Matrix of links.

    Attributes
    ----------
    both
        Whether each selected gateway has two rows, one for each direction.
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
    """Return the rows of the selected gateways, and the colours of their figures."""
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
    """Rendered matrix with its colours."""

    scale: Scale
    html: str


_DRAWN: dict[tuple[object, ...], tuple[LinkMatrix, Drawn]] = {}
"""Latest rendered matrices by figure, filters and language."""

MAX_CACHED = 32


def drawn(matrix: LinkMatrix, chosen: tuple[str, ...], wanted: Wanted, words: Words) -> Drawn:
    """Return a rendered matrix.

    All visitors with the same answer and filters share it: 9,900 cells take a while to render.

    Parameters
    ----------
    chosen
        Filters that `wanted` applies.
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


def _cell(  # a link and all that determines its look
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
