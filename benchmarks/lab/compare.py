"""Comparison of agents' reports with the emulator and with captures."""

from __future__ import annotations

from bisect import bisect
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import permutations
from statistics import fmean

from benchmarks.lab.world import Account
from seaway.application.ports.agent import Reported
from seaway.domain.network import Ends
from seaway.probing.rounds import Figures, Round, figures


@dataclass(slots=True)
class Echo:
    """Captured times of an echo request and its reply, nanoseconds since 1970; 0 if not captured.

    Attributes
    ----------
    leaving_ns, left_ns, came_ns
        The request: at both ends of the prober's wire, and at the target.
    answered_ns, back_ns
        The reply: at the target and at the prober.
    held_ns
        Time that the emulator held both.
    """

    leaving_ns: int = 0
    left_ns: int = 0
    came_ns: int = 0
    answered_ns: int = 0
    back_ns: int = 0
    held_ns: int = 0


@dataclass(frozen=True, slots=True)
class Compared:
    """A round of an agent with the corresponding emulator and capture figures.

    Attributes
    ----------
    reported
        Report of the agent.
    held_ns
        Mean time that the emulator held answered echoes, both ways; 0 without answers.
    captured
        The same round by either capture: from the departure of requests, and from the far end of the wire.
    """

    reported: Reported
    held_ns: int
    captured: tuple[Round, Round]

    @property
    def off_held_ns(self) -> int:
        """Latency minus the hold time of the emulator."""
        return (self.reported.latency_ns or 0) - self.held_ns

    @property
    def off_captured_ns(self) -> int:
        """Latency minus that of the closer capture."""
        return min(((self.reported.latency_ns or 0) - (each.latency_ns or 0) for each in self._captured), key=abs)

    @property
    def off_jitter_ns(self) -> int:
        """Jitter minus that of the closer capture."""
        return min((self.reported.jitter_ns - each.jitter_ns for each in self._captured), key=abs)

    @property
    def _captured(self) -> Iterator[Figures]:
        return map(figures, self.captured)


@dataclass(frozen=True, slots=True)
class Way:
    """All rounds from one gateway to another.

    Attributes
    ----------
    rounds
        Rounds in order.
    crossed, vanished
        Captured packets of all echoes in this direction that arrived, or did not.
    dropped
        Packets that the emulator dropped in this direction.
    """

    rounds: list[Compared] = field(default_factory=list)
    crossed: int = 0
    vanished: int = 0
    dropped: int = 0

    @property
    def sent(self) -> int:
        """Number of echo requests, as counted by the agent."""
        return sum(each.reported.sent for each in self.rounds)

    @property
    def lost(self) -> int:
        """Number of unanswered ones, as counted by the agent."""
        return self.sent - sum(each.reported.received for each in self.rounds)

    @property
    def answered(self) -> list[Compared]:
        """Rounds with a latency."""
        return [each for each in self.rounds if each.reported.received]


class DisagreementError(Exception):
    """Records that cannot be compared, since they are of different packets."""


def compare(account: Account) -> dict[Ends, Way]:
    """Compare all records.

    Raises
    ------
    DisagreementError
        If a packet is in one record and not in another.
    """
    echoes = _echoes(account)
    ways = {}
    for ends in permutations(account.reported, 2):
        there, back, passed = echoes[ends], echoes[ends[::-1]], account.passed[ends]
        left = sum(bool(each.left_ns) for each in there) + sum(bool(each.answered_ns) for each in back)
        crossed = _hold(there, back, passed.holds_ns, ends)
        ways[ends] = Way([], crossed, left - crossed, passed.lost)
    for (source, target), way in ways.items():
        reported = [each for each in account.reported[source] if each.target == target]
        way.rounds.extend(_rounds(reported, echoes[source, target], (source, target)))
    return ways


def _echoes(account: Account) -> dict[Ends, list[Echo]]:
    """Return the captured echoes by prober and target, in the order of departure."""
    names = {spot.address: spot.gateway for spot in account.plan.spots}
    found: dict[Ends, dict[bytes, Echo]] = {ends: {} for ends in permutations(account.reported, 2)}
    for seen, request, reply in (
        (account.leaving, "leaving_ns", ""),
        (account.left, "left_ns", "answered_ns"),
        (account.came, "came_ns", "back_ns"),
    ):
        for each in seen:
            ends = (names[each.source], names[each.target])
            echo = found[ends if each.request else ends[::-1]].setdefault(each.echo, Echo())
            if name := request if each.request else reply:
                setattr(echo, name, each.at_ns)
    return {ends: sorted(each.values(), key=lambda echo: echo.left_ns) for ends, each in found.items()}


def _hold(there: Iterable[Echo], back: Iterable[Echo], holds_ns: Sequence[int], ends: Ends) -> int:
    """Add the hold times of one direction of a link to its echoes, and return the number of packets that crossed it.

    A link does not reorder packets, so the first arrival is the first release.
    """
    came = [(each.came_ns, each) for each in there if each.came_ns] + [
        (each.back_ns, each) for each in back if each.back_ns
    ]
    if len(came) != len(holds_ns):
        raise DisagreementError(f"{len(came)} packets came from {' to '.join(ends)}, {len(holds_ns)} were let go on")
    for (_, echo), held_ns in zip(sorted(came, key=lambda each: each[0]), holds_ns, strict=True):
        echo.held_ns += held_ns
    return len(came)


def _rounds(reported: Sequence[Reported], echoes: Sequence[Echo], ends: Ends) -> Iterator[Compared]:
    """Yield the rounds with their echoes: those that left after the round began and before the next one."""
    begins = [each.at_ns for each in reported]
    of_round: list[list[Echo]] = [[] for _ in reported]
    for echo in echoes:
        of_round[bisect(begins, echo.left_ns) - 1].append(echo)
    for each, its in zip(reported, of_round, strict=True):
        answered = [echo for echo in its if echo.back_ns]
        if (each.sent + each.discarded, each.received) != (len(its), len(answered)):
            text = f"{each.sent} sent and {each.received} answered, {len(its)} and {len(answered)} captured"
            raise DisagreementError(f"{' to '.join(ends)}: {text}")
        held_ns = round(fmean(echo.held_ns for echo in answered)) if answered else 0
        out = Round(len(its), tuple(echo.back_ns - echo.leaving_ns for echo in answered))
        through = Round(len(its), tuple(echo.back_ns - echo.left_ns for echo in answered))
        yield Compared(each, held_ns, (out, through))
