"""Probes by UDP datagrams, which the reflector at the target sends back."""

from __future__ import annotations

import secrets

from seaway.adapters.probes.channel import ProbePath, SocketChannel
from seaway.adapters.probes.sockets import Address, open_icmp, open_udp
from seaway.probing import packets
from seaway.probing.packets import PAYLOAD_BYTES
from seaway.probing.rounds import Arrival


class DatagramChannel(SocketChannel):
    """UDP over IPv6 or IPv4, from one socket to any number of targets.

    Parameters
    ----------
    version
        Of IP: 4 or 6.
    source
        The own address, of that version; None leaves it to the routes.
    """

    def __init__(self, version: int, source: Address | None) -> None:
        super().__init__(open_udp(version, source, 0), packets.DATAGRAM_BYTES + 1)

    def send(self, path: ProbePath, probe: int, secret: bytes) -> int:
        """Send a datagram."""
        self._turn_to(path)
        question = packets.encode_question(probe, secret)
        at_ns = self._departures.now_ns(question[-PAYLOAD_BYTES:])
        self._socket.sendto(question, path.address)
        return at_ns

    def receive(self) -> list[Arrival]:
        """Return the answers that wait."""
        arrivals, departures = [], self._departures
        departures.read()
        for packet, came_ns in self._inbox.read():
            answer = packets.decode_answer(packet)
            if answer:
                aside_ns = answer.dwell_ns + departures.late_ns(packet[-PAYLOAD_BYTES:])
                arrivals.append(Arrival(answer.probe, answer.secret, came_ns, aside_ns))
        return arrivals


_PACKET_BYTES = 128
"""More than an answer can have: 60 of an IPv4 header, 64 of the message."""
_arrival = Arrival._make  # a third of what a call by position costs


class EchoChannel(SocketChannel):
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
        self._echo = packets.V6 if version == 6 else packets.V4
        self._has_ip_header = version == 4

    def send(self, path: ProbePath, probe: int, secret: bytes) -> int:
        """Send an echo request."""
        self._turn_to(path)
        carried = packets.encode_payload(probe, secret)
        packet = packets.encode_request(self._echo, self._identifier, probe, carried)
        at_ns = self._departures.now_ns(carried)
        self._socket.sendto(packet, path.address)
        return at_ns

    def receive(self) -> list[Arrival]:
        """Return the echo replies that wait."""
        arrivals, departures = [], self._departures
        departures.read()
        for packet, came_ns in self._inbox.read():
            message = packets.without_ip_header(packet) if self._has_ip_header else packet
            brought = packets.decode_reply(self._echo, message)
            marked = packets.decode_payload(brought) if brought else None
            if brought and marked:
                late_ns = departures.late_ns(brought) if departures.watching else 0
                arrivals.append(_arrival((*marked, came_ns, late_ns)))
        return arrivals
