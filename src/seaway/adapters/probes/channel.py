"""What every method of probing has to offer."""

from __future__ import annotations

import socket
from dataclasses import dataclass
from ipaddress import IPv6Address
from typing import Protocol

from seaway.application.ports.probing import Target
from seaway.probing import srh
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
        family, header = socket.AF_INET6, srh.on_the_way(target.segments, address)
        if address.scope_id:
            return Way((str(address), port), header)
    return Way((socket.inet_ntop(family, address.packed), port), header)
