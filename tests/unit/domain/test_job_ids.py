from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seaway.domain.job_spec import ALPHABET, LENGTH, NS_PER_MS, JobIds, decode, encode

NOW_NS = 1_800_000_000 * 10**9


@given(st.lists(st.integers(-10_000, 10_000), max_size=50), st.integers(0, 2**32))
def test_ids_sort_as_they_were_drawn(jumps_ms: list[int], seed: int) -> None:
    """However the clock jumps, an id sorts after those drawn before it, and none is drawn twice."""
    ids, now_ns, drawn = JobIds(Random(seed)), NOW_NS, []
    for jump_ms in jumps_ms:
        now_ns += jump_ms * NS_PER_MS
        drawn.append(ids.generate(now_ns))
    assert drawn == sorted(set(drawn))


@given(st.integers(0, 2**63 - 1))
def test_ids_are_numbers_written_down(number: int) -> None:
    """Writing and reading give the number back, in 13 letters that sort as it does."""
    text = encode(number)
    assert len(text) == LENGTH
    assert decode(text) == number
    assert (encode(number - 1) < text) if number else text == "0" * LENGTH


@pytest.mark.parametrize("text", ["", "0" * 12, "0" * 14, "0" * 12 + "I", "0" * 12 + "l", "z" * 13, "0" * 12 + "é"])
def test_what_is_no_id_is_not_read(text: str) -> None:
    """Other lengths, letters that people mix up, and numbers too large for a database are no ids."""
    assert decode(text) is None


def test_the_alphabet_leaves_out_what_looks_alike() -> None:
    """Thirty-two letters and digits in order, without i, l, o and u."""
    assert len(ALPHABET) == 32
    assert sorted(ALPHABET) == list(ALPHABET)
    assert not set("ilou") & set(ALPHABET)


def test_two_planes_rarely_draw_the_same() -> None:
    """Ids of the same millisecond differ by their random part."""
    assert len({JobIds(Random(seed)).generate(NOW_NS) for seed in range(100)}) == 100
