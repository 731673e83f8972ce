"""What has to be done, as commands for people who do it by other means."""

from __future__ import annotations

from collections.abc import Iterable

from seaway.domain.gateways import Behaviour
from seaway.steering.difference import Add, Change, Remove, Replace, Set
from seaway.steering.obstacles import setting_text
from seaway.steering.state import PROTOCOL, Hop, Kind, PathRoute, Route, SidRoute, metric_of


def commands(changes: Iterable[Change], netns: str = "") -> tuple[str, ...]:
    """Return the commands that do the same as the changes, in order; `netns` names the network namespace."""
    return tuple(_command(each, netns) for each in changes)


def route_arguments(route: SidRoute | PathRoute) -> str:
    """Return a route as `ip route` takes it."""
    if isinstance(route, SidRoute):
        return f"encap seg6local {_action(route)} dev {route.interface}"
    if len(route.hops) == 1:
        return f"{_encap(route.hops[0])} dev {route.interface}"
    hops = (f"nexthop {_encap(hop)} via {hop.via} dev {route.interface} weight {hop.weight}" for hop in route.hops)
    return " ".join(hops)


def _command(change: Change, netns: str) -> str:
    ip = f"ip -n {netns}" if netns else "ip"
    match change:
        case Set():
            return _set(change, ip, f"ip netns exec {netns} " if netns else "")
        case Add(route):
            return f"{ip} -6 route add {_key(route)} {route_arguments(route)}"
        case Replace(_, route):
            return f"{ip} -6 route replace {_key(route)} {route_arguments(route)}"
        case Remove(route):
            return f"{ip} -6 route del {_key(route)}"


def _set(change: Set, ip: str, inside: str) -> str:
    if change.knob.kind is Kind.MTU:
        return f"{ip} link set dev {change.knob.name} mtu {change.value}"
    if change.knob.kind is Kind.TUNNEL_SOURCE:
        return f"{ip} sr tunsrc set {change.value}"
    return f"{inside}sysctl -w {setting_text(change.knob)}={change.value}"


def _key(route: Route) -> str:
    return f"{route.destination} proto {PROTOCOL} metric {metric_of(route)}"


def _action(route: SidRoute) -> str:
    action = f"action {route.behaviour.value}"
    if route.behaviour is Behaviour.END_DT6:
        return f"{action} table {route.table}"
    return f"{action} nh6 {route.next_hop}" if route.next_hop is not None else action


def _encap(hop: Hop) -> str:
    return f"encap seg6 mode encap segs {','.join(map(str, hop.segments))}"
