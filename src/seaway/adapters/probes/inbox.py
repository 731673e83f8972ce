"""Reading many packets with one call, which Python has no name for: one for each made probes a sixth dearer.

References
----------
recvmmsg(2), recvmsg(2), cmsg(3).
"""

from __future__ import annotations

import ctypes
import socket
import struct

from seaway.adapters.probes.sockets import ANCILLARY_BYTES, SO_TIMESTAMPNS

AT_ONCE = 64
_MOST = 4096
"""Most packets read before something else gets its turn."""
_BYTE = ctypes.c_char


class _Part(ctypes.Structure):
    """`struct iovec`."""

    _fields_ = (("base", ctypes.c_void_p), ("length", ctypes.c_size_t))


class _Message(ctypes.Structure):
    """`struct mmsghdr`."""

    _fields_ = (
        ("name", ctypes.c_void_p),
        ("name_length", ctypes.c_uint),
        ("parts", ctypes.c_void_p),
        ("parts_length", ctypes.c_size_t),
        ("control", ctypes.c_void_p),
        ("control_length", ctypes.c_size_t),
        ("flags", ctypes.c_size_t),  # an int, which is padded to where `length` begins
        ("length", ctypes.c_uint),
    )


_SIZE_T = ctypes.sizeof(ctypes.c_size_t)
_STAMP = struct.Struct(f"={_SIZE_T}xii{socket.CMSG_LEN(0) - _SIZE_T - 8}xqq")
"""One control message: its level and kind, seconds and nanoseconds."""
_recvmmsg = ctypes.CDLL(None).recvmmsg
_recvmmsg.argtypes = (ctypes.c_int, ctypes.c_void_p, ctypes.c_uint, ctypes.c_int, ctypes.c_void_p)


class Inbox:
    """What waits at a socket whose packets the kernel stamps.

    Parameters
    ----------
    packet_bytes
        What is read of a packet at the most.
    """

    def __init__(self, opened: socket.socket, packet_bytes: int) -> None:
        self._socket = opened
        self._each = packet_bytes
        self._packets, packets = _room(AT_ONCE * packet_bytes)
        self._stamps, stamps = _room(AT_ONCE * ANCILLARY_BYTES)
        self._parts = (_Part * AT_ONCE)(*(_Part(packets + at * packet_bytes, packet_bytes) for at in range(AT_ONCE)))
        self._messages = (_Message * AT_ONCE)()
        for at, message in enumerate(self._messages):
            message.parts, message.parts_length = ctypes.addressof(self._parts[at]), 1
            message.control, message.control_length = stamps + at * ANCILLARY_BYTES, ANCILLARY_BYTES
        self._address = ctypes.addressof(self._messages)
        self._raw = memoryview(self._messages).cast("B")
        self._lengths = self._raw.cast("I")[_Message.length.offset // 4 :: ctypes.sizeof(_Message) // 4]
        self._fresh = bytes(self._raw), bytes(AT_ONCE * ANCILLARY_BYTES)

    def read(self) -> list[tuple[bytes, int]]:
        """Return packets and when they came by the wall clock, nanoseconds; 0 without a stamp."""
        found: list[tuple[bytes, int]] = []
        while len(found) < _MOST:
            came = _recvmmsg(self._socket.fileno(), self._address, AT_ONCE, socket.MSG_DONTWAIT, None)
            if came > 0:
                self._take(came, found)
            if came < AT_ONCE:  # nothing more, or what became of an earlier packet
                break
        return found

    def _take(self, came: int, found: list[tuple[bytes, int]]) -> None:
        """Take packets out, and make room for others."""
        each, start = self._each, 0
        packets = bytes(memoryview(self._packets)[: came * each])
        stamps = _STAMP.iter_unpack(memoryview(self._stamps)[: came * ANCILLARY_BYTES])
        for length, (level, kind, seconds, nanoseconds) in zip(self._lengths[:came].tolist(), stamps, strict=True):
            stamped = level == socket.SOL_SOCKET and kind == SO_TIMESTAMPNS
            found.append((packets[start : start + length], seconds * 1_000_000_000 + nanoseconds if stamped else 0))
            start += each
        messages, stamps_ = self._fresh
        self._raw[: len(messages) * came // AT_ONCE] = messages[: len(messages) * came // AT_ONCE]
        self._stamps[: came * ANCILLARY_BYTES] = stamps_[: came * ANCILLARY_BYTES]


def _room(size: int) -> tuple[bytearray, int]:
    """Return memory and where it is."""
    room = bytearray(size)
    return room, ctypes.addressof(_BYTE.from_buffer(room))
