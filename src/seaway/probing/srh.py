"""The segment routing header as bytes.

References
----------
RFC 8754, section 2: the header and the order of its segments.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from ipaddress import IPv6Address

_FIXED = struct.Struct("!BBBBBBH")
_UNIT = 8
_SEGMENT = 16
ROUTING_TYPE = 4
"""Segment routing among IPv6 routing headers."""
MOST_SEGMENTS = 127
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


def encode(header: SegmentRoutingHeader) -> bytes:
    """Return the header without optional TLVs.

    Raises
    ------
    ValueError
        When it has no segments, more than fit, or more are left than there are.
    """
    count = len(header.segments)
    if not 1 <= count <= MOST_SEGMENTS or not 0 <= header.left < count:
        raise ValueError(f"{header.left} of {count} segments left: a header holds 1 to {MOST_SEGMENTS}")
    fixed = _FIXED.pack(header.next_header, count * _SEGMENT // _UNIT, ROUTING_TYPE, header.left, count - 1, 0, 0)
    return fixed + b"".join(segment.packed for segment in reversed(header.segments))


def decode(data: bytes) -> SegmentRoutingHeader:
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


def on_the_way(segments: tuple[IPv6Address, ...], target: IPv6Address) -> bytes:
    """Return the header of a packet that starts on its way to a target; empty without segments."""
    if not segments:
        return b""
    return encode(SegmentRoutingHeader((*segments, target), len(segments)))
