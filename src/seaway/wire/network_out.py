"""The network between gateways back from what Seaway uses to what people write."""

from __future__ import annotations

from ipaddress import IPv6Address
from typing import Any

from seaway.domain.amounts import rate_text, short_time_text
from seaway.domain.gateways import (
    MAIN_TABLE,
    Behaviour,
    GatewayConfig,
    Method,
    NetworkConfig,
    Pair,
    Path,
    ProbeConfig,
    Sid,
)

NS_PER_S = 10**9


def network_text(config: NetworkConfig) -> dict[str, Any]:
    """Write a configuration as `seaway.wire.network_in.NetworkConfigIn` reads it; reading it gives the same again."""
    names = _names(config)
    return {
        "probe": _probe(config.probe),
        "mesh": config.mesh,
        "gateways": [_gateway(each) for each in config.gateways],
        "paths": [_pair(each, names) for each in config.pairs],
    }


def _probe(probe: ProbeConfig) -> dict[str, Any]:
    return {
        "every": short_time_text(round(probe.every_s * NS_PER_S)),
        "count": probe.count,
        "timeout": short_time_text(round(probe.timeout_s * NS_PER_S)),
    }


def _gateway(gateway: GatewayConfig) -> dict[str, Any]:
    probe = {"method": gateway.method.value, "port": gateway.port} if gateway.method is not Method.ICMP else {}
    written = {
        "name": gateway.name,
        "cluster": gateway.cluster,
        "site": gateway.site,
        "address": str(gateway.address),
        "interface": gateway.interface,
        "locator": str(gateway.locator or ""),
        "sids": [_sid(each) for each in gateway.sids],
        "prefixes": [str(each) for each in gateway.prefixes],
        "mtu": gateway.mtu,
        "speed": gateway.speed_mbps and rate_text(gateway.speed_mbps),
        "exporter": gateway.exporter,
        "probe": probe,
    }
    return {name: value for name, value in written.items() if value}


def _sid(sid: Sid) -> dict[str, Any]:
    written: dict[str, Any] = {"sid": str(sid.address), "behaviour": sid.behaviour.value}
    if sid.table != MAIN_TABLE:
        written["table"] = sid.table
    if sid.next_hop is not None:
        written["next_hop"] = str(sid.next_hop)
    if sid.interface:
        written["interface"] = sid.interface
    return written


def _names(config: NetworkConfig) -> dict[tuple[Behaviour, IPv6Address], str]:
    """Return which SIDs a gateway's name stands for."""
    found = ((each.name, each.sid(kind)) for each in config.gateways for kind in (Behaviour.END, Behaviour.END_DT6))
    return {(sid.behaviour, sid.address): name for name, sid in found if sid is not None}


def _pair(pair: Pair, names: dict[tuple[Behaviour, IPv6Address], str]) -> dict[str, Any]:
    return {
        "from": pair.source,
        "to": pair.target,
        "share": pair.share,
        "paths": [_path(each, names) for each in pair.paths],
    }


def _path(path: Path, names: dict[tuple[Behaviour, IPv6Address], str]) -> dict[str, Any]:
    *way, end = path.segments
    segments = [names.get((Behaviour.END, each), str(each)) for each in way]
    segments.append(names.get((Behaviour.END_DT6, end), str(end)))
    return {"name": path.name, "segments": segments, "weight": path.weight}
