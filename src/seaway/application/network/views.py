"""Links as people and programs look at them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from seaway.application.ports.agent import Reported
from seaway.domain.network import PPM, Link
from seaway.probing.figures import Figures

Asked = Callable[[str, str], bool]
"""Tells whether a link from one gateway to another is looked at."""


class LinkState(Enum):
    """How much what is known of a link is worth."""

    REPORTED = "reported"
    """No one measures it: a cluster tells of it."""
    MEASURED = "measured"
    STALE = "stale"
    """Nothing came lately; the last figures stand."""
    UNKNOWN = "unknown"
    """Nothing ever came, or not for so long that it counts no more."""


FRESH = frozenset({LinkState.REPORTED, LinkState.MEASURED})
"""What has metrics: figures that no one confirms any more look the same as fresh ones to who reads them."""


@dataclass(frozen=True, slots=True)
class LinkView:
    """A link and all that is known of it.

    Attributes
    ----------
    link
        What decisions go by; None for a link that no one measured.
    path
        Which path it is of; empty for the way that routes lead.
    age_s
        Since the latest round began; None without one.
    raw
        The latest round; None without one.
    smoothed
        What the latest rounds say together.
    traffic_mbps
        All that the fuller of its ends carries, Mbit/s; None where that is not known.
    reserved_mbps
        What is promised to jobs of the interface at its fuller end.
    left_mbps
        What can still be promised, Mbit/s; None where that is not known.
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
        """Whether anything is known of it that still counts."""
        return self.state is not LinkState.UNKNOWN and self.link is not None

    @property
    def latest(self) -> Figures | None:
        """What the latest round said, or what was told; None where neither is known."""
        if self.raw:
            lost = self.raw.sent - self.raw.received
            return Figures(self.raw.latency_ns, self.raw.jitter_ns, lost * PPM // self.raw.sent)
        return Figures(self.link.latency_ns, self.link.jitter_ns, self.link.loss_ppm) if self.link else None

    @property
    def free_mbps(self) -> int | None:
        """Bandwidth that nothing passes through now, Mbit/s; None where that is not known."""
        if self.link is None or not self.link.bandwidth_mbps or self.traffic_mbps is None:
            return None
        return max(0, self.link.bandwidth_mbps - self.traffic_mbps)


def reported(link: Link) -> LinkView:
    """Show a link that a cluster tells of."""
    return LinkView(link.source, link.target, link, traffic_mbps=link.used_mbps if link.bandwidth_mbps else None)


@dataclass(frozen=True, slots=True)
class Side:
    """What a gateway stands before.

    Attributes
    ----------
    cluster
        The cluster, or several with ``,`` between; empty for a user site.
    site
        The user site, by the gateway's own name where it has no other; empty for clusters.
    """

    address: str
    cluster: str = ""
    site: str = ""
