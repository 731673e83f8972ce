"""Agents' measurements of a lab's links agree with the emulator and with a capture."""

from __future__ import annotations

from collections.abc import Mapping
from statistics import median

import pytest

from benchmarks.lab.compare import Way, compare
from benchmarks.lab.world import measure
from lab.conditions import Conditions
from seaway.domain.errors import RejectedError
from seaway.domain.gateways import ProbeConfig
from seaway.domain.network import Ends
from tests.missing import skip_or_fail

pytestmark = [pytest.mark.slow, pytest.mark.quiet]

MS = 1_000_000
HOW = ProbeConfig(interval_s=1.5, count=10, timeout_s=0.3)
ROUNDS = 4
LINKS = {
    ("gw-1", "gw-2"): Conditions(2 * MS, loss_ppm=200_000),
    ("gw-2", "gw-1"): Conditions(8 * MS, MS),
    ("gw-1", "gw-3"): Conditions(20 * MS, 2 * MS),
    ("gw-3", "gw-1"): Conditions(20 * MS, 2 * MS),
}
STEADY_NS = MS
"""Median round trip time of the lab's own routers at most: they share a busy machine."""
EXACT_NS = 50_000
CLOCKS_NS = 5_000
"""Precision of the emulator's arrival times."""


@pytest.fixture(scope="module")
def ways() -> Mapping[Ends, Way]:
    """Have agents measure three gateways for some rounds."""
    try:
        return compare(measure(LINKS, 3, HOW, ROUNDS))
    except RejectedError as error:
        skip_or_fail(error)


def test_loss_is_exactly_what_the_emulator_dropped(ways: Mapping[Ends, Way]) -> None:
    """Every echo that an agent misses is a packet that the emulator dropped, there or back, and the reverse."""
    for (source, target), there in ways.items():
        back = ways[target, source]
        assert there.sent == ROUNDS * HOW.count
        assert there.vanished == there.dropped
        assert there.lost + back.lost == there.dropped + back.dropped
    assert ways["gw-1", "gw-2"].dropped > 0
    assert sum(way.dropped for way in ways.values()) == ways["gw-1", "gw-2"].dropped


def test_latency_is_what_the_emulator_held_packets_for(ways: Mapping[Ends, Way]) -> None:
    """The latency of every round is the emulator's delay, and hardly more, with a different delay each way."""
    for way in ways.values():
        assert len(way.answered) == ROUNDS
        assert min(each.off_held_ns for each in way.answered) > -CLOCKS_NS
        assert median(each.off_held_ns for each in way.answered) < STEADY_NS
    assert min(each.held_ns for each in ways["gw-1", "gw-2"].answered) >= 9 * MS


def test_jitter_and_latency_are_those_of_a_capture(ways: Mapping[Ends, Way]) -> None:
    """Jitter and latency equal those of a capture, by the same formulas for the same packets."""
    rounds = [each for way in ways.values() for each in way.answered]
    assert median(abs(each.off_jitter_ns) for each in rounds) < EXACT_NS
    assert median(abs(each.off_captured_ns) for each in rounds) < EXACT_NS
    assert max(each.reported.jitter_ns for each in ways["gw-1", "gw-3"].answered) > MS
