"""Settings are read as they are meant, or it is reported what is wrong with them."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from seaway.domain.errors import RejectedError
from seaway.learning.runs.options import Range, changed, read_pairs, unknown


@dataclass(frozen=True)
class Knobs:
    """Settings of each type."""

    batch: int = 1
    discount: float = 0.5
    noise: float = 0.1
    hidden: tuple[int, ...] = (2,)
    loud: bool = False
    word: str = ""


def test_text_is_read_by_the_type_of_the_setting() -> None:
    """Anything that is typed becomes numbers, truth, text, and sizes with dashes between them."""
    typed = {"batch": "1_000", "discount": "1e-1", "hidden": "128-64", "loud": "yes", "word": "12"}
    assert changed(Knobs(), typed, str) == Knobs(1000, 0.1, 0.1, (128, 64), True, "12")


def test_values_as_json_has_them_are_taken() -> None:
    """Anything that was written down as JSON is what it was."""
    assert changed(Knobs(), {"batch": 3, "discount": 1, "hidden": [4, 5]}, str) == Knobs(3, 1.0, hidden=(4, 5))


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("batch", "many", "'many' is not a whole number"),
        ("batch", "2.5", "'2.5' is not a whole number"),
        ("batch", 2.5, "2.5 is not a whole number"),
        ("batch", True, "True is not a whole number"),
        ("batch", "0", "0 is not from 1 to 10000000"),
        ("discount", "1.1", "1.1 is not from 0 to 1"),
        ("discount", "nan", "nan is not from 0 to 1"),
        ("noise", "inf", "inf is not at least 0"),
        ("discount", True, "True is not a number"),
        ("hidden", "128-x", "'128-x' is not a list of sizes like 128-64"),
        ("hidden", "128-0", "0 is not from 1 to 4096"),
        ("hidden", "", "'' is not a list of sizes like 128-64"),
        ("hidden", 128, "128 is not a list of sizes like 128-64"),
        ("loud", "maybe", "'maybe' is not true or false"),
        ("word", 3, "3 is not text"),
    ],
)
def test_a_value_that_makes_no_sense_is_rejected(name: str, value: object, says: str) -> None:
    """A value of another type, or out of range, is named with what it must be."""
    with pytest.raises(RejectedError) as error:
        changed(Knobs(), {name: value}, lambda each: f"--{each}")
    assert str(error.value) == f"--{name}: {says}"


def test_all_that_is_wrong_is_reported_at_once() -> None:
    """No one has to try once for each mistake."""
    with pytest.raises(RejectedError) as error:
        changed(Knobs(), {"batch": "x", "discount": "y"}, str)
    assert [each.where for each in (error.value, *error.value.also)] == ["batch", "discount"]


def test_pairs_are_taken_apart() -> None:
    """A name may be written with dashes, and a value may have signs of equality in it."""
    assert read_pairs(["soft-update=0.1", "word = a=b"], "--set") == {"soft_update": "0.1", "word": "a=b"}


@pytest.mark.parametrize("texts", [["batch"], ["=3"], ["batch="], ["batch=1", "batch=2"]])
def test_what_is_no_pair_is_rejected(texts: list[str]) -> None:
    """A pair has a name and a value, and a name comes once."""
    with pytest.raises(RejectedError, match="--set: "):
        read_pairs(texts, "--set")


def test_an_unknown_name_is_reported_with_the_one_that_was_meant() -> None:
    """A user who mistypes a name reads the right one, and who guesses reads all."""
    assert "did you mean 'batch'?" in str(unknown("bach", ["batch", "hidden"], "it", ""))
    assert "available: batch, hidden" in str(unknown("zzz", ["batch", "hidden"], "it", ""))


def test_a_range_says_itself_in_words() -> None:
    """Errors say what would be right."""
    texts = [str(each) for each in (Range(1), Range(0, exclusive=True), Range(0, 1), Range(0, 1, exclusive=True))]
    assert texts == ["at least 1", "more than 0", "from 0 to 1", "above 0 up to 1"]
