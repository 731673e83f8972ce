"""Clusters and the links between them, updated in the background and after new measurements."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from seaway.application.network.link_table import NO_NETWORK_SNAPSHOT, NetworkSnapshot
from seaway.application.ports.backend import Backend, Backends
from seaway.domain.errors import UnavailableError
from seaway.domain.network import Gateway, Link

log = logging.getLogger(__name__)

REFRESH_S = 1.0
"""Pause between two queries of the clusters, seconds."""

BATCH_S = 0.05
"""Time from a push to the update, seconds, so that reports of many agents cause one update."""


@dataclass(frozen=True, slots=True)
class Map:
    """Clusters and links at one time.

    Attributes
    ----------
    backends
        The clusters, in the order that decides ties.
    gateways, links
        Reported by clusters, except the configured ones.
    network_snapshot
        The configured network.
    """

    backends: tuple[Backend, ...]
    gateways: tuple[Gateway, ...]
    links: tuple[Link, ...]
    network_snapshot: NetworkSnapshot = NO_NETWORK_SNAPSHOT


def with_network(reported: Map, network_snapshot: NetworkSnapshot) -> Map:
    """Add the configured network, which replaces reported gateways of the same names.

    Without measurements, two configured gateways have no link, even if a cluster reports one.
    """
    if not network_snapshot.gateways:
        return reported
    own = {each.name for each in network_snapshot.gateways}
    return replace(
        reported,
        gateways=tuple(each for each in reported.gateways if each.name not in own),
        links=tuple(each for each in reported.links if not {each.source, each.target} <= own),
        network_snapshot=network_snapshot,
    )


class Topology:
    """Update of clusters and links, in a separate thread or on request.

    An update can take as long as a connection timeout, so callers use the last result. It stays valid when an update
    fails.

    Parameters
    ----------
    backends
        Source of the clusters.
    add
        Adds other information to a result.

    Attributes
    ----------
    known
        The last result; None before the first.
    trouble
        Reason why the last update failed; empty if it succeeded.
    on_change
        Called in the updating thread when a result differs from the previous one.
    """

    def __init__(self, backends: Backends, add: Callable[[Map], Map] = lambda reported: reported) -> None:
        self._backends = backends
        self._add = add
        self._reported: Map | None = None
        self._stopping = threading.Event()
        self._pushed = threading.Event()
        self._thread: threading.Thread | None = None
        self.known: Map | None = None
        self.trouble = ""
        self.on_change: Callable[[], None] = lambda: None

    @property
    def runs(self) -> bool:
        """True if a thread updates periodically."""
        return self._thread is not None

    def start(self) -> None:
        """Start a thread that updates periodically until `stop`."""
        self._thread = threading.Thread(target=self._run, name="topology", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End the thread without waiting for a running update, whose result is dropped."""
        self._stopping.set()
        self._pushed.set()

    def push(self) -> None:
        """Request that the thread adds new measurements of the network now, without a query of the clusters."""
        self._pushed.set()

    def refresh(self) -> None:
        """Update once. A failed part stays unchanged, and the next update retries it."""
        well = self._look()
        if self._update() and well:
            self._can_see()

    def _update(self) -> bool:
        """Add other information to the last result of the clusters; report whether that succeeded."""
        if self._reported is None:
            return False
        try:
            seen = self._add(self._reported)
        except Exception as error:  # noqa: BLE001  # it is reported, and the next update may succeed
            self._failed(error)
            return False
        self._know(seen)
        return True

    def _look(self) -> bool:
        try:
            links = tuple(self._backends.links())  # first, since for some backends only this sends a query
            self._reported = Map(tuple(self._backends.clusters()), tuple(self._backends.gateways()), links)
        except UnavailableError as error:
            self._missed(str(error))
        except Exception as error:  # noqa: BLE001  # it is reported, and the next update may succeed
            self._failed(error)
        else:
            return True
        return False

    def _failed(self, error: Exception) -> None:
        if not self.trouble:
            log.error("looking for clusters failed", exc_info=error)
        self.trouble = str(error) or type(error).__name__

    def _missed(self, why: str) -> None:
        if not self.trouble:
            stands = "the last known list stays" if self.known else "no list is known yet"
            log.warning("the list of clusters is unavailable, %s: %s", stands, why)
        self.trouble = why

    def _can_see(self) -> None:
        if self.trouble and not self._stopping.is_set():
            log.warning("the list of clusters is available again")
        self.trouble = ""

    def _know(self, seen: Map) -> None:
        if self._stopping.is_set():
            return
        before, self.known = self.known, seen
        if before != seen:
            self.on_change()

    def _run(self) -> None:
        while not self._stopping.is_set():
            self.refresh()
            due_s = time.monotonic() + REFRESH_S
            while (left_s := due_s - time.monotonic()) > 0 and self._pushed.wait(left_s):
                if self._stopping.wait(BATCH_S):
                    return
                self._pushed.clear()
                self._update()
