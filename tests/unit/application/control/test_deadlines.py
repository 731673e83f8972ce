from __future__ import annotations

from seaway.application.control.rejections import Deadlines, Due
from seaway.testing.clocks import VirtualClock

A, B = ("a", 1, ""), ("b", 2, "alpha")


def test_deadlines_come_in_order() -> None:
    """Each deadline is reported once, the earliest first, and equal ones in the order of their creation."""
    clock = VirtualClock()
    deadlines = Deadlines(clock)
    deadlines.in_seconds(5, Due.RETRY, B)
    deadlines.in_seconds(2, Due.LIMIT, A)
    deadlines.in_seconds(2, Due.EXPIRY, A)
    assert deadlines.next_ns() == 2_000_000_000
    assert not list(deadlines.due())
    clock.advance_s(5)
    assert list(deadlines.due()) == [(Due.LIMIT, A), (Due.EXPIRY, A), (Due.RETRY, B)]
    assert not list(deadlines.due())
    assert deadlines.next_ns() is None


def test_setting_the_time_of_day_moves_nothing() -> None:
    """A deadline does not move when the time of day jumps."""
    clock = VirtualClock()
    deadlines = Deadlines(clock)
    deadlines.at_wall(clock.now_ns() + 10**10, 60, Due.LIMIT, A)
    clock.jump(86_400 * 10**9)
    clock.advance_s(9)
    assert not list(deadlines.due())
    clock.advance_s(1)
    assert list(deadlines.due()) == [(Due.LIMIT, A)]


def test_a_time_of_day_counts_only_so_far() -> None:
    """A deadline too far ahead, because the clock was set back, is capped at its maximum; a past one is due now."""
    clock = VirtualClock()
    deadlines = Deadlines(clock)
    deadlines.at_wall(clock.now_ns() + 10**15, 60, Due.LIMIT, A)
    deadlines.at_wall(clock.now_ns() - 10**15, 60, Due.EXPIRY, A)
    assert list(deadlines.due()) == [(Due.EXPIRY, A)]
    clock.advance_s(60)
    assert list(deadlines.due()) == [(Due.LIMIT, A)]
