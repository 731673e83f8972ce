"""Reflector: answers the UDP probes of other gateways."""

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
    """Server that answers only known gateways. An answer has the size of the probe.

    Parameters
    ----------
    source
        Local address to listen on; ``::`` for any, including IPv4.

    Raises
    ------
    RejectedError
        When the address is not local, or the port is in use.
    """

    def __init__(self, source: Address, port: int) -> None:
        self._socket = open_udp(source.version, source, port)
        self._stop = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        self._known: frozenset[str] = frozenset()

    def set_gateways(self, gateways: Iterable[IPv6Address | IPv4Address]) -> None:
        """Replace the set of known gateways."""
        self._known = frozenset(name for each in gateways for name in _names(each))

    def serve(self) -> None:
        """Answer probes until another thread calls `stop`."""
        poll = select.poll()
        poll.register(self._socket, select.POLLIN)
        poll.register(self._stop, select.POLLIN)
        while all(descriptor != self._stop for descriptor, _ in poll.poll()):
            self._answer()

    def stop(self) -> None:
        """End `serve`."""
        os.eventfd_write(self._stop, 1)

    def close(self) -> None:
        """Close the socket after `serve` returned."""
        self._socket.close()
        os.close(self._stop)

    def _answer(self) -> None:
        for _ in range(MAX_AT_ONCE):
            try:
                packet, ancillary, _, asker = self._socket.recvmsg(packets.DATAGRAM_BYTES + 1, ANCILLARY_BYTES)
            except OSError:  # the queue is empty, or an earlier datagram failed
                return
            if asker[0] in self._known and packets.is_question(packet):
                self._send(packet, stamp_ns(ancillary), asker)

    def _send(self, question: bytes, came_ns: int, asker: tuple[str, int]) -> None:
        try:
            self._socket.sendto(packets.answer(question, time.time_ns() - came_ns), asker)
        except OSError:  # no route or no buffer: the other side counts a lost answer
            return


def _names(address: Address) -> tuple[str, ...]:
    """Return the text forms of an address in a socket of its own IP version and in a dual-stack socket."""
    return (str(address), f"::ffff:{address}") if address.version == 4 else (str(address),)
