"""Addresses that webhooks may reach.

The host of a webhook is resolved once for each connection. All its addresses are checked, and the connection uses one
of them. A name that resolves differently the next time (DNS rebinding) changes nothing.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address

from aiohttp.abc import AbstractResolver, ResolveResult

from seaway.domain.errors import ForbiddenError

IpNetwork = IPv4Network | IPv6Network

NAT64 = IPv6Network("64:ff9b::/96")
"""RFC 6052: the last 32 bits are an IPv4 address."""


def is_public(address: IPv4Address | IPv6Address) -> bool:
    """Report whether an address is of the public internet, also one that contains an IPv4 address."""
    if not address.is_global or address.is_multicast:
        return False
    if isinstance(address, IPv6Address):
        inner = [address.ipv4_mapped, address.sixtofour, *(address.teredo or ())]
        if address in NAT64:
            inner.append(IPv4Address(int(address) & 0xFFFF_FFFF))
        return all(is_public(each) for each in inner if each is not None)
    return True


class Guard:
    """Addresses that webhooks may reach: those of the internet, and the allowed ones.

    Parameters
    ----------
    networks, hosts
        Allowed private networks, and allowed host names, which may have any address.
    """

    def __init__(self, networks: Sequence[IpNetwork] = (), hosts: Sequence[str] = ()) -> None:
        self._networks = networks
        self._hosts = frozenset(each.lower() for each in hosts)

    def require(self, host: str, address: str) -> None:
        """Check an address of a host.

        Raises
        ------
        ForbiddenError
            If requests to it are not allowed.
        """
        read = ip_address(address.partition("%")[0])
        if host.lower() in self._hosts or is_public(read) or any(read in each for each in self._networks):
            return
        what = host if host == address else f"{host} has the address {address}, which"
        text = f"{what} is not public; an operator can allow it in [notifications] allowed_hosts"
        raise ForbiddenError(text)


class GuardedResolver(AbstractResolver):
    """Resolver that returns allowed addresses only."""

    def __init__(self, guard: Guard) -> None:
        self._guard = guard

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        """Resolve a host, and check all its addresses.

        Raises
        ------
        ForbiddenError
            If one of them is not allowed.
        """
        loop = asyncio.get_running_loop()
        found = await loop.getaddrinfo(host, port, family=family, type=socket.SOCK_STREAM)
        answers: list[ResolveResult] = []
        for kind, _, proto, _, (address, *_) in found:
            text = str(address)
            self._guard.require(host, text)
            answers.append(
                ResolveResult(
                    hostname=host, host=text, port=port, family=kind, proto=proto, flags=socket.AI_NUMERICHOST
                )
            )
        return answers

    async def close(self) -> None:
        """Release nothing."""
