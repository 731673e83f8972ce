"""What every method of probing has to offer."""

from __future__ import annotations

import socket
from dataclasses import dataclass
from ipaddress import IPv6Address
from typing import Protocol

from seaway.adapters.probes.sockets import route_through
from seaway.adapters.probes.timestamps import Departures, Inbox
from seaway.application.ports.agent import Target
from seaway.probing import packets
from seaway.probing.rounds import Arrival

MOST_AT_ONCE = 4096
"""Most answers read before something else gets its turn."""


@dataclass(frozen=True, slots=True)
class Way:
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
        Whether answers have to be read as soon as they come, because nobody stamps them.
    """

    prompt: bool

    def fileno(self) -> int:
        """Return what to wait for until there is something to read."""

    def begin(self, probes: int) -> None:
        """Get ready for a round of so many probes, other channels' too."""

    def send(self, way: Way, probe: int, secret: bytes) -> int:
        """Send a probe, and return when it left by the steady clock, nanoseconds.

        Raises
        ------
        OSError
            When it could not be sent.
        """

    def receive(self) -> list[Arrival]:
        """Return what arrived, waiting for nothing."""

    def forget(self) -> None:
        """Let go of what was not answered."""

    def close(self) -> None:
        """Let go of everything."""


def way(target: Target, port: int) -> Way:
    """Return how a target is reached."""
    address, family, header = target.address, socket.AF_INET, b""
    if isinstance(address, IPv6Address):
        family, header = socket.AF_INET6, packets.on_the_way(target.segments, address)
        if address.scope_id:
            return Way((str(address), port), header)
    return Way((socket.inet_ntop(family, address.packed), port), header)


class OneSocket:
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
        self._inbox = Inbox(opened, packet_bytes)
        self._departures = Departures(opened)
        self._header = b""

    def fileno(self) -> int:
        """Return the socket."""
        return self._socket.fileno()

    def begin(self, probes: int) -> None:
        """Have the kernel say when probes leave, unless there are many."""
        self._departures.begin(probes)

    def forget(self) -> None:
        """Leave late answers to be recognised as such."""

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()

    def _turn_to(self, way: Way) -> None:
        """Have what is sent from now on go that way."""
        if way.header != self._header:
            route_through(self._socket, way.header)
            self._header = way.header
