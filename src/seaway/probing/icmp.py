"""Echo requests and replies of ICMP and ICMPv6 as bytes.

References
----------
RFC 792 (ICMP), RFC 4443, section 4 (ICMPv6 echo), RFC 1071 (the checksum).
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

_HEADER = struct.Struct("!BBHHH")
_CHECKSUM_AT = 2
HEADER_BYTES = _HEADER.size


@dataclass(frozen=True, slots=True)
class Echo:
    """What differs between echo packets of ICMP and of ICMPv6.

    Attributes
    ----------
    request, reply
        Message types.
    checksummed
        Whether whoever sends has to work out the checksum. Linux does it for ICMPv6, which covers addresses too.
    """

    request: int
    reply: int
    checksummed: bool


V4 = Echo(request=8, reply=0, checksummed=True)
V6 = Echo(request=128, reply=129, checksummed=False)


def encode_request(echo: Echo, identifier: int, sequence: int, payload: bytes) -> bytes:
    """Return an echo request; the lower 16 bits of `sequence` go into it."""
    packet = _HEADER.pack(echo.request, 0, 0, identifier, sequence & 0xFFFF) + payload
    if not echo.checksummed:
        return packet
    return packet[:_CHECKSUM_AT] + checksum(packet).to_bytes(2, "big") + packet[_CHECKSUM_AT + 2 :]


def decode_reply(echo: Echo, packet: bytes) -> bytes | None:
    """Return what an echo reply, without the IP header, brings back; None when it is none."""
    if len(packet) < HEADER_BYTES or packet[0] != echo.reply or packet[1] != 0:
        return None
    return packet[HEADER_BYTES:]


def without_ip_header(packet: bytes) -> bytes:
    """Return what follows the header of an IPv4 packet, which a raw socket delivers with it."""
    return packet[(packet[0] & 0x0F) * 4 :] if packet else packet


def checksum(data: bytes) -> int:
    """Return the Internet checksum: the complement of the sum of 16-bit words in ones' complement (RFC 1071)."""
    padded = data + b"\0" if len(data) % 2 else data
    total: int = sum(struct.unpack(f"!{len(padded) // 2}H", padded))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF
