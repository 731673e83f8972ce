"""Messages between the kernel's packet queues (NFQUEUE) and a process that decides on packets.

References
----------
Linux, include/uapi/linux/netfilter/nfnetlink_queue.h and include/uapi/linux/netlink.h.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from struct import Struct, pack
from typing import NamedTuple

HEADER = Struct("=IHHII")
"""Length, type, flags, sequence, port."""
ATTRIBUTE = Struct("=HH")
ERROR_NUMBER = Struct("=i")
U32 = Struct(">I")
STAMP = Struct(">QQ")

NLMSG_ERROR = 2
REQUEST, ACKNOWLEDGE = 1, 4

SUBSYSTEM = 3 << 8
PACKET, VERDICT, CONFIG = SUBSYSTEM | 0, SUBSYSTEM | 1, SUBSYSTEM | 2

PACKET_HEADER, VERDICT_HEADER, TIMESTAMP, IN_DEVICE, OUT_DEVICE, PAYLOAD, FULL_LENGTH = 1, 2, 4, 5, 6, 10, 13
COMMAND, PARAMETERS, LONGEST_QUEUE = 1, 2, 3
BIND = 1
COPY_PACKET = 2
DROP, ACCEPT = 0, 1

HEAD = 40
"""Requested octets of each packet: an IPv6 header, of which only the length is used."""


class Queued(NamedTuple):
    """A packet that waits in the kernel.

    Attributes
    ----------
    number
        Number assigned by the kernel, unique among waiting packets.
    came_in, goes_out
        Indexes of the interfaces; 0 for none.
    stamp_ns
        Time of arrival, nanoseconds since 1970; 0 if the kernel does not report it.
    octets
        Its length.
    """

    number: int
    came_in: int
    goes_out: int
    stamp_ns: int
    octets: int


def attribute(kind: int, value: bytes) -> bytes:
    """Encode an attribute, padded to a multiple of four octets."""
    return ATTRIBUTE.pack(4 + len(value), kind) + value + bytes(-len(value) % 4)


def message(kind: int, queue: int, body: bytes, flags: int = REQUEST) -> bytes:
    """Encode a message about a queue."""
    rest = pack(">BBH", 0, 0, queue) + body
    return HEADER.pack(HEADER.size + len(rest), kind, flags, 0, 0) + rest


def configuration(queue: int, longest: int) -> Iterator[bytes]:
    """Encode the messages that bind to a queue; each must be acknowledged before the next one is sent.

    Parameters
    ----------
    longest
        Maximum number of waiting packets; further ones are dropped.
    """
    for body in (
        attribute(COMMAND, pack(">BxH", BIND, 0)),
        attribute(PARAMETERS, pack(">IB", HEAD, COPY_PACKET)),
        attribute(LONGEST_QUEUE, U32.pack(longest)),
    ):
        yield message(CONFIG, queue, body, REQUEST | ACKNOWLEDGE)


def verdicts(queue: int, numbers: Iterable[int], verdict: int) -> bytes:
    """Encode verdicts on packets: `ACCEPT` or `DROP`."""
    return b"".join(message(VERDICT, queue, attribute(VERDICT_HEADER, pack(">II", verdict, each))) for each in numbers)


def refusal(data: bytes) -> int:
    """Return the error number of a response; 0 for success and for other messages."""
    _, kind, *_ = HEADER.unpack_from(data)
    return -int(ERROR_NUMBER.unpack_from(data, HEADER.size)[0]) if kind == NLMSG_ERROR else 0


def packets(data: bytes | memoryview) -> Iterator[Queued]:
    """Return the packets in data from the kernel; other messages are ignored."""
    at = 0
    while at + HEADER.size <= len(data):
        length, kind, *_ = HEADER.unpack_from(data, at)
        if length < HEADER.size:
            return
        if kind == PACKET:
            yield _queued(data, at + HEADER.size + 4, at + length)
        at += (length + 3) & ~3


def _queued(data: bytes | memoryview, at: int, end: int) -> Queued:
    number = came_in = goes_out = stamp_ns = octets = full = 0
    while at + 4 <= end:
        length, kind = ATTRIBUTE.unpack_from(data, at)
        if length < 4:
            break
        if kind == PACKET_HEADER:
            (number,) = U32.unpack_from(data, at + 4)
        elif kind == IN_DEVICE:
            (came_in,) = U32.unpack_from(data, at + 4)
        elif kind == OUT_DEVICE:
            (goes_out,) = U32.unpack_from(data, at + 4)
        elif kind == TIMESTAMP:
            seconds, micros = STAMP.unpack_from(data, at + 4)
            stamp_ns = seconds * 1_000_000_000 + micros * 1_000
        elif kind == PAYLOAD:
            octets = length - 4
        elif kind == FULL_LENGTH:
            (full,) = U32.unpack_from(data, at + 4)
        at += (length + 3) & ~3
    return Queued(number, came_in, goes_out, stamp_ns, full or octets)
