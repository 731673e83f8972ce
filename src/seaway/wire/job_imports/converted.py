"""A job that is converted from the file of another scheduler, with a report on each of its fields."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from seaway.domain.errors import RejectedError
from seaway.domain.numbers import whole_number

Fields = Mapping[str, Any]

NEVER: tuple[object, ...] = (None, False, "", [], {})
"""Values of a field that change nothing."""

IMAGE = "image"
"""Name of the report that the file has no image. It does not apply if an option gives one."""

MAX_SHOWN = 60
"""Maximum length of a value in a report, characters."""


MAX_COUNT = 1_000_000
"""Largest number of replicas, tasks, CPUs or GPUs in a file."""


class Result(StrEnum):
    """Result for a field of the file."""

    SAME = "kept"
    CHANGED = "changed"
    DROPPED = "not kept"


@dataclass(frozen=True, slots=True)
class Note:
    """Report on a field of the file.

    Attributes
    ----------
    line
        Line in the file, from 1.
    text
        Field of the job, difference, or reason.
    """

    line: int
    field: str
    result: Result
    text: str


@dataclass(slots=True)
class Converted:
    """A job under conversion.

    Attributes
    ----------
    kind
        Format of the file, for people.
    lines_of
        Line of each field of the file.
    ignored
        Names of fields to leave out instead of refusing the file.
    fields, lines
        The job, and the line of each of its fields by path.
    refused
        Errors, each with the field of the file, and its line if it is not that of the field.
    script
        True if the words after the file are arguments of the program, as for ``sbatch``.
    text
        Text of a script, in which other names are found.
    objects
        Keys of the Secrets and ConfigMaps in the file, by kind and name.
    least
        Field of the file with the smallest number of replicas, and the number; None for all replicas.
    """

    kind: str
    lines_of: Mapping[str, int]
    ignored: frozenset[str] = frozenset()
    fields: dict[str, Any] = field(default_factory=dict)
    lines: dict[str, int] = field(default_factory=dict)
    notes: list[Note] = field(default_factory=list)
    refused: list[tuple[str, str, int]] = field(default_factory=list)
    script: bool = False
    text: str = ""
    objects: Mapping[tuple[str, str], list[str]] = field(default_factory=dict)
    least: tuple[str, int] | None = None
    _present_line: int = 0

    def keep(self, name: str, path: str, value: Any, text: str = "", *, over: bool = False) -> None:  # noqa: ANN401  # any value of a job
        """Set a field of the job from a field of the file with the same meaning.

        Another value for a field that is set is refused, except with `over`.
        """
        if self._set(name, path, value, over=over):
            self._note(name, Result.SAME, text or f"{path}: {shown(value)}")

    def change(self, name: str, path: str, value: Any, text: str, *, over: bool = False) -> None:  # noqa: ANN401  # any value of a job
        """Set a field of the job from a field of the file with another meaning; the text states the difference."""
        if self._set(name, path, value, over=over):
            self._note(name, Result.CHANGED, f"{path}: {shown(value)}; {text}")

    def note(self, name: str, text: str, result: Result = Result.SAME) -> None:
        """Report a field of the file that is in a field which another one sets, such as the command."""
        self._note(name, result, text)

    def drop(self, name: str, text: str) -> None:
        """Report a field of the file that the job does not need."""
        self._note(name, Result.DROPPED, text)

    def refuse(self, name: str, text: str) -> None:
        """Report a field of the file without which the job would be another one."""
        last = name.rpartition(" ")[2].lstrip("-")
        if self.ignored & {name, last, re.sub(r"\[\d+\]", "", name), last.rpartition(".")[2]}:
            self._note(name, Result.DROPPED, "ignored, as requested")
        else:
            self.refused.append((name, text, self._present_line))

    def get(self, path: str) -> Any:  # noqa: ANN401  # any value of a job
        """Return a field of the job; None if it is not set."""
        value: Any = self.fields
        for each in path.split("."):
            value = value.get(each) if isinstance(value, dict) else None
        return value

    @contextmanager
    def at_line(self, line: int) -> Iterator[None]:
        """Report on a line of a script."""
        before, self._present_line = self._present_line, line
        yield
        self._present_line = before

    def line(self, name: str) -> int:
        """Return the line of a field of the file, or of the nearest outer one, or of a name in a script."""
        if self._present_line:
            return self._present_line
        if name not in self.lines_of and (found := self.text.find(name.rpartition(" ")[2])) >= 0:
            return self.text.count("\n", 0, found) + 1
        name = name.partition(" ")[0]
        while name and name not in self.lines_of:
            name = name[: max(name.rfind("."), name.rfind("["), 0)]
        return self.lines_of.get(name, 1)

    def errors(self, source: str) -> Iterator[RejectedError]:
        """Yield the reasons to refuse the file."""
        for name, text, line in self.refused:
            yield RejectedError(text, where=f"{source}:{line or self.line(name)}:{name}")

    def _set(self, name: str, path: str, value: Any, *, over: bool) -> bool:  # noqa: ANN401  # any value of a job
        """Set a field, or refuse a second value. Report whether it is set."""
        at = self.fields
        *outer, last = path.split(".", 2 if path.startswith("run.env") else -1)
        for each in outer:
            at = at.setdefault(each, {})
        if not over and last in at and at[last] != value and path in self.lines:
            self.refuse(name, f"sets {path} to {shown(value)}, but it is {shown(at[last])} by another field")
            return False
        at[last] = value
        self.lines[path] = self.line(name)
        return True

    def _note(self, name: str, result: Result, text: str) -> None:
        self.notes.append(Note(self.line(name), name, result, text))


class Section:
    """A mapping in a file, of which each field must be read, left out, or refused.

    Parameters
    ----------
    path
        Path of the mapping in the file.
    """

    def __init__(self, out: Converted, value: object, path: str = "") -> None:
        self.out = out
        self.path = path
        self._left: dict[str, Any] = {}
        if isinstance(value, Mapping):
            self._left = {str(name): each for name, each in value.items()}
        elif value is not None:
            out.refuse(path, "must be a mapping of names to values")

    def at(self, name: str) -> str:
        """Return the path of a field."""
        return f"{self.path}.{name}" if self.path else name

    def take(self, name: str, kind: type | tuple[type, ...] = object) -> Any:  # noqa: ANN401  # any value of YAML
        """Return a field and count it as read; None if it is absent or refused for its type."""
        value = self._left.pop(name, None)
        if value is not None and (not isinstance(value, kind) or (kind is int and isinstance(value, bool))):
            self.out.refuse(self.at(name), f"is {shown(value)}, which has the wrong type")
            return None
        return value

    def number(self, name: str, least: int = 0, most: int = MAX_COUNT) -> int | None:
        """Return a whole number in a range; None if it is absent or refused."""
        given = self.take(name, (int, str))
        if given is None:
            return None
        found = None if isinstance(given, bool) else whole_number(given, most)
        if found is None or found < least:
            self.out.refuse(self.at(name), f"is {shown(given)}, not a whole number from {least} to {most:,}")
            return None
        return found

    def text(self, name: str) -> str:
        """Return a text or number as text; empty if it is absent."""
        value = self.take(name, (str, int, float))
        return "" if value is None else str(value)

    def section(self, name: str) -> Section:
        """Return a mapping in it."""
        return Section(self.out, self._left.pop(name, None), self.at(name))

    def sections(self, name: str) -> list[Section]:
        """Return the mappings of a list in it."""
        return [
            Section(self.out, each, f"{self.at(name)}[{at}]") for at, each in enumerate(self.take(name, list) or [])
        ]

    def pairs(self, name: str) -> dict[str, str]:
        """Return a mapping of texts in it."""
        value = self.take(name, dict) or {}
        return {str(key): plain_text(each) for key, each in value.items()}

    def names(self) -> list[str]:
        """Return the fields that were not read."""
        return [name for name, value in self._left.items() if value not in NEVER]

    def change(self, changed: Mapping[str, str]) -> None:
        """Report fields without which the job behaves differently, with the difference by name."""
        for name, text in changed.items():
            if self._left.get(name) not in NEVER:
                self.out.note(self.at(name), text, Result.CHANGED)
            self._left.pop(name, None)

    def finish(self, dropped: Mapping[str, str], refused: Mapping[str, str]) -> None:
        """Report each field that was not read, with the reason by its name. Unknown fields are refused."""
        for name in self.names():
            if name in dropped:
                self.out.drop(self.at(name), dropped[name])
            else:
                self.out.refuse(self.at(name), refused.get(name, "is unknown, so that its meaning would be lost"))
        self._left.clear()


def plain_text(value: object) -> str:
    """Return a value of YAML as text."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return "" if value is None else str(value)


def shown(value: object) -> str:
    """Return a value for a report, shortened."""
    if isinstance(value, dict):
        text = ", ".join(f"{name}: {shown(each)}" for name, each in value.items())
    else:
        text = ", ".join(shown(each) for each in value) if isinstance(value, list) else plain_text(value)
    text = " ".join(text.split())
    return text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}…"


def job_name(text: str) -> str:
    """Return a valid name of a job, queue or tenant that is close to a text; empty if no character is valid.

    Examples
    --------
    >>> job_name("My_Job v2")
    'my-job-v2'
    """
    return re.sub(r"[^a-z0-9.]+", "-", text.lower())[:63].strip("-.")


def put_name(out: Converted, name: str, path: str, text: str) -> None:
    """Set the name of a job, queue or tenant; report it if it had to change."""
    valid = job_name(text)
    if not valid:
        out.refuse(name, f"is {text!r}, which has no letter or digit for a name")
    elif valid == text:
        out.keep(name, path, valid)
    else:
        out.change(name, path, valid, "names have lower-case letters, digits, '-' and '.'")
