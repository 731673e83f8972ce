"""Gateways for tests."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from ipaddress import IPv6Address, IPv6Network

from seaway.domain.gateways import Behaviour, GatewayConfig, NetworkConfig, Pair, Path, Sid


def make_gateway(number: int) -> GatewayConfig:
    """Create gateway ``gw-N`` in front of ``cluster-N``, with an End, an End.DT6 and one network behind it."""
    at = f"fd00:51d:{number:x}"
    return GatewayConfig(
        name=f"gw-{number}",
        address=IPv6Address(f"{at}::1"),
        cluster=f"cluster-{number}",
        interface="wan",
        locator=IPv6Network(f"{at}::/48"),
        sids=(Sid(IPv6Address(f"{at}::e"), Behaviour.END), Sid(IPv6Address(f"{at}::d6"), Behaviour.END_DT6)),
        prefixes=(IPv6Network(f"fd00:a:{number:x}::/64"),),
        mtu=9000,
    )


def make_path(name: str, *gateways: int, weight: int = 1) -> Path:
    """Create a path through gateways, the last of which is the target."""
    *way, end = gateways
    segments = [f"fd00:51d:{each:x}::e" for each in way] + [f"fd00:51d:{end:x}::d6"]
    return Path(name, tuple(map(IPv6Address, segments)), weight)


def make_network(count: int = 4, pairs: Iterable[Pair] = (), *, mesh: bool = True) -> NetworkConfig:
    """Create gateways ``gw-1`` to ``gw-N`` and the paths between them."""
    return NetworkConfig(tuple(map(make_gateway, range(1, count + 1))), tuple(pairs), mesh)


def make_paths(count: int) -> list[Pair]:
    """Create two paths for every pair of `count` gateways: direct, and through the next one."""
    every = range(1, count + 1)
    ends = [(one, other) for one in every for other in every if one != other]
    return [
        Pair(f"gw-{one}", f"gw-{other}", (make_path("direct", other), make_path("around", _beside(one, other), other)))
        for one, other in ends
    ]


def with_gateway(network: NetworkConfig, name: str, /, **changes: object) -> NetworkConfig:
    """Return a network in which one gateway has other values."""
    gateways = tuple(replace(each, **changes) if each.name == name else each for each in network.gateways)  # type: ignore[arg-type]
    return replace(network, gateways=gateways)


def _beside(one: int, other: int) -> int:
    """Return the number of a gateway that differs from both."""
    return next(each for each in (1, 2, 3) if each not in {one, other})
