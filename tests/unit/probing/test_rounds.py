"""The books of a round."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seaway.probing.packets import SECRET_BYTES
from seaway.probing.rounds import BURST, PRECISION_NS, TICK_NS, Arrival, OpenRound, Pace, Round

MS = 1_000_000
TIMEOUT_NS = 1000 * MS
AHEAD_NS = 1_700_000_000_000_000_000
"""The wall clock, before it is set."""
SECRETS = bytes(range(256))


def opened(targets: int, count: int) -> OpenRound:
    """Return a round before anything is sent."""
    return OpenRound(targets, count, TIMEOUT_NS, SECRETS[: targets * count * SECRET_BYTES], AHEAD_NS)


def arrival(of: OpenRound, probe: int, at_ns: int, dwell_ns: int = 0) -> Arrival:
    """Return the answer to a probe, arriving by the steady clock then."""
    return Arrival(probe, of.secret(probe), AHEAD_NS + at_ns, dwell_ns)


def test_probes_go_round_the_targets() -> None:
    """Probe 0 and 2 are the first target's of two, 1 and 3 the second's; times are in the order of sending."""
    ledgers = opened(2, 2)
    for probe in range(4):
        ledgers.sent(probe, probe * MS)
    arrivals = [arrival(ledgers, probe, (probe * 10 + 5) * MS) for probe in (3, 0, 2)]
    ledgers.arrived(arrivals, 40 * MS, AHEAD_NS)
    assert ledgers.close() == (Round(2, (5 * MS, 23 * MS)), Round(2, (32 * MS,)))


def test_a_duplicate_counts_once() -> None:
    """The first answer is the round trip, whatever comes later."""
    ledgers = opened(1, 1)
    ledgers.sent(0, 0)
    ledgers.arrived([arrival(ledgers, 0, 3 * MS), arrival(ledgers, 0, 4 * MS)], 5 * MS, AHEAD_NS)
    ledgers.arrived([arrival(ledgers, 0, 6 * MS)], 7 * MS, AHEAD_NS)
    assert ledgers.close() == (Round(1, (3 * MS,)),)
    assert ledgers.outstanding == 0


def test_an_answer_that_took_too_long_is_lost() -> None:
    """It counts by when it came, not by when it was read: up to the timeout, and not a nanosecond more."""
    ledgers = opened(1, 2)
    ledgers.sent(0, 0)
    ledgers.sent(1, 0)
    late = [arrival(ledgers, 0, TIMEOUT_NS), arrival(ledgers, 1, TIMEOUT_NS + 1)]
    ledgers.arrived(late, 10 * TIMEOUT_NS, AHEAD_NS)
    assert ledgers.close() == (Round(2, (TIMEOUT_NS,)),)


def test_answers_to_another_round_are_ignored() -> None:
    """Without this round's secret an answer says nothing, and neither does one to what was not sent yet or at all."""
    ledgers = opened(1, 2)
    ledgers.sent(0, 0)
    orphans = [Arrival(0, b"earlier!", AHEAD_NS + MS), arrival(ledgers, 1, MS), Arrival(2, b"", AHEAD_NS + MS)]
    ledgers.arrived(orphans, 2 * MS, AHEAD_NS)
    assert ledgers.close() == (Round(1, ()),)
    assert ledgers.outstanding == 1


def test_what_cannot_be_sent_is_lost() -> None:
    """A target that nothing can be sent to has lost everything, and no one waits for it."""
    ledgers = opened(1, 2)
    ledgers.mark_unsent(0)
    ledgers.mark_unsent(1)
    assert ledgers.close() == (Round(2, ()),)
    assert ledgers.outstanding == 0


def test_time_at_the_reflector_is_no_part_of_the_round_trip() -> None:
    """Anything that the other end says it took is taken off."""
    ledgers = opened(1, 1)
    ledgers.sent(0, 0)
    ledgers.arrived([arrival(ledgers, 0, 5 * MS, dwell_ns=3 * MS)], 6 * MS, AHEAD_NS)
    assert ledgers.close() == (Round(1, (2 * MS,)),)


@pytest.mark.parametrize("at_ns", [-PRECISION_NS - 1, 9 * MS + PRECISION_NS + 1])
def test_impossible_times_are_discarded_and_counted(at_ns: int) -> None:
    """An answer from before its probe, or from the future, counts neither as sent nor as answered."""
    ledgers = opened(1, 2)
    ledgers.sent(0, 0)
    ledgers.sent(1, 0)
    ledgers.arrived([arrival(ledgers, 0, at_ns), arrival(ledgers, 1, 2 * MS)], 9 * MS, AHEAD_NS)
    assert ledgers.close() == (Round(1, (2 * MS,), discarded=1),)


