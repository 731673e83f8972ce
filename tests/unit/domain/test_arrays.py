from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seaway.domain.arrays import (
    MAX_INDEX,
    count_of,
    indexes_text,
    parse_indexes,
    stored_indexes,
    taken,
    task_array,
    without,
)
from seaway.domain.errors import RejectedError


def numbers(text: str) -> list[int]:
    """Return all indexes of a text."""
    return [index for each in stored_indexes(text) for index in each]


@pytest.mark.parametrize(
    ("text", "indexes", "limit"),
    [
        ("0-3", [0, 1, 2, 3], 0),
        ("7", [7], 0),
        ("1,3,5-7", [1, 3, 5, 6, 7], 0),
        ("5-7,0", [0, 5, 6, 7], 0),
        ("0-10:4%2", [0, 4, 8], 2),
        ("999999%50", [MAX_INDEX], 50),
    ],
)
def test_indexes_are_read_as_slurm_does(text: str, indexes: list[int], limit: int) -> None:
    """Ranges, lists, steps and the limit of tasks at once have Slurm's syntax."""
    array = task_array(text)
    assert (numbers(array.indexes), array.limit, array.last) == (indexes, limit, indexes[-1])
    assert task_array(array.text) == array


@pytest.mark.parametrize(
    "text",
    ["", "a", "-1", "3-1", "0-9:0", "1,1", "0-5,3", "0-9%", "0-9%0", "0-9%x", "1000000", "0 - 9", "0-9%5%6"],
)
def test_other_texts_are_rejected(text: str) -> None:
    """An invalid text is an error of the field that shows what is valid."""
    with pytest.raises(RejectedError) as raised:
        task_array(text)
    assert raised.value.where == "array"


def test_a_matrix_has_a_task_for_each_combination() -> None:
    """The last parameter changes fastest; indexes select combinations, and those beyond the last are errors."""
    matrix = (("LR", ("0.1", "0.01")), ("SEED", ("1", "2", "3")))
    array = task_array("%2", matrix)
    assert (array.text, array.last) == ("0-5%2", 5)
    values = [dict(array.variables("6hhgq2g019edv", index)) for index in range(6)]
    assert [(each["LR"], each["SEED"]) for each in values][2:4] == [("0.1", "3"), ("0.01", "1")]
    assert values[4]["SEAWAY_ARRAY_TASK_ID"] == "4"
    assert values[4]["SEAWAY_ARRAY_JOB_ID"] == "6hhgq2g019edv"
    few = dict(task_array("1,5", matrix).variables("x", 5))
    assert [few[f"SEAWAY_ARRAY_TASK_{name}"] for name in ("COUNT", "MIN", "MAX")] == ["2", "1", "5"]
    with pytest.raises(RejectedError, match="6 combinations"):
        task_array("0-6", matrix)
    with pytest.raises(RejectedError, match="1,000,000") as raised:
        task_array("", tuple((name, tuple(map(str, range(100)))) for name in "ABCD"))
    assert raised.value.where == "matrix"


@given(st.sets(st.integers(0, 60), min_size=1), st.lists(st.integers(0, 60)), st.integers(1, 9))
def test_indexes_are_taken_in_order_and_none_is_lost(indexes: set[int], others: list[int], count: int) -> None:
    """Taking and removing indexes agree with plain sets, whatever the ranges are."""
    left, text = sorted(indexes), indexes_text(parse_indexes(",".join(map(str, sorted(indexes)))))
    for other in others:
        left = [each for each in left if each != other]
        text = indexes_text(without(stored_indexes(text), other))
        assert numbers(text) == left
    first, rest = taken(stored_indexes(text), count)
    assert (first, numbers(indexes_text(rest))) == (left[:count], left[count:])
    assert count_of(rest) == len(left[count:])
