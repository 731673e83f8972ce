"""Interface and common part of the probe methods."""

from __future__ import annotations

import ctypes
import socket
import struct
import time
from dataclasses import dataclass
from ipaddress import IPv6Address
from typing import Protocol

from seaway.adapters.probes.sockets import ANCILLARY_BYTES, SO_TIMESTAMPNS, route_through, stamp_ns
from seaway.application.ports.agent import Target
from seaway.probing import packets
from seaway.probing.packets import PAYLOAD_BYTES
from seaway.probing.rounds import Arrival

MAX_WATCHED = 256
"""Maximum number of probes in a round with send timestamps. A timestamp adds a quarter to the cost of a probe."""

_SO_TIMESTAMPING = 65
_WHEN_SENT = 1 << 1 | 1 << 4
"""`SOF_TIMESTAMPING_TX_SOFTWARE` and `SOF_TIMESTAMPING_SOFTWARE`."""
_FILTER_ALL = 1 << 17
"""`SOF_TIMESTAMPING_OPT_RX_FILTER`, since Linux 6.12. Older kernels add a second receive timestamp, for which there is
no buffer."""
_PACKET_BYTES = 2304
"""Maximum size of a probe in bytes: link header, IPv6 header, segment routing header of 127 segments, and message."""
_MSG_ERRQUEUE = 0x2000
_TRIES, _AT_ONCE_NS = 3, 2_000
"""Maximum number of readings of two clocks, and maximum time between the two readings of a valid pair."""


class SendTimestamps:
    """Recorded send times of a socket's probes, and the delays until the kernel sent them.

    The kernel returns the sent packet, and its payload identifies the probe.
    """

    def __init__(self, opened: socket.socket) -> None:
        self._socket = opened
        self.watching = False
        """True if timestamps are enabled in this round."""
        self._noted_ns: dict[bytes, int] = {}
        self._late_ns: dict[bytes, int] = {}

    def begin(self, probes: int) -> None:
        """Enable timestamps for a round unless it has too many probes, and discard those of the previous round."""
        self._noted_ns.clear()
        self._late_ns.clear()
        wanted = probes <= MAX_WATCHED
        if wanted is not self.watching:
            self._ask(_WHEN_SENT if wanted else 0)
            self.watching = wanted

    def now_ns(self, payload: bytes) -> int:
        """Return the monotonic time in nanoseconds just before a probe is sent, and record the wall time."""
        if not self.watching:
            return time.monotonic_ns()
        for _ in range(_TRIES):
            now_ns, noted_ns = time.monotonic_ns(), time.time_ns()
            if time.monotonic_ns() - now_ns < _AT_ONCE_NS:
                break
        self._noted_ns[payload] = noted_ns
        return now_ns

    def read(self) -> None:
        """Read the available send timestamps of the kernel."""
        while True:
            try:
                packet, ancillary, _, _ = self._socket.recvmsg(_PACKET_BYTES, ANCILLARY_BYTES, _MSG_ERRQUEUE)
            except OSError:  # no more packets
                return
            payload = packet[-PAYLOAD_BYTES:]
            noted_ns = self._noted_ns.pop(payload, None)
            if noted_ns is not None:
                self._late_ns[payload] = max(stamp_ns(ancillary) - noted_ns, 0)

    def late_ns(self, payload: bytes) -> int:
        """Return the delay between the recorded and the actual send time of an answered probe; 0 if unknown."""
        if payload in self._noted_ns:
            self.read()
        return self._late_ns.pop(payload, 0)

    def _ask(self, flags: int) -> None:
        try:
            self._socket.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPING, flags | _FILTER_ALL)
        except OSError:  # an older kernel
            self._socket.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPING, flags)


AT_ONCE = 64
_MOST = 4096
"""Maximum number of packets to read in one call."""
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
"""One control message: level, kind, seconds and nanoseconds."""
_recvmmsg = ctypes.CDLL(None).recvmmsg
_recvmmsg.argtypes = (ctypes.c_int, ctypes.c_void_p, ctypes.c_uint, ctypes.c_int, ctypes.c_void_p)