def test_the_clocks_grain_makes_no_time_impossible() -> None:
    """A tiny round trip may come out below nothing, as two clocks are never read at once."""
    ledgers = opened(1, 1)
    ledgers.sent(0, 0)
    ledgers.arrived([arrival(ledgers, 0, -1000)], MS, AHEAD_NS)
    assert ledgers.close() == (Round(1, (0,)),)


@pytest.mark.parametrize("set_by_ns", [-3600 * 1000 * MS, 300 * MS, 3600 * 1000 * MS])
def test_a_clock_set_in_a_round_makes_no_false_figures(set_by_ns: int) -> None:
    """Answers stamped around the moment are discarded; those before and well after it are measured right."""
    ledgers = opened(1, 5)
    for probe in range(5):
        ledgers.sent(probe, probe * 10 * MS)
    ledgers.arrived([arrival(ledgers, 0, 2 * MS)], 5 * MS, AHEAD_NS)
    ledgers.arrived([arrival(ledgers, 1, 12 * MS)], 15 * MS, AHEAD_NS + set_by_ns)
    ledgers.arrived([arrival(ledgers, 2, 22 * MS)], 25 * MS, AHEAD_NS + set_by_ns)
    after = [arrival(ledgers, probe, (probe * 10 + 2) * MS + set_by_ns) for probe in (3, 4)]
    ledgers.arrived(after[:1], 35 * MS, AHEAD_NS + set_by_ns)
    ledgers.arrived(after[1:], 45 * MS, AHEAD_NS + set_by_ns)
    assert ledgers.close() == (Round(3, (2 * MS, 2 * MS, 2 * MS), discarded=2),)


def test_a_stamp_from_just_before_the_clock_was_set_is_discarded() -> None:
    """An answer between the reading of answers and of clocks is read next time, when the clocks agree."""
    ledgers, set_by_ns = opened(1, 1), -MS
    ledgers.sent(0, 0)
    ledgers.arrived([], 10 * MS, AHEAD_NS + set_by_ns)
    ledgers.arrived([arrival(ledgers, 0, 9 * MS)], 20 * MS, AHEAD_NS + set_by_ns)
    assert ledgers.close() == (Round(0, (), discarded=1),)


def test_a_round_ends_a_timeout_after_its_last_probe() -> None:
    """Nothing is waited for any longer."""
    ledgers = opened(1, 2)
    ledgers.sent(0, 10)
    ledgers.sent(1, 20)
    assert ledgers.deadline_ns == 20 + TIMEOUT_NS


@given(st.integers(1, 5000), st.integers(MS, 20_000 * MS))
def test_probes_are_spread_evenly(probes: int, spread_ns: int) -> None:
    """All probes are sent in time: at most a burst together, none early, and none more than a tick late."""
    pace, sent, elapsed_ns = Pace(probes, spread_ns), 0, 0
    while sent < probes:
        due = pace.due(sent, elapsed_ns)
        assert sent < due <= sent + BURST
        assert (due - 1) * spread_ns <= elapsed_ns * probes
        assert elapsed_ns <= sent * spread_ns // probes + TICK_NS + 1
        sent = due
        elapsed_ns += pace.pause_ns(sent, elapsed_ns) if sent < probes else 0
    assert elapsed_ns <= spread_ns


def test_bursts_may_be_forbidden() -> None:
    """Probes whose answers no one stamps go one by one, so that each answer is read as soon as it comes."""
    pace = Pace(1000, 1000 * MS, burst=1)
    assert (pace.due(0, 0), pace.pause_ns(1, 0)) == (1, MS)


@given(st.integers(1, 5000))
def test_without_a_time_to_spread_over_all_go_at_once(probes: int) -> None:
    """There is no pause then, but answers are read between bursts."""
    pace, sent = Pace(probes, 0), 0
    while sent < probes:
        assert pace.due(sent, 0) == min(sent + 2 * BURST, probes)
        sent = pace.due(sent, 0)
        assert sent == probes or pace.pause_ns(sent, 0) == 0


def test_a_delay_is_made_up_for_in_bursts() -> None:
    """After a standstill of half the time, two bursts go at once and not all that is overdue."""
    pace = Pace(1000, 10_000 * MS)
    assert pace.due(0, 5000 * MS) == 2 * BURST
    assert pace.pause_ns(2 * BURST, 5000 * MS) > 0
