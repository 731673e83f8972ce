"""Encoding of probes: ICMP and ICMPv6 echo packets, UDP datagrams, and IPv6 segment routing headers.

References
----------
RFC 792 (ICMP), RFC 4443, section 4 (ICMPv6 echo), RFC 1071 (Internet checksum).
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
        Whether the sender computes the checksum. For ICMPv6, whose checksum covers the addresses, Linux computes it.
    """

    request: int
    reply: int
    checksummed: bool


V4 = Echo(request=8, reply=0, checksummed=True)
V6 = Echo(request=128, reply=129, checksummed=False)


def encode_request(echo: Echo, identifier: int, sequence: int, payload: bytes) -> bytes:
    """Return an echo request with the lower 16 bits of `sequence`."""
    packet = _HEADER.pack(echo.request, 0, 0, identifier, sequence & 0xFFFF) + payload
    if not echo.checksummed:
        return packet
    return packet[:_CHECKSUM_AT] + checksum(packet).to_bytes(2, "big") + packet[_CHECKSUM_AT + 2 :]


def decode_reply(echo: Echo, packet: bytes) -> bytes | None:
    """Return the payload of an echo reply without IP header; None if it is not an echo reply."""
    if len(packet) < HEADER_BYTES or packet[0] != echo.reply or packet[1] != 0:
        return None
    return packet[HEADER_BYTES:]


def without_ip_header(packet: bytes) -> bytes:
    """Return an IPv4 packet without its header, which raw sockets include."""
    return packet[(packet[0] & 0x0F) * 4 :] if packet else packet


def checksum(data: bytes) -> int:
    """Return the Internet checksum: the ones' complement of the ones' complement sum of 16-bit words (RFC 1071)."""
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
    """Return number and secret of a probe; None if `payload` is not the payload of a probe."""
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
    """A decoded answer. `dwell_ns` is the delay at the reflector, nanoseconds."""

    probe: int
    secret: bytes
    dwell_ns: int


def encode_question(probe: int, secret: bytes) -> bytes:
    """Return the datagram of a probe."""
    return _DATAGRAM_HEADER.pack(_MAGIC, _QUESTION, 0) + encode_payload(probe, secret)


def is_question(datagram: bytes) -> bool:
    """Report whether a datagram is a probe, which a reflector answers."""
    return len(datagram) == DATAGRAM_BYTES and datagram[: len(_MAGIC) + 1] == _MAGIC + bytes((_QUESTION,))


def answer(question: bytes, dwell_ns: int) -> bytes:
    """Return the answer of a reflector, which is as large as the question."""
    return (
        _DATAGRAM_HEADER.pack(_MAGIC, _ANSWER, min(max(dwell_ns, 0), _MAX_DWELL_NS)) + question[_DATAGRAM_HEADER.size :]
    )


def decode_answer(datagram: bytes) -> Answer | None:
    """Decode an answer; None if `datagram` is not an answer."""
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
"""Type of the IPv6 routing header for segment routing."""
MAX_SEGMENTS = 127
"""Maximum number of segments: the length field is one byte, in units of 8 bytes, and a segment has two units."""


@dataclass(frozen=True, slots=True)
class SegmentRoutingHeader:
    """A segment routing header (RFC 8754).

    Attributes
    ----------
    segments
        Segments in the order in which the packet visits them. The encoded order is the reverse.
    left
        Number of segments still to visit after the packet's current destination.
    next_header
        Protocol number of the next header.
    """

    segments: tuple[IPv6Address, ...]
    left: int
    next_header: int = 0


def encode_srh(header: SegmentRoutingHeader) -> bytes:
    """Return the header without optional TLVs.

    Raises
    ------
    ValueError
        If it has no segments or too many, or more segments are left than it has.
    """
    count = len(header.segments)
    if not 1 <= count <= MAX_SEGMENTS or not 0 <= header.left < count:
        raise ValueError(f"{header.left} of {count} segments left: a header holds 1 to {MAX_SEGMENTS}")
    fixed = _FIXED.pack(header.next_header, count * _SEGMENT // _UNIT, ROUTING_TYPE, header.left, count - 1, 0, 0)
    return fixed + b"".join(segment.packed for segment in reversed(header.segments))


def decode_srh(data: bytes) -> SegmentRoutingHeader:
    """Decode a header; TLVs and the bytes after it are ignored.

    Raises
    ------
    ValueError
        If the bytes are not a segment routing header, or it is inconsistent.
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
    """Return the header of a new packet to a target; empty without segments."""
    if not segments:
        return b""
    return encode_srh(SegmentRoutingHeader((*segments, target), len(segments)))
