"""State of a gateway: routes for its SIDs, routes that encapsulate packets, and settings of its kernel."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from ipaddress import IPv6Address, IPv6Network

from seaway.domain.gateways import MAIN_TABLE, Behaviour

PROTOCOL = 151
"""Marks routes as Seaway's, as routing daemons mark theirs: what has another number is never touched."""

METRIC = 1024
"""Metric of Seaway's routes, the default of `ip`."""


@dataclass(frozen=True, slots=True)
class SidRoute:
    """Route for a SID.

    Attributes
    ----------
    destination
        The SID alone.
    interface
        Interface of the neighbour, or the gateway's own.
    behaviour, table, next_hop
        As in `seaway.domain.gateways.Sid`.
    """

    destination: IPv6Network
    interface: str
    behaviour: Behaviour
    table: int = MAIN_TABLE
    next_hop: IPv6Address | None = None


@dataclass(frozen=True, slots=True)
class Hop:
    """One of the ways that a route wraps packets for.

    Attributes
    ----------
    segments
        In the order in which a packet passes them.
    weight
        Share of the flows, where there are several hops.
    via
        The neighbour that several hops need to be named, though the first segment's own route says where packets go;
        None for one hop.
    """

    segments: tuple[IPv6Address, ...]
    weight: int = 1
    via: IPv6Address | None = None


@dataclass(frozen=True, slots=True)
class PathRoute:
    """Wraps packets to a network behind another gateway.

    Attributes
    ----------
    hops
        At least one, sorted.
    """

    destination: IPv6Network
    interface: str
    hops: tuple[Hop, ...]


@dataclass(frozen=True, slots=True)
class UnknownRoute:
    """A route that bears Seaway's number and that it would not write so; `text` says what it is.

    One of another metric stands beside Seaway's own route to the same destination.
    """

    destination: IPv6Network
    text: str
    metric: int = METRIC


Route = SidRoute | PathRoute | UnknownRoute


def metric_of(route: Route) -> int:
    """Return by which metric a route goes, which tells it from others to the same destination."""
    return route.metric if isinstance(route, UnknownRoute) else METRIC


@dataclass(frozen=True, slots=True)
class ForeignRoute:
    """Route of another program in the main table.

    Attributes
    ----------
    protocol
        Its protocol number: 2 for the kernel, 4 for static routes, 9 for router advertisements, and so on.
    via
        The neighbour; None without one.
    """

    destination: IPv6Network
    metric: int
    protocol: int
    interface: str = ""
    via: IPv6Address | None = None


class SettingKind(Enum):
    """Kind of a setting."""

    SYSCTL = "sysctl"
    MTU = "mtu"
    TUNNEL_SOURCE = "tunnel source"


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting of the kernel.

    Attributes
    ----------
    name
        A sysctl like ``net/ipv6/conf/all/forwarding``, with slashes because interfaces may have dots; the interface
        of an MTU; empty for the tunnels' source.
    """

    kind: SettingKind
    name: str = ""


@dataclass(frozen=True, slots=True)
class SavedSetting:
    """Value of a setting before and after Seaway set it."""

    before: str
    value: str


@dataclass(frozen=True, slots=True)
class GatewayState:
    """Desired state of a gateway."""

    routes: tuple[SidRoute | PathRoute, ...] = ()
    settings: Mapping[Setting, str] = field(default_factory=dict)


NOTHING = GatewayState()
"""Desired state of a machine that is not a gateway any more."""


@dataclass(frozen=True, slots=True)
class CurrentState:
    """Current state of a machine.

    Attributes
    ----------
    routes
        Seaway's routes.
    foreign
        Other routes of the main table.
    settings
        Settings of every interface, and those for all interfaces; without those that the kernel does not know.
    addresses
        Its addresses.
    interfaces
        By name.
    saved
        Previous settings.
    """

    routes: tuple[Route, ...] = ()
    foreign: tuple[ForeignRoute, ...] = ()
    settings: Mapping[Setting, str] = field(default_factory=dict)
    addresses: frozenset[IPv6Address] = frozenset()
    interfaces: frozenset[str] = frozenset()
    saved: Mapping[Setting, SavedSetting] = field(default_factory=dict)


def sysctl(interface: str, name: str) -> Setting:
    """Return an IPv6 setting of an interface, or of ``all``."""
    return Setting(SettingKind.SYSCTL, f"net/ipv6/conf/{interface}/{name}")


def mtu(interface: str) -> Setting:
    """Return the MTU of an interface."""
    return Setting(SettingKind.MTU, interface)


TUNNEL_SOURCE = Setting(SettingKind.TUNNEL_SOURCE)
FORWARDING = sysctl("all", "forwarding")
