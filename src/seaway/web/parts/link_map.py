"""Places of gateways on a map: by the coordinates of their clusters, north is up."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from math import cos, hypot, pi, radians, sin
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from seaway.wire.fleet import ClusterOut, GatewayOut

Point = tuple[float, float]
"""A place in the drawing; x grows to the right, y to the bottom."""

SIZE = 200.0
"""Larger extent of the map."""

LEAST = 14.0
"""Minimum distance of two gateways."""

FULL_TURN = 360.0


def places_of(names: Iterable[str], ends: Mapping[str, GatewayOut], clusters: Sequence[ClusterOut]) -> dict[str, Point]:
    """Return the places of gateways; empty if none of their clusters has coordinates.

    Gateways without coordinates, such as those of user sites, are in a row below the map. The projection keeps
    distances along the middle latitude (equirectangular).
    """
    known = {each.name: each.location for each in clusters if each.location}
    located, others = dict[str, Point](), []
    for name in sorted(names):
        where = next((known[each] for each in ends[name].clusters if each in known), None) if name in ends else None
        if where:
            located[name] = where.longitude, where.latitude
        else:
            others.append(name)
    if not located:
        return {}
    west = _west(x for x, _ in located.values())
    middle = cos(radians(sum(y for _, y in located.values()) / len(located)))
    flat = {name: ((x - west) % FULL_TURN * middle, -y) for name, (x, y) in located.items()}
    xs, ys = zip(*flat.values(), strict=True)
    scale = SIZE / max(max(xs) - min(xs), max(ys) - min(ys), 1e-6) if len(flat) > 1 else 1.0
    points = {name: ((x - min(xs)) * scale, (y - min(ys)) * scale) for name, (x, y) in flat.items()}
    _part(points)
    below = max(y for _, y in points.values()) + 3 * LEAST
    wide = max(SIZE, 3 * LEAST * len(others))
    points |= {name: (wide * (at + 0.5) / len(others), below) for at, name in enumerate(others)}
    return points


def _west(longitudes: Iterable[float]) -> float:
    """Return the longitude at which a map begins, so that it is as narrow as possible, also across the date line."""
    ordered = sorted(set(longitudes))
    gaps = [(after - before, after) for before, after in pairwise(ordered)]
    return max([*gaps, (ordered[0] + FULL_TURN - ordered[-1], ordered[0])])[1]


def _part(points: dict[str, Point]) -> None:
    """Move gateways of the same place apart, on a spiral around it."""
    taken: list[Point] = []
    for name, (x, y) in points.items():
        turn = 0
        place = x, y
        while any(hypot(place[0] - to_x, place[1] - to_y) < LEAST for to_x, to_y in taken):
            turn += 1
            out = LEAST * (1 + turn // 8)
            place = x + out * cos(pi * turn / 4), y + out * sin(pi * turn / 4)
        points[name] = place
        taken.append(place)
