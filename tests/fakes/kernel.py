"""The kernel state of a machine as values, and its state after changes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from ipaddress import IPv6Address, IPv6Network

from seaway.domain.gateways import Prefix
from seaway.steering.difference import Add, Difference, Remove, Replace, Set
from seaway.steering.state import (
    FORWARDING,
    FORWARDING_IPV4,
    TUNNEL_SOURCE,
    CurrentState,
    ForeignRoute,
    Route,
    Setting,
    metric_of,
    mtu,
    sysctl,
)

ROUTER = IPv6Address("fd00:c::1")


def make_present(
    interfaces: Iterable[str] = ("lo", "wan", "lan"), settings: dict[Setting, str] | None = None, **fields: object
) -> CurrentState:
    """Create a machine as it is before Seaway configures it, with a default route; `settings` differ from the usual."""
    names = frozenset(interfaces)
    usual = {sysctl(each, name): "0" for each in (*names, "all", "default") for name in ("forwarding", "seg6_enabled")}
    usual |= {replace(FORWARDING_IPV4, name=f"net/ipv4/conf/{each}/forwarding"): "0" for each in (*names, "all")}
    usual |= {sysctl(each, "accept_ra"): "1" for each in names} | {mtu(each): "1500" for each in names}
    present = CurrentState(
        foreign=(ForeignRoute(IPv6Network("::/0"), 1024, 4, "wan", ROUTER),),
        settings={**usual, TUNNEL_SOURCE: "::", **(settings or {})},
        addresses=frozenset({IPv6Address("fd00:51d:1::1")}),
        interfaces=names,
    )
    return replace(present, **fields)  # type: ignore[arg-type]


def carried_out(found: Difference, present: CurrentState) -> CurrentState:
    """Return a machine after changes as Linux has them: forwarding for all sets forwarding of each interface."""
    routes = {_key(route): route for route in present.routes}
    settings = dict(present.settings)
    for change in found.changes:
        match change:
            case Set(knob, before, value):
                assert settings[knob] == before
                settings[knob] = value
                if knob in {FORWARDING, FORWARDING_IPV4}:
                    family = knob.name.removesuffix("all/forwarding")
                    same = [each for each in settings if each.name.startswith(family)]
                    settings |= {each: value for each in same if each.name.endswith("/forwarding")}
            case Add(route):
                assert _key(route) not in routes
                routes[_key(route)] = route
            case Replace(before_it, route):
                assert routes[_key(route)] == before_it
                routes[_key(route)] = route
            case Remove(gone):
                del routes[_key(gone)]
    return replace(present, routes=tuple(routes.values()), settings=settings, saved=dict(found.saved))


def _key(route: Route) -> tuple[Prefix, int]:
    """Return the key of a route: there is one route per key."""
    return route.destination, metric_of(route)
