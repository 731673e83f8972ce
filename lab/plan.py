"""Plan of a lab: its namespaces, wires and addresses, and its network configuration."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from ipaddress import IPv4Interface, IPv4Network, IPv6Address, IPv6Interface, IPv6Network

from lab.wires import End, Namespace, Route, Wire
from seaway.domain.errors import RejectedError
from seaway.domain.gateways import Behaviour, GatewayConfig, NetworkConfig, Pair, Path, Sid

FEWEST, MOST = 2, 250
CORE_MTU = 9000
"""MTU between gateways: a packet of 1,500 octets has space for any segment list."""
LAN_MTU = 1500

NAME = re.compile(r"[a-z][a-z0-9-]{0,29}")
PLACE = re.compile(r"core|(?:gw|host)-[0-9]+")
PREFIX = "seaway"

SITE = "users"
SPEED_MBPS = 10_000
"""Configured speed of gateways' interfaces, since virtual ones report none."""

CORE, WAN, LAN, HOSTS = "core", "wan", "lan", "eth0"

ANYWHERE = IPv6Network("::/0")
ANYWHERE_IPV4 = IPv4Network("0.0.0.0/0")

ROUTER = {
    "ipv6/conf/all/forwarding": "1",
    "ipv6/conf/all/accept_dad": "0",
    "ipv6/conf/default/accept_dad": "0",
    "ipv6/conf/all/accept_ra": "0",
    "ipv6/conf/default/accept_ra": "0",
}
HOST = {setting: value for setting, value in ROUTER.items() if not setting.endswith("forwarding")}


@dataclass(frozen=True, slots=True)
class Spot:
    """A gateway of a lab and its surroundings; all addresses follow from its number.

    Attributes
    ----------
    number
        Number, from 1.
    """

    number: int

    @property
    def gateway(self) -> str:
        """Name of the gateway."""
        return f"gw-{self.number}"

    @property
    def host(self) -> str:
        """Name of the host behind it."""
        return f"host-{self.number}"

    @property
    def locator(self) -> IPv6Network:
        """Prefix of its SIDs."""
        return IPv6Network(f"fd00:51d:{self.number}::/48")

    @property
    def lan(self) -> IPv6Network:
        """Network behind it, with the host."""
        return IPv6Network(f"fd00:a:{self.number}::/64")

    @property
    def lan_ipv4(self) -> IPv4Network:
        """IPv4 network behind it, with the host."""
        return IPv4Network(f"10.77.{self.number}.0/24")

    @property
    def link(self) -> IPv6Network:
        """Network between it and the core: the core has the first address, the gateway the second."""
        return IPv6Network(f"fd00:c:{self.number}::/64")

    def hardware(self, end: int) -> str:
        """Return the MAC address of an end of one of its two wires, counted from 1."""
        return f"02:5e:a0:{self.number >> 8:02x}:{self.number & 0xFF:02x}:{end:02x}"

    @property
    def address(self) -> IPv6Address:
        """Its own address, which others probe."""
        return self.locator[1]

    @property
    def end(self) -> IPv6Address:
        """SID for packets in transit."""
        return self.locator[0xE]

    @property
    def unwrap(self) -> IPv6Address:
        """SID for packets that are decapsulated here."""
        return self.locator[0xD6]

    @property
    def unwrap_ipv4(self) -> IPv6Address:
        """SID for IPv4 packets that are decapsulated here."""
        return self.locator[0xD4]


