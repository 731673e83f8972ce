"""The queue of results: bounded, in order, with every lost result counted."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from seaway.application.agent.delivery import ResultQueue, size_bytes
from seaway.application.ports.agent import Reported

STEP = st.one_of(
    st.tuples(st.just("put"), st.integers(0, 20), st.text("aä", max_size=40)),
    st.tuples(st.just("take"), st.integers(1, 20), st.integers(0, 3000)),
)


def result(number: int, name: str) -> Reported:
    """Create a unique result."""
    return Reported(name, "", number, 5, 0, None)


@given(most=st.integers(1, 30), most_bytes=st.integers(300, 4000), steps=st.lists(STEP, max_size=40))
def test_what_goes_in_comes_out_or_is_counted(
    most: int, most_bytes: int, steps: list[tuple[str, int, int | str]]
) -> None:
    """The queue never exceeds its limits; its output is in order, and with the dropped results it is all input."""
    queue = ResultQueue(most, most_bytes)
    put = 0
    taken: list[int] = []
    dropped = 0
    for step, count, extra in steps:
        if step == "put":
            queue.put(result(put + index, str(extra)) for index in range(count))
            put += count
        else:
            batch, lost = queue.take(count, int(extra))
            assert len(batch) <= count
            assert len(batch) <= 1 or sum(map(size_bytes, batch)) <= int(extra)
            taken += [each.at_ns for each in batch]
            dropped += lost
        assert len(queue) <= most
        assert queue.bytes <= most_bytes
    rest, lost = queue.take(put + 1, 1 << 30)
    taken += [each.at_ns for each in rest]
    assert queue.bytes == 0
    assert taken == sorted(taken)
    assert len(taken) + dropped + lost == put
    assert taken[len(taken) - len(rest) :] == list(range(put - len(rest), put))
