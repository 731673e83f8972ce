"""Gateways, the links between them, and what a job may ask of a link."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from seaway.domain.errors import RejectedError

PPM = 1_000_000
"""Parts per million in a whole: a link that answers nothing has ``loss_ppm`` 1,000,000."""

Ends = tuple[str, str]
"""Names of the gateways that a link is from and to."""


@dataclass(frozen=True, slots=True)
class Gateway:
    """An SRv6 gateway: the network's door to one cluster or to one user site.

    All its links share its interface.

    Attributes
    ----------
    speed_mbps
        What its interface carries each way, Mbit/s; 0 sets no limit besides those of its links.
    used_in_mbps, used_out_mbps
        Traffic seen on it that is not promised to a job, Mbit/s.
    """

    name: str
    address: str = ""
    speed_mbps: int = 0
    used_in_mbps: int = 0
    used_out_mbps: int = 0

    def __post_init__(self) -> None:
        """Reject negative figures."""
        if min(self.speed_mbps, self.used_in_mbps, self.used_out_mbps) < 0:
            raise RejectedError(f"gateway {self.name!r}: a figure is below 0")


@dataclass(frozen=True, slots=True)
class Link:
    """What was measured between two gateways.

    Attributes
    ----------
    source, target
        Names of the gateways.
    latency_ns
        Round-trip time, nanoseconds; None when nothing answered. Such a link meets no bound, not even one on loss
        or bandwidth alone.
    jitter_ns
        Spread of the round-trip time, nanoseconds.
    loss_ppm
        Lost echoes, parts per million.
    bandwidth_mbps
        Capacity, Mbit/s; 0 where that is not known, and nothing can be promised.
    used_mbps
        Traffic seen on it that is not promised to a job, Mbit/s.
    """

    source: str
    target: str
    latency_ns: int | None
    jitter_ns: int = 0
    loss_ppm: int = 0
    bandwidth_mbps: int = 0
    used_mbps: int = 0

    def __post_init__(self) -> None:
        """Reject negative figures and a loss above the whole."""
        figures = (self.latency_ns or 0, self.jitter_ns, self.loss_ppm, self.bandwidth_mbps, self.used_mbps)
        if min(figures) < 0 or self.loss_ppm > PPM:
            raise RejectedError(f"link {self.source!r} to {self.target!r}: a figure is out of range")

    @property
    def answers(self) -> bool:
        """Whether anything came back over it."""
        return self.latency_ns is not None

    @property
    def free_mbps(self) -> int:
        """Bandwidth that can still be promised, Mbit/s, never below 0."""
        return max(0, self.bandwidth_mbps - self.used_mbps)


@dataclass(frozen=True, slots=True)
class NetworkNeed:
    """Bounds that a job sets on a link; 0 means that it does not mind.

    Attributes
    ----------
    max_latency_ns, max_jitter_ns
        Largest round-trip time and spread, nanoseconds.
    max_loss_ppm
        Largest loss, parts per million.
    min_bandwidth_mbps
        Bandwidth that the job takes while it runs, Mbit/s.
    """

    max_latency_ns: int = 0
    max_jitter_ns: int = 0
    max_loss_ppm: int = 0
    min_bandwidth_mbps: int = 0

    def __post_init__(self) -> None:
        """Reject negative bounds."""
        if min(self.max_latency_ns, self.max_jitter_ns, self.max_loss_ppm, self.min_bandwidth_mbps) < 0:
            raise RejectedError("a bound on the network may not be negative")

    @property
    def any(self) -> bool:
        """Whether any bound is set."""
        return self != NO_NEED


class OnBreach(StrEnum):
    """What is done with a running job whose links break its bounds for too long."""

    REPORT = "report"
    """It is told of, and goes on."""
    MOVE = "move"
    """It is started again elsewhere, if it fits there."""


NO_NEED = NetworkNeed()
"""Sets no bound."""
