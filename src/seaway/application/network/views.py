"""Views of links for users and programs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from seaway.application.ports.agent import Reported
from seaway.domain.network import PPM, Link
from seaway.probing.rounds import Figures

Asked = Callable[[str, str], bool]
"""Filter of links, by source and target."""


class LinkState(Enum):
    """State of the measurement of a link."""

    REPORTED = "reported"
    """Reported by a cluster, not measured."""
    MEASURED = "measured"
    STALE = "stale"
    """No recent round; the last figures remain valid."""
    UNKNOWN = "unknown"
    """No round yet, or the figures expired since the last round."""


FRESH = frozenset({LinkState.REPORTED, LinkState.MEASURED})
"""States with metrics. Metrics cannot mark figures as outdated."""


LEAST_JITTER_NS, LEAST_LOSS_PPM = 100_000, 1_000
"""Jitter and loss that are added to present and usual ones before they are compared."""


UNCHANGED = 100
"""Percent of the usual figure."""


@dataclass(frozen=True, slots=True)
class Usual:
    """Usual figures of a link: medians of the last day. None with few samples."""

    latency_ns: int | None = None
    jitter_ns: int | None = None
    loss_ppm: int | None = None
    traffic_mbps: int | None = None


NOTHING_USUAL = Usual()


@dataclass(frozen=True, slots=True)
class LinkView:
    """View of a link.

    Attributes
    ----------
    link
        Figures for decisions; None for a link without measurements.
    path
        Measured path; empty for the default route.
    age_s
        Seconds since the start of the latest round; None without a round.
    raw
        The latest round; None without a round.
    smoothed
        Figures smoothed over the latest rounds.
    traffic_mbps
        Total traffic of the busier end, Mbit/s; None if unknown.
    reserved_mbps
        Reserved bandwidth of the interface at the busier end, Mbit/s.
    left_mbps
        Bandwidth that can still be reserved, Mbit/s; None if unknown.
    loss_bound_ppm
        Upper bound of a loss of 0, because the window has too few probes to see a smaller one. None if the loss was
        measured, or if the number of probes is unknown.
    """

    source: str
    target: str
    link: Link | None
    path: str = ""
    state: LinkState = LinkState.REPORTED
    age_s: float | None = None
    raw: Reported | None = None
    smoothed: Figures | None = None
    traffic_mbps: int | None = None
    reserved_mbps: int = 0
    left_mbps: int | None = None
    loss_bound_ppm: int | None = None
    usual: Usual = NOTHING_USUAL

    @property
    def counts(self) -> bool:
        """True if the link has valid figures."""
        return self.state is not LinkState.UNKNOWN and self.link is not None

    @property
    def changes(self) -> dict[str, int]:
        """Figures in percent of the usual ones, without unknown ones.

        Both sides get a tenth of the usual latency more as jitter, `LEAST_LOSS_PPM` of loss, and half of the bandwidth
        as traffic, so that changes of small figures do not count.
        """
        link, usual = self.link, self.usual
        if link is None or not self.counts or link.latency_ns is None:
            return {}
        jitter_ns = max(LEAST_JITTER_NS, (usual.latency_ns or 0) // 10)
        of_traffic = link.bandwidth_mbps // 2
        compared = (
            ("latency", link.latency_ns, usual.latency_ns, 0),
            ("jitter", link.jitter_ns, usual.jitter_ns, jitter_ns),
            ("loss", link.loss_ppm, usual.loss_ppm, LEAST_LOSS_PPM),
            ("traffic", self.traffic_mbps if of_traffic else None, usual.traffic_mbps, of_traffic),
        )
        return {
            name: 100 * (present + more) // (usually + more)
            for name, present, usually, more in compared
            if present is not None and usually is not None and usually + more
        }

    @property
    def changed(self) -> str | None:
        """The figure that is furthest above the usual one; None if none is."""
        above = {name: percent for name, percent in self.changes.items() if percent > UNCHANGED}
        return max(above, key=above.__getitem__, default=None)

    @property
    def change_percent(self) -> int | None:
        """The figure that is furthest above, or least below, in percent of the usual one; None if none is known."""
        return max(self.changes.values(), default=None)

    @property
    def latest(self) -> Figures | None:
        """Figures of the latest round or of the report of a cluster; None without either."""
        if self.raw:
            lost = self.raw.sent - self.raw.received
            return Figures(self.raw.latency_ns, self.raw.jitter_ns, lost * PPM // self.raw.sent)
        return Figures(self.link.latency_ns, self.link.jitter_ns, self.link.loss_ppm) if self.link else None

    @property
    def free_mbps(self) -> int | None:
        """Unused bandwidth, Mbit/s; None if unknown."""
        if self.link is None or not self.link.bandwidth_mbps or self.traffic_mbps is None:
            return None
        return max(0, self.link.bandwidth_mbps - self.traffic_mbps)


def reported(link: Link) -> LinkView:
    """Return the view of a link that a cluster reports."""
    return LinkView(link.source, link.target, link, traffic_mbps=link.used_mbps if link.bandwidth_mbps else None)


@dataclass(frozen=True, slots=True)
class RingPart:
    """A cluster of a ring, and its link to the next one.

    Attributes
    ----------
    replicas
        Number of replicas in the cluster.
    link
        None if both clusters are behind one gateway, or have none.
    """

    cluster: str
    next: str
    replicas: int
    link: LinkView | None


@dataclass(frozen=True, slots=True)
class Side:
    """Endpoint behind a gateway: clusters or a user site.

    Attributes
    ----------
    cluster
        Name of the cluster, or several names separated by ``,``; empty for a user site.
    site
        Name of the user site, by default that of the gateway; empty for clusters.
    standby
        True if another gateway carries the traffic of the cluster.
    """

    address: str
    cluster: str = ""
    site: str = ""
    standby: bool = False
