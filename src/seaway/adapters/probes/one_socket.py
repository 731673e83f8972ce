"""What probes have in common that all go out of one socket, to any number of targets and along any segment lists."""

from __future__ import annotations

import socket

from seaway.adapters.probes.channel import Way
from seaway.adapters.probes.departures import Departures
from seaway.adapters.probes.inbox import Inbox
from seaway.adapters.probes.sockets import route_through


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
