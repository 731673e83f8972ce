"""Probes by echo requests, from one raw socket to any number of targets and along any number of segment lists."""

from __future__ import annotations

import secrets

from seaway.adapters.probes.channel import Way
from seaway.adapters.probes.one_socket import OneSocket
from seaway.adapters.probes.sockets import Address, open_icmp
from seaway.probing import icmp, payload
from seaway.probing.rounds import Arrival

_PACKET_BYTES = 128
"""More than an answer can have: 60 of an IPv4 header, 64 of the message."""
_arrival = Arrival._make  # a third of what a call by position costs


class EchoChannel(OneSocket):
    """ICMPv6 or ICMP.

    Parameters
    ----------
    version
        Of IP: 4 or 6.
    source
        The own address, of that version; None leaves it to the routes.
    """

    def __init__(self, version: int, source: Address | None) -> None:
        self._identifier = secrets.randbelow(1 << 16)
        super().__init__(open_icmp(version, source, self._identifier), _PACKET_BYTES)
        self._echo = icmp.V6 if version == 6 else icmp.V4
        self._has_ip_header = version == 4

    def send(self, way: Way, probe: int, secret: bytes) -> int:
        """Send an echo request."""
        self._turn_to(way)
        carried = payload.encode(probe, secret)
        packet = icmp.encode_request(self._echo, self._identifier, probe, carried)
        at_ns = self._departures.now_ns(carried)
        self._socket.sendto(packet, way.address)
        return at_ns

    def receive(self) -> list[Arrival]:
        """Return the echo replies that wait."""
        arrivals, departures = [], self._departures
        departures.read()
        for packet, came_ns in self._inbox.read():
            message = icmp.without_ip_header(packet) if self._has_ip_header else packet
            brought = icmp.decode_reply(self._echo, message)
            marked = payload.decode(brought) if brought else None
            if brought and marked:
                late_ns = departures.late_ns(brought) if departures.watching else 0
                arrivals.append(_arrival((*marked, came_ns, late_ns)))
        return arrivals
