"""Views of links, in detail and in the format of network measurement programs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, RootModel

from seaway.application.network.views import LinkView, Side
from seaway.application.ports.agent import Reported
from seaway.application.records import LinkSample
from seaway.domain.network import PPM
from seaway.probing.rounds import Figures
from seaway.wire.fields import moment
from seaway.wire.fleet import GatewayOut, gateway_fields
from seaway.wire.message import Shown, fields_of


class RoundOut(Shown):
    """The latest round of probes."""

    at: str
    """Start time by the agent's clock."""
    sent: int
    received: int
    discarded: int
    """Number of answers with an impossible time; they count neither as sent nor as received."""
    latency_ns: int | None
    """Mean round-trip time of the answered probes; null without answers."""
    jitter_ns: int
    loss_ppm: int


class SmoothedOut(Shown):
    """Figures smoothed over the latest rounds."""

    latency_ns: int | None
    jitter_ns: int
    loss_ppm: int


class KnownLinkOut(Shown):
    """A link between two gateways: the figures for decisions, and the underlying measurements."""

    source: str
    target: str
    latency_ns: int | None
    """Round-trip time; null if no probe was answered or if unknown."""
    jitter_ns: int | None
    """Variation of the round-trip time; null if unknown, like the next three fields."""
    loss_ppm: int | None
    """Lost probes, parts per million."""
    loss_bound_ppm: int | None = None
    """Upper bound of a loss of 0: one more probe of the window would show it. Null for a measured loss."""
    bandwidth_mbps: int | None
    """Capacity of both interfaces; 0 if unknown."""
    used_mbps: int | None
    """Traffic that does not belong to jobs."""
    traffic_mbps: int | None
    """Total traffic at the busier end; null if unknown, like `free_mbps`."""
    reserved_mbps: int
    """Reserved bandwidth of the interface at the busier end."""
    free_mbps: int | None
    """Bandwidth that can still be reserved."""
    usual_latency_ns: int | None = None
    """Median latency of the last day; null with few samples, like the next three fields."""
    usual_jitter_ns: int | None = None
    usual_loss_ppm: int | None = None
    usual_traffic_mbps: int | None = None
    changed: Literal["latency", "jitter", "loss", "traffic"] | None = None
    """The figure that is furthest above the usual one; null if none is."""
    change_percent: int | None = None
    """The figure furthest above, or least below, in percent of the usual one; null if none can be compared."""
    path: str
    """Active path; empty for the route of the underlying network."""
    state: Literal["reported", "measured", "stale", "unknown"]
    """`reported` by a cluster only; `measured`; `stale`: no recent round; or `unknown`."""
    age_s: float | None
    """Seconds since the start of the latest round; null without a round."""
    raw: RoundOut | None
    smoothed: SmoothedOut | None


class LinkList(Shown):
    """Links."""

    links: list[KnownLinkOut]
    total: int
    """Number of matches, including those beyond `limit`."""


class NetFigures(BaseModel):
    """Figures of a link; times in nanoseconds."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    jitter: int | None
    """Variation of the round-trip time; null without answers."""
    latency: int | None
    """Mean round-trip time; null without answers."""
    packetLoss: float  # noqa: N815  # names of a common format
    """Share of unanswered probes, 0 to 1."""
    bandwidth: int | None = None
    """Free bandwidth, Mbit/s; absent if unknown."""
    capacity: int | None = None
    """Capacity of both interfaces, Mbit/s; absent if unknown."""


class NetLink(BaseModel):
    """A link in the format of network measurement programs."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    sourceName: str  # noqa: N815  # names of a common format
    targetName: str  # noqa: N815
    sourceIP: str  # noqa: N815
    targetIP: str  # noqa: N815
    net: NetFigures
    at: str | None = None
    """Time of the measurement; absent for current figures."""


class NetLinks(RootModel[list[NetLink]]):
    """Links with their figures."""


def known_link_fields(view: LinkView) -> dict[str, Any]:
    """Return the fields of `KnownLinkOut` for a link."""
    link = view.link
    return fields_of(
        KnownLinkOut,
        view,
        latency_ns=link.latency_ns if link else None,
        jitter_ns=link.jitter_ns if link else None,
        loss_ppm=link.loss_ppm if link else None,
        bandwidth_mbps=link.bandwidth_mbps if link else None,
        used_mbps=link.used_mbps if link else None,
        free_mbps=view.left_mbps,
        usual_latency_ns=view.usual.latency_ns,
        usual_jitter_ns=view.usual.jitter_ns,
        usual_loss_ppm=view.usual.loss_ppm,
        usual_traffic_mbps=view.usual.traffic_mbps,
        age_s=None if view.age_s is None else round(view.age_s, 1),
        raw=None if view.raw is None else _round_fields(view.raw),
        smoothed=None if view.smoothed is None else _figures_fields(view.smoothed),
    )


def net_link_fields(view: LinkView, sides: dict[str, Side]) -> dict[str, Any]:
    """Return the fields of `NetLink` for the latest measurement of a link, which must have one."""
    seen = view.latest
    assert seen is not None, "a link has figures"
    free = () if view.free_mbps is None or view.link is None else (view.free_mbps, view.link.bandwidth_mbps)
    return _net_fields(view.source, view.target, sides, seen, free)


