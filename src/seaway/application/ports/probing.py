"""Whoever sends probes and waits for their answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address
from typing import Protocol

from seaway.domain.gateways import Method, ProbeConfig
from seaway.probing.figures import Round


@dataclass(frozen=True, slots=True)
class Target:
    """Somebody who is probed, along a certain path or as routes lead.

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
