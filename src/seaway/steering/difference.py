"""Changes from the current to the desired state of a gateway, without packet loss, and their obstacles."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from ipaddress import IPv4Network, IPv6Address, IPv6Network
from typing import TypeGuard

from seaway.domain.errors import RejectedError
from seaway.domain.gateway_paths import MIN_MTU, Room, overhead
from seaway.domain.gateways import Behaviour, NetworkConfig, Prefix
from seaway.steering.state import (
    FORWARDING,
    FORWARDING_IPV4,
    METRIC,
    PROTOCOL,
    CurrentState,
    GatewayState,
    Hop,
    PathRoute,
    Route,
    SavedSetting,
    Setting,
    SettingKind,
    SidRoute,
    active_path,
    metric_of,
    mtu,
    named_gateway,
    sysctl,
)

USUAL_MTU = 1500
"""Default MTU of hosts."""

SETTERS = {1: "redirects", 2: "the kernel", 3: "boot", 4: "static", 9: "router advertisements", 12: "BIRD", 16: "DHCP"}
SETTERS |= {11: "zebra", 42: "babel", 186: "BGP", 187: "IS-IS", 188: "OSPF", 189: "RIP", 192: "EIGRP"}
"""Name of each routing protocol, as in /etc/iproute2/rt_protos."""


def obstacles(routes: Iterable[SidRoute | PathRoute], desired: GatewayState, present: CurrentState) -> Iterator[str]:
    """Yield the problems that prevent the desired state."""
    if not desired.routes and not desired.settings:
        return
    if sysctl("all", "seg6_enabled") not in present.settings:
        yield "this kernel knows no SRv6: it needs CONFIG_IPV6_SEG6_LWTUNNEL, as the kernels of distributions have it"
        return
    missing = _interfaces(desired) - present.interfaces
    there = ", ".join(sorted(present.interfaces)) or "none"
    yield from (f"interface {name!r} not found; available: {there}" for name in sorted(missing))
    if missing:
        return
    for knob in desired.settings.keys() - present.settings.keys():
        yield f"this kernel has no setting {setting_text(knob)}: has the interface IPv6?"
    yield from _conflicting_routes(routes, present)


def losses(lost: Mapping[Setting, SavedSetting]) -> Iterator[str]:
    """Yield the settings that cannot be restored."""
    for knob, was in lost.items():
        yield (
            f"{setting_text(knob)} was {was.before} and became {was.value}, and cannot be restored, "
            "since it does not exist any more: if the interface was renamed, restore it by hand"
        )


def setting_text(setting: Setting) -> str:
    """Return the display name of a setting."""
    if setting.kind is SettingKind.TUNNEL_SOURCE:
        return "source of tunnels (sr tunsrc)"
    if setting.kind is SettingKind.MTU:
        return f"MTU of {setting.name}"
    return setting.name if "." in setting.name else setting.name.replace("/", ".")


def notes(config: NetworkConfig, name: str, active: Mapping[str, str], present: CurrentState) -> Iterator[str]:
    """Yield warnings about a gateway that do not prevent its operation."""
    gateway = named_gateway(config, name)
    if gateway.locator is None:
        yield f"{name} has no locator: it is probed, and needs nothing set up"
        return
    if isinstance(gateway.address, IPv6Address) and gateway.address not in present.addresses:
        yield (
            f"{gateway.address}, the address of {name}, is on no interface here, so it cannot be "
            f"probed; for example: ip addr add {gateway.address}/128 dev lo"
        )
    paths = [path for pair in config.pairs_from(gateway) for path in active_path(pair, active.get(pair.target, ""))]
    own = int(present.settings.get(mtu(gateway.interface), "0")) if not gateway.mtu else gateway.mtu
    room = Room(config)
    rooms = [min(room.inner_mtu(name, path) or own, own - overhead(len(path.segments))) for path in paths if own]
    if rooms and min(rooms) < USUAL_MTU:
        short = "less than the 1280 that IPv6 needs" if min(rooms) < MIN_MTU else "fewer than hosts usually send"
        yield (
            f"packets of more than {min(rooms)} bytes do not fit when they are wrapped, {short}: raise the MTU between "
            f"gateways, here of {gateway.interface}, to {USUAL_MTU + own - min(rooms)}, or lower that of the hosts"
        )


def _interfaces(desired: GatewayState) -> set[str]:
    named = {route.interface for route in desired.routes}
    named |= {knob.name for knob in desired.settings if knob.kind is SettingKind.MTU}
    conf = (knob.name.split("/")[3] for knob in desired.settings if knob.kind is SettingKind.SYSCTL)
    return named | {name for name in conf if name != "all"}


def _conflicting_routes(routes: Iterable[SidRoute | PathRoute], present: CurrentState) -> Iterator[str]:
    foreign = {each.destination: each for each in present.foreign if each.metric <= METRIC}
    for route in routes:
        other = foreign.get(route.destination)
        if other is not None:
            dev = f" dev {other.interface}" if other.interface else ""
            yield (
                f"another program's route to {route.destination}{dev} (set by {_setter(other.protocol)}, metric "
                f"{other.metric}) is in the way: remove it, or take {route.destination} out of the configuration"
            )
        elif isinstance(route, SidRoute) and route.destination.network_address in present.addresses:
            yield (
                f"{route.destination.network_address} is an address of this machine, which receives all "
                "packets to it, so it cannot be a SID: remove the address, or choose another SID"
            )
        elif _needs_neighbours(route) and any(hop.via is None for hop in route.hops):
            yield (
                f"sharing the traffic to {route.destination} needs a neighbour to send it to, but no route on "
                f"{route.interface} to the first segments names one: route them via a router, or do not share"
            )


def _needs_neighbours(route: SidRoute | PathRoute) -> TypeGuard[PathRoute]:
    """Report whether the kernel requires a neighbour for each hop: of several hops for IPv6 packets."""
    several = isinstance(route, PathRoute) and len(route.hops) > 1
    return several and route.destination.version == 6


def _setter(protocol: int) -> str:
    return SETTERS.get(protocol, f"protocol {protocol}")


ROUTER_ADVERTISEMENT = 9
"""Protocol number of routes from router advertisements."""

DEFAULT_ROUTE = IPv6Network("::/0")

FORWARDINGS = frozenset({FORWARDING, FORWARDING_IPV4})


@dataclass(frozen=True, slots=True)
class Set:
    """Change of a setting. `restores` is True if `value` is the value from before Seaway."""

    setting: Setting
    before: str
    value: str
    restores: bool = False


@dataclass(frozen=True, slots=True)
class Add:
    """Addition of a route."""

    route: SidRoute | PathRoute


@dataclass(frozen=True, slots=True)
class Replace:
    """Atomic replacement of a route."""

    before: Route
    route: SidRoute | PathRoute


@dataclass(frozen=True, slots=True)
class Remove:
    """Removal of a route."""

    route: Route


Change = Set | Add | Replace | Remove


@dataclass(frozen=True, slots=True)
class Difference:
    """Changes, in the order of their execution.

    Attributes
    ----------
    saved
        Previous settings, stored before the first change.
    lost
        Previous settings of interfaces that were removed or renamed; they cannot be restored.
    """

    changes: tuple[Change, ...] = ()
    saved: Mapping[Setting, SavedSetting] = field(default_factory=dict)
    lost: Mapping[Setting, SavedSetting] = field(default_factory=dict)


def difference(desired: GatewayState, present: CurrentState) -> Difference:
    """Return the changes from the current to the desired state.

    Settings are changed first, then SIDs, then the routes that send packets to them. Removals are in the reverse
    order.

    Raises
    ------
    RejectedError
        If there are obstacles, such as a route of another program. For the first one, with the others in `also`.
    """
    routes = tuple(_with_neighbours(route, present) for route in desired.routes)
    if wrong := tuple(obstacles(routes, desired, present)):
        first, *others = map(RejectedError, wrong)
        raise RejectedError(first.message, also=tuple(others))
    settings = {**_preserved_default_routes(desired, present), **desired.settings}
    remembered = dict(_saved(settings, present))
    changes: list[Change] = list(_set(settings, present))
    there = {route.destination: route for route in present.routes if metric_of(route) == METRIC}
    changes += _written(routes, there)
    retained = {route.destination for route in routes}
    gone = [route for route in present.routes if route.destination not in retained or metric_of(route) != METRIC]
    changes += map(Remove, sorted(gone, key=lambda route: isinstance(route, SidRoute)))
    changes += _set_back(settings, present)
    return Difference(tuple(changes), remembered, dict(_lost(settings, present)))


def _written(routes: Iterable[SidRoute | PathRoute], there: Mapping[Prefix, Route]) -> Iterator[Change]:
    for route in sorted(routes, key=lambda route: isinstance(route, PathRoute)):
        before = there.get(route.destination)
        if before is None:
            yield Add(route)
        elif before != route:
            yield Replace(before, route)


def _with_neighbours(route: SidRoute | PathRoute, present: CurrentState) -> SidRoute | PathRoute:
    """Return a route with the neighbour of each hop, if the kernel requires them."""
    if not _needs_neighbours(route):
        return route
    hops = (replace(hop, via=_neighbour(hop, route.interface, present)) for hop in route.hops)
    return replace(route, hops=tuple(hops))


def _neighbour(hop: Hop, interface: str, present: CurrentState) -> IPv6Address | None:
    """Return the neighbour for packets to the first segment of a hop; None if no route names one."""
    ways = [each for each in present.foreign if each.interface == interface and hop.segments[0] in each.destination]
    if not ways:
        return None
    via = min(ways, key=lambda each: (-each.destination.prefixlen, each.metric)).via
    return via if isinstance(via, IPv6Address) else None


def _preserved_default_routes(wanted: GatewayState, present: CurrentState) -> dict[Setting, str]:
    """Return the settings that preserve default routes from router advertisements.

    When forwarding is enabled, Linux drops such routes and accepts no others unless accept_ra is 2.
    """
    if FORWARDING not in wanted.settings:
        return {}
    interfaces = {
        route.interface
        for route in present.foreign
        if route.protocol == ROUTER_ADVERTISEMENT and route.destination == DEFAULT_ROUTE
    }
    knobs = {sysctl(interface, "accept_ra") for interface in interfaces}
    return {knob: "2" for knob in knobs if present.settings.get(knob) in {"1", "2"}}


def _set(settings: Mapping[Setting, str], present: CurrentState) -> Iterator[Set]:
    for knob, value in settings.items():
        before = present.settings[knob]
        if before != value:
            yield Set(knob, before, value)


def _saved(settings: Mapping[Setting, str], present: CurrentState) -> Iterator[tuple[Setting, SavedSetting]]:
    """Yield the settings before the first change, for settings that are changed and those that change with them."""
    for knob, value in settings.items():
        old, now = present.saved.get(knob), present.settings[knob]
        if old is not None:
            yield knob, SavedSetting(old.before, value)
        elif now != value:
            yield knob, SavedSetting(now, value)
        if old is not None:
            yield from ((each, was) for each, was in present.saved.items() if _forwarding_of(each) == knob)
        elif now != value:
            yield from (
                (each, SavedSetting(was, value))
                for each, was in present.settings.items()
                if _forwarding_of(each) == knob
            )


def setting_order(knob: Setting) -> bool:
    """Report whether a change of forwarding for all interfaces changes this setting too."""
    return _forwarding_of(knob) is not None


def _forwarding_of(knob: Setting) -> Setting | None:
    """Return the forwarding for all interfaces whose change changes this setting too; None without one."""
    if knob.kind is not SettingKind.SYSCTL or not knob.name.endswith("/forwarding") or knob in FORWARDINGS:
        return None
    return FORWARDING_IPV4 if knob.name.startswith("net/ipv4/") else FORWARDING


def _set_back(settings: Mapping[Setting, str], present: CurrentState) -> Iterator[Set]:
    """Restore settings that are no longer desired, unless a user has changed them since."""
    for knob, old in present.saved.items():
        if knob in settings or setting_order(knob) or not present.settings.get(knob) == old.value != old.before:
            continue
        yield Set(knob, old.value, old.before, restores=True)
        for each, was in present.saved.items():
            if _forwarding_of(each) == knob and was.before != old.before and each in present.settings:
                yield Set(each, old.before, was.before, restores=True)


def _lost(settings: Mapping[Setting, str], present: CurrentState) -> Iterator[tuple[Setting, SavedSetting]]:
    for knob, old in present.saved.items():
        wanted = knob in settings or setting_order(knob) or old.value == old.before
        if not wanted and knob not in present.settings:
            yield knob, old


def commands(changes: Iterable[Change], netns: str = "") -> tuple[str, ...]:
    """Return shell commands equivalent to the changes, in order. `netns` is the name of a network namespace."""
    return tuple(_command(each, netns) for each in changes)


def route_arguments(route: SidRoute | PathRoute) -> str:
    """Return the arguments of `ip route` for a route."""
    if isinstance(route, SidRoute):
        return f"encap seg6local {_action(route)} dev {route.interface}"
    if len(route.hops) == 1:
        return f"{_encap(route.hops[0])} dev {route.interface}"
    via = [f" via {hop.via}" if hop.via else "" for hop in route.hops]
    hops = (
        f"nexthop {_encap(hop)}{by} dev {route.interface} weight {hop.weight}"
        for hop, by in zip(route.hops, via, strict=True)
    )
    return " ".join(hops)


def _command(change: Change, netns: str) -> str:
    ip = f"ip -n {netns}" if netns else "ip"
    match change:
        case Set():
            return _set_command(change, ip, f"ip netns exec {netns} " if netns else "")
        case Add(route):
            return f"{ip} {_family(route)} route add {_key(route)} {route_arguments(route)}"
        case Replace(_, route):
            return f"{ip} {_family(route)} route replace {_key(route)} {route_arguments(route)}"
        case Remove(route):
            return f"{ip} {_family(route)} route del {_key(route)}"


def _family(route: Route) -> str:
    return "-4" if isinstance(route.destination, IPv4Network) else "-6"


def _set_command(change: Set, ip: str, inside: str) -> str:
    if change.setting.kind is SettingKind.MTU:
        return f"{ip} link set dev {change.setting.name} mtu {change.value}"
    if change.setting.kind is SettingKind.TUNNEL_SOURCE:
        return f"{ip} sr tunsrc set {change.value}"
    return f"{inside}sysctl -w {setting_text(change.setting)}={change.value}"


def _key(route: Route) -> str:
    return f"{route.destination} proto {PROTOCOL} metric {metric_of(route)}"


def _action(route: SidRoute) -> str:
    """Return the action of a SID. Linux has End.DT4 for VRFs only, and End.DX4 to 0.0.0.0 looks up the main table."""
    if route.behaviour in {Behaviour.END_DT4, Behaviour.END_DX4}:
        return f"action End.DX4 nh4 {route.next_hop or '0.0.0.0'}"
    action = f"action {route.behaviour.value}"
    if route.behaviour is Behaviour.END_DT6:
        return f"{action} table {route.table}"
    return f"{action} nh6 {route.next_hop}" if route.next_hop is not None else action


def _encap(hop: Hop) -> str:
    return f"encap seg6 mode encap segs {','.join(map(str, hop.segments))}"
