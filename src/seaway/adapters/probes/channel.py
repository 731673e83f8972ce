"""What every method of probing has to offer."""

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
"""Most answers read before something else gets its turn."""


@dataclass(frozen=True, slots=True)
class ProbePath:
    """How a target is reached.

    Attributes
    ----------
    address
        As sockets take it.
    header
        Segment routing header; empty as routes lead.
    """

    address: tuple[str, int]
    header: bytes = b""


class Channel(Protocol):
    """Sends probes by one method and reads their answers.

    Attributes
    ----------
    prompt
        Whether answers must be read as soon as they come, because no one stamps them.
    """

    prompt: bool

    def fileno(self) -> int:
        """Return what to wait for until there is something to read."""

    def begin(self, probes: int) -> None:
        """Get ready for a round of so many probes, other channels' too."""

    def send(self, path: ProbePath, probe: int, secret: bytes) -> int:
        """Send a probe, and return when it left by the steady clock, nanoseconds.

        Raises
        ------
        OSError
            When it could not be sent.
        """

    def receive(self) -> list[Arrival]:
        """Return what arrived, waiting for nothing."""

    def reset(self) -> None:
        """Let go of what was not answered."""

    def close(self) -> None:
        """Let go of everything."""


def probe_path(target: Target, port: int) -> ProbePath:
    """Return how a target is reached."""
    address, family, header = target.address, socket.AF_INET, b""
    if isinstance(address, IPv6Address):
        family, header = socket.AF_INET6, packets.segments_left_address(target.segments, address)
        if address.scope_id:
            return ProbePath((str(address), port), header)
    return ProbePath((socket.inet_ntop(family, address.packed), port), header)


class SocketChannel:
    """A socket, what arrives at it, and when what it sent left.

    Parameters
    ----------
    opened
        The socket, which is closed with this.
    packet_bytes
        As much as an answer can have, and one more.
    """

    prompt = False

    def __init__(self, opened: socket.socket, packet_bytes: int) -> None:
        self._socket = opened
        self._inbox = BatchReceiver(opened, packet_bytes)
        self._departures = SendTimestamps(opened)
        self._header = b""

    def fileno(self) -> int:
        """Return the socket."""
        return self._socket.fileno()

    def begin(self, probes: int) -> None:
        """Have the kernel say when probes leave, unless there are many."""
        self._departures.begin(probes)

    def reset(self) -> None:
        """Leave late answers to be recognised as such."""

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()

    def _turn_to(self, path: ProbePath) -> None:
        """Have what is sent from now on go that way."""
        if path.header != self._header:
            route_through(self._socket, path.header)
            self._header = path.header