class BatchReceiver:
    """Reader of a socket's packets with receive timestamps.

    Parameters
    ----------
    packet_bytes
        Maximum number of bytes to read of a packet.
    """

    def __init__(self, opened: socket.socket, packet_bytes: int) -> None:
        self._socket = opened
        self._each = packet_bytes
        self._packets, packets = _buffer(AT_ONCE * packet_bytes)
        self._stamps, stamps = _buffer(AT_ONCE * ANCILLARY_BYTES)
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
        """Return packets with their wall-clock receive times in nanoseconds; 0 without a timestamp."""
        found: list[tuple[bytes, int]] = []
        while len(found) < _MOST:
            came = _recvmmsg(self._socket.fileno(), self._address, AT_ONCE, socket.MSG_DONTWAIT, None)
            if came > 0:
                self._take(came, found)
            if came < AT_ONCE:  # no more packets, or the error of an earlier one
                break
        return found

    def _take(self, came: int, found: list[tuple[bytes, int]]) -> None:
        """Copy packets out of the buffers, and reset the buffers."""
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


def _buffer(size: int) -> tuple[bytearray, int]:
    """Return a buffer and its address."""
    room = bytearray(size)
    return room, ctypes.addressof(_BYTE.from_buffer(room))


MAX_AT_ONCE = 4096
"""Maximum number of answers to read in one call."""


@dataclass(frozen=True, slots=True)
class ProbePath:
    """Path to a target.

    Attributes
    ----------
    address
        Socket address.
    header
        Segment routing header; empty for the default route.
    """

    address: tuple[str, int]
    header: bytes = b""


class Channel(Protocol):
    """Channel that sends probes by one method and receives their answers.

    Attributes
    ----------
    prompt
        True if answers must be read immediately, because the kernel does not timestamp them.
    """

    prompt: bool

    def fileno(self) -> int:
        """Return the file descriptor to poll for answers."""

    def begin(self, probes: int) -> None:
        """Prepare for a round with the given number of probes in all channels."""

    def send(self, path: ProbePath, probe: int, secret: bytes) -> int:
        """Send a probe; return its send time by the monotonic clock, in nanoseconds.

        Raises
        ------
        OSError
            When it could not be sent.
        """

    def receive(self) -> list[Arrival]:
        """Return the available answers without waiting."""

    def reset(self) -> None:
        """Discard the state of unanswered probes."""

    def close(self) -> None:
        """Release all resources."""


def probe_path(target: Target, port: int) -> ProbePath:
    """Return the path to a target."""
    address, family, header = target.address, socket.AF_INET, b""
    if isinstance(address, IPv6Address):
        family, header = socket.AF_INET6, packets.segments_left_address(target.segments, address)
        if address.scope_id:
            return ProbePath((str(address), port), header)
    return ProbePath((socket.inet_ntop(family, address.packed), port), header)


class SocketChannel:
    """Socket with its receive buffer and send timestamps.

    Parameters
    ----------
    opened
        The socket, which is closed with the channel.
    packet_bytes
        Maximum size of an answer plus one.
    """

    prompt = False

    def __init__(self, opened: socket.socket, packet_bytes: int) -> None:
        self._socket = opened
        self._inbox = BatchReceiver(opened, packet_bytes)
        self._departures = SendTimestamps(opened)
        self._header = b""

    def fileno(self) -> int:
        """Return the file descriptor of the socket."""
        return self._socket.fileno()

    def begin(self, probes: int) -> None:
        """Enable the kernel's send timestamps, unless there are many probes."""
        self._departures.begin(probes)

    def reset(self) -> None:
        """Do nothing: late answers are recognized when they arrive."""

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()

    def _set_routing_header(self, path: ProbePath) -> None:
        """Set the segment routing header of the socket."""
        if path.header != self._header:
            route_through(self._socket, path.header)
            self._header = path.header
