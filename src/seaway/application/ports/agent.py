"""Whoever sends probes and waits for their answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address
from typing import Protocol

from seaway.domain.gateways import Method, ProbeConfig
from seaway.probing.figures import Round

ANSWERED, LOSSY, UNANSWERED = "answered", "lossy", "unanswered"
"""How a round ended: all its probes were answered, some were, none was."""


@dataclass(frozen=True, slots=True)
class Reported:
    """A round of probes from one gateway to another, as its agent reports it.

    Attributes
    ----------
    target
        Name of the gateway that was probed.
    path
        Along which path; empty for the way that routes lead.
    at_ns
        When the round began, by the agent's clock, nanoseconds since 1970.
    sent, received
        Probes, and how many were answered.
    latency_ns
        Mean round-trip time of the answered ones; None when nothing was.
    jitter_ns
        As in `seaway.probing.figures.Figures`.
    discarded
        Answers with an impossible time.
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
        """How it ended: `ANSWERED`, `LOSSY` or `UNANSWERED`."""
        if self.received == 0:
            return UNANSWERED
        return ANSWERED if self.received == self.sent else LOSSY


@dataclass(frozen=True, slots=True)
class Target:
    """A user who is probed, along a certain path or as routes lead.

    Attributes
    ----------
    gateway
        Its name.
    address, method, port
        As in `seaway.domain.gateways.GatewayConfig`.
    path
        Name of the path that is measured; empty for the way that routes lead.
    segments
        SIDs on the way there, before the address itself; empty as routes lead. IPv6 only.
    """

    gateway: str
    address: IPv6Address | IPv4Address
    method: Method = Method.ICMP
    port: int = 0
    path: str = ""
    segments: tuple[IPv6Address, ...] = ()


class Prober(Protocol):
    """Sends probes."""

    def probe(self, targets: Sequence[Target], how: ProbeConfig, spread_s: float) -> Sequence[Round]:
        """Probe every target `how.count` times, spread evenly over `spread_s`, and wait for the last answer.

        Returns what came of it, for each target in order. A target that cannot even be sent to has lost everything.
        """

    def close(self) -> None:
        """Let go of the sockets."""


@dataclass(frozen=True, slots=True)
class Assignment:
    """What a gateway's agent is to do.

    Attributes
    ----------
    version
        Of the network that it comes from, for the log.
    how
        How often and how much is probed.
    targets
        Who is probed.
    reflect
        The port on which the agent sends back others' datagrams; 0 for none.
    own
        The gateway's own address, which others know it by; None where it was not said.
    """

    version: str
    how: ProbeConfig
    targets: tuple[Target, ...]
    reflect: int = 0
    own: IPv6Address | IPv4Address | None = None


@dataclass(frozen=True, slots=True)
class Report:
    """What is brought to the controller at once.

    Attributes
    ----------
    gateway
        Whose agent reports.
    started_ns, number
        When that agent started, nanoseconds since 1970, and which of its reports this is, from 1. Of a gateway's
        reports each pair is larger than the one before, so that none counts twice.
    dropped
        Rounds given up since the report before, because they had waited for too long.
    rounds
        From old to new.
    """

    gateway: str
    started_ns: int
    number: int
    dropped: int
    rounds: tuple[Reported, ...]


class Controller(Protocol):
    """The control plane as an agent sees it.

    Both raise `UnauthenticatedError` or `ForbiddenError` when the token does not hold or is another gateway's,
    `UnknownError` when it does not know the gateway, and `UnavailableError` or another `SeawayError` when it does
    not answer as it should.
    """

    def assignment(self) -> Assignment:
        """Return what is to be probed now."""

    def take(self, report: Report) -> None:
        """Bring a report.

        Raises
        ------
        ConflictError
            When it, or a later one, was taken before.
        RejectedError
            When something in it is wrong; ``where`` and ``also`` name the rounds, like ``rounds.3.at_ns``.
        """
