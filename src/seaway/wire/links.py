"""Links as they are shown: with all that is known of them, and in the form that measuring programs share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, RootModel

from seaway.application.network.views import LinkView, Side
from seaway.application.ports.agent import Reported
from seaway.application.records import LinkSample
from seaway.domain.network import PPM
from seaway.probing.figures import Figures
from seaway.wire.fleet import GatewayOut, gateway_fields
from seaway.wire.message import Shown
from seaway.wire.times import moment


class RoundOut(Shown):
    """The latest round of probes."""

    at: str
    """Start time, by the agent's clock."""
    sent: int
    received: int
    discarded: int
    """Answers with an impossible time; they count neither as sent nor as received."""
    latency_ns: int | None
    """Mean round-trip time of what was answered; null when nothing was."""
    jitter_ns: int
    loss_ppm: int


class SmoothedOut(Shown):
    """Figures smoothed over the latest rounds."""

    latency_ns: int | None
    jitter_ns: int
    loss_ppm: int


class KnownLinkOut(Shown):
    """A link between two gateways: what decisions go by, and what that comes from."""

    source: str
    target: str
    latency_ns: int | None
    """Round-trip time; null when nothing answered, or nothing is known."""
    jitter_ns: int | None
    """Null where nothing is known, like what follows."""
    loss_ppm: int | None
    """Lost echoes, parts per million."""
    bandwidth_mbps: int | None
    """Capacity of both interfaces; 0 if unknown."""
    used_mbps: int | None
    """Traffic that counts as that of others than jobs."""
    traffic_mbps: int | None
    """All traffic that was measured at the fuller end; null where no one knows, like `free_mbps`."""
    reserved_mbps: int
    """Reserved bandwidth of the interface at its fuller end."""
    free_mbps: int | None
    """Bandwidth that can still be reserved."""
    path: str
    """Active path; empty for the route of the underlying network."""
    state: Literal["reported", "measured", "stale", "unknown"]
    """`reported` by a cluster only; `measured`; `stale`: no recent round; or `unknown`."""
    age_s: float | None
    """Seconds since the latest round began; null without one."""
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
    """Null when nothing answered."""
    latency: int | None
    """Mean round-trip time; null when nothing answered."""
    packetLoss: float  # noqa: N815  # names that others share
    """Share of probes that were not answered, 0 to 1."""
    bandwidth: int | None = None
    """Free bandwidth, Mbit/s; absent if unknown."""
    capacity: int | None = None
    """Capacity of both interfaces, Mbit/s; absent if unknown."""


class NetLink(BaseModel):
    """A link as programs that measure networks write it."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    sourceName: str  # noqa: N815  # names that others share
    targetName: str  # noqa: N815
    sourceIP: str  # noqa: N815
    targetIP: str  # noqa: N815
    net: NetFigures
    at: str | None = None
    """Time of the measurement; absent for present figures."""


class NetLinks(RootModel[list[NetLink]]):
    """Links with their figures."""


def known_link_fields(view: LinkView) -> dict[str, Any]:
    """Show a link as the fields of `KnownLinkOut`."""
    link = view.link
    return {
        "source": view.source,
        "target": view.target,
        "latency_ns": link.latency_ns if link else None,
        "jitter_ns": link.jitter_ns if link else None,
        "loss_ppm": link.loss_ppm if link else None,
        "bandwidth_mbps": link.bandwidth_mbps if link else None,
        "used_mbps": link.used_mbps if link else None,
        "traffic_mbps": view.traffic_mbps,
        "reserved_mbps": view.reserved_mbps,
        "free_mbps": view.left_mbps,
        "path": view.path,
        "state": view.state.value,
        "age_s": None if view.age_s is None else round(view.age_s, 1),
        "raw": None if view.raw is None else _round_fields(view.raw),
        "smoothed": None if view.smoothed is None else _figures_fields(view.smoothed),
    }


def net_link_fields(view: LinkView, sides: dict[str, Side]) -> dict[str, Any]:
    """Show what was measured of a link last as the fields of `NetLink`; only of one of which something counts."""
    seen = view.latest
    assert seen is not None, "who knows a link knows figures of it"
    free = () if view.free_mbps is None or view.link is None else (view.free_mbps, view.link.bandwidth_mbps)
    return _net_fields(view.source, view.target, sides, seen, free)


def net_sample_fields(sample: LinkSample, sides: dict[str, Side]) -> dict[str, Any]:
    """Show what was measured of a link at one time as the fields of `NetLink`."""
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
    """Nanoseconds."""
    LOSS = "loss"
    """Parts per million."""
    BANDWIDTH = "bandwidth"
    """Capacity of both interfaces, Mbit/s."""
    FREE = "free"
    """Bandwidth that can still be reserved, Mbit/s."""


MORE_IS_BETTER = frozenset({LinkFigure.BANDWIDTH, LinkFigure.FREE})


class LinkMatrix(Shown):
    """One figure of all links. In `values` and `states` there is a list for each gateway, of what leads to each."""

    figure: LinkFigure
    gateways: list[GatewayOut]
    values: list[list[int | None]]
    """Null where nothing answers, or no one knows, and from a gateway to itself."""
    states: list[list[Literal["reported", "measured", "stale", "unknown"] | None]]
    """States of links; null without a link."""


def figure_of(view: LinkView, figure: LinkFigure) -> int | None:
    """Return a figure of a link that decisions go by; None where nothing answers, or no one knows."""
    link = view.link
    if link is None or not view.counts:
        return None
    match figure:
        case LinkFigure.LATENCY:
            return link.latency_ns
        case LinkFigure.JITTER:
            return link.jitter_ns if link.reachable else None
        case LinkFigure.LOSS:
            return link.loss_ppm
        case LinkFigure.BANDWIDTH:
            return link.bandwidth_mbps or None
        case LinkFigure.FREE:
            return view.left_mbps


def worst_first(view: LinkView, figure: LinkFigure) -> tuple[int, int]:
    """Return what sorts links: those that answer nothing, then from bad to good, then those that no one knows."""
    if view.link is not None and view.counts and not view.link.reachable:
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
