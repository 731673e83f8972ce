"""Probes by UDP datagrams, which the reflector at the target sends back."""

from __future__ import annotations

from seaway.adapters.probes.channel import Way
from seaway.adapters.probes.one_socket import OneSocket
from seaway.adapters.probes.sockets import Address, open_udp
from seaway.probing import datagram
from seaway.probing.payload import PAYLOAD_BYTES
from seaway.probing.rounds import Arrival


class DatagramChannel(OneSocket):
    """UDP over IPv6 or IPv4, from one socket to any number of targets.

    Parameters
    ----------
    version
        Of IP: 4 or 6.
    source
        The own address, of that version; None leaves it to the routes.
    """

    def __init__(self, version: int, source: Address | None) -> None:
        super().__init__(open_udp(version, source, 0), datagram.DATAGRAM_BYTES + 1)

    def send(self, way: Way, probe: int, secret: bytes) -> int:
        """Send a datagram."""
        self._turn_to(way)
        question = datagram.encode_question(probe, secret)
        at_ns = self._departures.now_ns(question[-PAYLOAD_BYTES:])
        self._socket.sendto(question, way.address)
        return at_ns

    def receive(self) -> list[Arrival]:
        """Return the answers that wait."""
        arrivals, departures = [], self._departures
        departures.read()
        for packet, came_ns in self._inbox.read():
            answer = datagram.decode_answer(packet)
            if answer:
                aside_ns = answer.dwell_ns + departures.late_ns(packet[-PAYLOAD_BYTES:])
                arrivals.append(Arrival(answer.probe, answer.secret, came_ns, aside_ns))
        return arrivals
