"""The packets an emulated link loses, and when the others go on."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.conditions import Conditions
from lab.holding import BACKLOG_NS, STORED, Holding
from seaway.domain.errors import RejectedError

MS = 1_000_000
AB, BA = ("a", "b"), ("b", "a")


def holding(conditions: Conditions, seed: int = 0) -> Holding:
    """Make one with a single link."""
    made = Holding(Random(seed))
    made.link(AB).change(conditions)
    return made


def test_a_packet_goes_on_after_the_delay_and_not_before() -> None:
    """A packet that came at a time goes on that time and the delay later."""
    held = holding(Conditions(20 * MS))
    assert held.take(7, AB, 5 * MS, 100)
    assert held.next_ns() == 25 * MS
    assert list(held.due(25 * MS - 1)) == []
    assert list(held.due(25 * MS)) == [7]
    assert held.next_ns() is None


def test_directions_are_links_of_their_own() -> None:
    """Anything that holds one way says nothing of the way back."""
    held = holding(Conditions(20 * MS, loss_ppm=1_000_000))
    assert not held.take(1, AB, 0, 100)
    assert held.take(2, BA, 0, 100)
    assert held.next_ns() == 0


@given(seed=st.integers(0, 1000), gaps=st.lists(st.integers(0, 10 * MS), min_size=1, max_size=50))
def test_jitter_keeps_order_and_bounds(seed: int, gaps: list[int]) -> None:
    """Packets leave in the order in which they came, none before delay less jitter, nor later than another has to."""
    held, at = holding(Conditions(20 * MS, 5 * MS), seed), 0
    came = []
    for number, gap in enumerate(gaps):
        at += gap
        came.append(at)
        held.take(number, AB, at, 100)
    assert list(held.due(at + 100 * MS)) == list(range(len(gaps)))
    assert [when for when, _ in held.link(AB).holds] == came


def test_jitter_is_spread_evenly_around_the_delay() -> None:
    """Far enough apart that order plays no part, packets are held for delay ± jitter, in the middle for the delay."""
    held = holding(Conditions(20 * MS, 4 * MS))
    waits = []
    for number in range(2_000):
        at = number * 100 * MS
        held.take(number, AB, at, 100)
        due = held.next_ns()
        assert due is not None
        waits.append(due - at)
        list(held.due(due))
    assert 16 * MS <= min(waits) < 16.1 * MS
    assert 23.9 * MS < max(waits) <= 24 * MS
    assert sum(waits) / len(waits) == pytest.approx(20 * MS, rel=0.01)


def test_loss_is_a_share_and_every_lost_packet_is_counted() -> None:
    """Of many packets about the share is lost, and the counter says how many exactly."""
    held = holding(Conditions(loss_ppm=20_000))
    lost = sum(not held.take(number, AB, number, 100) for number in range(20_000))
    counts = held.link(AB).counts
    assert counts.lost == lost
    assert counts.packets == 20_000
    assert lost == pytest.approx(400, rel=0.2)


def test_a_rate_spaces_packets_and_drops_what_a_port_would_not_keep() -> None:
    """Packets leave at the rate; once more than the backlog waits, the next are dropped and counted."""
    held = holding(Conditions(rate_mbps=8))  # an octet a microsecond
    taken = [held.take(number, AB, 0, 10_000) for number in range(20)]
    assert taken == [True] * 11 + [False] * 9
    assert held.link(AB).counts.overflowed == 9
    assert list(held.due(30 * MS)) == [0, 1, 2]
    assert held.take(99, AB, BACKLOG_NS * 2, 10_000)
    assert list(held.due(BACKLOG_NS * 2 + 10 * MS))[-1] == 99


def test_a_change_holds_from_the_next_packet_on() -> None:
    """Packets on their way keep what they met; the next ones are not held up by them."""
    held = holding(Conditions(50 * MS))
    held.take(1, AB, 0, 100)
    held.link(AB).change(Conditions(5 * MS))
    held.take(2, AB, 0, 100)
    assert list(held.due(5 * MS)) == [2]
    assert list(held.due(50 * MS)) == [1]


def test_it_counts_what_it_really_did() -> None:
    """Hold times and lateness are those of the release, not those that were asked for; the latest ones are kept."""
    held = holding(Conditions(10 * MS))
    for number in range(STORED + 5):
        held.take(number, AB, number, 60)
    assert len(list(held.due(12 * MS))) == STORED + 5
    counts = held.link(AB).counts
    assert counts.released == STORED + 5
    assert counts.octets == 60 * (STORED + 5)
    assert counts.held_ns == sum(12 * MS - number for number in range(STORED + 5))
    assert counts.late_ns == sum(2 * MS - number for number in range(STORED + 5))
    assert counts.latest_ns == 2 * MS
    assert list(held.link(AB).holds)[-1] == (STORED + 4, 12 * MS - STORED - 4)
    assert len(held.link(AB).holds) == STORED


@pytest.mark.parametrize(
    ("figures", "where"),
    [
        ((MS, 2 * MS), "jitter"),
        ((-1,), "delay"),
        ((10**12,), "delay"),
        ((0, 0, 1_000_001), "loss"),
        ((0, 0, 0, -1), "rate"),
    ],
)
def test_conditions_that_nothing_meets_are_refused(figures: tuple[int, ...], where: str) -> None:
    """A jitter beyond the delay, a share beyond all, and negative figures are mistakes."""
    with pytest.raises(RejectedError) as caught:
        Conditions(*figures)
    assert caught.value.where == where
