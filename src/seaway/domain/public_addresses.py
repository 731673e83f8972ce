"""Addresses of the public internet, also those that lead to an IPv4 address."""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import IPv4Address, IPv6Address, IPv6Network

TRANSLATED = (IPv6Network("64:ff9b::/96"), IPv6Network("64:ff9b:1::/48"))
"""Prefixes of NAT64 (RFC 6052 and RFC 8215). With a prefix of 96 bits, the last 32 are an IPv4 address."""

COMPATIBLE = IPv6Network("::/96")
"""IPv4-compatible addresses (RFC 4291, section 2.5.5.1), deprecated."""

SITE_LOCAL = IPv6Network("fec0::/10")
"""Site-local addresses (RFC 3879), deprecated."""


def reached(address: IPv4Address | IPv6Address) -> Iterator[IPv4Address | IPv6Address]:
    """Yield an address and the IPv4 addresses that it leads to: mapped, 6to4, Teredo, NAT64 or compatible."""
    yield address
    if isinstance(address, IPv6Address):
        yield from filter(None, (address.ipv4_mapped, address.sixtofour, *(address.teredo or ())))
        if address in COMPATIBLE or any(address in each for each in TRANSLATED):
            yield IPv4Address(int(address) & 0xFFFF_FFFF)


def is_public(address: IPv4Address | IPv6Address) -> bool:
    """Report whether an address, and each that it leads to, is of the public internet."""
    return not (isinstance(address, IPv6Address) and (address in TRANSLATED[1] or address in SITE_LOCAL)) and all(
        each.is_global and not each.is_multicast for each in reached(address)
    )
