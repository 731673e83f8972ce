"""Reading many packets in one call."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator

import pytest

from seaway.adapters.probes.channel import AT_ONCE, BatchReceiver
from seaway.adapters.probes.sockets import SO_TIMESTAMPNS


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    """Return a socket that sends to another one."""
    with (
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as there,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as here,
    ):
        there.bind(("127.0.0.1", 0))
        here.connect(there.getsockname())
        yield here, there


def test_all_that_waits_is_read_in_order_and_once(pair: tuple[socket.socket, socket.socket]) -> None:
    """More packets than one call reads are all read, each with its length."""
    here, there = pair
    inbox, sent = BatchReceiver(there, 64), [b"%d" % number * (number % 7) for number in range(2 * AT_ONCE + 3)]
    for each in sent:
        here.send(each)
    assert [packet for packet, _ in inbox.read()] == sent
    assert inbox.read() == []


def test_packets_say_when_they_came(pair: tuple[socket.socket, socket.socket]) -> None:
    """The kernel's timestamps are read, and never used for a later packet without one."""
    here, there = pair
    inbox = BatchReceiver(there, 64)
    there.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
    before_ns = time.time_ns()
    for _ in range(3):
        here.send(b"stamped")
    stamps = [came_ns for _, came_ns in inbox.read()]
    assert before_ns <= stamps[0] <= stamps[1] <= stamps[2] <= time.time_ns()
    there.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 0)
    here.send(b"not stamped")
    assert inbox.read() == [(b"not stamped", 0)]


def test_what_is_too_long_is_cut(pair: tuple[socket.socket, socket.socket]) -> None:
    """A long packet uses no room of the next one."""
    here, there = pair
    for each in (b"a" * 100, b"b" * 8):
        here.send(each)
    assert [packet for packet, _ in BatchReceiver(there, 8).read()] == [b"a" * 8, b"b" * 8]


def test_an_error_that_waits_ends_reading_and_is_no_packet(pair: tuple[socket.socket, socket.socket]) -> None:
    """The error of an earlier packet is skipped, and later packets are read by the next call."""
    here, there = pair
    inbox = BatchReceiver(here, 64)
    there.close()
    here.send(b"to nobody")
    assert inbox.read() == []
    assert inbox.read() == []
