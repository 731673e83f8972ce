"""Overload of the control loop."""

from __future__ import annotations

from contextlib import suppress

import pytest

from seaway.application.control.overload import LINGER_NS, LONG_NS, Overload
from seaway.testing.clocks import VirtualClock


@pytest.fixture
def clock() -> VirtualClock:
    """Create a clock that only the test advances."""
    return VirtualClock()


@pytest.fixture
def overload(clock: VirtualClock) -> Overload:
    """Create an overload detector without cycles."""
    return Overload(clock)


def test_nothing_is_no_overload(overload: Overload) -> None:
    """A loop without cycles is not overloaded."""
    assert not overload.on


def test_what_is_done_in_a_moment_is_none_however_often(overload: Overload, clock: VirtualClock) -> None:
    """Single jobs delay no one else."""
    for _ in range(50):
        with overload.round() as now:
            clock.advance(LONG_NS - 1)
            now.found = True
            assert not overload.on
        assert not overload.on


def test_a_long_round_is_one_while_it_goes_on(overload: Overload, clock: VirtualClock) -> None:
    """A query during the cycle reports it, before the result is known."""
    with overload.round():
        assert not overload.on
        clock.advance(LONG_NS)
        assert overload.on


def test_it_outlasts_a_round_that_finds_nothing(overload: Overload, clock: VirtualClock) -> None:
    """Overload survives a single empty cycle among many."""
    with overload.round() as now:
        clock.advance(LONG_NS)
        now.found = True
    with overload.round():
        clock.advance(LINGER_NS // 2)
        assert overload.on
    assert overload.on
    clock.advance(LINGER_NS // 2)
    assert not overload.on


def test_a_long_round_that_found_nothing_leaves_none_behind(overload: Overload, clock: VirtualClock) -> None:
    """An example is a cycle that waited for a database."""
    with overload.round():
        clock.advance(LONG_NS)
    assert not overload.on


def test_a_round_that_fails_ends(overload: Overload, clock: VirtualClock) -> None:
    """The error is raised, and the next cycle is measured again."""
    with suppress(RuntimeError), overload.round():
        clock.advance(LONG_NS)
        raise RuntimeError
    assert not overload.on
