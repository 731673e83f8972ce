"""YAML from strangers."""

from __future__ import annotations

import re
import time

import pytest

from seaway.domain.errors import RejectedError
from seaway.wire.yaml import YamlError, read_yaml

BOMB = "x0: &x0 [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]\n" + "".join(
    f"x{at}: &x{at} [{', '.join([f'*x{at - 1}'] * 10)}]\n" for at in range(1, 10)
)
LONG_TEXTS = f"a: &a {'x' * 100_000}\nb: [{', '.join(['*a'] * 10_000)}]\n"
MERGES = "x0: &x0 {a: 1}\n" + "".join(f"x{at}: &x{at} {{<<: [*x{at - 1}, *x{at - 1}]}}\n" for at in range(1, 40))
CHAIN = "- &x0 [1]\n" + "".join(f"- &x{at} {'[' * 29}*x{at - 1}{']' * 29}\n" for at in range(1, 50))


def test_plain_values_are_read() -> None:
    """Mappings, lists, texts, numbers and truth values are what YAML is for."""
    assert read_yaml("a: [1, 0.5, true, x]\nb: &b {c: null}\nd: *b\n") == {
        "a": [1, 0.5, True, "x"],
        "b": {"c": None},
        "d": {"c": None},
    }
    assert read_yaml("") is None


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (BOMB, "expands to more"),
        (MERGES, "expands to more"),
        (LONG_TEXTS, "expands to more"),
        ("[" * 100_000, "nests deeper"),
        ("a: 1\n" * 60_000, "more than 50000 values"),
        ("&a [*a]", "contains itself"),
        ("a: 1\na: 2\n", "'a' is duplicated"),
        ("!!python/object/apply:os.system ['true']", "not YAML"),
        ("a: .nan", "not a number"),
        ("a: -.inf", "not a number"),
        ("a: !!float nan", "not a number"),
        ("a: !!float -Infinity", "not a number"),
        ("a: 1.0e+999", "not a number"),
        (CHAIN, "nests deeper"),
        (CHAIN + "- !!int x\n", "nests deeper"),
        ("a: " + "9" * 5000, "not a valid number"),
        ("a: !!bool maybe", "not a valid truth value"),
        ("a: !!timestamp soon", "not a valid date"),
        ("a: !!int ''", "not a valid number"),
        ("a: b\n c: d", "not YAML"),
        ("--- 1\n--- 2\n", "not YAML"),
        ("a: \x00", "not YAML"),
        ("*nowhere", "not YAML"),
    ],
)
def test_what_is_no_plain_document_is_refused(text: str, says: str) -> None:
    """Objects, bombs, doubled keys and broken text are reported, and cost little."""
    with pytest.raises(RejectedError, match=says):
        read_yaml(text)


@pytest.mark.parametrize(
    ("text", "where", "says"),
    [
        ("a: [", "line 2, column 1", "check for an open bracket"),
        ("a: b: c", "line 1, column 5", "a colon is not allowed here"),
        ("a:\n\tb: 1", "line 2, column 1", "with spaces, not tabs"),
        ("a: 'x", "line 1, column 6", "a quote is still open"),
        ("*nowhere", "line 1, column 1", "this alias has no anchor"),
        ("a: &x 1\nb: &x 2", "line 2, column 4", "two anchors have"),
        ("--- 1\n--- 2\n", "line 2, column 1", "only one document"),
        ("a: !x y", "line 1, column 4", "tags like this"),
        ("[a]: 1", "line 1, column 1", "must be a text"),
        ("<<: 1", "line 1, column 5", "only mappings"),
        ('a: "\\q"', "line 1, column 5", "use single quotes"),
        ("%YAML 3.0\n---\na: 1", "line 1, column 1", "the syntax is invalid"),
        (b"a: 1\nb: \xff", "line 2", "characters that text cannot have"),
        ("a: 1\nb: \ud800", "line 2", "characters that text cannot have"),
        ("a: éé\nb: éé\nc: \ud800\nd: 1\n", "line 3", "characters that text cannot have"),
        ("a: éé\nb: éé\nc: \x07\nd: 1\n", "line 3", "characters that text cannot have"),
        ("a: 1\nb: " + "9" * 5000, "line 2, column 4", f"'{'9' * 40}…' is not a valid number; put it in quotes"),
        ("a: [1, 2026-02-30]", "line 1, column 8", "'2026-02-30' is not a valid date"),
    ],
)
def test_a_mistake_is_reported_by_where_it_is_and_what_to_do(text: str | bytes, where: str, says: str) -> None:
    """In words for a user who wrote it: none of the library's, and nothing of how values are made."""
    with pytest.raises(RejectedError, match=re.escape(says)) as caught:
        read_yaml(text)
    assert caught.value.where == where
    assert not any(word in caught.value.message for word in ("string>", "sys.", "scalar", "token"))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("\n".join(f"k{number}: 1" for number in range(24_000)) + "\nk23999: 1", "'k23999' is duplicated"),
        ("a: " + "1:" * 100_000 + "1", "not a valid number"),
        ("a: " + "1:" * 100_000 + "1.5", "not a valid number"),
        ("a: -0x" + "9" * 900_000, "not a valid number"),
    ],
    ids=["duplicates", "base 60", "base 60 with a fraction", "hexadecimal"],
)
def test_time_grows_with_the_size_only(text: str, says: str) -> None:
    """A document within the limits takes no minutes, whatever is wrong with it."""
    began_s = time.thread_time()
    with pytest.raises(YamlError, match=says):
        read_yaml(text)
    assert time.thread_time() - began_s < 4
