"""Probe targets of the agent of a gateway."""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import IPv6Address

from seaway.application.ports.agent import Assignment, Target
from seaway.domain.errors import UnknownError
from seaway.domain.gateways import GatewayConfig, Method, NetworkConfig, Pair
from seaway.domain.reasons import Reason


def assignment(config: NetworkConfig, version: int, gateway: str) -> Assignment:
    """Return the assignment of the agent of a gateway.

    Every other gateway is probed on the default route. Explicit paths of a pair are probed too, since traffic uses one
    of them.

    Raises
    ------
    UnknownError
        If the gateway does not exist.
    """
    own = require_gateway(config, gateway)
    pairs = {pair.target: pair for pair in config.pairs if pair.source == gateway}
    others = (other for other in config.gateways if other is not own)
    targets = [each for other in others for each in probed(own, other, pairs.get(other.name))]
    reflect = own.port if own.method is Method.UDP else 0
    return Assignment(str(version), config.probe, tuple(targets), reflect, own.address)


def require_network(config: NetworkConfig | None, gateway: str) -> NetworkConfig:
    """Return the network that contains a gateway; raises as `require_gateway`."""
    config = config or NetworkConfig()
    require_gateway(config, gateway)
    return config


def require_gateway(config: NetworkConfig, name: str) -> GatewayConfig:
    """Return a gateway.

    Raises
    ------
    UnknownError
        If no gateway has that name.
    """
    found = config.gateway(name)
    if found is None:
        raise UnknownError(Reason("gateway_not_configured", name=name[:80]), where="gateway")
    return found


def choices(config: NetworkConfig) -> Iterator[Pair]:
    """Return the pairs with several paths, only one of which is active."""
    return (pair for pair in config.pairs if len(pair.paths) > 1 and not pair.load_balance)


def probed(own: GatewayConfig, other: GatewayConfig, pair: Pair | None) -> Iterator[Target]:
    """Yield the probe targets from one gateway to another: the default route, and each path that supports probes."""
    if isinstance(own.address, IPv6Address) is not isinstance(other.address, IPv6Address):
        return  # IPv4 and IPv6 cannot reach each other
    yield Target(other.name, other.address, other.method, other.port)
    if pair is None or not isinstance(other.address, IPv6Address):
        return  # only IPv6 has segments
    for path in pair.paths:
        yield Target(other.name, other.address, other.method, other.port, path.name, path.segments[:-1])
