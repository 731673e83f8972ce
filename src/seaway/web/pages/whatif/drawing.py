"""Drawing of a what-if answer: a box for each cluster, and arrows for jobs that would move."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import ceil, sqrt
from typing import TYPE_CHECKING

from seaway.web.words import share

if TYPE_CHECKING:
    from seaway.wire.whatif import ClusterChangeOut, MoveOut, WhatIfOut

WIDTH, HEIGHT, GAP_X, GAP_Y, EDGE = 190, 84, 90, 64, 12
"""Size of boxes, gaps between them, and margin, in units of the drawing."""

MAX_ARROWS = 24
"""Maximum number of arrows. Only the largest flows have an arrow."""

MAX_BOXES = 60
"""Maximum number of boxes. Only the clusters with the largest changes have a box."""

THINNEST, THICKEST = 1.5, 9.0


@dataclass(frozen=True, slots=True)
class Box:
    """Box of a cluster.

    Attributes
    ----------
    x, y
        Upper left corner.
    kind
        ``lost`` if it accepts no more workloads, ``grown`` with additional nodes, ``less`` with fewer nodes, else
        ``same``.
    before, after
        Allocated GPU cores, in percent of all.
    """

    change: ClusterChangeOut
    x: int
    y: int
    kind: str
    before: float
    after: float


@dataclass(frozen=True, slots=True)
class Arrow:
    """Arrow for jobs that would move from one cluster to another.

    Attributes
    ----------
    path
        Path in SVG syntax.
    """

    source: str
    target: str
    jobs: int
    path: str
    width: float


@dataclass(frozen=True, slots=True)
class Drawing:
    """Drawing with its size. `left` is the number of clusters without a box."""

    width: int
    height: int
    boxes: Sequence[Box]
    arrows: Sequence[Arrow]
    left: int


def draw(answer: WhatIfOut) -> Drawing:
    """Draw an answer, with clusters in rows in the order of the fleet."""
    flows = flows_of(answer.moved)
    shown = _shown(answer.clusters)
    columns = max(1, min(4, ceil(sqrt(len(shown) * 1.4))))
    boxes = [_box(each, at % columns, at // columns) for at, each in enumerate(shown)]
    rows = ceil(len(shown) / columns)
    width = 2 * EDGE + columns * WIDTH + max(0, columns - 1) * GAP_X
    height = 2 * EDGE + rows * HEIGHT + max(0, rows - 1) * GAP_Y
    by_name = {each.change.name: each for each in boxes}
    return Drawing(width, height, boxes, list(_arrows(flows, by_name)), len(answer.clusters) - len(shown))


def flows_of(moved: Sequence[MoveOut]) -> Counter[tuple[str, str]]:
    """Count jobs by the clusters that they would leave and enter."""
    flows: Counter[tuple[str, str]] = Counter()
    for move in moved:
        before, after = ({place.partition("/")[0] for place in places} for places in (move.before, move.after))
        flows.update((source, target) for source in before - after for target in after - before)
    return flows


def _shown(clusters: Sequence[ClusterChangeOut]) -> list[ClusterChangeOut]:
    """Return the clusters to draw: all, or those with the largest changes, in the order of the fleet."""
    if len(clusters) <= MAX_BOXES:
        return list(clusters)
    most = sorted(clusters, key=_changes, reverse=True)[:MAX_BOXES]
    names = {each.name for each in most}
    return [each for each in clusters if each.name in names]


def _changes(change: ClusterChangeOut) -> int:
    return abs(change.after.jobs - change.before.jobs) + 100 * abs(change.after.nodes - change.before.nodes)


def _box(change: ClusterChangeOut, column: int, row: int) -> Box:
    before, after = change.before, change.after
    kind = "same"
    if after.nodes > before.nodes:
        kind = "grown"
    elif after.nodes < before.nodes:
        kind = "less" if after.nodes else "lost"
    return Box(
        change,
        EDGE + column * (WIDTH + GAP_X),
        EDGE + row * (HEIGHT + GAP_Y),
        kind,
        share(before.gpu_milli.used, before.gpu_milli.total),
        share(after.gpu_milli.used, after.gpu_milli.total),
    )


def _arrows(flows: Mapping[tuple[str, str], int], boxes: Mapping[str, Box]) -> Iterator[Arrow]:
    """Draw the largest flows between the edges of boxes.

    Arrows curve to their right, so that opposite arrows do not overlap.
    """
    there = [(jobs, pair) for pair, jobs in flows.items() if pair[0] in boxes and pair[1] in boxes]
    largest = sorted(there, key=lambda each: (-each[0], each[1]))[:MAX_ARROWS]
    most = max((jobs for jobs, _ in largest), default=1)
    for jobs, (source, target) in largest:
        x1, y1, x2, y2 = _ends(boxes[source], boxes[target])
        bow_x, bow_y = (y1 - y2) * 0.18, (x2 - x1) * 0.18
        middle_x, middle_y = (x1 + x2) / 2 + bow_x, (y1 + y2) / 2 + bow_y
        path = f"M{x1:.0f} {y1:.0f}Q{middle_x:.0f} {middle_y:.0f} {x2:.0f} {y2:.0f}"
        yield Arrow(source, target, jobs, path, THINNEST + (THICKEST - THINNEST) * jobs / most)


def _ends(source: Box, target: Box) -> tuple[float, float, float, float]:
    if source.y == target.y:
        right = target.x > source.x
        at = source.y + HEIGHT / 2 + (10 if right else -10)
        return (source.x + WIDTH, at, target.x - 6, at) if right else (source.x, at, target.x + WIDTH + 6, at)
    down = target.y > source.y
    shift = 14 if down else -14
    x1, x2 = source.x + WIDTH / 2 + shift, target.x + WIDTH / 2 + shift
    return (x1, source.y + HEIGHT, x2, target.y - 6) if down else (x1, source.y, x2, target.y + HEIGHT + 6)
