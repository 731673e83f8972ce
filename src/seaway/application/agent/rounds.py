"""Rounds of probes: schedule and results."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from random import Random

from seaway.application.agent.settings import Duty
from seaway.application.ports.agent import Assignment, Prober, Reported, Target
from seaway.application.ports.clock import Clock
from seaway.probing.rounds import Round, figures

NS_PER_S = 1_000_000_000
LOOK_S = 1.0
"""Seconds between two checks of an agent without targets."""

MAX_DISCARDED = 1000
"""Maximum number of discarded answers that a controller accepts for one round."""

SPREAD, AGAIN = 0.7, 0.2
"""Shares of a round, without its timeouts, over which probes and repeated probes are spread."""


def measure(prober: Prober, assignment: Assignment, at_ns: int) -> tuple[Reported, ...]:
    """Probe every target, retry those without a usable answer once, and return the figures of each.

    Both tries count, so losses of the first try remain if the second succeeds.

    Parameters
    ----------
    at_ns
        Wall-clock time, nanoseconds since 1970.
    """
    how, targets = assignment.how, assignment.targets
    free_s = max(0.0, how.interval_s - 2 * how.timeout_s)
    found = list(prober.probe(targets, how, free_s * SPREAD))
    failed = [index for index, each in enumerate(found) if not each.rtts_ns]
    if failed:
        again = prober.probe([targets[index] for index in failed], how, free_s * AGAIN)
        for index, second in zip(failed, again, strict=True):
            found[index] = _both(found[index], second)
    return tuple(_reported(target, each, at_ns) for target, each in zip(targets, found, strict=True))


def _both(first: Round, second: Round) -> Round:
    return Round(first.sent + second.sent, (*first.rtts_ns, *second.rtts_ns), first.discarded + second.discarded)


def _reported(target: Target, found: Round, at_ns: int) -> Reported:
    """Return the figures of a round. Without counted probes, they contain only the number of discarded answers."""
    said = figures(found) if found.sent else None
    return Reported(
        target=target.gateway,
        path=target.path,
        at_ns=at_ns,
        sent=found.sent,
        received=len(found.rtts_ns),
        latency_ns=said.latency_ns if said else None,
        jitter_ns=said.jitter_ns if said else 0,
        discarded=found.discarded,
    )


class Leftovers:
    """Discarded answers of rounds without a result. They are reported with the next result."""

    def __init__(self) -> None:
        self._discarded: dict[tuple[str, str], int] = {}

    def settle(self, results: Iterable[Reported]) -> list[Reported]:
        """Return the results to report: those with counted probes."""
        reported = []
        for each in results:
            way = (each.target, each.path)
            discarded = min(each.discarded + self._discarded.pop(way, 0), MAX_DISCARDED)
            if each.sent:
                reported.append(replace(each, discarded=discarded) if discarded else each)
            else:
                self._discarded[way] = discarded
        return reported


class Rounds:
    """Rounds of an agent, one after the other.

    The first round begins after a random part of the interval, so that agents that start together do not probe
    simultaneously. A round is skipped if the previous one takes too long.

    Parameters
    ----------
    prober
        Sends the probes.
    duty
        Source of the assignment.
    clock
        Clock of the schedule.
    random
        Source of the random delay.
    give
        Receives the results of each round.
    """

    def __init__(
        self, prober: Prober, duty: Duty, clock: Clock, random: Random, give: Callable[[tuple[Reported, ...]], None]
    ) -> None:
        self._prober = prober
        self._duty = duty
        self._clock = clock
        self._share = random.random()
        self._give = give
        self._due_ns: int | None = None

    def step(self) -> float:
        """Run a round if it is due; return the seconds to the next check, unless the assignment changes earlier."""
        assignment = self._duty.now
        if assignment is None or not assignment.targets:
            self._due_ns = None
            return LOOK_S
        every_ns = round(assignment.how.interval_s * NS_PER_S)
        now_ns = self._clock.monotonic_ns()
        if self._due_ns is None:
            self._due_ns = now_ns + int(every_ns * self._share)
        self._due_ns = min(self._due_ns, now_ns + every_ns)  # the interval may be shorter now
        if self._due_ns <= now_ns:
            self._give(measure(self._prober, assignment, self._clock.now_ns()))
            late = (self._clock.monotonic_ns() - self._due_ns) // every_ns
            self._due_ns += every_ns * (late + 1)
        return max(0.0, (self._due_ns - self._clock.monotonic_ns()) / NS_PER_S)


log = logging.getLogger(__name__)

SUM_S = 600
MAX_NAMED = 10


class Watch:
    """Log of changes in the results of rounds, each logged once.

    Parameters
    ----------
    clock
        Clock of the summary, which is logged every `SUM_S` seconds.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._unreachable: frozenset[str] = frozenset()
        self._sum_ns = clock.monotonic_ns() + SUM_S * NS_PER_S

    def see(self, results: Sequence[Reported], waiting: int) -> None:
        """Log the changes of a round.

        Parameters
        ----------
        waiting
            Number of results that the controller has not accepted yet.
        """
        silent = frozenset(_way(each) for each in results if not each.received)
        here = {_way(each) for each in results}
        if new := silent - self._unreachable:
            log.warning("no answer from %s", _abbreviated(new))
        if back := (self._unreachable - silent) & here:
            log.warning("answers again: %s", _abbreviated(back))
        self._unreachable = silent
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


def _abbreviated(names: frozenset[str] | set[str]) -> str:
    shown = sorted(names)[:MAX_NAMED]
    more = len(names) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more else "")
