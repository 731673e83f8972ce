"""A gateway's agent on a clock that a test advances, with a scripted prober and controller."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from ipaddress import IPv6Address
from random import Random

from seaway.application.agent.delivery import Delivery, ResultQueue
from seaway.application.agent.rounds import Rounds
from seaway.application.agent.settings import Duty
from seaway.application.ports.agent import Assignment, Report, Reported, Target
from seaway.domain.errors import ConflictError, SeawayError
from seaway.domain.gateways import ProbeConfig
from seaway.probing.rounds import Round
from seaway.testing.clocks import VirtualClock

MS = 1_000_000
FINE = Round(5, (MS, MS, MS, MS, MS))
LOST = Round(5, ())


def target(name: str, path: str = "") -> Target:
    """Create a target to probe."""
    return Target(name, IPv6Address("fd00::1"), path=path)


def assignment(*names: str, interval_s: float = 10.0, version: str = "1") -> Assignment:
    """Create an assignment of targets."""
    return Assignment(version, ProbeConfig(interval_s=interval_s), tuple(map(target, names)))


def result(at_ns: int, name: str = "gw-2") -> Reported:
    """Create a result."""
    return Reported(name, "", at_ns, 5, 5, MS, 0)


@dataclass
class FakeProber:
    """Answers each call with a prepared result, and with `FINE` by default.

    Attributes
    ----------
    clock
        The clock that a round advances.
    """

    clock: VirtualClock
    prepared: list[dict[str, Round]] = field(default_factory=list)
    asked: list[tuple[tuple[str, ...], float]] = field(default_factory=list)

    def probe(self, targets: Sequence[Target], how: ProbeConfig, spread_s: float) -> Sequence[Round]:
        """Advance the clock by the duration of a round."""
        self.asked.append((tuple(each.gateway for each in targets), spread_s))
        self.clock.advance_s(spread_s + how.timeout_s)
        now = self.prepared.pop(0) if self.prepared else {}
        return [now.get(each.gateway, FINE) for each in targets]

    def close(self) -> None:
        """Do nothing."""


@dataclass
class FakeController:
    """Requires increasing numbers, and records accepted reports.

    Attributes
    ----------
    fails
        Returns the error to raise for a report; None to accept it.
    deaf
        Error for every request; None while it answers.
    forgets_to_answer
        Error after an accepted report, as when the connection breaks; None for none.
    """

    wanted: Assignment
    fails: Callable[[Report], SeawayError | None] = lambda _: None
    deaf: SeawayError | None = None
    forgets_to_answer: SeawayError | None = None
    taken: list[Report] = field(default_factory=list)
    calls: int = 0

    def assignment(self) -> Assignment:
        """Return the targets."""
        self._answer()
        return self.wanted

    def take(self, report: Report) -> None:
        """Accept a report if it is newer than all before."""
        self._answer()
        if (error := self.fails(report)) is not None:
            raise error
        if self.taken and (report.started_ns, report.number) <= (self.taken[-1].started_ns, self.taken[-1].number):
            raise ConflictError("this report, or a later one, was taken before")
        self.taken.append(report)
        if self.forgets_to_answer is not None:
            raise self.forgets_to_answer

    def rounds(self) -> list[Reported]:
        """Return all accepted results."""
        return [each for report in self.taken for each in report.rounds]

    def _answer(self) -> None:
        self.calls += 1
        if self.deaf is not None:
            raise self.deaf


class Scene:
    """One agent, `gw-1`."""

    def __init__(self, wanted: Assignment, most: int = 100_000, first: Assignment | None = None) -> None:
        self.clock = VirtualClock()
        self.prober = FakeProber(self.clock)
        self.controller = FakeController(wanted)
        self.queue = ResultQueue(most, 1 << 30)
        self.duty = Duty(first)
        self.measured: list[Reported] = []
        self.rounds = Rounds(self.prober, self.duty, self.clock, Random(1), self._give)
        self.delivery = Delivery("gw-1", self.controller, self.queue, self.duty, self.clock, Random(2), 30)

    def run(self, seconds: float) -> None:
        """Run the agent's two threads in turn for some time."""
        until_ns = self.clock.monotonic_ns() + round(seconds * 1_000_000_000)
        while self.clock.monotonic_ns() < until_ns:
            pause = self.rounds.step()
            while (idle := self.delivery.step()) == 0:
                pass
            self.clock.advance_s(min(pause, idle) or 0.001)

    def _give(self, results: tuple[Reported, ...]) -> None:
        self.measured += results
        self.queue.put(results)
