"""Formats and colours of the quantities of links.

Numbers have no locale: English and Chinese format them in the same way, and a matrix has thousands of them.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import pairwise
from math import log

from seaway.domain.units import loss_bound_percent

NS_PER_MS = 1_000_000
PPM_PER_PERCENT = 10_000
MBPS_PER_GBPS = 1000

STEPS = 5
"""Number of colours; 0 is the best."""

OUTLIER = 2.5
"""Ratio of the worst value to the edge of the worst fifth from which it is far beyond the others."""

NONE = "–"
"""Text of an unknown value."""


def plain(number: float) -> str:
    """Format a number with three significant digits, or more if it is large."""
    if number and abs(number) < 0.01:
        return "<0.01" if number > 0 else f"{number:.2g}"
    digits = 2 if abs(number) < 10 else 1 if abs(number) < 100 else 0
    text = f"{number:,.{digits}f}"
    return text.rstrip("0").rstrip(".") if digits else text


def milliseconds(ns: int | None) -> str:
    """Format a time given in nanoseconds."""
    return NONE if ns is None else f"{plain(ns / NS_PER_MS)} ms"


def percent(ppm: int | None) -> str:
    """Format a share given in parts per million."""
    return NONE if ppm is None else f"{plain(ppm / PPM_PER_PERCENT)} %"


def share(of_usual: int | None) -> str:
    """Format a share given in percent."""
    return NONE if of_usual is None else f"{of_usual} %"


def loss_text(ppm: int | None, bound_ppm: int | None) -> str:
    """Format a loss; a loss of 0 as its upper bound, if that is known."""
    return f"< {loss_bound_percent(bound_ppm)} %" if bound_ppm and not ppm else percent(ppm)


def rate(mbps: int | None) -> str:
    """Format a bandwidth given in Mbit/s."""
    if mbps is None:
        return NONE
    return f"{plain(mbps / MBPS_PER_GBPS)} Gbit/s" if mbps >= MBPS_PER_GBPS else f"{plain(mbps)} Mbit/s"


def _axis_steps(first: int, decades: int) -> tuple[int, ...]:
    return tuple(first * 10**decade * rung // 10 for decade in range(decades) for rung in (10, 15, 20, 30, 40, 50, 70))


@dataclass(frozen=True, slots=True)
class Figure:
    """Quantity of a link.

    Attributes
    ----------
    name
        Name in the API.
    title
        Title in English.
    unit, per_unit
        Unit of the numbers in cells, and its size in the API's unit.
    write
        Formats a value with its unit.
    steps
        Candidate edges between colours, in the API's unit.
    fixed
        Fixed edges between colours; empty to derive them from the values.
    more_is_better
        True if the largest values are best.
    """

    name: str
    title: str
    unit: str
    per_unit: int
    write: Callable[[int | None], str]
    steps: tuple[int, ...]
    fixed: tuple[int, ...] = ()
    more_is_better: bool = False

    def number(self, value: int) -> str:
        """Format a value without its unit."""
        return plain(value / self.per_unit)


_TIMES = _axis_steps(10_000, 6)
_RATES = _axis_steps(10, 6)

FIGURES = {
    each.name: each
    for each in (
        Figure("latency", "Latency", "ms", NS_PER_MS, milliseconds, _TIMES),
        Figure("jitter", "Jitter", "ms", NS_PER_MS, milliseconds, _TIMES),
        Figure("loss", "Loss", "%", PPM_PER_PERCENT, percent, (), (1, 1_000, 10_000, 50_000)),
        Figure("bandwidth", "Bandwidth", "Mbit/s", 1, rate, _RATES, more_is_better=True),
        Figure("free", "Free bandwidth", "Mbit/s", 1, rate, _RATES, more_is_better=True),
        Figure("change", "Against usual", "%", 1, share, (), (110, 130, 160, 200)),
    )
}
"""Quantities by name. The edges of times start at 0.01 ms, and those of bandwidths at 10 Mbit/s."""


@dataclass(frozen=True, slots=True)
class Scale:
    """Colours of the values of a quantity.

    Attributes
    ----------
    edges
        Lowest value of each class except the first, ascending; fewer than `STEPS`.
    """

    figure: Figure
    edges: tuple[int, ...]

    def step(self, value: int) -> int:
        """Return the colour of a value, from 0 (best) to `STEPS` - 1."""
        at = bisect_right(self.edges, value)
        return len(self.edges) - at if self.figure.more_is_better else at

    def classes(self) -> list[tuple[int, str]]:
        """Return the colours with their ranges, the best first."""
        edges, write = self.edges, self.figure.write
        texts = [f"< {write(edges[0])}" if edges else ""]
        texts += [f"{write(low)} – {write(high)}" for low, high in pairwise(edges)]
        texts += [f"≥ {write(edges[-1])}"] if edges else []
        if self.figure.fixed and edges[0] == 1:  # only 0 is below the first edge
            texts[:2] = [write(0), f"< {write(edges[1])}"]
        return list(enumerate(reversed(texts) if self.figure.more_is_better else texts))


def scale_of(figure: Figure, values: Iterable[int]) -> Scale:
    """Return the colours for values. Edges are chosen from the candidates of the quantity, so that they seldom change.

    Classes have about equally many values. If values are close together, there are fewer classes, the better ones. If
    the worst value is far beyond the others, the last class has only what is near it.
    """
    if figure.fixed:
        return Scale(figure, figure.fixed)
    ordered = sorted(values)
    if not ordered:
        return Scale(figure, ())
    shares = [ordered[len(ordered) * part // STEPS] for part in range(1, STEPS)]
    if not figure.more_is_better and ordered[-1] >= OUTLIER * shares[-1]:
        shares[-1] = round((shares[-1] * ordered[-1]) ** 0.5)
    near = {min(figure.steps, key=lambda rung: abs(log(rung / max(share, 1)))) for share in shares}
    return Scale(figure, tuple(sorted(rung for rung in near if ordered[0] < rung <= ordered[-1])))
