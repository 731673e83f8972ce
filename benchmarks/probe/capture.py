"""Kernel capture of every eighth probe of a round and its answer."""

from __future__ import annotations

import ctypes
import socket
import struct
from ipaddress import IPv6Address
from types import TracebackType
from typing import Self

from seaway.adapters.probes.sockets import ANCILLARY_BYTES, prepare, stamp_ns
from seaway.probing import packets

_ETH_P_ALL = 3
_SO_ATTACH_FILTER = 26
_SAMPLE = 8
_SOURCE, _DESTINATION, _MESSAGE = slice(8, 24), slice(24, 40), 40
# Classic BPF on an IPv6 packet: ICMPv6 (byte 6), and a sequence number (bytes 46 and 47) that is a multiple of 8.
_STEPS = (
    (0x30, 0, 0, 6),
    (0x15, 0, 4, 58),
    (0x28, 0, 0, 46),
    (0x54, 0, 0, _SAMPLE - 1),
    (0x15, 0, 1, 0),
    (0x06, 0, 0, 0xFFFF),
    (0x06, 0, 0, 0),
)


class Capture:
    """Capture on an interface of this network namespace."""

    def __init__(self, interface: str) -> None:
        self._socket = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK, socket.htons(3))
        code = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *step) for step in _STEPS))
        program = struct.pack("@HP", len(_STEPS), ctypes.addressof(code))
        self._socket.setsockopt(socket.SOL_SOCKET, _SO_ATTACH_FILTER, program)
        prepare(self._socket)
        self._socket.setsockopt(socket.SOL_SOCKET, 33, 64 << 20)  # SO_RCVBUFFORCE
        self._socket.bind((interface, _ETH_P_ALL))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._socket.close()

    def errors_ns(self, addresses: list[IPv6Address], answered: list[list[list[int]]]) -> list[int]:
        """Return the error of each captured probe: its reported round-trip time minus the captured one.

        Parameters
        ----------
        answered
            Measurements of each prober in the captured round, in which nothing was lost.
        """
        left, back = self._read()
        errors = []
        for own, measured in zip(addresses, answered, strict=True):
            for target, rtts in enumerate(measured):
                for number, rtt in enumerate(rtts):
                    key = (own.packed, target + number * len(measured))
                    if key in left and key in back:
                        errors.append(rtt - (back[key] - left[key]))
        return errors

    def _read(self) -> tuple[dict[tuple[bytes, int], int], dict[tuple[bytes, int], int]]:
        """Return the times of requests and of replies, by prober and sequence number."""
        left: dict[tuple[bytes, int], int] = {}
        back: dict[tuple[bytes, int], int] = {}
        while True:
            try:
                packet, ancillary, _, address = self._socket.recvmsg(256, ANCILLARY_BYTES)
            except BlockingIOError:
                return left, back
            kind = packet[_MESSAGE]
            sequence = int.from_bytes(packet[_MESSAGE + 6 : _MESSAGE + 8], "big")
            pending_commands = address[2] == socket.PACKET_OUTGOING
            if kind == packets.V6.request and pending_commands:
                left[packet[_SOURCE], sequence] = stamp_ns(ancillary)
            elif kind == packets.V6.reply and not pending_commands:
                back[packet[_DESTINATION], sequence] = stamp_ns(ancillary)
