"""State of a gateway: routes for its SIDs, encapsulating routes, and kernel settings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from enum import Enum
from ipaddress import IPv4Address, IPv6Address, IPv6Network

from seaway.domain.errors import RejectedError
from seaway.domain.gateways import MAIN_TABLE, Behaviour, GatewayConfig, NetworkConfig, Pair, Path, Prefix, Sid

PROTOCOL = 151
"""Protocol number of Seaway's routes. Seaway never changes routes with another number."""

METRIC = 1024
"""Metric of Seaway's routes, which is the default of `ip`."""


@dataclass(frozen=True, slots=True)
class SidRoute:
    """Route for a SID.

    Attributes
    ----------
    destination
        The SID, as a /128 prefix.
    interface
        Interface of the neighbour, or the gateway's own.
    behaviour, table, next_hop
        As in `seaway.domain.gateways.Sid`.
    """

    destination: IPv6Network
    interface: str
    behaviour: Behaviour
    table: int = MAIN_TABLE
    next_hop: IPv6Address | IPv4Address | None = None


@dataclass(frozen=True, slots=True)
class Hop:
    """One segment list of an encapsulating route.

    Attributes
    ----------
    segments
        SIDs in the order in which a packet visits them.
    weight
        Relative share of the flows, if there are several hops.
    via
        Neighbour of the hop, which the kernel requires if there are several hops for IPv6 packets; None for others,
        which follow the route to the first segment.
    """

    segments: tuple[IPv6Address, ...]
    weight: int = 1
    via: IPv6Address | None = None


@dataclass(frozen=True, slots=True)
class PathRoute:
    """Route that encapsulates packets to a network behind another gateway.

    Attributes
    ----------
    hops
        One or more hops, sorted by their segments.
    """

    destination: Prefix
    interface: str
    hops: tuple[Hop, ...]


@dataclass(frozen=True, slots=True)
class UnknownRoute:
    """A route with Seaway's protocol number in a form that Seaway does not write. `text` describes it.

    With another metric, it exists in addition to Seaway's own route to the same destination.
    """

    destination: Prefix
    text: str
    metric: int = METRIC


Route = SidRoute | PathRoute | UnknownRoute


def metric_of(route: Route) -> int:
    """Return the metric of a route, which distinguishes it from others to the same destination."""
    return route.metric if isinstance(route, UnknownRoute) else METRIC


@dataclass(frozen=True, slots=True)
class ForeignRoute:
    """Route of another program in the main table.

    Attributes
    ----------
    protocol
        Its protocol number: 2 for the kernel, 4 for static routes, 9 for router advertisements, and so on.
    via
        Neighbour; None if the route has none.
    """

    destination: Prefix
    metric: int
    protocol: int
    interface: str = ""
    via: IPv6Address | IPv4Address | None = None


class SettingKind(Enum):
    """Kind of a setting."""

    SYSCTL = "sysctl"
    MTU = "mtu"
    TUNNEL_SOURCE = "tunnel source"


@dataclass(frozen=True, slots=True)
class Setting:
    """A setting of the kernel.

    Attributes
    ----------
    name
        For a sysctl, its path such as ``net/ipv6/conf/all/forwarding``, with slashes because interface names may
        contain dots. For an MTU, the interface. Empty for the source of tunnels.
    """

    kind: SettingKind
    name: str = ""


@dataclass(frozen=True, slots=True)
class SavedSetting:
    """Values of a setting before and after Seaway changed it."""

    before: str
    value: str


@dataclass(frozen=True, slots=True)
class GatewayState:
    """Desired state of a gateway."""

    routes: tuple[SidRoute | PathRoute, ...] = ()
    settings: Mapping[Setting, str] = field(default_factory=dict)


NOTHING = GatewayState()
"""Desired state of a machine that is no longer a gateway."""


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
        Settings of each interface and of ``all``, without those that the kernel does not support.
    addresses
        Its addresses.
    interfaces
        Names of its interfaces.
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
FORWARDING_IPV4 = Setting(SettingKind.SYSCTL, "net/ipv4/conf/all/forwarding")


