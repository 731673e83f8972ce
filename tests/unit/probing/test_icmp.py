"""Echo requests and replies."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seaway.probing import packets
from seaway.probing.packets import V4, V6, Echo

LETTERS = b"abcdefghijklmnopqrstuvwabcdefghi"


def test_the_checksum_is_that_of_the_rfc() -> None:
    """RFC 1071, section 3, adds these bytes up to ddf2, whose complement is 220d."""
    assert packets.checksum(bytes.fromhex("0001f203f4f5f6f7")) == 0x220D


def test_an_odd_byte_counts_as_the_upper_half_of_a_word() -> None:
    """Data of odd length is summed up as though a zero followed."""
    assert packets.checksum(b"\x12\x34\x56") == packets.checksum(b"\x12\x34\x56\x00")


def test_a_request_of_icmp_is_the_one_that_windows_sends() -> None:
    """Windows' first ping, identifier 1 and number 1, has the checksum 4d5a."""
    assert packets.encode_request(V4, 1, 1, LETTERS) == bytes.fromhex("08004d5a00010001") + LETTERS


def test_a_request_of_icmpv6_leaves_the_checksum_to_the_kernel() -> None:
    """A raw ICMPv6 socket fills it in, as it covers addresses that the kernel chooses (RFC 3542, section 3.1)."""
    assert packets.encode_request(V6, 0xBEEF, 0x12345, b"xy") == bytes.fromhex("80000000beef2345") + b"xy"


@given(st.integers(0, 0xFFFF), st.integers(0, 1 << 32), st.binary(max_size=100))
def test_a_checksummed_message_sums_up_to_nothing(identifier: int, sequence: int, payload: bytes) -> None:
    """Anyone who receives it checks it by summing up all of it, the checksum as well."""
    assert packets.checksum(packets.encode_request(V4, identifier, sequence, payload)) == 0


@pytest.mark.parametrize("echo", [V4, V6])
def test_only_an_echo_reply_is_read_as_one(echo: Echo) -> None:
    """Requests, other codes, and what is too short bring nothing back."""
    reply = bytes((echo.reply, 0, 0, 0, 0, 1, 0, 2)) + b"payload"
    assert packets.decode_reply(echo, reply) == b"payload"
    assert packets.decode_reply(echo, packets.encode_request(echo, 1, 2, b"payload")) is None
    assert packets.decode_reply(echo, reply[:1] + b"\x01" + reply[2:]) is None
    assert packets.decode_reply(echo, reply[:7]) is None


def test_the_header_of_ipv4_is_as_long_as_it_says() -> None:
    """A packet with options has a longer header."""
    assert packets.without_ip_header(b"\x45" + bytes(19) + b"message") == b"message"
    assert packets.without_ip_header(b"\x46" + bytes(23) + b"message") == b"message"
    assert packets.without_ip_header(b"") == b""
