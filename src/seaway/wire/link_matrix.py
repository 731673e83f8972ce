"""One figure of all links, from each gateway to each other, and which links are worst by it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any, Literal

from seaway.application.network.views import LinkView, Side
from seaway.wire.fleet import GatewayOut, gateway_fields
from seaway.wire.message import Shown


class LinkFigure(StrEnum):
    """A figure of a link."""

    LATENCY = "latency"
    """Round-trip time, nanoseconds."""
    JITTER = "jitter"
    """Nanoseconds."""
    LOSS = "loss"
    """Parts per million."""
    BANDWIDTH = "bandwidth"
    """What both interfaces can carry, Mbit/s."""
    FREE = "free"
    """What can still be promised to a job, Mbit/s."""


MORE_IS_BETTER = frozenset({LinkFigure.BANDWIDTH, LinkFigure.FREE})


class LinkMatrix(Shown):
    """One figure of all links. In `values` and `states` there is a list for each gateway, of what leads to each."""

    figure: LinkFigure
    gateways: list[GatewayOut]
    values: list[list[int | None]]
    """Null where nothing answers, or nobody knows, and from a gateway to itself."""
    states: list[list[Literal["told", "measured", "stale", "unknown"] | None]]
    """As of a link; null where there is none."""


def figure_of(view: LinkView, figure: LinkFigure) -> int | None:
    """Return a figure of a link that decisions go by; None where nothing answers, or nobody knows."""
    link = view.link
    if link is None or not view.counts:
        return None
    match figure:
        case LinkFigure.LATENCY:
            return link.latency_ns
        case LinkFigure.JITTER:
            return link.jitter_ns if link.answers else None
        case LinkFigure.LOSS:
            return link.loss_ppm
        case LinkFigure.BANDWIDTH:
            return link.bandwidth_mbps or None
        case LinkFigure.FREE:
            return view.left_mbps


def worst_first(view: LinkView, figure: LinkFigure) -> tuple[int, int]:
    """Return what sorts links: those that answer nothing, then from bad to good, then those that nobody knows."""
    if view.link is not None and view.counts and not view.link.answers:
        return 0, 0
    value = figure_of(view, figure)
    if value is None:
        return 2, 0
    return 1, value if figure in MORE_IS_BETTER else -value


def matrix_fields(views: Sequence[LinkView], sides: Mapping[str, Side], figure: LinkFigure) -> dict[str, Any]:
    """Show a figure of links as the fields of `LinkMatrix`."""
    names = sorted(sides)
    place = {name: at for at, name in enumerate(names)}
    values: list[list[int | None]] = [[None] * len(names) for _ in names]
    states: list[list[str | None]] = [[None] * len(names) for _ in names]
    for view in views:
        row, column = place.get(view.source), place.get(view.target)
        if row is not None and column is not None:
            values[row][column] = figure_of(view, figure)
            states[row][column] = view.state.value
    return {
        "figure": figure.value,
        "gateways": [gateway_fields(name, sides[name]) for name in names],
        "values": values,
        "states": states,
    }
