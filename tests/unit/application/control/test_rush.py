from __future__ import annotations

import pytest

from seaway.application.control.rush import LINGER_NS, LONG_NS, Rush
from seaway.testing.clocks import VirtualClock


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock()


@pytest.fixture
def rush(clock: VirtualClock) -> Rush:
    return Rush(clock)


def test_nothing_is_no_rush(rush: Rush) -> None:
    assert not rush.on


def test_what_is_done_in_a_moment_is_none_however_often(rush: Rush, clock: VirtualClock) -> None:
    for _ in range(50):
        with rush.round() as now:
            clock.advance(LONG_NS - 1)
            now.found = True
            assert not rush.on
        assert not rush.on


def test_a_long_round_is_one_while_it_goes_on(rush: Rush, clock: VirtualClock) -> None:
    with rush.round():
        assert not rush.on
        clock.advance(LONG_NS)
        assert rush.on


def test_it_outlasts_a_round_that_finds_nothing(rush: Rush, clock: VirtualClock) -> None:
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
    with pytest.raises(RuntimeError), rush.round():
        clock.advance(LONG_NS)
        raise RuntimeError
    assert not rush.on
