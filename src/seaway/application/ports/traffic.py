"""Ports for the traffic of the interfaces of gateways and its measurement."""

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
    """The source has no such interface."""
    UNREADABLE = "unreadable"
    """The answer is too long or makes no sense."""
    REFUSED = "refused"
    UNREACHABLE = "unreachable"


@dataclass(frozen=True, slots=True)
class Reading:
    """Successful reading of an interface.

    Attributes
    ----------
    rates
        None if a second reading is needed, since counters were read only once.
    speed_mbps
        Speed of the interface, Mbit/s; None if not reported.
    age_s
        Age of the data when it was read, seconds.
    """

    rates: Rates | None
    speed_mbps: int | None
    age_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Missed:
    """Failed reading, with the reason as a sentence."""

    outcome: Outcome
    why: str


class TrafficMeter(Protocol):
    """Reader of the interfaces of gateways."""

    def covers(self, gateway: GatewayConfig) -> bool:
        """Report whether the configuration of a gateway has enough information to read it."""

    def read(self, gateways: Sequence[GatewayConfig]) -> Mapping[str, Reading | Missed]:
        """Read covered gateways; return the result for each by name. Ends in bounded time."""


@dataclass(frozen=True, slots=True)
class Page:
    """HTTP response of any status.

    Attributes
    ----------
    at_ns
        Monotonic time at which it began, nanoseconds.
    """

    status: int
    body: bytes
    at_ns: int


@dataclass(frozen=True, slots=True)
class NoPage:
    """Missing, late or unreadable response, with the reason as a sentence.

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
        """Read all addresses, in order. A slow or broken one delays no other, and the call ends in bounded time."""
