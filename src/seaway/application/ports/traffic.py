"""Ports for the measurement of traffic on gateway interfaces."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Protocol

from seaway.domain.gateways import GatewayConfig
from seaway.probing.rounds import Rates


@dataclass(frozen=True, slots=True)
class Traffic:
    """Traffic of the interface of a gateway.

    Attributes
    ----------
    in_used_mbps, out_used_mbps
        Traffic, Mbit/s.
    speed_mbps
        Speed in each direction, Mbit/s; None if unknown.
    age_s
        Age of the measurement, seconds; None if only the configured speed is known.
    """

    in_used_mbps: int
    out_used_mbps: int
    speed_mbps: int | None
    age_s: float | None


class Outcome(Enum):
    """Outcome of a reading of an interface."""

    READ = "read"
    MISSING = "missing"
    """The source does not have the interface."""
    UNREADABLE = "unreadable"
    """The response is too long or malformed."""
    REFUSED = "refused"
    UNREACHABLE = "unreachable"


@dataclass(frozen=True, slots=True)
class Reading:
    """Successful reading of an interface.

    Attributes
    ----------
    rates
        None if a second reading is needed, because rates require two readings of the counters.
    speed_mbps
        Speed of the interface, Mbit/s; None if not reported.
    age_s
        Age of the data at the time of reading, seconds.
    """

    rates: Rates | None
    speed_mbps: int | None
    age_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Missed:
    """Failed reading, with a sentence as the reason."""

    outcome: Outcome
    why: str


class TrafficMeter(Protocol):
    """Reader of gateway interfaces."""

    def covers(self, gateway: GatewayConfig) -> bool:
        """Report whether the configuration of a gateway is sufficient to read its interface."""

    def read(self, gateways: Sequence[GatewayConfig]) -> Mapping[str, Reading | Missed]:
        """Read covered gateways; return the result by name. Ends in bounded time."""


@dataclass(frozen=True, slots=True)
class Page:
    """HTTP response with any status.

    Attributes
    ----------
    at_ns
        Monotonic time at which the response began, nanoseconds.
    """

    status: int
    body: bytes
    at_ns: int


@dataclass(frozen=True, slots=True)
class NoPage:
    """Missing, late or unreadable response, with a sentence as the reason.

    Attributes
    ----------
    answered
        Whether a server accepted the request.
    """

    why: str
    answered: bool = False


class Pages(Protocol):
    """HTTP client for several addresses."""

    def read(self, addresses: Sequence[str]) -> Sequence[Page | NoPage]:
        """Read all addresses, in order.

        A slow or failing address does not delay others, and the call ends in bounded time.
        """
