"""Configuration of the network between gateways: gateways and the paths between them.

Frozen values. `seaway.domain.gateway_checks` checks their consistency.

References
----------
RFC 8986 (SRv6 network programming): locators, SIDs and their behaviours. RFC 8754: the segment routing header.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from ipaddress import IPv4Address, IPv6Address, IPv6Network

MAIN_TABLE = 254
"""The kernel's main routing table."""

DIRECT = "direct"
"""Name of the path that a pair has when no paths of it are given: straight to the target's End.DT6."""


class Behaviour(Enum):
    """Behaviour of a gateway for packets whose next segment is one of its SIDs (RFC 8986, section 4)."""

    END = "End"
    """Goes on to the next segment."""
    END_X = "End.X"
    """Goes on to the next segment by way of a certain neighbour."""
    END_DT6 = "End.DT6"
    """Unwraps the packet and looks its destination up in a table."""
    END_DX6 = "End.DX6"
    """Unwraps the packet and hands it to a certain neighbour."""

    @property
    def unwraps(self) -> bool:
        """True if a segment list may end here."""
        return self in {Behaviour.END_DT6, Behaviour.END_DX6}


@dataclass(frozen=True, slots=True)
class Sid:
    """A segment identifier of a gateway.

    Attributes
    ----------
    address
        Within the gateway's locator.
    behaviour
        What happens there.
    table
        The routing table of an End.DT6.
    next_hop
        The neighbour of an End.X or End.DX6; None for the others.
    interface
        Where that neighbour is, the gateway's own interface where it is empty.
    """

    address: IPv6Address
    behaviour: Behaviour
    table: int = MAIN_TABLE
    next_hop: IPv6Address | None = None
    interface: str = ""


class Method(Enum):
    """Method of probing a gateway."""

    ICMP = "icmp"
    UDP = "udp"
    """Datagrams that the agent there sends back, where echo requests are filtered."""
    TCP = "tcp"
    """The time a connection takes to be accepted or refused."""


@dataclass(frozen=True, slots=True)
class GatewayConfig:
    """One gateway: before a cluster, or before a user site.

    Attributes
    ----------
    name
        Unique.
    address
        Its own: what others probe, and the source of its tunnels.
    cluster, site
        What it stands before; one of them is empty.
    interface
        Towards the network between gateways.
    locator
        The prefix of its SIDs, which the network between gateways routes to it; None for one without SRv6.
    sids
        What it does for packets that are on their way.
    prefixes
        The networks behind it.
    mtu
        What a packet on `interface` may have, bytes; 0 leaves it as it is.
    speed_mbps
        What the interface can carry, Mbit/s, where nothing measures it; 0 for unknown.
    exporter
        Address of its node-exporter's metrics; empty for none.
    method, port
        How it is probed; a port for UDP and TCP.
    """

    name: str
    address: IPv6Address | IPv4Address
    cluster: str = ""
    site: str = ""
    interface: str = ""
    locator: IPv6Network | None = None
    sids: tuple[Sid, ...] = ()
    prefixes: tuple[IPv6Network, ...] = ()
    mtu: int = 0
    speed_mbps: int = 0
    exporter: str = ""
    method: Method = Method.ICMP
    port: int = 0

    def sid(self, behaviour: Behaviour) -> Sid | None:
        """Return its first SID of a behaviour; None without one."""
        return next((sid for sid in self.sids if sid.behaviour is behaviour), None)


@dataclass(frozen=True, slots=True)
class Path:
    """A segment list from one gateway to another.

    Attributes
    ----------
    name
        Unique in its pair.
    segments
        SIDs in the order in which a packet passes them; the last one unwraps it.
    weight
        Among paths that share traffic, the share; else the one with the largest is liked best.
    """

    name: str
    segments: tuple[IPv6Address, ...]
    weight: int = 1


@dataclass(frozen=True, slots=True)
class Pair:
    """The paths from one gateway to another, which need not be those of the way back.

    Attributes
    ----------
    paths
        At least one, in order of preference among equal weights.
    load_balance
        Whether traffic is spread over all paths by their weights; else it takes one, which Seaway chooses.
    """

    source: str
    target: str
    paths: tuple[Path, ...]
    load_balance: bool = False


@dataclass(frozen=True, slots=True)
class ProbeConfig:
    """Measurement of links.

    Attributes
    ----------
    interval_s
        Time between the starts of two rounds, seconds.
    count
        Probes to each target in a round.
    timeout_s
        Timeout of an answer, seconds.
    """

    interval_s: float = 10.0
    count: int = 5
    timeout_s: float = 1.0


@dataclass(frozen=True, slots=True)
class NetworkConfig:
    """All gateways and what is wanted between them.

    Attributes
    ----------
    gateways
        Every gateway.
    pairs
        Pairs with paths of their own.
    mesh
        Whether every other pair is connected as well, each way straight to the target (`DIRECT`).
    """

    gateways: tuple[GatewayConfig, ...] = ()
    pairs: tuple[Pair, ...] = ()
    mesh: bool = True
    probe: ProbeConfig = ProbeConfig()

    def gateway(self, name: str) -> GatewayConfig | None:
        """Return a gateway by name; None when there is none."""
        return next((each for each in self.gateways if each.name == name), None)

    def pairs_from(self, source: GatewayConfig) -> tuple[Pair, ...]:
        """Return the pairs of a gateway, those of the mesh too, in the order of the targets."""
        given = {pair.target: pair for pair in self.pairs if pair.source == source.name}
        found = (given.get(target.name) or self._direct(source, target) for target in self.gateways)
        return tuple(pair for pair in found if pair is not None)

    def _direct(self, source: GatewayConfig, target: GatewayConfig) -> Pair | None:
        end = target.sid(Behaviour.END_DT6)
        if not self.mesh or source is target or end is None or source.locator is None:
            return None
        return Pair(source.name, target.name, (Path(DIRECT, (end.address,)),))
