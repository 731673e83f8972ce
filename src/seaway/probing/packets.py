"""Echo requests and replies of ICMP and ICMPv6 as bytes.

References
----------
RFC 792 (ICMP), RFC 4443, section 4 (ICMPv6 echo), RFC 1071 (the checksum).
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from ipaddress import IPv6Address
from typing import NamedTuple

_HEADER = struct.Struct("!BBHHH")
_CHECKSUM_AT = 2
HEADER_BYTES = _HEADER.size


@dataclass(frozen=True, slots=True)
class Echo:
    """Differences between echo packets of ICMP and of ICMPv6.

    Attributes
    ----------
    request, reply
        Message types.
    checksummed
        Whether the sender computes the checksum. Linux does it for ICMPv6, which covers addresses too.
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


_MARK = struct.Struct("!I8s44x")
SECRET_BYTES = 8
PAYLOAD_BYTES = _MARK.size
"""Size of ping's payload: 64 bytes with the ICMP header."""


def encode_payload(probe: int, secret: bytes) -> bytes:
    """Return the payload of a probe."""
    return _MARK.pack(probe, secret)


def decode_payload(payload: bytes) -> tuple[int, bytes] | None:
    """Return a probe's number and secret; None when that is no payload of a probe."""
    if len(payload) != PAYLOAD_BYTES:
        return None
    probe, secret = _MARK.unpack(payload)
    return probe, secret


_DATAGRAM_HEADER = struct.Struct("!4sB3xQ")
_MAGIC = b"SWPR"
_QUESTION, _ANSWER = 0, 1
_MAX_DWELL_NS = (1 << 64) - 1
DATAGRAM_BYTES = _DATAGRAM_HEADER.size + PAYLOAD_BYTES


class Answer(NamedTuple):
    """An answer, read; `dwell_ns` is how long the question lay at the reflector."""

    probe: int
    secret: bytes
    dwell_ns: int


def encode_question(probe: int, secret: bytes) -> bytes:
    """Return the datagram of a probe."""
    return _DATAGRAM_HEADER.pack(_MAGIC, _QUESTION, 0) + encode_payload(probe, secret)


def is_question(datagram: bytes) -> bool:
    """Say whether that is a probe, to be sent back."""
    return len(datagram) == DATAGRAM_BYTES and datagram[: len(_MAGIC) + 1] == _MAGIC + bytes((_QUESTION,))


def answer(question: bytes, dwell_ns: int) -> bytes:
    """Return what a reflector sends back, as large as the question."""
    return (
        _DATAGRAM_HEADER.pack(_MAGIC, _ANSWER, min(max(dwell_ns, 0), _MAX_DWELL_NS)) + question[_DATAGRAM_HEADER.size :]
    )


def decode_answer(datagram: bytes) -> Answer | None:
    """Read an answer; None when it is none."""
    if len(datagram) != DATAGRAM_BYTES:
        return None
    magic, kind, dwell_ns = _DATAGRAM_HEADER.unpack_from(datagram)
    marked = decode_payload(datagram[_DATAGRAM_HEADER.size :])
    if magic != _MAGIC or kind != _ANSWER or marked is None:
        return None
    return Answer(*marked, dwell_ns)


_FIXED = struct.Struct("!BBBBBBH")
_UNIT = 8
_SEGMENT = 16
ROUTING_TYPE = 4
"""Segment routing among IPv6 routing headers."""
MAX_SEGMENTS = 127
"""The header's length is one byte, in units of 8 bytes, and a segment takes two."""


@dataclass(frozen=True, slots=True)
class SegmentRoutingHeader:
    """A segment list on its way.

    Attributes
    ----------
    segments
        In the order in which the packet passes them (on the wire it is the other way round).
    left
        How many of them are still to come, the one that the packet is addressed to not counted.
    next_header
        Protocol number of what follows.
    """

    segments: tuple[IPv6Address, ...]
    left: int
    next_header: int = 0


def encode_srh(header: SegmentRoutingHeader) -> bytes:
    """Return the header without optional TLVs.

    Raises
    ------
    ValueError
        When it has no segments, more than fit, or more are left than there are.
    """
    count = len(header.segments)
    if not 1 <= count <= MAX_SEGMENTS or not 0 <= header.left < count:
        raise ValueError(f"{header.left} of {count} segments left: a header holds 1 to {MAX_SEGMENTS}")
    fixed = _FIXED.pack(header.next_header, count * _SEGMENT // _UNIT, ROUTING_TYPE, header.left, count - 1, 0, 0)
    return fixed + b"".join(segment.packed for segment in reversed(header.segments))


def decode_srh(data: bytes) -> SegmentRoutingHeader:
    """Read a header; what follows it, and TLVs, are left aside.

    Raises
    ------
    ValueError
        When the bytes are no segment routing header, or it contradicts itself.
    """
    if len(data) < _FIXED.size:
        raise ValueError("a segment routing header has 8 bytes before its segments")
    next_header, units, kind, left, last, _, _ = _FIXED.unpack_from(data)
    count = last + 1
    if kind != ROUTING_TYPE:
        raise ValueError(f"a routing header of type {kind}, not {ROUTING_TYPE}")
    if count * _SEGMENT > units * _UNIT or len(data) < _FIXED.size + units * _UNIT or left > last:
        raise ValueError(f"{count} segments, {left} left, do not fit a header of {units * _UNIT} bytes")
    wire = (data[start : start + _SEGMENT] for start in range(_FIXED.size, _FIXED.size + count * _SEGMENT, _SEGMENT))
    return SegmentRoutingHeader(tuple(IPv6Address(each) for each in wire)[::-1], left, next_header)


def segments_left_address(segments: tuple[IPv6Address, ...], target: IPv6Address) -> bytes:
    """Return the header of a packet that starts on its way to a target; empty without segments."""
    if not segments:
        return b""
    return encode_srh(SegmentRoutingHeader((*segments, target), len(segments)))
