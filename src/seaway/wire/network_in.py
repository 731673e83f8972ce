"""Configuration of the network between gateways as users write it, and its conversion to `NetworkConfig`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict
from ipaddress import IPv6Address
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field

from seaway.domain import units
from seaway.domain.errors import RejectedError
from seaway.domain.gateway_checks import problems
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
from seaway.domain.reasons import Reason
from seaway.domain.units import rate_text, short_time_text
from seaway.wire.facts import LocationIn
from seaway.wire.fields import (
    Address,
    Address6,
    Amount,
    GatewayName,
    InterfaceOrNone,
    Network,
    Network6,
    Rate,
    ReferenceOrNone,
    Unit,
    Url,
    address,
    address6,
    network,
    network6,
    no_entries,
    rate_mbps,
    reader,
)
from seaway.wire.message import Incoming

MAX_GATEWAYS = 500
MAX_VALUES = 500_000
"""Maximum number of YAML values in a configuration. 100 gateways with two paths for every pair have 200,000."""

MAX_ERRORS = 50
"""Maximum number of errors reported for one configuration."""

NS_PER_S = 10**9

UNKNOWN = IPv6Address("::")
"""Placeholder of a segment with an unknown name, so that the remaining segments are checked."""

_interval_ns = reader(units.duration_ns, 3600 * NS_PER_S, least=NS_PER_S // 10)
_timeout_ns = reader(units.duration_ns, 60 * NS_PER_S, least=NS_PER_S // 1000)

Interval = Annotated[Amount, Unit(_interval_ns, "10s")]
Timeout = Annotated[Amount, Unit(_timeout_ns, "1s", "500ms")]
BehaviourName = Literal["End", "End.X", "End.DT6", "End.DX6", "End.DT4", "End.DX4"]

EXAMPLE: dict[str, Any] = {
    "probe": {"interval": "10s", "count": 5, "timeout": "1s"},
    "mesh": True,
    "gateways": [
        {
            "name": f"gw-{number}",
            **({"cluster": f"cluster-{number}"} if number < 3 else {"site": "office"}),
            "address": f"fd00:51d:{number}::1",
            "interface": "wan",
            "locator": f"fd00:51d:{number}::/48",
            "sids": [
                {"sid": f"fd00:51d:{number}::e", "behaviour": "End"},
                {"sid": f"fd00:51d:{number}::d6", "behaviour": "End.DT6"},
            ],
            "prefixes": [f"fd00:a:{number}::/64"],
            "mtu": 9000,
        }
        for number in (1, 2, 3)
    ],
    "paths": [
        {
            "from": "gw-3",
            "to": "gw-1",
            "paths": [
                {"name": "direct", "segments": ["gw-1"], "weight": 2},
                {"name": "via-2", "segments": ["gw-2", "gw-1"]},
            ],
        }
    ],
}


class SidIn(Incoming):
    """A segment identifier of a gateway."""

    sid: Address6
    """IPv6 address within the locator of the gateway."""
    behaviour: BehaviourName
    """Behavior, named as in RFC 8986."""
    table: Annotated[int, Field(ge=1, le=2**32 - 1)] = MAIN_TABLE
    """Routing table of an End.DT6; 254 is the main table."""
    next_hop: Address | None = None
    """Next hop of an End.X or End.DX6; of an End.DX4, an IPv4 address."""
    interface: InterfaceOrNone = ""
    """Interface of the next hop. Default: the gateway's own interface."""


class GatewayProbeIn(Incoming):
    """Method of probing a gateway."""

    method: Literal["icmp", "udp", "tcp"] = "icmp"
    """`icmp`: echo requests. `udp`: datagrams that the target's agent returns. `tcp`: time to open a connection."""
    port: Annotated[int, Field(ge=0, le=65_535)] = 0
    """Port for udp and tcp."""


