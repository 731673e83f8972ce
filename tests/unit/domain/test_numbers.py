"""Numbers in texts of any origin."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seaway.adapters.kubernetes.facts import PRICE, node_price
from seaway.domain.errors import RejectedError
from seaway.domain.numbers import LARGEST, exact_number, whole_number
from seaway.wire.facts import microprice
from seaway.wire.queue_imports.found import quantity

ODD = [
    "9" * 5000,
    "1e999999",
    "1e-999999",
    "nan",
    "inf",
    "-1",
    "٣",
    "1_000",
    "",
    " ",
    "1.",
    ".",
    "0x10",
    "1" * 40 + ".5",
]


def test_a_number_is_read_exactly() -> None:
    """Whole and decimal numbers have their exact value, and leading zeros change nothing."""
    assert [whole_number(each) for each in ("0", "007", "+4", 12, LARGEST)] == [0, 7, 4, 12, LARGEST]
    assert [exact_number(each) for each in ("2.50", ".5", 1e-7, "1e3", 4)] == [
        Fraction(5, 2), Fraction(1, 2), Fraction(1, 10**7), 1000, 4,
    ]  # fmt: skip
    assert whole_number("8", 7) is None
    assert [whole_number(each) for each in (True, None, 1.5, -1, LARGEST + 1)] == [None] * 5
    assert [exact_number(each) for each in (True, None, float("inf"), -1)] == [None] * 4


@given(st.one_of(st.sampled_from(ODD), st.text(max_size=30), st.floats(), st.integers(), st.none(), st.booleans()))
def test_no_value_raises(value: object) -> None:
    """A value of any kind is a number in range, or none. Prices and quantities are rejected, and nothing else."""
    for number in (whole_number(value), exact_number(value)):
        assert number is None or 0 <= number <= LARGEST
    for read in (microprice, quantity):
        try:
            assert read(value) >= 0
        except RejectedError as error:
            assert error.message  # noqa: PT017  # either result is right


@pytest.mark.parametrize("text", ["1e999999", "1e-999999", "9" * 5000, "free", "nan", "-2"])
def test_an_odd_price_is_rejected_as_a_price(text: str) -> None:
    """A label of a node or a field of a job with an odd price is broken. Its reader goes on without it."""
    with pytest.raises(RejectedError, match="price") as refused:
        node_price({PRICE: text})
    assert len(refused.value.message) < 200
