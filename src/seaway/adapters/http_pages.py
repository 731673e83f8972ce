"""HTTP client for pages, with limits on time and size, and without redirects."""

from __future__ import annotations

import asyncio
import errno
import socket
import ssl
import time
from collections.abc import Sequence
from dataclasses import dataclass
from http import HTTPStatus
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from pathlib import Path
from typing import TYPE_CHECKING

from seaway.application.ports.traffic import NoPage, Page
from seaway.domain.errors import RejectedError
from seaway.domain.public_addresses import is_public, reached

MAX_BYTES = 4 << 20
"""Maximum size of a page in bytes, over twice the size of node-exporter's page on a node with 1,000 interfaces."""

if TYPE_CHECKING:
    import aiohttp

MAX_CONCURRENT = 64
"""Maximum number of concurrent requests."""

MAX_HEADER = 16_384
"""Maximum length of a token."""


@dataclass(frozen=True, slots=True)
class TlsTrust:
    """Certificates and credentials for HTTP servers.

    Attributes
    ----------
    ca
        Path of the trusted CA certificates (PEM); empty for those of this machine.
    token_file
        Path of the bearer token, which every read loads again; empty for no token.
    """

    ca: str = ""
    token_file: str = ""


class AddressPolicy:
    """Addresses to which connections are allowed, for pages whose URLs come from users.

    Parameters
    ----------
    networks
        Allowed networks, such as ``10.0.0.0/8``. If empty, all public addresses are allowed, and no others.

    Raises
    ------
    ValueError
        When a network is invalid.
    """

    def __init__(self, networks: Sequence[str] = ()) -> None:
        self._networks: list[IPv4Network | IPv6Network] = [ip_network(each) for each in networks]

    def allows(self, address: str) -> bool:
        """Report whether connections to an IP address are allowed; False for other texts."""
        try:
            found = ip_address(address)
        except ValueError:
            return False
        if self._networks:
            *_, end = reached(found)
            return any(end in each for each in self._networks)
        return is_public(found)


def _refusal(host: str) -> str:
    return f"{host} has no allowed address; [network] bandwidth.exporter_networks has the allowed networks"


class HttpPages:
    """Client that reads pages over HTTP, for one thread.

    Parameters
    ----------
    timeout_s
        Timeout of a page.
    policy
        Allowed addresses; None for all. Names are resolved once, and the connection goes to the checked address.

    Raises
    ------
    RejectedError
        When the certificates cannot be read.
    """

    def __init__(self, trust: TlsTrust, timeout_s: float, policy: AddressPolicy | None = None) -> None:
        self._policy = policy
        self._trust = trust
        self._timeout_s = timeout_s
        try:
            self._tls = ssl.create_default_context(cafile=trust.ca or None)
        except OSError as error:  # ssl errors are OSErrors
            raise RejectedError(f"cannot read the certificates in {trust.ca}: {error.strerror}") from error

    def read(self, addresses: Sequence[str]) -> Sequence[Page | NoPage]:
        """See `Pages`."""
        try:
            headers = self._headers()
        except OSError as error:
            why = f"cannot read the token in {self._trust.token_file}: {error.strerror}"
            return [NoPage(why)] * len(addresses)
        return asyncio.run(self._read_all(addresses, headers))

    def _headers(self) -> dict[str, str]:
        """Return the request headers: the bearer token, and content types that select text."""
        headers = {"Accept": "text/plain;version=0.0.4, application/json;q=0.9", "Accept-Encoding": "identity"}
        if self._trust.token_file:
            with Path(self._trust.token_file).open("rb") as file:
                token = file.read(MAX_HEADER)
            headers["Authorization"] = "Bearer " + " ".join(token.decode("ascii", "replace").split())
        return headers

    async def _read_all(self, addresses: Sequence[str], headers: dict[str, str]) -> list[Page | NoPage]:
        together = asyncio.Semaphore(MAX_CONCURRENT)
        import aiohttp  # lazy, because the import takes a tenth of the start time

        resolver = _checked_resolver(self._policy) if self._policy else None
        connector = aiohttp.TCPConnector(ssl=self._tls, limit=0, resolver=resolver)
        async with aiohttp.ClientSession(
            connector=connector, headers=headers, cookie_jar=aiohttp.DummyCookieJar()
        ) as http:

            async def one(address: str) -> Page | NoPage:
                async with together:
                    return await self._read_one(http, address)

            return list(await asyncio.gather(*map(one, addresses)))

    async def _read_one(self, http: aiohttp.ClientSession, address: str) -> Page | NoPage:
        import aiohttp
        from yarl import URL

        try:
            url = URL(address)
            if self._policy and _is_address(url.host or "") and not self._policy.allows(url.host or ""):
                return NoPage(_refusal(url.host or ""))
            async with asyncio.timeout(self._timeout_s), http.get(url, allow_redirects=False) as answer:
                at_ns = time.monotonic_ns()
                return await _page(answer, at_ns)
        except TimeoutError:
            return NoPage(f"no answer within {self._timeout_s:g} s")
        except aiohttp.InvalidURL:
            return NoPage("that is not a valid address")
        except aiohttp.ClientSSLError as error:
            return NoPage(str(error), answered=True)
        except (aiohttp.ClientError, OSError, ValueError) as error:  # ValueError for an invalid host name
            return NoPage(str(error) or type(error).__name__)


def _is_address(host: str) -> bool:
    """Report whether a host is an IP address, to which the library connects without its resolver."""
    try:
        ip_address(host)
    except ValueError:
        return False
    return True


def _checked_resolver(policy: AddressPolicy) -> aiohttp.abc.AbstractResolver:
    """Return a resolver that returns allowed addresses only."""
    import aiohttp

    class Checked(aiohttp.ThreadedResolver):
        async def resolve(
            self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
        ) -> list[aiohttp.abc.ResolveResult]:
            found = [each for each in await super().resolve(host, port, family) if policy.allows(each["host"])]
            if not found:
                raise OSError(errno.EACCES, _refusal(host))
            return found

    return Checked()


async def _page(answer: aiohttp.ClientResponse, at_ns: int) -> Page | NoPage:
    """Read the body of an answer, up to the maximum size."""
    if HTTPStatus(300) <= answer.status < HTTPStatus(400):
        return NoPage("it redirects, and Seaway does not follow redirects", answered=True)
    if answer.headers.get("content-encoding", "identity") != "identity":
        return NoPage("it sends a compressed answer although the request forbids it", answered=True)
    body = bytearray()
    async for piece in answer.content.iter_any():
        body += piece
        if len(body) > MAX_BYTES:
            return NoPage(f"it answers more than {MAX_BYTES} bytes", answered=True)
    return Page(answer.status, bytes(body), at_ns)
