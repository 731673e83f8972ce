"""Whoever tells an agent what to probe, and takes what it measured."""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address
from typing import Protocol

from seaway.application.network.rounds import Reported
from seaway.application.ports.probing import Target
from seaway.domain.gateways import ProbeConfig


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
