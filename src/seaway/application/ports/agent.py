"""Ports of the agent: probes, and communication with the controller."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address
from typing import Protocol

from seaway.domain.gateways import Method, ProbeConfig
from seaway.probing.rounds import Round

ANSWERED, LOSSY, UNANSWERED = "answered", "lossy", "unanswered"
"""Outcomes of a round: all, some or none of the probes were answered."""


@dataclass(frozen=True, slots=True)
class Reported:
    """Round of probes from one gateway to another, as reported by its agent.

    Attributes
    ----------
    target
        Name of the probed gateway.
    path
        Name of the path; empty for the default route.
    at_ns
        Start of the round by the clock of the agent, nanoseconds since 1970.
    sent, received
        Number of probes and of answers.
    latency_ns
        Mean round-trip time of the answers; None without answers.
    jitter_ns
        As in `seaway.probing.rounds.Figures`.
    discarded
        Number of answers with an impossible time.
    """

    target: str
    path: str
    at_ns: int
    sent: int
    received: int
    latency_ns: int | None
    jitter_ns: int = 0
    discarded: int = 0

    @property
    def outcome(self) -> str:
        """Outcome: `ANSWERED`, `LOSSY` or `UNANSWERED`."""
        if self.received == 0:
            return UNANSWERED
        return ANSWERED if self.received == self.sent else LOSSY


@dataclass(frozen=True, slots=True)
class Target:
    """Target of probes, on a named path or on the default route.

    Attributes
    ----------
    gateway
        Name of the gateway.
    address, method, port
        As in `seaway.domain.gateways.GatewayConfig`.
    path
        Name of the measured path; empty for the default route.
    segments
        SIDs before the address of the target, IPv6 only; empty for the default route.
    """

    gateway: str
    address: IPv6Address | IPv4Address
    method: Method = Method.ICMP
    port: int = 0
    path: str = ""
    segments: tuple[IPv6Address, ...] = ()


class Prober(Protocol):
    """Sender of probes."""

    def probe(self, targets: Sequence[Target], how: ProbeConfig, spread_s: float) -> Sequence[Round]:
        """Probe every target `how.count` times, spread evenly over `spread_s`, and wait for the last answer.

        Returns one result per target, in order. If nothing can be sent to a target, all its probes count as
        lost.
        """

    def close(self) -> None:
        """Close the sockets."""


@dataclass(frozen=True, slots=True)
class Assignment:
    """Task of the agent of a gateway.

    Attributes
    ----------
    version
        Version of the network configuration, for the log.
    how
        Interval and number of probes.
    targets
        Targets of the probes.
    reflect
        Port on which the agent reflects datagrams of other agents; 0 for none.
    own
        Address of the gateway itself; None if unknown.
    """

    version: str
    how: ProbeConfig
    targets: tuple[Target, ...]
    reflect: int = 0
    own: IPv6Address | IPv4Address | None = None


@dataclass(frozen=True, slots=True)
class Report:
    """Report of an agent to the controller.

    Attributes
    ----------
    gateway
        Gateway of the agent.
    started_ns, number
        Start time of the agent, nanoseconds since 1970, and number of the report since then, from 1. The pair increases
        with each report of a gateway, so no report counts twice.
    dropped
        Number of rounds dropped since the previous report because they waited too long.
    rounds
        Rounds, oldest first.
    """

    gateway: str
    started_ns: int
    number: int
    dropped: int
    rounds: tuple[Reported, ...]


class Controller(Protocol):
    """Client of the control plane for an agent.

    Both methods raise `UnauthenticatedError` or `ForbiddenError` if the token is invalid or belongs to another gateway,
    `UnknownError` if the gateway is unknown, and `UnavailableError` or another `SeawayError` if the response is missing
    or invalid.
    """

    def assignment(self) -> Assignment:
        """Return the current assignment."""

    def take(self, report: Report) -> None:
        """Send a report.

        Raises
        ------
        ConflictError
            If this report or a later one was already accepted.
        RejectedError
            If the report is invalid; ``where`` and ``also`` name the rounds, for example ``rounds.3.at_ns``.
        """
