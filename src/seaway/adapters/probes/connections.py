"""Probes by TCP: the time until a connection is accepted or refused.

References
----------
RFC 6298, section 2: a lost SYN is retransmitted after a second. A connection that took a second lost its first SYN.
"""

from __future__ import annotations

import errno
import select
import socket
import struct
import time
from typing import NamedTuple

from seaway.adapters.probes.channel import ProbePath
from seaway.adapters.probes.sockets import Address, route_through
from seaway.probing.rounds import Arrival

_RESEND_NS = 1_000_000_000
_IP_BIND_ADDRESS_NO_PORT = 24
_RESET_ON_CLOSE = struct.pack("@ii", 1, 0)
_TCP_INFO = struct.Struct("=68xI28xI")
"""Fields of `struct tcp_info` of <linux/tcp.h>: round-trip time in microseconds, and number of retransmissions."""
_ANSWERS = {0, errno.ECONNREFUSED}


class _Attempt(NamedTuple):
    opened: socket.socket
    probe: int
    secret: bytes
    started_ns: int


class ConnectionChannel:
    """Channel for TCP over IPv6 or IPv4. Each connection is reset when it is established.

    It requires no privilege. It creates sockets during a round, in the network namespace of the calling thread.

    Parameters
    ----------
    version
        IP version: 4 or 6.
    source
        Local address of that version; None for the address that the routes select.
    """

    prompt = True

    def __init__(self, version: int, source: Address | None) -> None:
        self._family = socket.AF_INET6 if version == 6 else socket.AF_INET
        self._source = source
        self._poll = select.epoll()
        self._attempts: dict[int, _Attempt] = {}  # by file descriptor, in order of start
        self._arrived: list[Arrival] = []

    def fileno(self) -> int:
        """Return the file descriptor that is readable when a connection is accepted or refused."""
        return self._poll.fileno()

    def begin(self, probes: int) -> None:
        """Do nothing: the kernel measures accepted connections itself."""

    def send(self, path: ProbePath, probe: int, secret: bytes) -> int:
        """Start a connection."""
        opened = socket.socket(self._family, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
        try:
            opened.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_ON_CLOSE)
            opened.setsockopt(socket.IPPROTO_IP, _IP_BIND_ADDRESS_NO_PORT, 1)
            if self._source is not None:
                opened.bind((str(self._source), 0))
            if path.header:
                route_through(opened, path.header)
            attempt = _Attempt(opened, probe, secret, time.monotonic_ns())
            error = opened.connect_ex(path.address)
            if error in _ANSWERS:
                self._arrived += _arrivals(attempt, error)
                opened.close()
            elif error != errno.EINPROGRESS:
                raise OSError(error, "cannot connect")
            else:
                self._poll.register(opened, select.EPOLLOUT)
                self._attempts[opened.fileno()] = attempt
        except BaseException:
            opened.close()
            raise
        return attempt.started_ns

    def receive(self) -> list[Arrival]:
        """Return the accepted and refused connections."""
        arrivals, self._arrived = self._arrived, []
        for descriptor, _ in self._poll.poll(0):
            attempt = self._attempts.pop(descriptor)
            error = attempt.opened.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
            arrivals += _arrivals(attempt, error)
            attempt.opened.close()
        self._expire(time.monotonic_ns() - _RESEND_NS)
        return arrivals

    def reset(self) -> None:
        """Close the pending connections."""
        for attempt in self._attempts.values():
            attempt.opened.close()
        self._attempts.clear()

    def close(self) -> None:
        """Close all sockets."""
        self.reset()
        self._poll.close()

    def _expire(self, before_ns: int) -> None:
        while self._attempts:
            descriptor, oldest = next(iter(self._attempts.items()))
            if oldest.started_ns >= before_ns:
                break
            del self._attempts[descriptor]
            oldest.opened.close()


def _arrivals(attempt: _Attempt, error: int) -> list[Arrival]:
    """Return the arrival of a completed connection; empty without an answer or after a retransmission."""
    wall_ns, took_ns = time.time_ns(), time.monotonic_ns() - attempt.started_ns
    info = attempt.opened.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _TCP_INFO.size)
    rtt_us, sent_again = _TCP_INFO.unpack(info)
    if error not in _ANSWERS or sent_again:
        return []
    # The kernel measures the time of an accepted connection, but not of a refused one. This process may read it later.
    dwell_ns = max(took_ns - rtt_us * 1000, 0) if not error and rtt_us else 0
    return [Arrival(attempt.probe, attempt.secret, wall_ns, dwell_ns)]
