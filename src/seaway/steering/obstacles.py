"""What keeps a machine from being the gateway that is wanted, and what its owner should know."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from ipaddress import IPv6Address

from seaway.domain.gateway_paths import LEAST_MTU, Room, overhead
from seaway.domain.gateways import NetworkConfig
from seaway.steering.desired import named_gateway, taken
from seaway.steering.state import (
    METRIC,
    GatewayState,
    Kind,
    Knob,
    PathRoute,
    Present,
    Remembered,
    SidRoute,
    mtu,
    sysctl,
)

USUAL_MTU = 1500
"""What hosts send where nobody tells them otherwise."""

SETTERS = {1: "redirects", 2: "the kernel", 3: "boot", 4: "static", 9: "router advertisements", 12: "BIRD", 16: "DHCP"}
SETTERS |= {11: "zebra", 42: "babel", 186: "BGP", 187: "IS-IS", 188: "OSPF", 189: "RIP", 192: "EIGRP"}
"""Who sets routes, as in /etc/iproute2/rt_protos."""


def obstacles(routes: Iterable[SidRoute | PathRoute], wanted: GatewayState, present: Present) -> Iterator[str]:
    """Yield what has to be mended before a machine can be the gateway that is wanted."""
    if not wanted.routes and not wanted.settings:
        return
    if sysctl("all", "seg6_enabled") not in present.settings:
        yield "this kernel knows no SRv6: it needs CONFIG_IPV6_SEG6_LWTUNNEL, as the kernels of distributions have it"
        return
    missing = _interfaces(wanted) - present.interfaces
    there = ", ".join(sorted(present.interfaces)) or "none"
    yield from (f"there is no interface {name!r} here; there are: {there}" for name in sorted(missing))
    if missing:
        return
    for knob in wanted.settings.keys() - present.settings.keys():
        yield f"this kernel has no setting {setting_text(knob)}: has the interface IPv6?"
    yield from _in_the_way(routes, present)


def losses(lost: Mapping[Knob, Remembered]) -> Iterator[str]:
    """Yield what cannot be set back."""
    for knob, was in lost.items():
        yield (
            f"{setting_text(knob)} was {was.before} and became {was.value}, and cannot be set back, for it is gone: if "
            "the interface has another name by now, set it back by hand"
        )


def setting_text(knob: Knob) -> str:
    """Return what people call a setting."""
    if knob.kind is Kind.TUNNEL_SOURCE:
        return "source of tunnels (sr tunsrc)"
    if knob.kind is Kind.MTU:
        return f"MTU of {knob.name}"
    return knob.name if "." in knob.name else knob.name.replace("/", ".")


def notes(config: NetworkConfig, name: str, active: Mapping[str, str], present: Present) -> Iterator[str]:
    """Yield what the owner of a gateway should know, though it keeps nothing from working."""
    gateway = named_gateway(config, name)
    if gateway.locator is None:
        yield f"{name} has no locator: it is probed, and needs nothing set up"
        return
    if isinstance(gateway.address, IPv6Address) and gateway.address not in present.addresses:
        yield (
            f"{gateway.address}, the address of {name}, is on no interface here, so that nobody can probe it; "
            f"for instance: ip addr add {gateway.address}/128 dev lo"
        )
    paths = [path for pair in config.pairs_from(gateway) for path in taken(pair, active.get(pair.target, ""))]
    own = int(present.settings.get(mtu(gateway.interface), "0")) if not gateway.mtu else gateway.mtu
    room = Room(config)
    rooms = [min(room.inner_mtu(name, path) or own, own - overhead(len(path.segments))) for path in paths if own]
    if rooms and min(rooms) < USUAL_MTU:
        short = "less than the 1280 that IPv6 needs" if min(rooms) < LEAST_MTU else "fewer than hosts usually send"
        yield (
            f"packets of more than {min(rooms)} bytes do not fit when they are wrapped, {short}: raise the MTU between "
            f"gateways, here of {gateway.interface}, to {USUAL_MTU + own - min(rooms)}, or lower that of the hosts"
        )


def _interfaces(wanted: GatewayState) -> set[str]:
    named = {route.interface for route in wanted.routes}
    named |= {knob.name for knob in wanted.settings if knob.kind is Kind.MTU}
    conf = (knob.name.split("/")[3] for knob in wanted.settings if knob.kind is Kind.SYSCTL)
    return named | {name for name in conf if name != "all"}


def _in_the_way(routes: Iterable[SidRoute | PathRoute], present: Present) -> Iterator[str]:
    foreign = {each.destination: each for each in present.foreign if each.metric <= METRIC}
    for route in routes:
        other = foreign.get(route.destination)
        if other is not None:
            dev = f" dev {other.interface}" if other.interface else ""
            yield (
                f"somebody else's route to {route.destination}{dev} (set by {_setter(other.protocol)}, metric "
                f"{other.metric}) is in the way: remove it, or take {route.destination} out of the configuration"
            )
        elif isinstance(route, SidRoute) and route.destination.network_address in present.addresses:
            yield (
                f"{route.destination.network_address} is an address of this machine, which takes all packets to it, so "
                "that it cannot be a SID: remove the address, or choose another SID"
            )
        elif isinstance(route, PathRoute) and len(route.hops) > 1 and any(hop.via is None for hop in route.hops):
            yield (
                f"sharing the traffic to {route.destination} needs a neighbour to send it to, but no route on "
                f"{route.interface} to the first segments names one: route them via a router, or do not share"
            )


def _setter(protocol: int) -> str:
    return SETTERS.get(protocol, f"protocol {protocol}")
