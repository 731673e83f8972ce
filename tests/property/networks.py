"""Random valid networks of gateways."""

from __future__ import annotations

from dataclasses import replace
from ipaddress import IPv4Address, IPv6Address

from hypothesis import strategies as st

from seaway.domain.facts import Location
from seaway.domain.gateway_checks import NEXT_HOPS
from seaway.domain.gateways import Behaviour, GatewayConfig, Method, NetworkConfig, Pair, Path, ProbeConfig, Sid
from tests.fakes.gateways import make_gateway, make_path

MS = 10**6

PORTS = {Method.ICMP: st.just(0), Method.UDP: st.integers(1024, 65_535), Method.TCP: st.integers(1, 65_535)}
"""Agents answer UDP without privileges, and so on no port below 1024."""


@st.composite
def networks(draw: st.DrawFn, least: int = 0) -> NetworkConfig:
    """Generate a network of up to five gateways, some of them without SRv6."""
    numbers = range(1, 1 + draw(st.integers(least, 5)))
    gateways = tuple(draw(_gateways(number)) for number in numbers)
    mesh = draw(st.booleans())
    pairs: list[Pair] = []
    for source in numbers:
        for target in numbers:
            pair = f"gw-{source}", f"gw-{target}"
            there_and_back = not mesh and any((each.target, each.source) == pair for each in pairs)
            located = gateways[source - 1].locator and gateways[target - 1].locator
            if source != target and located and (there_and_back or ((source < target or mesh) and draw(st.booleans()))):
                others = [each for each in numbers if each not in {source, target} and gateways[each - 1].locator]
                pairs.append(Pair(*pair, draw(_paths(others, target)), draw(st.booleans())))
    every_ns = draw(st.integers(1000 * MS, 3600 * 1000 * MS))
    timeout_ns = draw(st.integers(MS, 1000 * MS))
    probe = ProbeConfig(every_ns / 10**9, draw(st.integers(1, 100)), timeout_ns / 10**9)
    return NetworkConfig(gateways, tuple(pairs), mesh, probe)


@st.composite
def _gateways(draw: st.DrawFn, number: int) -> GatewayConfig:
    gateway = make_gateway(number)
    if not draw(st.integers(0, 4)):
        gateway = GatewayConfig(gateway.name, gateway.address, site=f"site-{number}")
    else:
        more = draw(st.lists(_sids(number), max_size=2, unique_by=lambda sid: sid.address))
        mtu = draw(st.sampled_from([0, 1500, 9000]))
        gateway = replace(gateway, sids=(*gateway.sids, *more), mtu=mtu, interface=draw(st.sampled_from(["wan", "e0"])))
    method = draw(st.sampled_from(Method))
    return replace(
        gateway,
        speed_mbps=draw(st.integers(0, 10**6)),
        exporter=draw(st.sampled_from(["", "http://[fd00::1]:9100/metrics"])),
        method=method,
        port=draw(PORTS[method]),
        location=draw(st.sampled_from([None, Location(52.5, -13.4)])),
    )


@st.composite
def _sids(draw: st.DrawFn, number: int) -> Sid:
    address = IPv6Address(f"fd00:51d:{number:x}::{draw(st.integers(0x1000, 0x1FFF)):x}")
    behaviour = draw(st.sampled_from(Behaviour))
    if behaviour in NEXT_HOPS:
        next_hop: IPv4Address | IPv6Address = IPv6Address(f"fd00:a:{number:x}::2")
        if behaviour.inner_version == 4:
            next_hop = IPv4Address(f"10.1.{number}.2")
        return Sid(address, behaviour, next_hop=next_hop, interface=draw(st.sampled_from(["", "lan"])))
    return Sid(address, behaviour, draw(st.sampled_from([254, 255, 100])) if behaviour is Behaviour.END_DT6 else 254)


@st.composite
def _paths(draw: st.DrawFn, others: list[int], target: int) -> tuple[Path, ...]:
    ways = st.lists(st.sampled_from(others), max_size=3, unique=True) if others else st.just([])
    drawn = draw(st.lists(ways, min_size=1, max_size=3, unique_by=tuple))
    weights = st.integers(1, 255)
    return tuple(make_path(f"path-{at}", *way, target, weight=draw(weights)) for at, way in enumerate(drawn))
