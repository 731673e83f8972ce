"""YAML from strangers."""

from __future__ import annotations

import pytest

from seaway.domain.errors import RejectedError
from seaway.wire.safe_yaml import read_yaml

BOMB = "x0: &x0 [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]\n" + "".join(
    f"x{at}: &x{at} [{', '.join([f'*x{at - 1}'] * 10)}]\n" for at in range(1, 10)
)
LONG_TEXTS = f"a: &a {'x' * 100_000}\nb: [{', '.join(['*a'] * 10_000)}]\n"
MERGES = "x0: &x0 {a: 1}\n" + "".join(f"x{at}: &x{at} {{<<: [*x{at - 1}, *x{at - 1}]}}\n" for at in range(1, 40))


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
        (BOMB, "stands for more"),
        (MERGES, "stands for more"),
        (LONG_TEXTS, "stands for more"),
        ("[" * 100_000, "nests deeper"),
        ("a: 1\n" * 60_000, "more than 50000 values"),
        ("&a [*a]", "contains itself"),
        ("a: 1\na: 2\n", "'a' stands there twice"),
        ("!!python/object/apply:os.system ['true']", "no YAML"),
        ("a: .nan", "no number"),
        ("a: -.inf", "no number"),
        ("a: " + "9" * 5000, "no plain value"),
        ("a: !!bool maybe", "no plain value"),
        ("a: !!timestamp soon", "no plain value"),
        ("a: !!int ''", "no plain value"),
        ("a: b\n c: d", "no YAML"),
        ("--- 1\n--- 2\n", "no YAML"),
        ("a: \x00", "no YAML"),
        ("*nowhere", "no YAML"),
    ],
)
def test_what_is_no_plain_document_is_refused(text: str, says: str) -> None:
    """Objects, bombs, doubled keys and broken text are told, and cost little."""
    with pytest.raises(RejectedError, match=says):
        read_yaml(text)
