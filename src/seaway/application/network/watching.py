"""Looks at gateways' interfaces every so often, beside everything else."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from random import Random

from seaway.application.network.bandwidth import Bandwidths
from seaway.application.ports.clock import Clock
from seaway.application.ports.traffic import Missed, Reading
from seaway.domain.gateways import GatewayConfig
from seaway.probing.counters import NS_PER_S

log = logging.getLogger(__name__)

SOON_S = 2.0
"""How soon a gateway is looked at again of which one look more is needed to know anything."""

MOST_WAIT = 10
"""How many periods a gateway that cannot be looked at is left alone for at the most."""

TOGETHER = 0.25
"""What part of a period too early a gateway may be looked at, so as to be with others."""


class TrafficWatch:
    """Looks at gateways' interfaces, in a thread of its own or when told to.

    Parameters
    ----------
    gateways
        Which gateways there are now.
    every_s
        How often each is looked at; 0 for never.
    random
        Takes up to half off the wait after a failure, so that not all come together.
    """

    def __init__(
        self,
        bandwidths: Bandwidths,
        gateways: Callable[[], Sequence[GatewayConfig]],
        every_s: float,
        clock: Clock,
        random: Random,
    ) -> None:
        self._bandwidths = bandwidths
        self._gateways = gateways
        self._every_s = every_s
        self._clock = clock
        self._random = random
        self._due_ns: dict[GatewayConfig, int] = {}
        self._failures: dict[GatewayConfig, int] = {}
        self._stopping = threading.Event()
        self._failed = False

    def start(self) -> None:
        """Look every so often in a thread of its own, until `stop`; not at all where that is to be never."""
        if self._every_s:
            threading.Thread(target=self._run, name="bandwidth", daemon=True).start()

    def stop(self) -> None:
        """End the thread. A look that is under way is not waited for."""
        self._stopping.set()

    def look(self) -> float:
        """Look at those whose time has come; return the seconds until somebody's comes next, at most one period."""
        there = [each for each in self._gateways() if self._bandwidths.covers(each)]
        self._bandwidths.forget_others(there)
        now_ns = self._clock.monotonic_ns()
        soon_ns = now_ns + self._ns(TOGETHER * self._every_s)
        due = [each for each in there if self._due_ns.get(each, now_ns) <= soon_ns]
        if due:
            found = self._bandwidths.look(due)
            for each in due:
                self._due_ns[each] = now_ns + self._ns(self._wait_s(each, found[each.name]))
        self._due_ns = {each: self._due_ns[each] for each in there}
        self._failures = {each: self._failures[each] for each in there if each in self._failures}
        next_ns = min((*self._due_ns.values(), now_ns + self._ns(self._every_s)))
        return max(0.0, (next_ns - self._clock.monotonic_ns()) / NS_PER_S)

    def _wait_s(self, gateway: GatewayConfig, seen: Reading | Missed) -> float:
        if isinstance(seen, Missed):
            self._failures[gateway] = failures = self._failures.get(gateway, 0) + 1
            return self._every_s * min(1 << min(failures, 16), MOST_WAIT) * self._random.uniform(0.5, 1)
        self._failures.pop(gateway, None)
        return self._every_s if seen.rates else min(SOON_S, self._every_s)

    def _ns(self, seconds: float) -> int:
        return int(seconds * NS_PER_S)

    def _run(self) -> None:
        pause_s = 0.0
        while not self._stopping.wait(pause_s):
            try:
                pause_s = self.look()
                self._failed = False
            except Exception:  # a mistake of ours must not end it for good
                if not self._failed:
                    log.exception("looking at gateways' interfaces failed")
                self._failed, pause_s = True, self._every_s
