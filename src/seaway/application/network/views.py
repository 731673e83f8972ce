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
    """No recent round; the last figures remain in use."""
    UNKNOWN = "unknown"
    """No round yet, or none for a time after which the figures expire."""


FRESH = frozenset({LinkState.REPORTED, LinkState.MEASURED})
"""States with metrics. Outdated figures would look like current ones in metrics."""


@dataclass(frozen=True, slots=True)
class LinkView:
    """View of a link.

    Attributes
    ----------
    link
        Figures for decisions; None for a link without measurements.
    path
        Measured path; empty for the route.
    age_s
        Seconds since the latest round began; None without one.
    raw
        The latest round; None without one.
    smoothed
        Figures smoothed over the latest rounds.
    traffic_mbps
        All traffic at the fuller end, Mbit/s; None if unknown.
    reserved_mbps
        Reserved bandwidth of the interface at its fuller end, Mbit/s.
    left_mbps
        Bandwidth that can still be reserved, Mbit/s; None if unknown.
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

    @property
    def counts(self) -> bool:
        """True if it has valid figures."""
        return self.state is not LinkState.UNKNOWN and self.link is not None

    @property
    def latest(self) -> Figures | None:
        """Figures of the latest round or of the report of a cluster; None without both."""
        if self.raw:
            lost = self.raw.sent - self.raw.received
            return Figures(self.raw.latency_ns, self.raw.jitter_ns, lost * PPM // self.raw.sent)
        return Figures(self.link.latency_ns, self.link.jitter_ns, self.link.loss_ppm) if self.link else None

    @property
    def free_mbps(self) -> int | None:
        """Bandwidth without traffic, Mbit/s; None if unknown."""
        if self.link is None or not self.link.bandwidth_mbps or self.traffic_mbps is None:
            return None
        return max(0, self.link.bandwidth_mbps - self.traffic_mbps)


def reported(link: Link) -> LinkView:
    """Return the view of a link that a cluster reports."""
    return LinkView(link.source, link.target, link, traffic_mbps=link.used_mbps if link.bandwidth_mbps else None)


@dataclass(frozen=True, slots=True)
class Side:
    """Side of a gateway: clusters or a user site.

    Attributes
    ----------
    cluster
        The cluster, or several separated by ``,``; empty for a user site.
    site
        The user site, with the name of the gateway as default; empty for clusters.
    """

    address: str
    cluster: str = ""
    site: str = ""