def desired(
    config: NetworkConfig, name: str, active: Mapping[str, str] | None = None, serving: Mapping[str, str] | None = None
) -> GatewayState:
    """Return the desired state of a gateway.

    Parameters
    ----------
    config
        A valid configuration, see `seaway.domain.gateway_checks`.
    name
        Name of the gateway. The state of a gateway without a locator is empty.
    active
        Name of the active path to each target. Other pairs use the path with the largest weight.
    serving
        Gateway that carries the traffic of each cluster. Clusters without one use their first gateway.

    Raises
    ------
    RejectedError
        If the gateway, a target or a path does not exist.
    """
    gateway = named_gateway(config, name)
    pairs = config.pairs_from(gateway)
    routes = [_sid(sid, gateway) for sid in gateway.sids]
    active = dict(active or {})
    there = _reached(config, gateway, config.serving(serving))
    paths = [
        route
        for pair in pairs
        for route in _pair(config, gateway, pair, active.pop(pair.target, ""), there.get(pair.target, ()))
    ]
    if active:
        raise RejectedError(f"{name} has no paths to {', '.join(active)}; it has some to: {_targets(pairs)}")
    if gateway.locator is None:
        return NOTHING
    carried = {prefix.version for prefix in (*gateway.prefixes, *(route.destination for route in paths))}
    return GatewayState((*routes, *paths), _settings(gateway, carried))


def named_gateway(config: NetworkConfig, name: str) -> GatewayConfig:
    """Return a gateway by name.

    Raises
    ------
    RejectedError
        If it does not exist. The message lists the existing ones.
    """
    gateway = config.gateway(name)
    if gateway is None:
        there = ", ".join(each.name for each in config.gateways) or "none"
        raise RejectedError(f"gateway {name!r} not found; available: {there}")
    return gateway


def active_path(pair: Pair, chosen: str = "") -> tuple[Path, ...]:
    """Return the active paths of a pair.

    These are all paths if it balances load, else the selected path or the one with the largest weight.

    Raises
    ------
    RejectedError
        If the path does not exist, or the pair balances load.
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


def _reached(
    config: NetworkConfig, gateway: GatewayConfig, serving: Mapping[str, str]
) -> dict[str, tuple[Prefix, ...]]:
    """Return the networks that a gateway reaches through each other gateway.

    Of several gateways of a cluster, the one that carries its traffic reaches their common networks. A gateway reaches
    the networks of its own cluster without the others.
    """
    through: dict[Prefix, str] = {}
    for other in config.gateways:
        if other.cluster and other.cluster == gateway.cluster:
            continue
        for prefix in other.prefixes:
            if prefix not in through or serving.get(other.cluster) == other.name:
                through[prefix] = other.name
    return {
        other.name: tuple(prefix for prefix in other.prefixes if through.get(prefix) == other.name)
        for other in config.gateways
    }


def _pair(
    config: NetworkConfig, gateway: GatewayConfig, pair: Pair, chosen: str, prefixes: Sequence[Prefix]
) -> Iterator[PathRoute]:
    paths, target = active_path(pair, chosen), named_gateway(config, pair.target)
    weights = [path.weight if len(paths) > 1 else 1 for path in paths]
    for prefix in prefixes:
        ways = [_segments(path, target, prefix.version) for path in paths]
        hops = sorted(map(Hop, ways, weights), key=lambda hop: hop.segments)
        yield PathRoute(prefix, gateway.interface, tuple(hops))


def _segments(path: Path, target: GatewayConfig, version: int) -> tuple[IPv6Address, ...]:
    """Return the segments for packets of an IP version, which end at a SID of the target that decapsulates them."""
    last = next((sid for sid in target.sids if sid.address == path.segments[-1]), None)
    end = target.unwrapping(version)
    if end is None or (last is not None and last.behaviour.inner_version == version):
        return path.segments
    return (*path.segments[:-1], end.address)


def _settings(gateway: GatewayConfig, carried: Set[int]) -> dict[Setting, str]:
    settings = {
        FORWARDING: "1",
        sysctl("all", "seg6_enabled"): "1",
        sysctl(gateway.interface, "seg6_enabled"): "1",
        TUNNEL_SOURCE: str(gateway.address),
    }
    if 4 in carried:
        settings[FORWARDING_IPV4] = "1"
    return settings | ({mtu(gateway.interface): str(gateway.mtu)} if gateway.mtu else {})
