"""Probes by ICMP and by UDP datagrams, which the target or its reflector sends back."""

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
        IP version: 4 or 6.
    source
        Local address of that version; None for the address that the routes select.
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
        """Return the available answers."""
        arrivals, departures = [], self._departures
        departures.read()
        for packet, came_ns in self._inbox.read():
            answer = packets.decode_answer(packet)
            if answer:
                aside_ns = answer.dwell_ns + departures.late_ns(packet[-PAYLOAD_BYTES:])
                arrivals.append(Arrival(answer.probe, answer.secret, came_ns, aside_ns))
        return arrivals


_PACKET_BYTES = 128
"""Size above the maximum of an answer: 60 bytes of an IPv4 header, and 64 of the message."""
_arrival = Arrival._make  # three times as fast as a call with positional arguments


class EchoChannel(SocketChannel):
    """ICMPv6 or ICMP.

    Parameters
    ----------
    version
        IP version: 4 or 6.
    source
        Local address of that version; None for the address that the routes select.
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
        """Return the available echo replies."""
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
