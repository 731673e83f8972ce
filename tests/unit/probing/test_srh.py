"""The segment routing header."""

from __future__ import annotations

from ipaddress import IPv6Address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seaway.probing import packets
from seaway.probing.packets import SegmentRoutingHeader

FIRST, LAST = IPv6Address("fd00:51d:2::e"), IPv6Address("fd00:51d:4::d6")
KNOWN = (
    "2904" + "0401" + "0100" + "0000"  # what follows, length, type, left, last entry, flags, tag
    "fd00051d0004000000000000000000d6"  # the last segment comes first
    "fd00051d00020000000000000000000e"
)
"""As the kernel sends it: RT6 (type=4, segleft=1, [0] fd00:51d:4::d6, [1] fd00:51d:2::e) before an IPv6 packet."""

segments = st.lists(st.ip_addresses(v=6), min_size=1, max_size=packets.MAX_SEGMENTS).map(tuple)


def test_the_header_is_the_one_that_the_kernel_sends() -> None:
    """Segments are written the other way round than they are passed (RFC 8754, section 2)."""
    header = SegmentRoutingHeader((FIRST, LAST), left=1, next_header=41)
    data = bytes.fromhex(KNOWN)
    assert packets.encode_srh(header) == data
    assert packets.decode_srh(data + b"what it carries") == header


@given(segments, st.data())
def test_what_is_written_is_read(listed: tuple[IPv6Address, ...], data: st.DataObject) -> None:
    """Encoding and decoding a header gives the header."""
    header = SegmentRoutingHeader(listed, data.draw(st.integers(0, len(listed) - 1)), data.draw(st.integers(0, 255)))
    assert packets.decode_srh(packets.encode_srh(header)) == header


@given(st.binary(max_size=60))
def test_no_bytes_are_misread(data: bytes) -> None:
    """Bytes are refused, or say something that is in them: the same header comes out of what it is written as."""
    try:
        header = packets.decode_srh(data)
    except ValueError:
        return
    assert packets.decode_srh(packets.encode_srh(header)) == header
    assert all(segment.packed in data for segment in header.segments)


@pytest.mark.parametrize(
    ("at", "value", "why"), [(2, 2, "of type 2"), (3, 2, "2 left"), (4, 2, "3 segments"), (1, 8, "64 bytes")]
)
def test_a_header_that_contradicts_itself_is_refused(at: int, value: int, why: str) -> None:
    """Another type, more left than there are, more segments than room, and less data than length are all refused."""
    data = bytearray.fromhex(KNOWN)
    data[at] = value
    with pytest.raises(ValueError, match=why):
        packets.decode_srh(bytes(data))


def test_options_after_the_segments_are_passed_over() -> None:
    """A header may be longer than its segments (RFC 8754, section 2.1)."""
    data = bytearray.fromhex(KNOWN)
    data[1] += 1
    assert packets.decode_srh(bytes(data) + bytes(8)).segments == (FIRST, LAST)


def test_a_header_without_segments_or_with_too_many_is_refused() -> None:
    """A header's length, one byte, can say 127 segments at most."""
    for count in (0, packets.MAX_SEGMENTS + 1):
        with pytest.raises(ValueError, match="1 to 127"):
            packets.encode_srh(SegmentRoutingHeader((FIRST,) * count, 0))
    with pytest.raises(ValueError, match="1 of 1"):
        packets.encode_srh(SegmentRoutingHeader((FIRST,), 1))


def test_a_packet_passes_all_segments_before_its_target() -> None:
    """At the start all segments are left, and the target is the last of the list."""
    header = packets.decode_srh(packets.segments_left_address((FIRST, LAST), IPv6Address("fd00::1")))
    assert header == SegmentRoutingHeader((FIRST, LAST, IPv6Address("fd00::1")), left=2)


def test_a_way_without_segments_needs_no_header() -> None:
    """An empty header has a socket send as routes lead."""
    assert packets.segments_left_address((), LAST) == b""
