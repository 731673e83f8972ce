"""When probes left, as the kernel has it: a process may lose its core between looking at the clock and sending.

References
----------
Linux, Documentation/networking/timestamping.rst, sections 1.3.1 (`SOF_TIMESTAMPING_TX_SOFTWARE`) and 2.1.1 (what comes
back on a socket's error queue).
"""

from __future__ import annotations

import ctypes
import socket
import struct
import time

from seaway.adapters.probes.sockets import ANCILLARY_BYTES, SO_TIMESTAMPNS, stamp_ns
from seaway.probing.packets import PAYLOAD_BYTES

MAX_WATCHED = 256
"""Probes in a round: a stamp and reading it cost a quarter of what a probe does, which adds up where there are many."""

_SO_TIMESTAMPING = 65
_WHEN_SENT = 1 << 1 | 1 << 4
"""`SOF_TIMESTAMPING_TX_SOFTWARE` and `SOF_TIMESTAMPING_SOFTWARE`."""
_NOT_OF_WHAT_COMES = 1 << 17
"""`SOF_TIMESTAMPING_OPT_RX_FILTER`, from Linux 6.12 on; others give a second stamp, for which no one makes room."""
_PACKET_BYTES = 2304
"""A whole probe: headers of a link and of IPv6, a segment routing header of 127 segments, the message."""
_MSG_ERRQUEUE = 0x2000
_TRIES, _AT_ONCE_NS = 3, 2_000
"""Two clocks are looked at again when more than so much time passed in between."""


class SendTimestamps:
    """Notes when the probes of a socket are sent, and how much later they left.

    A probe is known by its payload, which the kernel gives back with the whole packet.
    """

    def __init__(self, opened: socket.socket) -> None:
        self._socket = opened
        self.watching = False
        """Whether the kernel says it in this round."""
        self._noted_ns: dict[bytes, int] = {}
        self._late_ns: dict[bytes, int] = {}

    def begin(self, probes: int) -> None:
        """Watch a round of so many probes if that is affordable, and let go of the one before."""
        self._noted_ns.clear()
        self._late_ns.clear()
        wanted = probes <= MAX_WATCHED
        if wanted is not self.watching:
            self._ask(_WHEN_SENT if wanted else 0)
            self.watching = wanted

    def now_ns(self, payload: bytes) -> int:
        """Return what the steady clock says, nanoseconds, just before a probe is sent."""
        if not self.watching:
            return time.monotonic_ns()
        for _ in range(_TRIES):
            now_ns, noted_ns = time.monotonic_ns(), time.time_ns()
            if time.monotonic_ns() - now_ns < _AT_ONCE_NS:
                break
        self._noted_ns[payload] = noted_ns
        return now_ns

    def read(self) -> None:
        """Take in what the kernel says of those that left."""
        while True:
            try:
                packet, ancillary, _, _ = self._socket.recvmsg(_PACKET_BYTES, ANCILLARY_BYTES, _MSG_ERRQUEUE)
            except OSError:  # nothing more
                return
            payload = packet[-PAYLOAD_BYTES:]
            noted_ns = self._noted_ns.pop(payload, None)
            if noted_ns is not None:
                self._late_ns[payload] = max(stamp_ns(ancillary) - noted_ns, 0)

    def late_ns(self, payload: bytes) -> int:
        """Return how much later than noted a probe left that was answered; 0 where no one says."""
        if payload in self._noted_ns:
            self.read()
        return self._late_ns.pop(payload, 0)

    def _ask(self, flags: int) -> None:
        try:
            self._socket.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPING, flags | _NOT_OF_WHAT_COMES)
        except OSError:  # an older kernel
            self._socket.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPING, flags)


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


class BatchReceiver:
    """What waits at a socket whose packets the kernel stamps.

    Parameters
    ----------
    packet_bytes
        What is read of a packet at most.
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
