"""Contents of a namespace: interfaces, wires to others, addresses, routes, kernel settings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Interface, IPv4Network, IPv6Address, IPv6Interface, IPv6Network
from pathlib import Path

from pyroute2 import IPRoute

from lab.netns import inside

NO_DUPLICATES_CHECK = 0x02
"""IFA_F_NODAD: the address is usable without duplicate address detection."""

NUD_PERMANENT = 0x80
"""State of a neighbour with a static hardware address."""


@dataclass(frozen=True, slots=True)
class End:
    """One of two virtual Ethernet interfaces.

    Attributes
    ----------
    hardware
        Its MAC address.
    address
        Its IPv6 address.
    ipv4
        Its IPv4 address; None for none.
    """

    namespace: str
    interface: str
    hardware: str
    address: IPv6Interface
    ipv4: IPv4Interface | None = None

    @property
    def addresses(self) -> tuple[IPv6Interface | IPv4Interface, ...]:
        """Its addresses."""
        return (self.address, self.ipv4) if self.ipv4 else (self.address,)


@dataclass(frozen=True, slots=True)
class Wire:
    """A pair of virtual Ethernet interfaces, each with a static neighbour entry for the other, so that no packet waits.

    Attributes
    ----------
    mtu
        MTU, octets.
    """

    near: End
    far: End
    mtu: int

    @property
    def ends(self) -> tuple[tuple[End, End], tuple[End, End]]:
        """Each end with its peer."""
        return (self.near, self.far), (self.far, self.near)


@dataclass(frozen=True, slots=True)
class Route:
    """A route to a prefix.

    Attributes
    ----------
    source
        Source address of packets from this namespace; None leaves it to the kernel.
    """

    to: IPv6Network | IPv4Network
    via: IPv6Address | IPv4Address
    source: IPv6Address | None = None


@dataclass(frozen=True, slots=True)
class Namespace:
    """Desired state of a namespace.

    Attributes
    ----------
    settings
        Values of files in ``/proc/sys/net``, written before interfaces exist.
    own
        An address of the namespace itself, on no wire; None for none.
    """

    name: str
    settings: Mapping[str, str]
    routes: Sequence[Route] = ()
    own: IPv6Address | None = None


def prepare(namespace: Namespace) -> None:
    """Write the kernel settings of a namespace."""

    def write() -> None:
        for setting, value in namespace.settings.items():
            Path("/proc/sys/net", setting).write_text(value)

    inside(namespace.name, write)


def connect(wire: Wire) -> None:
    """Connect two namespaces by a wire."""
    near, far = wire.near, wire.far
    peer = {"ifname": far.interface, "net_ns_fd": far.namespace, "mtu": wire.mtu, "address": far.hardware}

    def add() -> None:
        with IPRoute() as netlink:
            netlink.link("add", ifname=near.interface, kind="veth", mtu=wire.mtu, address=near.hardware, peer=peer)

    inside(near.namespace, add)


def furnish(namespace: Namespace, ends: Sequence[tuple[End, End]]) -> None:
    """Bring the interfaces of a namespace up, and add its addresses, neighbours and routes.

    Parameters
    ----------
    ends
        Its interfaces, each with its peer.
    """

    def write() -> None:
        with IPRoute() as netlink:
            _raise_loopback(netlink, namespace.own)
            for end, other in ends:
                index = netlink.link_lookup(ifname=end.interface)[0]
                netlink.link("set", index=index, state="up")
                for own in end.addresses:
                    _add_address(netlink, index, own)
                for there in other.addresses:
                    netlink.neigh("add", dst=str(there.ip), lladdr=other.hardware, ifindex=index, state=NUD_PERMANENT)
            for route in namespace.routes:
                source = {} if route.source is None else {"prefsrc": str(route.source)}
                netlink.route("add", dst=str(route.to), gateway=str(route.via), **source)

    inside(namespace.name, write)


def _raise_loopback(netlink: IPRoute, own: IPv6Address | None) -> None:
    index = netlink.link_lookup(ifname="lo")[0]
    netlink.link("set", index=index, state="up")
    if own is not None:
        _add_address(netlink, index, IPv6Interface(own))


def _add_address(netlink: IPRoute, index: int, address: IPv6Interface | IPv4Interface) -> None:
    unchecked = {"flags": NO_DUPLICATES_CHECK} if isinstance(address, IPv6Interface) else {}
    netlink.addr("add", index=index, address=str(address.ip), prefixlen=address.network.prefixlen, **unchecked)
