"""Addresses that webhooks may reach.

The host of a webhook is resolved once for each connection. All its addresses are checked, and the connection uses one
of them. A name that resolves differently the next time (DNS rebinding) changes nothing.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Sequence
from ipaddress import IPv4Network, IPv6Network, ip_address

from aiohttp.abc import AbstractResolver, ResolveResult

from seaway.domain.errors import ForbiddenError
from seaway.domain.public_addresses import is_public

IpNetwork = IPv4Network | IPv6Network


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
        raise ForbiddenError(not_allowed(host))


def not_allowed(host: str) -> str:
    """Return why a host is not used. Unknown hosts have the same text, so that it reveals no names of internal ones."""
    return f"{host} is unknown or not public; an operator can allow it in [notifications] allowed_hosts"


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
            If the host is unknown, or one of its addresses is not allowed.
        """
        loop = asyncio.get_running_loop()
        try:
            found = await loop.getaddrinfo(host, port, family=family, type=socket.SOCK_STREAM)
        except socket.gaierror as error:
            if error.errno == socket.EAI_AGAIN:
                raise
            raise ForbiddenError(not_allowed(host)) from None
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