class GatewayIn(Incoming):
    """A gateway of a cluster or of a user site."""

    name: GatewayName
    """Name of the gateway."""
    cluster: ReferenceOrNone = ""
    """Cluster behind the gateway; mutually exclusive with `site`."""
    site: ReferenceOrNone = ""
    """User site behind the gateway; mutually exclusive with `cluster`."""
    address: Address
    """Address for probes of other gateways, and source address of tunnels."""
    interface: InterfaceOrNone = ""
    """Interface towards the other gateways."""
    locator: Network6 | None = None
    """Prefix of the gateway's SIDs, which the underlying network routes to it; omitted without SRv6."""
    sids: Annotated[list[SidIn], Field(max_length=256)] = no_entries()
    """Segment identifiers: functions for packets in transit."""
    prefixes: Annotated[list[Network], Field(max_length=256)] = no_entries()
    """Networks behind the gateway, IPv6 or IPv4."""
    mtu: Annotated[int, Field(ge=0, le=65_535)] = 0
    """MTU of the interface, bytes. Default: unchanged."""
    speed: Rate = 0
    """Speed of the interface, if it is not measured."""
    exporter: Url = ""
    """URL of the gateway's node-exporter metrics."""
    probe: GatewayProbeIn = GatewayProbeIn()
    """Method of probing the gateway."""
    location: LocationIn | None = None
    """Geographic location, from which unmeasured distances are estimated. Default: that of its cluster."""


class PathIn(Incoming):
    """A segment list."""

    name: GatewayName
    """Name of the path, unique within its pair."""
    segments: Annotated[list[Annotated[str, Field(min_length=1, max_length=64)]], Field(min_length=1, max_length=32)]
    """SIDs in the order of transit.

    A gateway name means its End SID. As the last segment it means its End.DT6 SID, or its End.DT4 SID without one.
    """
    weight: Annotated[int, Field(ge=1, le=255)] = 1
    """Share of the traffic with load balancing; preference of the path otherwise."""


class PairIn(Incoming):
    """The paths from one gateway to another."""

    source: Annotated[GatewayName, Field(alias="from", description="Gateway at which the paths begin.")]
    target: Annotated[GatewayName, Field(alias="to", description="Gateway at which the paths end.")]
    load_balance: bool = False
    """True if traffic is balanced over all paths by weight. Otherwise Seaway selects one path."""
    paths: Annotated[list[PathIn], Field(min_length=1, max_length=32)]
    """At least one path; with equal weights, earlier paths are preferred."""


class ProbeIn(Incoming):
    """Measurement of links."""

    interval: Interval = "10s"
    """Time between the starts of two rounds."""
    count: Annotated[int, Field(ge=1, le=100)] = 5
    """Probes to each target in a round."""
    timeout: Timeout = "1s"
    """Time to wait for an answer."""


class NetworkConfigIn(Incoming):
    """Configuration of all gateways and of the paths between them."""

    model_config = ConfigDict(json_schema_extra={"examples": [EXAMPLE]})

    probe: ProbeIn = ProbeIn()
    """Measurement of links."""
    mesh: bool = True
    """True if all pairs without explicit paths are connected directly."""
    gateways: Annotated[list[GatewayIn], Field(max_length=MAX_GATEWAYS)] = no_entries()
    """All gateways."""
    paths: Annotated[list[PairIn], Field(max_length=10_000)] = no_entries()
    """Pairs with explicit paths."""

    def config(self) -> NetworkConfig:
        """Return the validated configuration.

        Raises
        ------
        RejectedError
            If it is inconsistent; `also` has further errors.
        """
        gateways = tuple(map(_gateway, self.gateways))
        known = {each.name: each for each in gateways}
        wrong: dict[str, RejectedError] = {}
        pairs = tuple(_pair(each, known, f"paths[{at}]", wrong) for at, each in enumerate(self.paths))
        read = NetworkConfig(gateways, pairs, self.mesh, _probe(self.probe))
        for each in problems(read):
            wrong.setdefault(each.where, each)
        if wrong:
            first, *others = list(wrong.values())[:MAX_ERRORS]
            raise RejectedError(first.message, where=first.where, also=tuple(others))
        return read


def _gateway(given: GatewayIn) -> GatewayConfig:
    return GatewayConfig(
        name=given.name,
        address=address(given.address),
        cluster=given.cluster,
        site=given.site,
        interface=given.interface,
        locator=None if given.locator is None else network6(given.locator),
        sids=tuple(map(_sid, given.sids)),
        prefixes=tuple(map(network, given.prefixes)),
        mtu=given.mtu,
        speed_mbps=rate_mbps(given.speed),
        exporter=given.exporter,
        method=Method(given.probe.method),
        port=given.probe.port,
        location=given.location.location() if given.location else None,
    )


def _sid(given: SidIn) -> Sid:
    next_hop = None if given.next_hop is None else address(given.next_hop)
    return Sid(address6(given.sid), Behaviour(given.behaviour), given.table, next_hop, given.interface)


