"""Whether the networks behind gateways are apart from each other, and from what gateways are reached by.

There may be a hundred thousand of them: each is looked up among the sorted others.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from ipaddress import IPv6Address, IPv6Network

from seaway.domain.errors import RejectedError
from seaway.domain.gateways import GatewayConfig, NetworkConfig

Problems = Iterator[RejectedError]


def prefix_problems(config: NetworkConfig) -> Problems:
    """Yield what is wrong with the networks behind gateways."""
    yield from _doubles(config)
    yield from _nested(config)
    yield from _taking(config)


def _doubles(config: NetworkConfig) -> Problems:
    first: dict[object, str] = {}
    for at, gateway in enumerate(config.gateways):
        for number, prefix in enumerate(gateway.prefixes):
            if prefix in first:
                yield RejectedError(
                    f"{prefix} is behind {first[prefix]} already", where=f"gateways[{at}].prefixes[{number}]"
                )
            first.setdefault(prefix, gateway.name)


def _nested(config: NetworkConfig) -> Problems:
    """Find prefixes that lie within one that is behind another gateway."""
    behind = sorted(
        (prefix.network_address, prefix.prefixlen, at, number)
        for at, gateway in enumerate(config.gateways)
        for number, prefix in enumerate(gateway.prefixes)
    )
    around: list[tuple[IPv6Network, GatewayConfig]] = []  # those that the one at hand may lie within, widest first
    for _, _, at, number in behind:
        gateway, prefix = config.gateways[at], config.gateways[at].prefixes[number]
        while around and not prefix.subnet_of(around[-1][0]):
            around.pop()
        wider = [each for each in around if each[1] is not gateway and each[0] != prefix]
        if wider:
            outer, other = wider[-1]
            yield RejectedError(
                f"{prefix} lies within {outer}, which is behind {other.name}: {other.name} would send packets for its "
                f"own network to {gateway.name}; name networks that have nothing in common",
                where=f"gateways[{at}].prefixes[{number}]",
            )
        around.append((prefix, gateway))


def _taking(config: NetworkConfig) -> Problems:
    """Find networks whose packets would be wrapped though they are for gateways themselves."""
    locators = sorted((each.locator, each.name) for each in config.gateways if each.locator is not None)
    addresses = sorted((each.address, each.name) for each in config.gateways if isinstance(each.address, IPv6Address))
    starts = [locator.network_address for locator, _ in locators]
    points = [address for address, _ in addresses]
    for at, gateway in enumerate(config.gateways):
        for number, prefix in enumerate(gateway.prefixes):
            first, last = prefix.network_address, prefix.broadcast_address
            near = locators[max(bisect_right(starts, first) - 1, 0) : bisect_right(starts, last)]
            taken = [f"the locator of {name}" for locator, name in near if prefix.overlaps(locator)]
            within = addresses[bisect_left(points, first) : bisect_right(points, last)]
            taken += [f"the address of {name}" for _, name in within]
            if taken:
                yield RejectedError(
                    f"{prefix} takes in {' and '.join(taken[:3])}: packets to it would be wrapped as well, and get "
                    "nowhere; name only the networks behind the gateway",
                    where=f"gateways[{at}].prefixes[{number}]",
                )
