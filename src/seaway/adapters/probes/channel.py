"""Interface and common part of the probe methods."""

from __future__ import annotations

import socket
from dataclasses import dataclass
from ipaddress import IPv6Address
from typing import Protocol

from seaway.adapters.probes.sockets import route_through
from seaway.adapters.probes.timestamps import BatchReceiver, SendTimestamps
from seaway.application.ports.agent import Target
from seaway.probing import packets
from seaway.probing.rounds import Arrival

MAX_AT_ONCE = 4096
"""Maximum number of answers to read before other work."""


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
    """Sender of probes by one method, and reader of their answers.

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

    def _turn_to(self, path: ProbePath) -> None:
        """Set the segment routing header of the socket."""
        if path.header != self._header:
            route_through(self._socket, path.header)
            self._header = path.header
