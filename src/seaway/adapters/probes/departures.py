"""When probes left, as the kernel has it: a process may lose its core between looking at the clock and sending.

References
----------
Linux, Documentation/networking/timestamping.rst, sections 1.3.1 (`SOF_TIMESTAMPING_TX_SOFTWARE`) and 2.1.1 (what comes
back on a socket's error queue).
"""

from __future__ import annotations

import socket
import time

from seaway.adapters.probes.sockets import ANCILLARY_BYTES, stamp_ns
from seaway.probing.payload import PAYLOAD_BYTES

MOST_WATCHED = 256
"""Probes in a round: a stamp and reading it cost a quarter of what a probe does, which adds up where there are many."""

_SO_TIMESTAMPING = 65
_WHEN_SENT = 1 << 1 | 1 << 4
"""`SOF_TIMESTAMPING_TX_SOFTWARE` and `SOF_TIMESTAMPING_SOFTWARE`."""
_NOT_OF_WHAT_COMES = 1 << 17
"""`SOF_TIMESTAMPING_OPT_RX_FILTER`, from Linux 6.12 on; others give a second stamp, for which nobody makes room."""
_PACKET_BYTES = 2304
"""A whole probe: headers of a link and of IPv6, a segment routing header of 127 segments, the message."""
_MSG_ERRQUEUE = 0x2000
_TRIES, _AT_ONCE_NS = 3, 2_000
"""Two clocks are looked at again when more than so much time passed in between."""


class Departures:
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
        wanted = probes <= MOST_WATCHED
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
        """Return how much later than noted a probe left that was answered; 0 where nobody says."""
        if payload in self._noted_ns:
            self.read()
        return self._late_ns.pop(payload, 0)

    def _ask(self, flags: int) -> None:
        try:
            self._socket.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPING, flags | _NOT_OF_WHAT_COMES)
        except OSError:  # an older kernel
            self._socket.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPING, flags)
