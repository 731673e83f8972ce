"""Graph of links: gateways on a circle, and an arc for each direction of a link; and the ring of a job."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from math import atan2, cos, degrees, hypot, pi, sin
from typing import TYPE_CHECKING, Any

from seaway.web.link_figures import FIGURES, Figure, Scale, loss_text, scale_of, share
from seaway.web.parts.link_map import Point
from seaway.web.words import Words

if TYPE_CHECKING:
    from seaway.wire.fleet import GatewayOut
    from seaway.wire.job_out import RingLinkOut
    from seaway.wire.links import KnownLinkOut

MAX_DRAWN = 60
"""Maximum number of links without a selected gateway. More links are unreadable."""

MAX_OF_ONE = 240
"""Maximum number of links of a selected gateway. Among a hundred gateways, one has 198."""

ATTRIBUTES = {"latency": "latency_ns", "jitter": "jitter_ns", "loss": "loss_ppm", "bandwidth": "bandwidth_mbps",
              "free": "free_mbps", "change": "change_percent"}  # fmt: skip
"""Attributes of a link in the API, by quantity."""

NO_STATES: Mapping[str, str] = {}

NO_PLACES: Mapping[str, Point] = {}

PIXELS_PER_LETTER = 7
"""Width of a letter of names, at most on average."""

LINES = {"stale": "dashed", "unknown": "dotted"}
"""Line styles of links without new measurements."""

LABELLED_GATEWAYS = 24
"""Number of gateways from which names are drawn along the radius."""


def value_of(link: KnownLinkOut, figure: Figure) -> int | None:
    """Return the value of a link; None if it is unknown or probes get no answer."""
    if link.state == "unknown" or (is_dead(link) and figure.name in ("latency", "jitter")):
        return None
    value: int | None = getattr(link, ATTRIBUTES[figure.name])
    return None if figure.name == "bandwidth" and not value else value


def is_dead(link: KnownLinkOut) -> bool:
    """Report whether probes over a link get no answer."""
    return link.state != "unknown" and link.loss_ppm is not None and link.latency_ns is None


def scale_for(links: Sequence[KnownLinkOut], figure: Figure) -> Scale:
    """Return the colours of links."""
    return scale_of(figure, [value for each in links if (value := value_of(each, figure)) is not None])


def graph(
    links: Sequence[KnownLinkOut],
    ends: Mapping[str, GatewayOut],
    scale: Scale,
    centre: str,
    words: Words,
    lost: Mapping[str, str] = NO_STATES,
    places: Mapping[str, Point] = NO_PLACES,
) -> dict[str, Any]:
    """Return the chart of links.

    Parameters
    ----------
    ends
        Gateways by name.
    centre
        Gateway in the middle; empty for none.
    lost
        States of the clusters behind gateways that do not answer, by gateway.
    places
        Places on a map by gateway; empty for a circle.
    """
    names = sorted({name for each in links for name in (each.source, each.target)}, key=lambda name: _side(ends, name))
    around = [name for name in names if name != centre]
    nodes = [_node(name, at, len(around), ends, words) for at, name in enumerate(around)]
    if centre in names:
        nodes.append({**_node(centre, 0, 1, ends, words), "x": 0, "y": 0, "symbolSize": 26})
    for each in nodes:
        if place := places.get(each["name"]):
            each |= {"x": place[0], "y": place[1], "symbolSize": 14, "label": {"position": "right"}}
        if state := lost.get(each["name"]):
            each["itemStyle"] = {"color": "var(--paper)", "borderColor": "var(--bad)", "borderWidth": 3}
            each["label"]["formatter"] = f"{each['name']} ({words(state)})"
            each["tip"] += f"<br>{escape(words(state))}"
    side = (
        24 + PIXELS_PER_LETTER * max(len(each["label"].get("formatter", each["name"])) for each in nodes)
        if nodes
        else 0
    )
    return {
        "animation": False,
        "tooltip": {
            ":formatter": "each => each.data.tip",
            "backgroundColor": "var(--paper)",
            "borderColor": "var(--line)",
            "textStyle": {"color": "var(--ink)"},
        },
        "series": [
            {
                "type": "graph",
                "layout": "none",
                "left": side,
                "right": side,
                "top": 40,
                "bottom": 40,
                "preserveAspect": "contain",
                "data": nodes,
                "links": [_arc(each, scale, words) for each in links],
                "edgeSymbol": ["none", "arrow"],
                "edgeSymbolSize": 7,
                "label": {
                    "show": True,
                    "color": "var(--ink)",
                    "fontSize": 12 if len(names) < LABELLED_GATEWAYS else 10,
                },
                "emphasis": {"focus": "adjacency", "lineStyle": {"width": 4}},
            }
        ],
    }


def _side(ends: Mapping[str, GatewayOut], name: str) -> tuple[bool, str]:
    """Return the sort key of a gateway. Gateways of clusters come first."""
    end = ends.get(name)
    return not (end and end.clusters), name


def _node(name: str, at: int, count: int, ends: Mapping[str, GatewayOut], words: Words) -> dict[str, Any]:
    angle = 2 * pi * at / max(1, count)
    x, y, end = sin(angle), -cos(angle), ends.get(name)
    of_cluster = bool(end and end.clusters)
    label: dict[str, Any] = {"position": "right" if x > 0.3 else "left" if x < -0.3 else "bottom" if y > 0 else "top"}
    if count >= LABELLED_GATEWAYS:
        degrees = 90 - 360 * at / count
        label = {"position": "right" if x >= 0 else "left", "rotate": degrees if x >= 0 else degrees + 180}
        label |= {"align": "left" if x >= 0 else "right"}
    return {
        "name": name,
        "x": 100 * x,
        "y": 100 * y,
        "symbol": "roundRect" if of_cluster else "circle",
        "symbolSize": 18 if count < LABELLED_GATEWAYS else 9,
        "itemStyle": {"color": "var(--core)" if of_cluster else "var(--memory)"},
        "label": label,
        "tip": f"<b>{escape(name)}</b><br>{escape(sorts_before(end, words))}",
    }


def sorts_before(end: GatewayOut | None, words: Words) -> str:
    """Describe the clusters or the site behind a gateway."""
    if end is None:
        return ""
    if end.standby:
        return words("standby gateway of cluster {clusters}", clusters=", ".join(end.clusters))
    if end.clusters:
        return words("gateway of cluster {clusters}", clusters=", ".join(end.clusters))
    return words("gateway of site {site}", site=end.site)


def figures_of(link: KnownLinkOut, words: Words) -> dict[str, str]:
    """Return all figures of a link as text, by the titles of the quantities."""
    dead = is_dead(link)
    return {
        each.title: words("no answer")
        if dead and each.name in ("latency", "jitter")
        else loss_text(link.loss_ppm, link.loss_bound_ppm)
        if each.name == "loss"
        else _change(link, words)
        if each.name == "change"
        else each.write(getattr(link, ATTRIBUTES[each.name]) or None)
        for each in FIGURES.values()
    }


def _change(link: KnownLinkOut, words: Words) -> str:
    """Format how far a link is above its usual figures, with the figure that is furthest."""
    titles = {
        "latency": words("Latency"),
        "jitter": words("Jitter"),
        "loss": words("Loss"),
        "traffic": words("Traffic"),
    }
    text = share(link.change_percent)
    return f"{text} ({titles[link.changed]})" if link.changed else text


def _arc(link: KnownLinkOut, scale: Scale, words: Words) -> dict[str, Any]:
    value = value_of(link, scale.figure)
    color = "var(--heat-dead)" if is_dead(link) else "var(--quiet)"
    if value is not None and not is_dead(link):
        color = f"var(--heat-{scale.step(value)})"
    line = "dotted" if is_dead(link) else LINES.get(link.state, "solid")
    tip = f"{escape(link.source)} → {escape(link.target)}"
    for title, text in figures_of(link, words).items():
        shown = f"<b>{escape(text)}</b>" if title == scale.figure.title else escape(text)
        tip += f"<br>{escape(words(title))}: {shown}"
    return {
        "source": link.source,
        "target": link.target,
        "lineStyle": {"color": color, "width": 2, "type": line, "curveness": 0.16, "opacity": 0.9},
        "tip": f"{tip}<br>{escape(words(link.state))}",
    }


BOX_WIDTH, BOX_HEIGHT = 150, 44
"""Size of a cluster in the drawing of a ring, in pixels."""


@dataclass(frozen=True, slots=True)
class RingArc:
    """Part of the drawing of a ring: a cluster, and the arrow to the next one.

    Attributes
    ----------
    x, y
        Centre of the cluster, pixels.
    path
        Path of the arrow.
    middle, angle
        Point of the arrow's head, and its direction in degrees.
    label, anchor
        Point of the text, and its side there: ``start``, ``middle`` or ``end``.
    """

    part: RingLinkOut
    x: int
    y: int
    path: str
    middle: tuple[int, int]
    angle: int
    label: tuple[int, int]
    anchor: str


@dataclass(frozen=True, slots=True)
class RingDrawing:
    """Drawing of a ring over clusters, clockwise from the left.

    Attributes
    ----------
    width, height
        Size in pixels.
    """

    width: int
    height: int
    arcs: Sequence[RingArc]


def ring_of(parts: Sequence[RingLinkOut]) -> RingDrawing:
    """Draw a ring over clusters."""
    count = len(parts)
    wide, high = 130 + 45 * count, 24 + 28 * count
    width, height = 2 * (wide + BOX_WIDTH // 2), 2 * (high + BOX_HEIGHT + 12)
    turns = [pi + 2 * pi * at / count for at in range(count)]
    points = [(width / 2 + wide * cos(turn), height / 2 + high * sin(turn)) for turn in turns]
    arcs = []
    for part, (x, y), (to_x, to_y) in zip(parts, points, [*points[1:], *points[:1]], strict=True):
        along_x, along_y = to_x - x, to_y - y
        length = hypot(along_x, along_y)
        out_x, out_y = along_y / length, -along_x / length
        bend = 60 if count == 2 else 24
        middle = ((x + to_x) / 2, (y + to_y) / 2)
        head = round(middle[0] + out_x * bend / 2), round(middle[1] + out_y * bend / 2)
        anchor = "middle" if abs(out_x) < 0.6 else "start" if out_x > 0 else "end"
        label = round(middle[0] + out_x * (bend / 2 + 14)), round(middle[1] + out_y * (bend / 2 + 24) - 4)
        path = f"M{x:.0f} {y:.0f} Q{middle[0] + out_x * bend:.0f} {middle[1] + out_y * bend:.0f} {to_x:.0f} {to_y:.0f}"
        arcs.append(
            RingArc(part, round(x), round(y), path, head, round(degrees(atan2(along_y, along_x))), label, anchor)
        )
    return RingDrawing(width, height, arcs)
