"""Settings are parsed by type, and invalid ones are rejected."""

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


def test_texts_are_parsed_by_type() -> None:
    """Types are numbers, booleans, text, and sizes with dashes."""
    typed = {"batch": "1_000", "discount": "1e-1", "hidden": "128-64", "loud": "yes", "word": "12"}
    assert changed(Knobs(), typed, str) == Knobs(1000, 0.1, 0.1, (128, 64), True, "12")


def test_values_of_json_are_accepted() -> None:
    """Decoded values are equal to the original ones."""
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
def test_invalid_values_are_rejected(name: str, value: object, says: str) -> None:
    """The error has the value and the expected type or range."""
    with pytest.raises(RejectedError) as error:
        changed(Knobs(), {name: value}, lambda each: f"--{each}")
    assert str(error.value) == f"--{name}: {says}"


def test_all_invalid_values_are_reported() -> None:
    """One error has all problems."""
    with pytest.raises(RejectedError) as error:
        changed(Knobs(), {"batch": "x", "discount": "y"}, str)
    assert [each.where for each in (error.value, *error.value.also)] == ["batch", "discount"]


def test_pairs_are_parsed() -> None:
    """Names can have dashes, and values can have equals signs."""
    assert read_pairs(["soft-update=0.1", "word = a=b"], "--set") == {"soft_update": "0.1", "word": "a=b"}


@pytest.mark.parametrize("texts", [["batch"], ["=3"], ["batch="], ["batch=1", "batch=2"]])
def test_invalid_pairs_are_rejected(texts: list[str]) -> None:
    """A pair has a name and a value, and names are unique."""
    with pytest.raises(RejectedError, match="--set: "):
        read_pairs(texts, "--set")


def test_unknown_names_have_a_suggestion() -> None:
    """Without a similar name, the error lists all names."""
    assert "did you mean 'batch'?" in str(unknown("bach", ["batch", "hidden"], "it", ""))
    assert "available: batch, hidden" in str(unknown("zzz", ["batch", "hidden"], "it", ""))


def test_ranges_as_text() -> None:
    """Errors use these texts."""
    texts = [str(each) for each in (Range(1), Range(0, exclusive=True), Range(0, 1), Range(0, 1, exclusive=True))]
    assert texts == ["at least 1", "more than 0", "from 0 to 1", "above 0 up to 1"]
