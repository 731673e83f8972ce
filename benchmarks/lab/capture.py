"""Captures of echo requests and replies by the kernel, at both ends of a lab's wires.

Outgoing packets are captured a little before they leave, incoming ones a little after they arrive, by up to 0.1 ms if
an interrupt occurs in between. Therefore departures are captured at both ends.
"""

from __future__ import annotations

import ctypes
import socket
import struct
from collections.abc import Iterator
from ipaddress import IPv6Address
from typing import NamedTuple

from lab.netns import inside
from seaway.adapters.probes.sockets import ANCILLARY_BYTES, prepare, stamp_ns
from seaway.probing import packets

_ETH_P_ALL = 3
_SO_ATTACH_FILTER = 26
_SO_RCVBUFFORCE = 33
_BUFFER_BYTES = 64 << 20
_SOURCE, _DESTINATION, _MESSAGE = slice(8, 24), slice(24, 40), 40
_PACKET_BYTES = 2048
# Classic BPF on an IPv6 packet: ICMPv6 (byte 6) without extension headers, an echo request or reply (byte 40).
_STEPS = (
    (0x30, 0, 0, 6),
    (0x15, 0, 3, 58),
    (0x30, 0, 0, _MESSAGE),
    (0x54, 0, 0, 0xFE),
    (0x15, 1, 0, packets.V6.request),
    (0x06, 0, 0, 0),
    (0x06, 0, 0, 0xFFFF),
)


class Seen(NamedTuple):
    """A captured echo request or reply.

    Attributes
    ----------
    at_ns
        Kernel timestamp, nanoseconds since 1970.
    pending_commands
        True for an outgoing packet, false for an incoming one.
    request
        True for a request, false for a reply.
    source, target
        Its addresses.
    echo
        Identifier, sequence number and random payload, which are equal only in a request and its reply.
    """

    at_ns: int
    pending_commands: bool
    request: bool
    source: IPv6Address
    target: IPv6Address
    echo: bytes


class Capture:
    """Capture on an interface in a network namespace; packets wait in the kernel until they are read."""

    def __init__(self, netns: str, interface: str) -> None:
        self._socket = inside(netns, lambda: _open(interface))

    def read(self) -> Iterator[Seen]:
        """Yield the packets captured since the last call, in order."""
        while True:
            try:
                packet, ancillary, _, address = self._socket.recvmsg(_PACKET_BYTES, ANCILLARY_BYTES)
            except BlockingIOError:
                return
            yield Seen(
                stamp_ns(ancillary),
                address[2] == socket.PACKET_OUTGOING,
                packet[_MESSAGE] == packets.V6.request,
                IPv6Address(packet[_SOURCE]),
                IPv6Address(packet[_DESTINATION]),
                packet[_MESSAGE + 4 :],
            )

    def close(self) -> None:
        """Stop the capture."""
        self._socket.close()


def _open(interface: str) -> socket.socket:
    opened = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK, 0)
    code = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *step) for step in _STEPS))
    program = struct.pack("@HP", len(_STEPS), ctypes.addressof(code))
    opened.setsockopt(socket.SOL_SOCKET, _SO_ATTACH_FILTER, program)
    prepare(opened)
    opened.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, _BUFFER_BYTES)
    opened.bind((interface, _ETH_P_ALL))
    return opened