def _probe(given: ProbeIn) -> ProbeConfig:
    return ProbeConfig(_interval_ns(given.interval) / NS_PER_S, given.count, _timeout_ns(given.timeout) / NS_PER_S)


def _pair(given: PairIn, known: Mapping[str, GatewayConfig], where: str, wrong: dict[str, RejectedError]) -> Pair:
    """Return a pair; add errors of its segments to `wrong`, by position."""
    paths = []
    for number, path in enumerate(given.paths):
        at = f"{where}.paths[{number}].segments"
        segments = tuple(_segments(path.segments, known, at, wrong))
        paths.append(Path(path.name, segments, path.weight))
    return Pair(given.source, given.target, tuple(paths), given.load_balance)


def _segments(
    given: list[str], known: Mapping[str, GatewayConfig], where: str, wrong: dict[str, RejectedError]
) -> Iterator[IPv6Address]:
    for number, text in enumerate(given):
        try:
            yield _segment(text, known, last=number == len(given) - 1)
        except RejectedError as error:
            at = f"{where}[{number}]"
            wrong[at] = RejectedError(error.message, where=at)
            yield UNKNOWN


def _segment(text: str, known: Mapping[str, GatewayConfig], *, last: bool) -> IPv6Address:
    gateway = known.get(text)
    if gateway is None:
        with suppress(ValueError):
            return address6(text)
        raise RejectedError(Reason("not_gateway_or_address", text=text))
    sid = gateway.end if last else gateway.sid(Behaviour.END)
    if sid is None:
        raise RejectedError(Reason("name_without_sid", text=text, behaviour="End.DT6" if last else "End"))
    return sid.address


def network_text(config: NetworkConfig) -> dict[str, Any]:
    """Return a configuration in the format of `NetworkConfigIn`, without loss of information."""
    names = _names(config)
    return {
        "probe": _probe_out(config.probe),
        "mesh": config.mesh,
        "gateways": [_gateway_out(each) for each in config.gateways],
        "paths": [_pair_out(each, names) for each in config.pairs],
    }


def _probe_out(probe: ProbeConfig) -> dict[str, Any]:
    return {
        "interval": short_time_text(round(probe.interval_s * NS_PER_S)),
        "count": probe.count,
        "timeout": short_time_text(round(probe.timeout_s * NS_PER_S)),
    }


def _gateway_out(gateway: GatewayConfig) -> dict[str, Any]:
    probe = {"method": gateway.method.value, "port": gateway.port} if gateway.method is not Method.ICMP else {}
    written = {
        "name": gateway.name,
        "cluster": gateway.cluster,
        "site": gateway.site,
        "address": str(gateway.address),
        "interface": gateway.interface,
        "locator": str(gateway.locator or ""),
        "sids": [_sid_out(each) for each in gateway.sids],
        "prefixes": [str(each) for each in gateway.prefixes],
        "mtu": gateway.mtu,
        "speed": gateway.speed_mbps and rate_text(gateway.speed_mbps),
        "exporter": gateway.exporter,
        "probe": probe,
        "location": gateway.location and asdict(gateway.location),
    }
    return {name: value for name, value in written.items() if value}


def _sid_out(sid: Sid) -> dict[str, Any]:
    written: dict[str, Any] = {"sid": str(sid.address), "behaviour": sid.behaviour.value}
    if sid.table != MAIN_TABLE:
        written["table"] = sid.table
    if sid.next_hop is not None:
        written["next_hop"] = str(sid.next_hop)
    if sid.interface:
        written["interface"] = sid.interface
    return written


def _names(config: NetworkConfig) -> dict[tuple[bool, IPv6Address], str]:
    """Return the gateway names that can replace SIDs in paths, by whether the SID ends a path."""
    found = ((each.name, sid) for each in config.gateways for sid in (each.sid(Behaviour.END), each.end))
    return {(sid.behaviour.unwraps, sid.address): name for name, sid in found if sid is not None}


def _pair_out(pair: Pair, names: dict[tuple[bool, IPv6Address], str]) -> dict[str, Any]:
    return {
        "from": pair.source,
        "to": pair.target,
        "load_balance": pair.load_balance,
        "paths": [_path(each, names) for each in pair.paths],
    }


def _path(path: Path, names: dict[tuple[bool, IPv6Address], str]) -> dict[str, Any]:
    *way, end = path.segments
    segments = [names.get((False, each), str(each)) for each in way]
    segments.append(names.get((True, end), str(end)))
    return {"name": path.name, "segments": segments, "weight": path.weight}
