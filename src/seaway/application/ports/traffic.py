"""What passes through gateways' interfaces, and who measures it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Protocol

from seaway.domain.gateways import GatewayConfig
from seaway.probing.counters import Rates


@dataclass(frozen=True, slots=True)
class Traffic:
    """What can be said of a gateway's interface.

    Attributes
    ----------
    in_used_mbps, out_used_mbps
        What passes through it, Mbit/s.
    speed_mbps
        What it can carry, either way, Mbit/s; None when no one knows.
    age_s
        For how long that has been known, seconds; None where nothing measures it and only its speed is known, because
        the configuration says it.
    """

    in_used_mbps: int
    out_used_mbps: int
    speed_mbps: int | None
    age_s: float | None


class Outcome(Enum):
    """What became of a look at a gateway's interface."""

    READ = "read"
    MISSING = "missing"
    """Who was asked knows no such interface."""
    UNREADABLE = "unreadable"
    """The answer is longer than anybody reads, or makes no sense."""
    REFUSED = "refused"
    SILENT = "silent"


@dataclass(frozen=True, slots=True)
class Reading:
    """A look at a gateway's interface that saw something.

    Attributes
    ----------
    rates
        None where it takes another look to tell: what is counted has only been seen once.
    speed_mbps
        What the interface can carry, Mbit/s; None when it does not say.
    age_s
        How old that was when it was read, seconds.
    """

    rates: Rates | None
    speed_mbps: int | None
    age_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Missed:
    """A look that saw nothing, and why: a sentence for people."""

    outcome: Outcome
    why: str


class TrafficMeter(Protocol):
    """Looks at gateways' interfaces."""

    def covers(self, gateway: GatewayConfig) -> bool:
        """Tell whether it can look at a gateway at all: whether it is told enough of it."""

    def read(self, gateways: Sequence[GatewayConfig]) -> Mapping[str, Reading | Missed]:
        """Look at gateways that it covers; return what came of it for each by name. Ends in bounded time."""


@dataclass(frozen=True, slots=True)
class Page:
    """An answer, whatever its status.

    Attributes
    ----------
    at_ns
        When it began, on a clock that never goes back, nanoseconds.
    """

    status: int
    body: bytes
    at_ns: int


@dataclass(frozen=True, slots=True)
class NoPage:
    """No answer in time, or none that can be read: a sentence for people.

    Attributes
    ----------
    answered
        Whether a user was there.
    """

    why: str
    answered: bool = False


class Pages(Protocol):
    """Reads pages."""

    def read(self, addresses: Sequence[str]) -> Sequence[Page | NoPage]:
        """Read what is at each address, in order; who is slow or broken delays no other, and all ends in time."""
