"""Gateways, the links between them, and a job's bounds on links."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from seaway.domain.errors import RejectedError
from seaway.domain.facts import Location
from seaway.domain.reasons import Reason
from seaway.domain.units import loss_text, rate_text

PPM = 1_000_000
"""Parts per million in a whole: a link without answers has ``loss_ppm`` 1,000,000."""

Ends = tuple[str, str]
"""Names of the source and target gateways of a link."""


@dataclass(frozen=True, slots=True)
class Gateway:
    """An SRv6 gateway of a cluster or of a user site. All its links share its interface.

    Attributes
    ----------
    speed_mbps
        Capacity of its interface in each direction, Mbit/s; 0 for no limit besides those of its links.
    used_in_mbps, used_out_mbps
        Measured traffic beyond the reservations of jobs, Mbit/s.
    location
        Geographic location; None if unknown.
    """

    name: str
    address: str = ""
    speed_mbps: int = 0
    used_in_mbps: int = 0
    used_out_mbps: int = 0
    location: Location | None = None

    def __post_init__(self) -> None:
        """Reject negative values."""
        if min(self.speed_mbps, self.used_in_mbps, self.used_out_mbps) < 0:
            raise RejectedError(Reason("gateway_figure", name=self.name))


@dataclass(frozen=True, slots=True)
class Link:
    """Measurements between two gateways.

    Attributes
    ----------
    source, target
        Names of the gateways.
    latency_ns
        Round-trip time, nanoseconds; None if no probe was answered. Such a link meets no bound, not even one on loss or
        bandwidth alone.
    jitter_ns
        Variation of the round-trip time, nanoseconds.
    loss_ppm
        Lost probes, parts per million.
    bandwidth_mbps
        Capacity, Mbit/s; 0 if unknown, and then nothing can be reserved.
    used_mbps
        Its traffic beyond reservations of jobs, Mbit/s.
    """

    source: str
    target: str
    latency_ns: int | None
    jitter_ns: int = 0
    loss_ppm: int = 0
    bandwidth_mbps: int = 0
    used_mbps: int = 0

    def __post_init__(self) -> None:
        """Reject negative values and a loss above 100%."""
        figures = (self.latency_ns or 0, self.jitter_ns, self.loss_ppm, self.bandwidth_mbps, self.used_mbps)
        if min(figures) < 0 or self.loss_ppm > PPM:
            raise RejectedError(Reason("link_figure", source=self.source, target=self.target))

    @property
    def reachable(self) -> bool:
        """True if at least one probe was answered."""
        return self.latency_ns is not None

    @property
    def free_mbps(self) -> int:
        """Bandwidth that can still be reserved, Mbit/s; never below 0."""
        return max(0, self.bandwidth_mbps - self.used_mbps)


@dataclass(frozen=True, slots=True)
class NetworkNeed:
    """Bounds of a job on a link; 0 means no bound.

    Attributes
    ----------
    max_latency_ns, max_jitter_ns
        Maximum round-trip time and jitter, nanoseconds.
    max_loss_ppm
        Maximum loss, parts per million.
    min_bandwidth_mbps
        Bandwidth that is reserved while the job runs, Mbit/s.
    """

    max_latency_ns: int = 0
    max_jitter_ns: int = 0
    max_loss_ppm: int = 0
    min_bandwidth_mbps: int = 0

    def __post_init__(self) -> None:
        """Reject negative bounds."""
        if min(self.max_latency_ns, self.max_jitter_ns, self.max_loss_ppm, self.min_bandwidth_mbps) < 0:
            raise RejectedError(Reason("bound_negative"))

    @property
    def any(self) -> bool:
        """True if any bound is set."""
        return self != NO_NEED


class OnViolation(StrEnum):
    """Action if a running job's links violate its bounds for too long."""

    REPORT = "report"
    """Report the violation; the job continues."""
    MOVE = "move"
    """Restart the job elsewhere, if it fits there."""


NO_NEED = NetworkNeed()
"""The value for jobs without bounds."""


def violations(need: NetworkNeed, link: Link | None, *, running: bool = False) -> tuple[str, ...]:
    """Return the bounds that a link violates, one clause each; empty if it meets all.

    Parameters
    ----------
    link
        Measurements; None if the link is not measured. Its free bandwidth is the capacity minus the traffic of others,
        regardless of reservations.
    running
        Whether the job already runs. Unknown bandwidth is then not a violation.

    Examples
    --------
    >>> violations(NetworkNeed(max_latency_ns=20_000_000), Link("gw-4", "gw-1", 31_200_000))
    ('latency 31.2 ms, bound 20 ms',)
    """
    if not need.any:
        return ()
    if link is None:
        return (Reason("not_measured"),)
    if link.latency_ns is None:
        return (Reason("no_answer"),)
    found = []
    if need.max_latency_ns and link.latency_ns > need.max_latency_ns:
        found.append(Reason("latency_over", value=_ms(link.latency_ns), bound=_ms(need.max_latency_ns)))
    if need.max_jitter_ns and link.jitter_ns > need.max_jitter_ns:
        found.append(Reason("jitter_over", value=_ms(link.jitter_ns), bound=_ms(need.max_jitter_ns)))
    if need.max_loss_ppm and link.loss_ppm > need.max_loss_ppm:
        found.append(Reason("loss_over", value=loss_text(link.loss_ppm), bound=loss_text(need.max_loss_ppm)))
    if need.min_bandwidth_mbps and not link.bandwidth_mbps:
        found += [] if running else [Reason("bandwidth_unknown", bound=rate_text(need.min_bandwidth_mbps))]
    elif link.free_mbps < need.min_bandwidth_mbps:
        bound = rate_text(need.min_bandwidth_mbps)
        found.append(Reason("bandwidth_below", free=rate_text(link.free_mbps), bound=bound))
    return tuple(found)


def link_text(source: str, target: str, violations: tuple[str, ...]) -> str:
    """Format the violations of a link, with its ends."""
    return Reason("figures_of", source=source, target=target, figures=tuple(violations))


def _ms(ns: int) -> str:
    return f"{ns / 1e6:.3f}".rstrip("0").rstrip(".") + " ms"
