"""An agent's reflector, on the port that the network says, for as long as it says so."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from ipaddress import IPv4Address, IPv6Address
from time import monotonic

from seaway.adapters.probes.namespace import place
from seaway.adapters.probes.reflector import Reflector
from seaway.application.ports.reporting import Assignment
from seaway.domain.errors import RejectedError

log = logging.getLogger(__name__)

ANYWHERE = IPv6Address("::")
AGAIN_S = 30.0
"""How long it waits for a port that somebody else has."""


class Reflecting:
    """Sends datagrams of the gateways that are probed back to them, where the network wants that.

    To be made while there are still privileges: from then on it can open sockets in the namespace without any.

    Parameters
    ----------
    address
        Where it answers; None for every own address.
    netns
        Name of a network namespace; empty for that of the process.
    now_s
        A steady clock, seconds.
    """

    def __init__(
        self, address: IPv6Address | IPv4Address | None, netns: str, now_s: Callable[[], float] = monotonic
    ) -> None:
        self._address = address or ANYWHERE
        self.place = place(netns)
        """Where it makes its socket."""
        self._now_s = now_s
        self._again_s: float | None = None  # when a port is tried again that somebody else has
        self._told = ""
        self._heeded: Assignment | None = None
        self._port = 0
        self._reflector: Reflector | None = None
        self._thread: threading.Thread | None = None

    def heed(self, assignment: Assignment | None) -> float | None:
        """Answer on the port that is wanted now, and only those that are probed.

        Returns
        -------
        float | None
            After how many seconds the same is to be heeded again, as somebody else has the port; None for never.
        """
        if assignment is None:
            return None
        if assignment is not self._heeded or (self._again_s is not None and self._now_s() >= self._again_s):
            self._heed(assignment)
        return None if self._again_s is None else max(self._again_s - self._now_s(), 0)

    def close(self) -> None:
        """Answer no more."""
        self._stop()
        self.place.close()

    def _heed(self, assignment: Assignment) -> None:
        self._heeded, self._again_s = assignment, None
        if assignment.reflect != self._port:
            self._stop()
            if assignment.reflect:
                self._start(assignment.reflect)
        if self._reflector:
            self._reflector.know(each.address for each in assignment.targets)

    def _start(self, port: int) -> None:
        try:
            reflector = self.place.call(lambda: Reflector(self._address, port))
        except RejectedError as error:
            self._again_s = self._now_s() + AGAIN_S
            if str(error) != self._told:
                log.warning("others' datagrams are not sent back: %s; tried again every %g s", error, AGAIN_S)
            self._told = str(error)
            return
        self._told = ""
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
