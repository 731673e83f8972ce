"""Consistency checks of gateways and paths. They report all problems, each with its position.

Positions are paths in the document that `seaway.wire.network_in` reads, such as ``gateways[1].sids[0]``.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Iterator
from ipaddress import IPv4Network, IPv6Address, IPv6Network
from itertools import combinations

from seaway.domain.errors import RejectedError
from seaway.domain.gateway_paths import MIN_MTU, abbreviated, overhead, path_problems
from seaway.domain.gateways import MAIN_TABLE, Behaviour, GatewayConfig, Method, NetworkConfig, Prefix, Sid
from seaway.domain.reasons import Reason, both

PrefixProblems = Iterator[RejectedError]


def prefix_problems(config: NetworkConfig) -> PrefixProblems:
    """Yield the problems of the networks behind gateways."""
    yield from _duplicate_prefixes(config)
    yield from _overlapping_prefixes(config)
    yield from _taking(config)


def _duplicate_prefixes(config: NetworkConfig) -> PrefixProblems:
    first: dict[object, GatewayConfig] = {}
    for at, gateway in enumerate(config.gateways):
        for number, prefix in enumerate(gateway.prefixes):
            other = first.setdefault(prefix, gateway)
            if other is gateway and gateway.prefixes.index(prefix) == number:
                continue
            if other is gateway or not _of_one_cluster(other, gateway):
                yield RejectedError(
                    Reason("prefix_taken", prefix=str(prefix), name=other.name),
                    where=f"gateways[{at}].prefixes[{number}]",
                )


def _of_one_cluster(one: GatewayConfig, other: GatewayConfig) -> bool:
    return bool(one.cluster) and one.cluster == other.cluster


def _overlapping_prefixes(config: NetworkConfig) -> PrefixProblems:
    """Yield prefixes that are inside a prefix of another gateway."""
    behind = sorted(
        (prefix.version, int(prefix.network_address), prefix.prefixlen, at, number)
        for at, gateway in enumerate(config.gateways)
        for number, prefix in enumerate(gateway.prefixes)
    )
    around: list[tuple[Prefix, GatewayConfig]] = []  # prefixes that may contain the current one, widest first
    for *_, at, number in behind:
        gateway, prefix = config.gateways[at], config.gateways[at].prefixes[number]
        while around and not _within(prefix, around[-1][0]):
            around.pop()
        wider = [
            each
            for each in around
            if each[1] is not gateway and each[0] != prefix and not _of_one_cluster(each[1], gateway)
        ]
        if wider:
            outer, other = wider[-1]
            yield RejectedError(
                Reason("prefix_within", prefix=str(prefix), outer=str(outer), name=other.name, gateway=gateway.name),
                where=f"gateways[{at}].prefixes[{number}]",
            )
        around.append((prefix, gateway))


def _within(prefix: Prefix, other: Prefix) -> bool:
    if isinstance(prefix, IPv4Network):
        return isinstance(other, IPv4Network) and prefix.subnet_of(other)
    return isinstance(other, IPv6Network) and prefix.subnet_of(other)


def _taking(config: NetworkConfig) -> PrefixProblems:
    """Yield networks that contain a locator or an address of a gateway, whose packets would be encapsulated."""
    locators = sorted((each.locator, each.name) for each in config.gateways if each.locator is not None)
    addresses = sorted((each.address, each.name) for each in config.gateways if isinstance(each.address, IPv6Address))
    starts = [locator.network_address for locator, _ in locators]
    points = [address for address, _ in addresses]
    for at, gateway in enumerate(config.gateways):
        for number, prefix in enumerate(gateway.prefixes):
            if isinstance(prefix, IPv4Network):
                continue  # the network between gateways is IPv6
            first, last = prefix.network_address, prefix.broadcast_address
            near = locators[max(bisect_right(starts, first) - 1, 0) : bisect_right(starts, last)]
            taken = [Reason("locator_of", name=name) for locator, name in near if prefix.overlaps(locator)]
            within = addresses[bisect_left(points, first) : bisect_right(points, last)]
            taken += [Reason("address_of", name=name) for _, name in within]
            if taken:
                yield RejectedError(
                    Reason("prefix_contains", prefix=str(prefix), names=both(*taken[:3])),
                    where=f"gateways[{at}].prefixes[{number}]",
                )


Problems = Iterator[RejectedError]

MIN_OUTER_MTU = MIN_MTU + overhead(segments=1)

MIN_UDP_PORT = 1024
"""Lowest port for processes without privileges, by default on Linux (net.ipv4.ip_unprivileged_port_start)."""

NEXT_HOPS = frozenset({Behaviour.END_X, Behaviour.END_DX6, Behaviour.END_DX4})
"""Behaviours that need a next hop."""


def problems(config: NetworkConfig) -> tuple[RejectedError, ...]:
    """Return all problems of a configuration, in the order of the document."""
    found = [*_duplicate_gateways(config), *_versions(config), *_overlaps(config)]
    for at, gateway in enumerate(config.gateways):
        found += _gateway(gateway, f"gateways[{at}]")
    found += path_problems(config)
    if config.probe.timeout_s > config.probe.interval_s:
        found.append(RejectedError(Reason("timeout_beyond_round"), where="probe.timeout"))
    return tuple(found)


def _duplicate_gateways(config: NetworkConfig) -> Problems:
    """Yield names, addresses, sites and SIDs that several gateways share."""
    ones: tuple[tuple[str, Callable[[GatewayConfig], object]], ...] = (
        ("name", lambda each: each.name),
        ("address", lambda each: each.address),
        ("site", lambda each: each.site),
    )
    for field, value in ones:
        first: dict[object, GatewayConfig] = {}
        for at, gateway in enumerate(config.gateways):
            other = first.setdefault(value(gateway), gateway)
            if value(gateway) and other is not gateway:
                same = {} if field == "name" else {"gateway": other.name}
                said = Reason(f"same_{field}", value=str(value(gateway)), **same)
                yield RejectedError(said, where=f"gateways[{at}].{field}")
    yield from _duplicate_sids(config)


def _duplicate_sids(config: NetworkConfig) -> Problems:
    first: dict[IPv6Address, str] = {}
    addresses = {gateway.address: gateway.name for gateway in config.gateways}
    for at, gateway in enumerate(config.gateways):
        for number, sid in enumerate(gateway.sids):
            where = f"gateways[{at}].sids[{number}].sid"
            if sid.address in first:
                yield RejectedError(Reason("sid_taken", address=str(sid.address), name=first[sid.address]), where=where)
            elif sid.address in addresses:
                yield RejectedError(
                    Reason("sid_is_address", address=str(sid.address), name=addresses[sid.address]),
                    where=where,
                )
            first.setdefault(sid.address, gateway.name)


def _versions(config: NetworkConfig) -> Problems:
    """Yield gateways whose IP version differs from the most common one, because probes do not cross versions."""
    versions = Counter(gateway.address.version for gateway in config.gateways)
    if len(versions) < 2:
        return
    (usual, _), _ = versions.most_common()
    most = abbreviated([gateway.name for gateway in config.gateways if gateway.address.version == usual])
    for at, gateway in enumerate(config.gateways):
        if gateway.address.version != usual:
            yield RejectedError(
                Reason(
                    "ip_version_differs",
                    address=str(gateway.address),
                    version=gateway.address.version,
                    names=most,
                    usual=usual,
                ),
                where=f"gateways[{at}].address",
            )


def _overlaps(config: NetworkConfig) -> Problems:
    """Yield overlaps of locators, of prefixes, and of prefixes with locators and addresses of gateways."""
    located = [(at, each, each.locator) for at, each in enumerate(config.gateways) if each.locator is not None]
    for (_, one, its), (at, _, locator) in combinations(located, 2):
        if its.overlaps(locator):
            yield RejectedError(
                Reason("locators_overlap", locator=str(locator), other=str(its), name=one.name),
                where=f"gateways[{at}].locator",
            )
    yield from prefix_problems(config)


def _gateway(gateway: GatewayConfig, where: str) -> Problems:
    if bool(gateway.cluster) == bool(gateway.site):
        yield RejectedError(Reason("cluster_or_site"), where=where)
    address = gateway.address
    if address.is_multicast or address.is_unspecified or address.is_link_local:
        yield RejectedError(Reason("address_unreachable", address=str(address)), where=f"{where}.address")
    if gateway.mtu and not MIN_OUTER_MTU <= gateway.mtu <= 65_535:
        yield RejectedError(
            Reason("mtu_out_of_range", least=MIN_OUTER_MTU, added=MIN_OUTER_MTU - MIN_MTU, inner=MIN_MTU),
            where=f"{where}.mtu",
        )
    yield from _probe(gateway, where)
    if gateway.locator is None:
        yield from _without_locator(gateway, where)
    else:
        yield from _with_locator(gateway, where)


def _probe(gateway: GatewayConfig, where: str) -> Problems:
    if gateway.method is Method.ICMP and gateway.port:
        yield RejectedError(Reason("icmp_without_port"), where=f"{where}.probe.port")
    if gateway.method is not Method.ICMP and not gateway.port:
        yield RejectedError(Reason("port_missing", method=gateway.method.value), where=f"{where}.probe.port")
    if gateway.method is Method.UDP and 0 < gateway.port < MIN_UDP_PORT:
        yield RejectedError(
            Reason("udp_port_low", least=MIN_UDP_PORT),
            where=f"{where}.probe.port",
        )


def _without_locator(gateway: GatewayConfig, where: str) -> Problems:
    for given, field in ((gateway.sids, "sids"), (gateway.prefixes, "prefixes"), (gateway.mtu, "mtu")):
        if given:
            yield RejectedError(Reason("needs_locator"), where=f"{where}.{field}")


def _with_locator(gateway: GatewayConfig, where: str) -> Problems:
    if gateway.address.version != 6:
        yield RejectedError(Reason("no_srv6_source", address=str(gateway.address)), where=f"{where}.address")
    if not gateway.interface:
        yield RejectedError(Reason("interface_missing"), where=f"{where}.interface")
    for number, sid in enumerate(gateway.sids):
        yield from _sid(sid, gateway, f"{where}.sids[{number}]")
    yield from _undeliverable(gateway, where)


def _undeliverable(gateway: GatewayConfig, where: str) -> Problems:
    """Yield prefixes of an IP version that no SID of the gateway decapsulates."""
    for number, prefix in enumerate(gateway.prefixes):
        needed = prefix.version == 4 or gateway.end is not None
        if needed and gateway.unwrapping(prefix.version) is None:
            yield RejectedError(
                Reason("no_decapsulation", name=gateway.name, version=prefix.version),
                where=f"{where}.prefixes[{number}]",
            )


def _sid(sid: Sid, gateway: GatewayConfig, where: str) -> Problems:
    if gateway.locator is not None and sid.address not in gateway.locator:
        yield RejectedError(
            Reason("sid_outside_locator", address=str(sid.address), locator=str(gateway.locator)), where=f"{where}.sid"
        )
    name = sid.behaviour.value
    if sid.behaviour in NEXT_HOPS:
        if sid.next_hop is None:
            yield RejectedError(Reason("next_hop_missing", name=name), where=f"{where}.next_hop")
        elif sid.next_hop.version != (sid.behaviour.inner_version or 6):
            yield RejectedError(
                Reason("next_hop_version", name=name, version=sid.behaviour.inner_version or 6),
                where=f"{where}.next_hop",
            )
        elif sid.next_hop.is_multicast or sid.next_hop.is_unspecified or sid.next_hop.is_loopback:
            yield RejectedError(Reason("next_hop_invalid", address=str(sid.next_hop)), where=f"{where}.next_hop")
        elif sid.next_hop == gateway.address or any(sid.next_hop == each.address for each in gateway.sids):
            yield RejectedError(
                Reason("next_hop_own", address=str(sid.next_hop), name=gateway.name),
                where=f"{where}.next_hop",
            )
    elif sid.next_hop is not None:
        yield RejectedError(Reason("next_hop_extra", name=name), where=f"{where}.next_hop")
    if sid.table != MAIN_TABLE and sid.behaviour is not Behaviour.END_DT6:
        code = "uses_main_table" if sid.behaviour is Behaviour.END_DT4 else "has_no_table"
        yield RejectedError(Reason(code, name=name), where=f"{where}.table")
    if not 1 <= sid.table < 2**32:
        yield RejectedError(Reason("table_out_of_range"), where=f"{where}.table")
