"""When the control loop counts as having its hands full."""

from __future__ import annotations

from contextlib import suppress

import pytest

from seaway.application.control.overload import LINGER_NS, LONG_NS, Rush
from seaway.testing.clocks import VirtualClock


@pytest.fixture
def clock() -> VirtualClock:
    """A clock that only the test moves."""
    return VirtualClock()


@pytest.fixture
def rush(clock: VirtualClock) -> Rush:
    """A rush that knows of no round yet."""
    return Rush(clock)


def test_nothing_is_no_rush(rush: Rush) -> None:
    """Who has gone no round is in no rush."""
    assert not rush.on


def test_what_is_done_in_a_moment_is_none_however_often(rush: Rush, clock: VirtualClock) -> None:
    """Jobs that come in one by one keep nobody waiting."""
    for _ in range(50):
        with rush.round() as now:
            clock.advance(LONG_NS - 1)
            now.found = True
            assert not rush.on
        assert not rush.on


def test_a_long_round_is_one_while_it_goes_on(rush: Rush, clock: VirtualClock) -> None:
    """Who asks while it is under way is told, before it is known what it found."""
    with rush.round():
        assert not rush.on
        clock.advance(LONG_NS)
        assert rush.on


def test_it_outlasts_a_round_that_finds_nothing(rush: Rush, clock: VirtualClock) -> None:
    """There is one in the midst of many."""
    with rush.round() as now:
        clock.advance(LONG_NS)
        now.found = True
    with rush.round():
        clock.advance(LINGER_NS // 2)
        assert rush.on
    assert rush.on
    clock.advance(LINGER_NS // 2)
    assert not rush.on


def test_a_long_round_that_found_nothing_leaves_none_behind(rush: Rush, clock: VirtualClock) -> None:
    """As one that waited for a database."""
    with rush.round():
        clock.advance(LONG_NS)
    assert not rush.on


def test_a_round_that_fails_ends(rush: Rush, clock: VirtualClock) -> None:
    """What went wrong is told on, and the next is watched anew."""
    with suppress(RuntimeError), rush.round():
        clock.advance(LONG_NS)
        raise RuntimeError
    assert not rush.on
