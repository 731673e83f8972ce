"""Fields that hold addresses and networks, which keep what was written and are checked by reading it."""

from __future__ import annotations

from collections.abc import Callable
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, StringConstraints
from pydantic_core import PydanticCustomError

from seaway.wire.fields import LABEL_VALUE_PATTERN, LINE_PATTERN

LONGEST = 64
"""Characters of an address or a network."""


def address(text: str) -> IPv4Address | IPv6Address:
    """Read an address without a zone."""
    read = ip_address(text)
    if isinstance(read, IPv6Address):
        return address6(text)
    return read


def address6(text: str) -> IPv6Address:
    """Read an IPv6 address without a zone."""
    if "%" in text:
        raise ValueError("a zone, which only one machine knows, may not stand here")
    return IPv6Address(text)


def network6(text: str) -> IPv6Network:
    """Read an IPv6 network, whose address has no bits set beyond its length."""
    if "%" in text:
        raise ValueError("a zone, which only one machine knows, may not stand here")
    return IPv6Network(text)


def _checked(read: Callable[[str], object], form: str) -> AfterValidator:
    def check(text: str) -> str:
        try:
            read(text)
        except ValueError:
            raise PydanticCustomError("address", "{why}", {"why": f"{text!r} does not do; give {form}"}) from None
        return text

    return AfterValidator(check)


def _url(text: str) -> None:
    parts = urlsplit(text)
    if text and (parts.scheme not in {"http", "https"} or not parts.hostname or parts.username is not None):
        raise ValueError
    _ = parts.port


def _interface(text: str) -> None:
    if text in {".", ".."} or any(each in "/:" or each.isspace() for each in text):
        raise ValueError


_Short = Annotated[str, StringConstraints(max_length=LONGEST)]
Address = Annotated[_Short, _checked(address, "an address like fd00:51d:1::1 or 10.0.0.1")]
Address6 = Annotated[
    _Short, _checked(address6, "an IPv6 address like fd00:51d:1::1"), Field(examples=["fd00:51d:1::1"])
]
Network6 = Annotated[_Short, _checked(network6, "an IPv6 network like fd00:51d:1::/48, with no bits beyond its length")]
Url = Annotated[
    str,
    StringConstraints(max_length=500, pattern=LINE_PATTERN),
    _checked(_url, "an address like http://[fd00:51d:1::1]:9100/metrics, without user and password"),
]
InterfaceOrNone = Annotated[
    str,
    StringConstraints(max_length=15, pattern=LINE_PATTERN),
    _checked(_interface, "a network interface as `ip link` shows it, like eth0"),
]
GatewayName = Annotated[str, StringConstraints(pattern=LABEL_VALUE_PATTERN, min_length=1, max_length=63)]
"""No address, which segments could not be told from, and nothing that a path of a URL cannot hold."""
