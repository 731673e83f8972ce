"""State of a gateway: routes for its SIDs, routes that encapsulate packets, and settings of its kernel."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from ipaddress import IPv6Address, IPv6Network

from seaway.domain.errors import RejectedError
from seaway.domain.gateways import MAIN_TABLE, Behaviour, GatewayConfig, NetworkConfig, Pair, Path, Sid

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


def desired(config: NetworkConfig, name: str, active: Mapping[str, str] | None = None) -> GatewayState:
    """Return what a gateway must have.

    Parameters
    ----------
    config
        A sound one; see `seaway.domain.gateway_checks`.
    name
        The gateway. One without a locator must have nothing.
    active
        The path that is taken to a target, by the target's name; others take the one with the largest weight.

    Raises
    ------
    RejectedError
        When there is no such gateway, target or path.
    """
    gateway = named_gateway(config, name)
    pairs = config.pairs_from(gateway)
    routes = [_sid(sid, gateway) for sid in gateway.sids]
    active = dict(active or {})
    paths = [route for pair in pairs for route in _pair(config, gateway, pair, active.pop(pair.target, ""))]
    if active:
        raise RejectedError(f"{name} has no paths to {', '.join(active)}; it has some to: {_targets(pairs)}")
    if gateway.locator is None:
        return NOTHING
    return GatewayState((*routes, *paths), _settings(gateway))


def named_gateway(config: NetworkConfig, name: str) -> GatewayConfig:
    """Return a gateway by name.

    Raises
    ------
    RejectedError
        When there is none; says which there are.
    """
    gateway = config.gateway(name)
    if gateway is None:
        there = ", ".join(each.name for each in config.gateways) or "none"
        raise RejectedError(f"gateway {name!r} not found; available: {there}")
    return gateway


def active_path(pair: Pair, chosen: str = "") -> tuple[Path, ...]:
    """Return the paths that packets of a pair take: all where they share, else the chosen or the best liked one.

    Raises
    ------
    RejectedError
        When there is no path of that name, or nothing to choose.
    """
    if not chosen:
        return pair.paths if pair.load_balance else (max(pair.paths, key=lambda path: path.weight),)
    if pair.load_balance:
        raise RejectedError(f"packets to {pair.target} are spread over all its paths, so no path can be selected")
    found = tuple(path for path in pair.paths if path.name == chosen)
    if not found:
        there = ", ".join(path.name for path in pair.paths)
        raise RejectedError(f"path {chosen!r} not found from {pair.source} to {pair.target}; available: {there}")
    return found


def _targets(pairs: tuple[Pair, ...]) -> str:
    return ", ".join(pair.target for pair in pairs) or "none"


def _sid(sid: Sid, gateway: GatewayConfig) -> SidRoute:
    interface = sid.interface or gateway.interface
    return SidRoute(IPv6Network(sid.address), interface, sid.behaviour, sid.table, sid.next_hop)


def _pair(config: NetworkConfig, gateway: GatewayConfig, pair: Pair, chosen: str) -> Iterator[PathRoute]:
    paths = active_path(pair, chosen)
    weights = [path.weight if len(paths) > 1 else 1 for path in paths]
    hops = tuple(sorted(map(_hop, paths, weights), key=lambda hop: hop.segments))
    for prefix in named_gateway(config, pair.target).prefixes:
        yield PathRoute(prefix, gateway.interface, hops)


def _hop(path: Path, weight: int) -> Hop:
    return Hop(path.segments, weight)


def _settings(gateway: GatewayConfig) -> dict[Setting, str]:
    settings = {
        FORWARDING: "1",
        sysctl("all", "seg6_enabled"): "1",
        sysctl(gateway.interface, "seg6_enabled"): "1",
        TUNNEL_SOURCE: str(gateway.address),
    }
    return settings | ({mtu(gateway.interface): str(gateway.mtu)} if gateway.mtu else {})
