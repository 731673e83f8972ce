"""What a namespace has: interfaces, wires to others, addresses, routes, kernel settings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from ipaddress import IPv6Address, IPv6Interface, IPv6Network
from pathlib import Path

from pyroute2 import IPRoute

from lab.netns import inside

NO_DUPLICATES_CHECK = 0x02
"""IFA_F_NODAD: an address is there at once."""

NUD_PERMANENT = 0x80
"""A neighbour whose hardware address is not asked for."""


@dataclass(frozen=True, slots=True)
class End:
    """One of two virtual Ethernet interfaces.

    Attributes
    ----------
    hardware
        Its MAC address.
    address
        What it is given.
    """

    namespace: str
    interface: str
    hardware: str
    address: IPv6Interface


@dataclass(frozen=True, slots=True)
class Wire:
    """A pair of virtual Ethernet interfaces; each knows the other's address, so that no packet waits for that.

    Attributes
    ----------
    mtu
        Octets that a packet may have.
    """

    near: End
    far: End
    mtu: int

    @property
    def ends(self) -> tuple[tuple[End, End], tuple[End, End]]:
        """Each end with the other."""
        return (self.near, self.far), (self.far, self.near)


@dataclass(frozen=True, slots=True)
class Route:
    """A way to a prefix.

    Attributes
    ----------
    source
        The address that packets of this namespace itself get; None leaves it to the kernel.
    """

    to: IPv6Network
    via: IPv6Address
    source: IPv6Address | None = None


@dataclass(frozen=True, slots=True)
class Namespace:
    """A namespace as it is meant to be.

    Attributes
    ----------
    settings
        What is written to files of ``/proc/sys/net``, before there are interfaces.
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
    """Put a wire between two namespaces."""
    near, far = wire.near, wire.far
    peer = {"ifname": far.interface, "net_ns_fd": far.namespace, "mtu": wire.mtu, "address": far.hardware}

    def add() -> None:
        with IPRoute() as netlink:
            netlink.link("add", ifname=near.interface, kind="veth", mtu=wire.mtu, address=near.hardware, peer=peer)

    inside(near.namespace, add)


def furnish(namespace: Namespace, ends: Sequence[tuple[End, End]]) -> None:
    """Bring the interfaces of a namespace up, and give it its addresses, neighbours and routes.

    Parameters
    ----------
    ends
        Those in the namespace, each with its other end.
    """

    def write() -> None:
        with IPRoute() as netlink:
            _raise_loopback(netlink, namespace.own)
            for end, other in ends:
                index = netlink.link_lookup(ifname=end.interface)[0]
                netlink.link("set", index=index, state="up")
                _add_address(netlink, index, end.address)
                netlink.neigh(
                    "add", dst=str(other.address.ip), lladdr=other.hardware, ifindex=index, state=NUD_PERMANENT
                )
            for route in namespace.routes:
                source = {} if route.source is None else {"prefsrc": str(route.source)}
                netlink.route("add", dst=str(route.to), gateway=str(route.via), **source)

    inside(namespace.name, write)


def _raise_loopback(netlink: IPRoute, own: IPv6Address | None) -> None:
    index = netlink.link_lookup(ifname="lo")[0]
    netlink.link("set", index=index, state="up")
    if own is not None:
        _add_address(netlink, index, IPv6Interface(own))


def _add_address(netlink: IPRoute, index: int, address: IPv6Interface) -> None:
    netlink.addr(
        "add", index=index, address=str(address.ip), prefixlen=address.network.prefixlen, flags=NO_DUPLICATES_CHECK
    )
