"""An agent's reflector, on the port that the network says, for as long as it says so."""

from __future__ import annotations

import logging
import threading
from ipaddress import IPv4Address, IPv6Address

from seaway.adapters.probes.namespace import place
from seaway.adapters.probes.reflector import Reflector
from seaway.application.ports.reporting import Assignment
from seaway.domain.errors import RejectedError

log = logging.getLogger(__name__)

ANYWHERE = IPv6Address("::")


class Reflecting:
    """Sends datagrams of the gateways that are probed back to them, where the network wants that.

    To be made while there are still privileges: from then on it can open sockets in the namespace without any.

    Parameters
    ----------
    address
        Where it answers; None for every own address.
    netns
        Name of a network namespace; empty for that of the process.
    """

    def __init__(self, address: IPv6Address | IPv4Address | None, netns: str) -> None:
        self._address = address or ANYWHERE
        self._place = place(netns)
        self._heeded: Assignment | None = None
        self._port = 0
        self._reflector: Reflector | None = None
        self._thread: threading.Thread | None = None

    def heed(self, assignment: Assignment | None) -> None:
        """Answer on the port that is wanted now, and only those that are probed."""
        if assignment is None or assignment is self._heeded:
            return
        self._heeded = assignment
        if assignment.reflect != self._port:
            self._stop()
            if assignment.reflect:
                self._start(assignment.reflect)
        if self._reflector:
            self._reflector.know(each.address for each in assignment.targets)

    def close(self) -> None:
        """Answer no more."""
        self._stop()
        self._place.close()

    def _start(self, port: int) -> None:
        try:
            reflector = self._place.call(lambda: Reflector(self._address, port))
        except RejectedError as error:
            log.warning("others' datagrams are not sent back: %s", error)  # tried again with the next assignment
            return
        self._reflector, self._port = reflector, port
        self._thread = threading.Thread(target=reflector.serve, name="reflector", daemon=True)
        self._thread.start()
        log.info("datagrams of other gateways are sent back from %s port %d", self._address, port)

    def _stop(self) -> None:
        if self._reflector and self._thread:
            self._reflector.stop()
            self._thread.join()
            self._reflector.close()
        self._reflector, self._thread, self._port = None, None, 0
