"""Configuration of gateways and of the paths between them.

All values are immutable. `seaway.domain.gateway_checks` checks their consistency.

References
----------
RFC 8986 (SRv6 network programming): locators, SIDs and their behaviours. RFC 8754: the segment routing header.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network

from seaway.domain.facts import Location

MAIN_TABLE = 254
"""The kernel's main routing table."""

DIRECT = "direct"
"""Name of the default path of a pair: directly to the target's End.DT6, or without one to an End.DT4."""

Prefix = IPv4Network | IPv6Network
"""A network behind a gateway."""


class Behaviour(Enum):
    """Behaviour of a gateway for packets whose next segment is one of its SIDs (RFC 8986, section 4)."""

    END = "End"
    """Continue to the next segment."""
    END_X = "End.X"
    """Continue to the next segment through a next hop."""
    END_DT6 = "End.DT6"
    """Decapsulate the packet, and look up its destination in a table."""
    END_DX6 = "End.DX6"
    """Decapsulate the packet, and forward it to a next hop."""
    END_DT4 = "End.DT4"
    """Decapsulate an IPv4 packet, and look up its destination in the main table."""
    END_DX4 = "End.DX4"
    """Decapsulate an IPv4 packet, and forward it to an IPv4 next hop."""

    @property
    def unwraps(self) -> bool:
        """True if the behaviour decapsulates packets, so that a segment list may end with it."""
        return self.inner_version != 0

    @property
    def inner_version(self) -> int:
        """IP version of the packets that the behaviour decapsulates; 0 if it does not decapsulate."""
        return {"End.DT6": 6, "End.DX6": 6, "End.DT4": 4, "End.DX4": 4}.get(self.value, 0)


@dataclass(frozen=True, slots=True)
class Sid:
    """A segment identifier of a gateway.

    Attributes
    ----------
    address
        Address within the gateway's locator.
    behaviour
        Behaviour of the gateway.
    table
        Routing table of an End.DT6.
    next_hop
        Next hop of an End.X, End.DX6 or End.DX4; None for the others.
    interface
        Interface of the next hop; empty for the gateway's own interface.
    """

    address: IPv6Address
    behaviour: Behaviour
    table: int = MAIN_TABLE
    next_hop: IPv6Address | IPv4Address | None = None
    interface: str = ""


class Method(Enum):
    """Method of probing a gateway."""

    ICMP = "icmp"
    UDP = "udp"
    """Datagrams that the agent reflects, for networks that filter echo requests."""
    TCP = "tcp"
    """Time until a connection is accepted or refused."""


@dataclass(frozen=True, slots=True)
class GatewayConfig:
    """A gateway of a cluster or of a user site.

    Attributes
    ----------
    name
        Unique name.
    address
        Address for probes, and source of its tunnels.
    cluster, site
        Cluster or user site behind it; one of them is empty. One of several gateways of a cluster carries its traffic.
    interface
        Interface to the network between gateways.
    locator
        Prefix of its SIDs, which the network between gateways routes to it; None without SRv6.
    sids
        SIDs, with their behaviours.
    prefixes
        Networks behind it.
    mtu
        Maximum packet size on `interface`, bytes; 0 leaves it unchanged.
    speed_mbps
        Capacity of the interface if it is not measured, Mbit/s; 0 for unknown.
    exporter
        Address of its node-exporter; empty for none.
    method, port
        Method of probes; a port for UDP and TCP.
    location
        Geographic location; None for that of its cluster.
    """

    name: str
    address: IPv6Address | IPv4Address
    cluster: str = ""
    site: str = ""
    interface: str = ""
    locator: IPv6Network | None = None
    sids: tuple[Sid, ...] = ()
    prefixes: tuple[Prefix, ...] = ()
    mtu: int = 0
    speed_mbps: int = 0
    exporter: str = ""
    method: Method = Method.ICMP
    port: int = 0
    location: Location | None = None

    def sid(self, behaviour: Behaviour) -> Sid | None:
        """Return the first SID with a behaviour; None if the gateway has none."""
        return next((sid for sid in self.sids if sid.behaviour is behaviour), None)

    @property
    def end(self) -> Sid | None:
        """The SID that ends a path by the gateway's name: its End.DT6, or its End.DT4 without one."""
        return self.sid(Behaviour.END_DT6) or self.sid(Behaviour.END_DT4)

    def unwrapping(self, version: int) -> Sid | None:
        """Return the SID that decapsulates packets of an IP version, one with a table first; None without one."""
        able = [sid for sid in self.sids if sid.behaviour.inner_version == version]
        return next((sid for sid in able if sid.next_hop is None), able[0] if able else None)


@dataclass(frozen=True, slots=True)
class Path:
    """A segment list from one gateway to another.

    Attributes
    ----------
    name
        Name, unique in its pair.
    segments
        SIDs in the order of transit; the last one decapsulates. Packets of the other IP version have the same path, up
        to the SID of the last gateway that decapsulates them.
    weight
        Share of the traffic if the pair balances load; otherwise the path with the largest weight is preferred.
    """

    name: str
    segments: tuple[IPv6Address, ...]
    weight: int = 1


@dataclass(frozen=True, slots=True)
class Pair:
    """The paths from one gateway to another. The reverse direction has its own pair.

    Attributes
    ----------
    paths
        One or more paths, in order of preference among equal weights.
    load_balance
        Whether traffic is balanced over all paths by their weights; otherwise Seaway selects one path.
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
    """All gateways and the paths between them.

    Attributes
    ----------
    gateways
        All gateways.
    pairs
        Pairs with configured paths.
    mesh
        Whether all other pairs are connected as well, directly to the target (`DIRECT`).
    """

    gateways: tuple[GatewayConfig, ...] = ()
    pairs: tuple[Pair, ...] = ()
    mesh: bool = True
    probe: ProbeConfig = ProbeConfig()

    def gateway(self, name: str) -> GatewayConfig | None:
        """Return a gateway by name; None if it does not exist."""
        return next((each for each in self.gateways if each.name == name), None)

    def serving(self, chosen: Mapping[str, str] | None = None) -> dict[str, str]:
        """Return the gateway that carries the traffic of each cluster.

        Parameters
        ----------
        chosen
            Gateway by cluster. Clusters without a valid one use their first gateway.
        """
        found: dict[str, str] = {}
        for each in self.gateways:
            if each.cluster and (each.cluster not in found or each.name == (chosen or {}).get(each.cluster)):
                found[each.cluster] = each.name
        return found

    def pairs_from(self, source: GatewayConfig) -> tuple[Pair, ...]:
        """Return the pairs from a gateway, including those of the mesh, in the order of the targets."""
        given = {pair.target: pair for pair in self.pairs if pair.source == source.name}
        found = (given.get(target.name) or self._direct(source, target) for target in self.gateways)
        return tuple(pair for pair in found if pair is not None)

    def _direct(self, source: GatewayConfig, target: GatewayConfig) -> Pair | None:
        end = target.end
        if not self.mesh or source is target or end is None or source.locator is None:
            return None
        return Pair(source.name, target.name, (Path(DIRECT, (end.address,)),))
