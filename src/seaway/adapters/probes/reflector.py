"""Sends UDP probes of other gateways back to them."""

from __future__ import annotations

import os
import select
import time
from collections.abc import Iterable
from ipaddress import IPv4Address, IPv6Address

from seaway.adapters.probes.channel import MAX_AT_ONCE
from seaway.adapters.probes.sockets import ANCILLARY_BYTES, Address, open_udp, stamp_ns
from seaway.probing import packets


class Reflector:
    """Answers gateways that it knows, and no one else; an answer is as large as the question.

    Parameters
    ----------
    source
        The own address that is asked; ``::`` for any, of IPv4 too.

    Raises
    ------
    RejectedError
        When the address is not one of this machine's, or the port is taken.
    """

    def __init__(self, source: Address, port: int) -> None:
        self._socket = open_udp(source.version, source, port)
        self._stop = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        self._known: frozenset[str] = frozenset()

    def set_gateways(self, gateways: Iterable[IPv6Address | IPv4Address]) -> None:
        """Answer these from now on, and no others."""
        self._known = frozenset(name for each in gateways for name in _names(each))

    def serve(self) -> None:
        """Answer until another thread calls `stop`."""
        poll = select.poll()
        poll.register(self._socket, select.POLLIN)
        poll.register(self._stop, select.POLLIN)
        while all(descriptor != self._stop for descriptor, _ in poll.poll()):
            self._answer()

    def stop(self) -> None:
        """Have `serve` return."""
        os.eventfd_write(self._stop, 1)

    def close(self) -> None:
        """Let go of the socket, once `serve` returned."""
        self._socket.close()
        os.close(self._stop)

    def _answer(self) -> None:
        for _ in range(MAX_AT_ONCE):
            try:
                packet, ancillary, _, asker = self._socket.recvmsg(packets.DATAGRAM_BYTES + 1, ANCILLARY_BYTES)
            except OSError:  # nothing more, or what became of an earlier datagram
                return
            if asker[0] in self._known and packets.is_question(packet):
                self._send(packet, stamp_ns(ancillary), asker)

    def _send(self, question: bytes, came_ns: int, asker: tuple[str, int]) -> None:
        try:
            self._socket.sendto(packets.answer(question, time.time_ns() - came_ns), asker)
        except OSError:  # there is no way back, or no room: a lost answer, which the other side counts
            return


def _names(address: Address) -> tuple[str, ...]:
    """Return how an address is told by a socket of its own version of IP, and by one that takes both."""
    return (str(address), f"::ffff:{address}") if address.version == 4 else (str(address),)
