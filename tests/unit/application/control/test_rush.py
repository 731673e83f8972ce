"""When the control loop counts as having its hands full."""

from __future__ import annotations

from contextlib import suppress

import pytest

from seaway.application.control.overload import LINGER_NS, LONG_NS, Overload
from seaway.testing.clocks import VirtualClock


@pytest.fixture
def clock() -> VirtualClock:
    """A clock that only the test moves."""
    return VirtualClock()


@pytest.fixture
def overload(clock: VirtualClock) -> Overload:
    """A rush that knows of no round yet."""
    return Overload(clock)


def test_nothing_is_no_rush(overload: Overload) -> None:
    """Who has gone no round is in no rush."""
    assert not overload.on


def test_what_is_done_in_a_moment_is_none_however_often(overload: Overload, clock: VirtualClock) -> None:
    """Jobs that come in one by one keep no one waiting."""
    for _ in range(50):
        with overload.round() as now:
            clock.advance(LONG_NS - 1)
            now.found = True
            assert not overload.on
        assert not overload.on


def test_a_long_round_is_one_while_it_goes_on(overload: Overload, clock: VirtualClock) -> None:
    """Who asks while it is under way is told, before it is known what it found."""
    with overload.round():
        assert not overload.on
        clock.advance(LONG_NS)
        assert overload.on


def test_it_outlasts_a_round_that_finds_nothing(overload: Overload, clock: VirtualClock) -> None:
    """There is one in the midst of many."""
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
    """As one that waited for a database."""
    with overload.round():
        clock.advance(LONG_NS)
    assert not overload.on


def test_a_round_that_fails_ends(overload: Overload, clock: VirtualClock) -> None:
    """What went wrong is told on, and the next is watched again."""
    with suppress(RuntimeError), overload.round():
        clock.advance(LONG_NS)
        raise RuntimeError
    assert not overload.on