def net_sample_fields(sample: LinkSample, sides: dict[str, Side]) -> dict[str, Any]:
    """Return the fields of `NetLink` for a sample."""
    seen = Figures(sample.latency_ns, sample.jitter_ns, sample.loss_ppm)
    total = sample.bandwidth_mbps
    free = (max(0, total - sample.used_mbps), total) if total else ()
    return {**_net_fields(sample.source, sample.target, sides, seen, free), "at": moment(sample.at_ns)}


def _net_fields(
    source: str, target: str, sides: dict[str, Side], seen: Figures, free: tuple[int, ...]
) -> dict[str, Any]:
    jitter_ns = None if seen.latency_ns is None else seen.jitter_ns
    loss = seen.loss_ppm / PPM if seen.loss_ppm % PPM else seen.loss_ppm // PPM
    return {
        "sourceName": source,
        "targetName": target,
        "sourceIP": sides[source].address if source in sides else "",
        "targetIP": sides[target].address if target in sides else "",
        "net": {
            "jitter": jitter_ns,
            "latency": seen.latency_ns,
            "packetLoss": loss,
            **dict(zip(("bandwidth", "capacity"), free, strict=False)),
        },
    }


def _round_fields(raw: Reported) -> dict[str, Any]:
    return {
        "at": moment(max(0, raw.at_ns)),
        "sent": raw.sent,
        "received": raw.received,
        "discarded": raw.discarded,
        "latency_ns": raw.latency_ns,
        "jitter_ns": raw.jitter_ns,
        "loss_ppm": (raw.sent - raw.received) * PPM // raw.sent,
    }


def _figures_fields(figures: Figures) -> dict[str, Any]:
    return {"latency_ns": figures.latency_ns, "jitter_ns": figures.jitter_ns, "loss_ppm": figures.loss_ppm}


class LinkFigure(StrEnum):
    """A figure of a link."""

    LATENCY = "latency"
    """Round-trip time, nanoseconds."""
    JITTER = "jitter"
    """Variation of the round-trip time, nanoseconds."""
    LOSS = "loss"
    """Lost probes, parts per million."""
    BANDWIDTH = "bandwidth"
    """Capacity of both interfaces, Mbit/s."""
    FREE = "free"
    """Bandwidth that can still be reserved, Mbit/s."""
    CHANGE = "change"
    """The figure that is furthest above the usual one, in percent of it."""


MORE_IS_BETTER = frozenset({LinkFigure.BANDWIDTH, LinkFigure.FREE})


class LinkMatrix(Shown):
    """One figure of all links. Rows of `values` and `states` are source gateways, columns are targets."""

    figure: LinkFigure
    gateways: list[GatewayOut]
    values: list[list[int | None]]
    """Values; null without an answer, if unknown, and for a gateway to itself."""
    states: list[list[Literal["reported", "measured", "stale", "unknown"] | None]]
    """States of links; null without a link."""
    bounds: list[list[int | None]]
    """Upper bounds of losses of 0; null for other losses. Empty for other figures."""


def figure_of(view: LinkView, figure: LinkFigure) -> int | None:
    """Return a figure of a link for decisions; None without an answer or if unknown."""
    link = view.link
    if link is None or not view.counts:
        return None
    value: int | None
    match figure:
        case LinkFigure.LATENCY:
            value = link.latency_ns
        case LinkFigure.JITTER:
            value = link.jitter_ns if link.reachable else None
        case LinkFigure.LOSS:
            value = link.loss_ppm
        case LinkFigure.BANDWIDTH:
            value = link.bandwidth_mbps or None
        case LinkFigure.FREE:
            value = view.left_mbps
        case LinkFigure.CHANGE:
            value = view.change_percent
    return value


def worst_first(view: LinkView, figure: LinkFigure) -> tuple[int, int]:
    """Return a sort key of links: unreachable ones first, then from worst to best, then unknown ones."""
    if view.link is not None and view.counts and not view.link.reachable:
        return 0, 0
    value = figure_of(view, figure)
    if value is None:
        return 2, 0
    return 1, value if figure in MORE_IS_BETTER else -value


def matrix_fields(views: Sequence[LinkView], sides: Mapping[str, Side], figure: LinkFigure) -> dict[str, Any]:
    """Return the fields of `LinkMatrix` for a figure of links."""
    names = sorted(sides)
    place = {name: at for at, name in enumerate(names)}
    values: list[list[int | None]] = [[None] * len(names) for _ in names]
    states: list[list[str | None]] = [[None] * len(names) for _ in names]
    bounds: list[list[int | None]] = [[None] * len(names) for _ in names] if figure is LinkFigure.LOSS else []
    for view in views:
        row, column = place.get(view.source), place.get(view.target)
        if row is not None and column is not None:
            values[row][column] = figure_of(view, figure)
            states[row][column] = view.state.value
            if bounds:
                bounds[row][column] = view.loss_bound_ppm
    return {
        "figure": figure.value,
        "gateways": [gateway_fields(name, sides[name]) for name in names],
        "values": values,
        "states": states,
        "bounds": bounds,
    }
