"""Regular expressions of the package take a time that grows with the length of the text, not with its square."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import seaway

SOURCE = Path(seaway.__file__).parent

PARSER: Any = import_module("re._parser")
COMPILER: Any = import_module("re._compiler")
CONSTANTS: Any = import_module("re._constants")
SHORT = {("scheduling/queueing/past_durations.py", r"(?:-\d+)+$"): "names of jobs have at most 63 characters"}
"""Slow patterns of short texts, with the reason why these are short."""

CALLS = {"compile", "search", "match", "fullmatch", "sub", "subn", "split", "findall", "finditer"}
ANCHORED = {"match", "fullmatch"}
ALPHABET = [chr(code) for code in range(128)]


def patterns() -> Iterator[tuple[str, str, bool]]:
    """Yield each pattern that is a literal, with its file, and whether it is tried at each position of a text."""
    for path in sorted(SOURCE.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        for node in ast.walk(ast.parse(text)):
            match node:
                case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call() as call) if pattern := literal(call):
                    uses = set(re.findall(rf"\b{name}\.(\w+)\(", text)) or {"search"}
                    yield path.relative_to(SOURCE).as_posix(), pattern, not uses <= ANCHORED
                case ast.Call(func=ast.Attribute(attr=name)) if name != "compile" and (pattern := literal(node)):
                    yield path.relative_to(SOURCE).as_posix(), pattern, name not in ANCHORED
                case _:
                    pass


def literal(call: ast.Call) -> str:
    """Return the pattern of a call of `re` with a literal; empty for other calls."""
    match call:
        case ast.Call(
            func=ast.Attribute(value=ast.Name(id="re"), attr=name), args=[ast.Constant(value=str(pattern)), *_]
        ) if name in CALLS:
            return pattern
        case _:
            return ""


def repeats(item: tuple[Any, Any]) -> bool:
    """Report whether an item repeats without a bound, and can give characters back."""
    kind, value = item
    return kind in {CONSTANTS.MAX_REPEAT, CONSTANTS.MIN_REPEAT} and value[1] == CONSTANTS.MAXREPEAT


def accepts(state: Any, item: tuple[Any, Any]) -> set[str]:  # noqa: ANN401
    """Return the characters with which the text of an item can begin."""
    kind, value = item
    if kind is CONSTANTS.SUBPATTERN:
        return begins(state, list(value[-1]))
    if kind is CONSTANTS.BRANCH:
        return set().union(*(begins(state, list(each)) for each in value[1]))
    if kind in {CONSTANTS.MAX_REPEAT, CONSTANTS.MIN_REPEAT, CONSTANTS.POSSESSIVE_REPEAT}:
        return begins(state, list(value[2]))
    if kind in {CONSTANTS.LITERAL, CONSTANTS.NOT_LITERAL, CONSTANTS.IN, CONSTANTS.ANY}:
        one = COMPILER.compile(PARSER.SubPattern(state, [item]))
        return {each for each in ALPHABET if one.fullmatch(each)}
    return set()


def optional(item: tuple[Any, Any]) -> bool:
    """Report whether an item matches the empty text."""
    kind, value = item
    if kind in {CONSTANTS.AT, CONSTANTS.ASSERT, CONSTANTS.ASSERT_NOT}:
        return True
    if kind is CONSTANTS.SUBPATTERN:
        return all(map(optional, value[-1]))
    if kind is CONSTANTS.BRANCH:
        return any(all(map(optional, each)) for each in value[1])
    return kind in {CONSTANTS.MAX_REPEAT, CONSTANTS.MIN_REPEAT} and value[0] == 0


def begins(state: Any, items: list[Any]) -> set[str]:  # noqa: ANN401
    """Return the characters with which a text of items can begin."""
    found: set[str] = set()
    for item in items:
        found |= accepts(state, item)
        if not optional(item):
            break
    return found


def flattened(items: list[Any]) -> list[Any]:
    """Return items with those of groups in their place."""
    nested = [flattened(list(value[-1])) if kind is CONSTANTS.SUBPATTERN else [(kind, value)] for kind, value in items]
    return [each for group in nested for each in group]


def slow(pattern: str, searched: bool) -> str:
    """Return why a pattern can take more than linear time; empty if it cannot."""
    parsed = PARSER.parse(pattern)
    top = list(parsed)
    anchored = bool(top) and top[0][0] is CONSTANTS.AT
    first = next((each for each in top if each[0] is not CONSTANTS.AT), None)
    if searched and first and repeats(first) and len(top) > 1:
        multiline = bool(parsed.state.flags & re.MULTILINE)
        once = anchored and (not multiline or "\n" not in accepts(parsed.state, first))
        return "" if once else "a search that begins with a repeat"
    return backtracks(parsed.state, top)


def backtracks(state: Any, items: list[Any]) -> str:  # noqa: ANN401
    """Return why items can match the same characters in several ways; empty if they cannot."""
    for at, (kind, value) in enumerate(items):
        parts = [list(value[-1])] if kind is CONSTANTS.SUBPATTERN else []
        parts += [list(each) for each in value[1]] if kind is CONSTANTS.BRANCH else []
        if repeats((kind, value)):
            flat = flattened(list(value[2]))
            if any(map(repeats, flat)) and all(map(optional, (each for each in flat if not repeats(each)))):
                return "a repeat inside a repeat"
            if competes(state, (kind, value), items[at + 1 :]):
                return "two repeats of the same characters"
            parts.append(list(value[2]))
        if why := next(filter(None, (backtracks(state, each) for each in parts)), ""):
            return why
    return ""


def competes(state: Any, item: tuple[Any, Any], following: list[Any]) -> bool:  # noqa: ANN401
    """Report whether one of the following items repeats the same characters, with nothing required between."""
    for each in following:
        if repeats(each) and accepts(state, item) & accepts(state, each):
            return True
        if not optional(each):
            return False
    return False


@pytest.mark.parametrize(
    ("pattern", "searched"), [(r"(?m)^\s*token: \w+", True), (r"(a+)+b", False), (r"a*\w*b", False)]
)
def test_slow_patterns_are_found(pattern: str, searched: bool) -> None:
    """The check finds the classes of patterns that it is for."""
    assert slow(pattern, searched)


def test_no_pattern_is_slow_on_long_texts() -> None:
    """No pattern backtracks over the same characters twice."""
    found = {(place, pattern, why) for place, pattern, searched in patterns() if (why := slow(pattern, searched))}
    assert {(place, pattern) for place, pattern, _ in found} <= set(SHORT), found


def test_the_source_has_patterns() -> None:
    """The check reads patterns at all."""
    assert len(list(patterns())) > 50
    assert Path(SOURCE).name == "seaway"
