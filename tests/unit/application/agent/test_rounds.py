"""Rounds: their start, their repetitions, and their results."""

from __future__ import annotations

from itertools import pairwise
from random import Random

import pytest

from seaway.application.agent.rounds import Leftovers, Rounds, measure
from seaway.application.agent.settings import Duty
from seaway.application.ports.agent import Reported
from seaway.probing.rounds import Round
from seaway.testing.clocks import START_NS, VirtualClock
from tests.unit.application.agent.scene import FINE, LOST, MS, FakeProber, assignment


def starts(random: Random, seconds: int, duty: Duty, slow_s: float = 0) -> list[float]:
    """Run rounds for some time; return when each began, in seconds."""
    clock = VirtualClock()
    began = []

    def give(results: tuple[Reported, ...]) -> None:
        began.append((results[0].at_ns - START_NS) / 1e9)
        clock.advance_s(slow_s)

    rounds = Rounds(FakeProber(clock), duty, clock, random, give)
    while clock.monotonic_ns() < seconds * 1e9:
        clock.advance_s(rounds.step() or 0.001)
    return began


def test_answered_round() -> None:
    """An answered round is not repeated, and its values are those of the formulas."""
    prober = FakeProber(VirtualClock(), [{"gw-2": Round(5, (MS, 2 * MS, 3 * MS))}])
    (found,) = measure(prober, assignment("gw-2"), 7)
    assert found == Reported("gw-2", "", 7, 5, 3, 2 * MS, MS)
    assert len(prober.asked) == 1


def test_only_failed_targets_are_probed_again() -> None:
    """Targets without any answer are probed once more in the same round, others are not."""
    prober = FakeProber(VirtualClock(), [{"gw-3": LOST}])
    measure(prober, assignment("gw-2", "gw-3", "gw-4"), 0)
    assert [names for names, _ in prober.asked] == [("gw-2", "gw-3", "gw-4"), ("gw-3",)]


def test_lost_echoes_of_both_tries_count() -> None:
    """Losses of the first try count when the second one is answered."""
    prober = FakeProber(VirtualClock(), [{"gw-2": LOST}, {"gw-2": FINE}])
    (found,) = measure(prober, assignment("gw-2"), 0)
    assert (found.sent, found.received, found.latency_ns) == (10, 5, MS)


def test_silence_has_no_latency() -> None:
    """A target without answers to both tries has full loss, and no latency."""
    prober = FakeProber(VirtualClock(), [{"gw-2": LOST}, {"gw-2": LOST}])
    (found,) = measure(prober, assignment("gw-2"), 0)
    assert (found.sent, found.received, found.latency_ns, found.jitter_ns) == (10, 0, None, 0)


def test_discarded_round_is_repeated() -> None:
    """A round with only impossible values is repeated, and those are counted separately."""
    prober = FakeProber(VirtualClock(), [{"gw-2": Round(0, (), 5)}, {"gw-2": Round(4, (MS,) * 4, 1)}])
    (found,) = measure(prober, assignment("gw-2"), 0)
    assert (found.sent, found.received, found.discarded) == (4, 4, 6)


def test_nothing_but_impossible_figures() -> None:
    """If both tries have no valid value, only that is reported."""
    prober = FakeProber(VirtualClock(), [{"gw-2": Round(0, (), 5)}, {"gw-2": Round(0, (), 5)}])
    (found,) = measure(prober, assignment("gw-2"), 0)
    assert found == Reported("gw-2", "", 0, 0, 0, None, 0, 10)


@pytest.mark.parametrize("interval_s", [1.5, 3, 10, 60])
def test_round_with_all_repeated_ends_before_the_next(interval_s: float) -> None:
    """Both tries and their timeouts end before the next round begins, unless timeouts alone take longer."""
    clock = VirtualClock()
    prober = FakeProber(clock, [{"gw-2": LOST}])
    measure(prober, assignment("gw-2", interval_s=interval_s), 0)
    assert clock.monotonic_ns() <= max(interval_s, 2) * 1e9


def test_rounds_begin_every_so_often() -> None:
    """Rounds begin at equal intervals, whatever their duration."""
    began = starts(Random(1), 100, Duty(assignment("gw-2")))
    assert len(began) == 10
    assert all(later - earlier == pytest.approx(10, abs=0.01) for earlier, later in pairwise(began))


def test_agents_do_not_all_begin_at_once() -> None:
    """A hundred agents that start together spread their first rounds over the interval."""
    first = [starts(Random(seed), 11, Duty(assignment("gw-2")))[0] for seed in range(100)]
    assert min(sum(low <= each < low + 2 for each in first) for low in (0, 2, 4, 6, 8)) >= 10


def test_a_late_round_is_left_out() -> None:
    """After a round longer than the interval, the next begins on schedule, and missed ones are skipped."""
    began = starts(Random(1), 100, Duty(assignment("gw-2")), slow_s=12)
    assert [later - earlier for earlier, later in pairwise(began)] == pytest.approx([20] * (len(began) - 1), abs=0.01)


def test_shorter_time_between_rounds_holds_at_once() -> None:
    """A shorter interval applies to the next round."""
    duty = Duty(assignment("gw-2", interval_s=3600))
    clock = VirtualClock()
    results: list[Reported] = []
    rounds = Rounds(FakeProber(clock), duty, clock, Random(1), results.extend)
    rounds.step()
    duty.set(assignment("gw-2", interval_s=10))
    for _ in range(2):
        pause_s = rounds.step()
        assert pause_s <= 10
        clock.advance_s(pause_s)
    assert len(results) == 1


def test_nothing_to_do() -> None:
    """Without targets nothing is probed, and the targets are checked again soon."""
    clock = VirtualClock()
    prober = FakeProber(clock)
    for duty in (Duty(), Duty(assignment())):
        assert Rounds(prober, duty, clock, Random(1), lambda _: None).step() == 1
    assert prober.asked == []


def test_what_was_discarded_is_reported_with_the_next_round_that_counts() -> None:
    """A round with only impossible values is not reported, but their number is, with the next valid one of the path."""
    leftovers = Leftovers()
    empty = Reported("gw-2", "", 0, 0, 0, None, 0, 10)
    other = Reported("gw-2", "via-3", 0, 5, 5, MS, 0, 1)
    counts = Reported("gw-2", "", 1, 5, 5, MS, 0, 2)
    assert leftovers.settle([empty, other]) == [other]
    assert leftovers.settle([empty]) == []
    assert [each.discarded for each in leftovers.settle([counts])] == [22]
    assert leftovers.settle([counts]) == [counts]
