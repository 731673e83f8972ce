"""A round reports correct values, or unknown ones, for any behaviour of probes and clocks."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate, pairwise

from hypothesis import given
from hypothesis import strategies as st

from seaway.probing.packets import SECRET_BYTES
from seaway.probing.rounds import PRECISION_NS, Arrival, OpenRound

TIMEOUT_NS = 1_000_000
GAP_NS = 50_000
START_NS = 7_000_000_000
"""Time of the first probe on the steady clock."""
READING_NS = 40_000
"""Time between the last read answer and the comparison of the clocks."""
END_NS = START_NS + 100 * TIMEOUT_NS


@dataclass(frozen=True)
class World:
    """Events of a round, by the steady clock.

    Attributes
    ----------
    targets, count
        Targets and probes of the round.
    delays_ns
        For each probe, the delays of its answers: none, one or several, in any order.
    set_at_ns, set_by_ns
        When the wall clock is set, and by how much, always in the same direction.
    looks_ns
        Times of reading answers.
    """

    targets: int
    count: int
    delays_ns: list[list[int]]
    set_at_ns: list[int]
    set_by_ns: int
    looks_ns: list[int]

    def offset_ns(self, at_ns: int) -> int:
        """Return the offset of the wall clock."""
        return 10**18 + self.set_by_ns * sum(moment <= at_ns for moment in self.set_at_ns)


@st.composite
def worlds(draw: st.DrawFn, most_set: int) -> World:
    """Generate the events of a round."""
    targets, count = draw(st.integers(1, 4)), draw(st.integers(1, 6))
    delays = st.lists(st.integers(0, 2 * TIMEOUT_NS), max_size=3)
    moments = st.integers(START_NS, START_NS + 3 * TIMEOUT_NS)
    return World(
        targets,
        count,
        draw(st.lists(delays, min_size=targets * count, max_size=targets * count)),
        draw(st.lists(moments, max_size=most_set)),
        draw(st.sampled_from([-1, 1])) * draw(st.integers(3 * PRECISION_NS, 10**15)),
        sorted(draw(st.lists(moments, max_size=12))),
    )


def carried_out(world: World) -> OpenRound:
    """Apply the events to a round."""
    probes = world.targets * world.count
    secrets = bytes(at % 251 for at in range(probes * SECRET_BYTES))
    open_round = OpenRound(world.targets, world.count, TIMEOUT_NS, secrets, world.offset_ns(START_NS - 1))
    sent_ns = list(accumulate([GAP_NS] * (probes - 1), initial=START_NS))
    come = sorted((sent_ns[probe] + delay, probe) for probe, delays in enumerate(world.delays_ns) for delay in delays)
    sent = 0
    for before, now in pairwise([START_NS - 1, *world.looks_ns, END_NS]):
        while sent < probes and sent_ns[sent] <= now:
            open_round.sent(sent, sent_ns[sent])
            sent += 1
        arrived = [
            Arrival(probe, open_round.secret(probe), at + world.offset_ns(at))
            for at, probe in come
            if before < at <= now
        ]
        orphans = [Arrival(arrival.probe, b"mistaken", arrival.wall_ns) for arrival in arrived]
        compared_ns = now + READING_NS
        open_round.arrived([*orphans, *arrived], compared_ns, world.offset_ns(compared_ns))
    return open_round


def firsts(world: World, target: int) -> list[int | None]:
    """Return when the first answer to each probe of a target comes, in their order."""
    return [min(delays, default=None) for delays in world.delays_ns[target :: world.targets]]


@given(worlds(most_set=0))
def test_a_round_is_what_happened(world: World) -> None:
    """With loss, duplicates, late, disordered and forged answers, the values are those of the first answers."""
    for target, measured in enumerate(carried_out(world).close()):
        true = [delay for delay in firsts(world, target) if delay is not None and delay <= TIMEOUT_NS]
        assert (measured.sent, list(measured.rtts_ns), measured.discarded) == (world.count, true, 0)


@given(worlds(most_set=3))
def test_a_clock_that_is_set_hides_answers_and_changes_none(world: World) -> None:
    """Each reported time is correct and in its place; the others were lost, late, or counted as discarded."""
    for target, measured in enumerate(carried_out(world).close()):
        first = firsts(world, target)
        true = [delay for delay in first if delay is not None and delay <= TIMEOUT_NS]
        remaining = iter(true)
        assert all(reported in remaining for reported in measured.rtts_ns)
        assert measured.sent + measured.discarded == world.count
        assert len(measured.rtts_ns) + measured.discarded >= len(true)
        assert measured.sent - len(measured.rtts_ns) <= len(first) - len(true)


@given(worlds(most_set=3))
def test_no_one_waits_for_what_is_settled(world: World) -> None:
    """In the end only probes without any answer are outstanding."""
    assert carried_out(world).outstanding == sum(not delays for delays in world.delays_ns)
