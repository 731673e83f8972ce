"""Desired state of one gateway, from the configuration of the network."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from ipaddress import IPv6Network

from seaway.domain.errors import RejectedError
from seaway.domain.gateways import GatewayConfig, NetworkConfig, Pair, Path, Sid
from seaway.steering.state import (
    FORWARDING,
    NOTHING,
    TUNNEL_SOURCE,
    GatewayState,
    Hop,
    PathRoute,
    Setting,
    SidRoute,
    mtu,
    sysctl,
)


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
