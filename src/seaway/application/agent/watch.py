"""What an agent's log says of those it probes: who stops to answer, who answers again, and now and then the sum."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from seaway.application.network.rounds import Reported
from seaway.application.ports.clock import Clock

log = logging.getLogger(__name__)

SUM_S = 600
NS_PER_S = 1_000_000_000
MOST_NAMED = 10


class Watch:
    """Sees the results of each round; says what changed, and not the same twice.

    Parameters
    ----------
    clock
        By which the sum is told every `SUM_S` seconds.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._silent: frozenset[str] = frozenset()
        self._sum_ns = clock.monotonic_ns() + SUM_S * NS_PER_S

    def see(self, results: Sequence[Reported], waiting: int) -> None:
        """Look at a round.

        Parameters
        ----------
        waiting
            How many results the controller has not taken yet.
        """
        silent = frozenset(_way(each) for each in results if not each.received)
        here = {_way(each) for each in results}
        if new := silent - self._silent:
            log.warning("no answer from %s", _some(new))
        if back := (self._silent - silent) & here:
            log.warning("answers again: %s", _some(back))
        self._silent = silent
        if discarded := sum(each.discarded for each in results):
            log.warning("%d answers had impossible times and do not count, as after a clock was set", discarded)
        if self._clock.monotonic_ns() >= self._sum_ns:
            self._sum_ns = self._clock.monotonic_ns() + SUM_S * NS_PER_S
            answering = len(results) - len(silent)
            log.info(
                "%d of %d ways to probe answer; %d results wait for the controller", answering, len(results), waiting
            )


def _way(result: Reported) -> str:
    return f"{result.target} by {result.path}" if result.path else result.target


def _some(names: frozenset[str] | set[str]) -> str:
    shown = sorted(names)[:MOST_NAMED]
    more = len(names) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more else "")
