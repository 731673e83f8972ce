"""Conflicts that prevent a machine from being the gateway, and notes for its owner."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from ipaddress import IPv6Address

from seaway.domain.gateway_paths import MIN_MTU, Room, overhead
from seaway.domain.gateways import NetworkConfig
from seaway.steering.desired import active_path, named_gateway
from seaway.steering.state import (
    METRIC,
    CurrentState,
    GatewayState,
    PathRoute,
    SavedSetting,
    Setting,
    SettingKind,
    SidRoute,
    mtu,
    sysctl,
)

USUAL_MTU = 1500
"""Default MTU of hosts."""

SETTERS = {1: "redirects", 2: "the kernel", 3: "boot", 4: "static", 9: "router advertisements", 12: "BIRD", 16: "DHCP"}
SETTERS |= {11: "zebra", 42: "babel", 186: "BGP", 187: "IS-IS", 188: "OSPF", 189: "RIP", 192: "EIGRP"}
"""Who sets routes, as in /etc/iproute2/rt_protos."""


def obstacles(routes: Iterable[SidRoute | PathRoute], desired: GatewayState, present: CurrentState) -> Iterator[str]:
    """Yield what must be mended before a machine can be the gateway that is wanted."""
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
    """Yield what cannot be set back."""
    for knob, was in lost.items():
        yield (
            f"{setting_text(knob)} was {was.before} and became {was.value}, and cannot be restored, "
            "since it does not exist any more: if the interface was renamed, restore it by hand"
        )


def setting_text(setting: Setting) -> str:
    """Return what people call a setting."""
    if setting.kind is SettingKind.TUNNEL_SOURCE:
        return "source of tunnels (sr tunsrc)"
    if setting.kind is SettingKind.MTU:
        return f"MTU of {setting.name}"
    return setting.name if "." in setting.name else setting.name.replace("/", ".")


def notes(config: NetworkConfig, name: str, active: Mapping[str, str], present: CurrentState) -> Iterator[str]:
    """Yield what the owner of a gateway should know, though it keeps nothing from working."""
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
        elif isinstance(route, PathRoute) and len(route.hops) > 1 and any(hop.via is None for hop in route.hops):
            yield (
                f"sharing the traffic to {route.destination} needs a neighbour to send it to, but no route on "
                f"{route.interface} to the first segments names one: route them via a router, or do not share"
            )


def _setter(protocol: int) -> str:
    return SETTERS.get(protocol, f"protocol {protocol}")
