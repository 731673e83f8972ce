"""Probes by UDP datagrams, which the reflector at the target sends back."""

from __future__ import annotations

from seaway.adapters.probes.channel import Way
from seaway.adapters.probes.departures import Departures
from seaway.adapters.probes.inbox import Inbox
from seaway.adapters.probes.sockets import Address, open_udp, route_through
from seaway.probing import datagram
from seaway.probing.payload import PAYLOAD_BYTES
from seaway.probing.rounds import Arrival


class DatagramChannel:
    """UDP over IPv6 or IPv4, from one socket to any number of targets.

    Parameters
    ----------
    version
        Of IP: 4 or 6.
    source
        The own address, of that version; None leaves it to the routes.
    """

    prompt = False

    def __init__(self, version: int, source: Address | None) -> None:
        self._socket = open_udp(version, source, 0)
        self._inbox = Inbox(self._socket, datagram.DATAGRAM_BYTES + 1)
        self._departures = Departures(self._socket)
        self._header = b""

    def fileno(self) -> int:
        """Return the socket."""
        return self._socket.fileno()

    def begin(self, probes: int) -> None:
        """Have the kernel say when probes leave, unless there are many."""
        self._departures.begin(probes)

    def send(self, way: Way, probe: int, secret: bytes) -> int:
        """Send a datagram."""
        if way.header != self._header:
            route_through(self._socket, way.header)
            self._header = way.header
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

    def forget(self) -> None:
        """Leave late answers to be recognised as such."""

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()