@dataclass(frozen=True, slots=True)
class LabPlan:
    """A lab.

    Attributes
    ----------
    name
        Name, unique on the machine.
    gateways
        Number of gateways: one for each cluster, and the last one for the users.
    """

    name: str
    gateways: int

    def __post_init__(self) -> None:
        """Check name and size.

        Raises
        ------
        RejectedError
            If either is invalid.
        """
        require_name(self.name)
        if not FEWEST <= self.gateways <= MOST:
            raise RejectedError(f"a lab has {FEWEST} to {MOST} gateways", where="--gateways")

    @property
    def spots(self) -> tuple[Spot, ...]:
        """All gateways."""
        return tuple(map(Spot, range(1, self.gateways + 1)))

    def namespace(self, place: str) -> str:
        """Return the namespace of a gateway, a host or the core."""
        return f"{PREFIX}-{self.name}-{place}"

    @property
    def places(self) -> tuple[str, ...]:
        """All places with a namespace."""
        return (CORE, *(name for spot in self.spots for name in (spot.gateway, spot.host)))

    def namespaces(self) -> Iterator[Namespace]:
        """Yield the contents of each namespace, without wires and segment routing."""
        ways = [Route(spot.locator, spot.link[2]) for spot in self.spots]
        yield Namespace(self.namespace(CORE), ROUTER, ways)
        for spot in self.spots:
            way = Route(ANYWHERE, spot.link[1], spot.address)
            yield Namespace(self.namespace(spot.gateway), ROUTER, [way], spot.address)
            ways = [Route(ANYWHERE, spot.lan[1]), Route(ANYWHERE_IPV4, spot.lan_ipv4[1])]
            yield Namespace(self.namespace(spot.host), HOST, ways)

    def wires(self) -> Iterator[Wire]:
        """Yield the wires from the core to each gateway, and from there to the host."""
        core = self.namespace(CORE)
        for spot in self.spots:
            gateway, host = self.namespace(spot.gateway), self.namespace(spot.host)
            yield Wire(
                End(core, spot.gateway, spot.hardware(1), _at(spot.link, 1)),
                End(gateway, WAN, spot.hardware(2), _at(spot.link, 2)),
                CORE_MTU,
            )
            yield Wire(
                End(gateway, LAN, spot.hardware(3), _at(spot.lan, 1), _at_ipv4(spot.lan_ipv4, 1)),
                End(host, HOSTS, spot.hardware(4), _at(spot.lan, 2), _at_ipv4(spot.lan_ipv4, 2)),
                LAN_MTU,
            )

    def config(self) -> NetworkConfig:
        """Return the network configuration of the gateways."""
        first, second, last = self.spots[0], self.spots[1], self.spots[-1]
        ways = () if self.gateways == FEWEST else (_two_paths(first, last, second), _two_paths(last, first, second))
        return NetworkConfig(tuple(map(self._gateway, self.spots)), ways)

    def _gateway(self, spot: Spot) -> GatewayConfig:
        last = spot.number == self.gateways
        return GatewayConfig(
            spot.gateway,
            spot.address,
            cluster="" if last else f"cluster-{spot.number}",
            site=SITE if last else "",
            interface=WAN,
            locator=spot.locator,
            sids=(
                Sid(spot.end, Behaviour.END),
                Sid(spot.unwrap, Behaviour.END_DT6),
                Sid(spot.unwrap_ipv4, Behaviour.END_DT4),
                Sid(spot.locator[0xD7], Behaviour.END_DX6, next_hop=spot.lan[2], interface=LAN),
            ),
            prefixes=(spot.lan, spot.lan_ipv4),
            mtu=CORE_MTU,
            speed_mbps=SPEED_MBPS,
        )


def require_name(name: str) -> None:
    """Check the name of a lab.

    Raises
    ------
    RejectedError
        If it is invalid.
    """
    if not NAME.fullmatch(name):
        raise RejectedError(
            "a lab's name has up to 30 small letters, digits and dashes, a letter first", where="--name"
        )


def belongs(namespace: str, name: str) -> bool:
    """Report whether a namespace belongs to a lab of any size."""
    head = f"{PREFIX}-{name}-"
    return namespace.startswith(head) and PLACE.fullmatch(namespace[len(head) :]) is not None


def _at(network: IPv6Network, position: int) -> IPv6Interface:
    return IPv6Interface((network[position], network.prefixlen))


def _at_ipv4(network: IPv4Network, position: int) -> IPv4Interface:
    return IPv4Interface((network[position], network.prefixlen))


def _two_paths(source: Spot, target: Spot, by_way_of: Spot) -> Pair:
    straight = Path("direct", (target.unwrap,))
    around = Path(f"via-{by_way_of.number}", (by_way_of.end, target.unwrap))
    return Pair(source.gateway, target.gateway, (straight, around))
