"""YAML files whose every complaint names file, line and field."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import TypeVar

import yaml

from seaway.domain.errors import RejectedError

LARGEST = 2**31 - 1
"""The largest figure that a field may hold, as the engine's columns do."""

MOST_BYTES = 8 * 2**20
"""Size of a file; more is taken for something else."""

Value = TypeVar("Value")


@dataclass(frozen=True, slots=True)
class Entry:
    """A value in a file, and where it stands.

    Attributes
    ----------
    file
        The file, as it was given.
    path
        Field by field, like ``clusters[0].nodes[1].cpu``; empty for the whole.
    node
        What was read.
    """

    file: str
    path: str
    node: yaml.Node

    def wrong(self, message: str) -> RejectedError:
        """Return the error that says what is wrong here."""
        return RejectedError(message, where=self.where)

    @property
    def where(self) -> str:
        """File, line and field."""
        return ":".join(part for part in (self.file, str(self.node.start_mark.line + 1), self.path) if part)

    def fields(self, known: Sequence[str], needed: Collection[str] = ()) -> dict[str, Entry]:
        """Return the entries of a mapping by name.

        Raises
        ------
        RejectedError
            When it is none, has a field twice or one that is not `known`, or lacks one that is `needed`.
        """
        found = dict(self.pairs())
        for name, entry in found.items():
            if name not in known:
                near = get_close_matches(name, known, 1)
                hint = f"did you mean {near[0]!r}?" if near else f"known are: {', '.join(known)}"
                raise entry.wrong(f"unknown field {name!r}; {hint}")
        for name in needed:
            if name not in found:
                raise self.wrong(f"{name!r} is missing")
        return found

    def pairs(self) -> Iterator[tuple[str, Entry]]:
        """Go through a mapping, whose keys are texts and stand there once; raises as `fields`."""
        if not isinstance(self.node, yaml.MappingNode):
            raise self.wrong("has to be a mapping, like 'name: north'")
        seen = set()
        for key, value in self.node.value:
            name = Entry(self.file, self.path, key).text()
            entry = Entry(self.file, f"{self.path}.{name}" if self.path else name, value)
            if name in seen:
                raise Entry(self.file, entry.path, key).wrong("appears more than once")
            seen.add(name)
            yield name, entry

    def items(self) -> list[Entry]:
        """Return the entries of a list."""
        if not isinstance(self.node, yaml.SequenceNode):
            raise self.wrong("has to be a list, with a '-' before each entry")
        return [Entry(self.file, f"{self.path}[{at}]", each) for at, each in enumerate(self.node.value)]

    def value(self) -> object:
        """Return a text, number, truth value or None."""
        if not isinstance(self.node, yaml.ScalarNode):
            raise self.wrong("has to be a single value")
        try:
            return yaml.constructor.SafeConstructor().construct_object(self.node)
        except (ValueError, yaml.YAMLError):
            raise self.wrong(f"{self.node.value!r} cannot be read") from None

    def text(self) -> str:
        """Return a text, which may not be empty."""
        value = self.value()
        if not isinstance(value, str):
            raise self.wrong(f"{value!r} is no text; put it in quotes")
        if not value:
            raise self.wrong("is empty")
        return value

    def whole(self, least: int, most: int = LARGEST) -> int:
        """Return a whole number from `least` to `most`."""
        value = self.value()
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            raise self.wrong(f"has to be a whole number from {least} to {most}")
        return value

    def amount(self, read: Callable[..., int]) -> int:
        """Return what a function of `seaway.domain.units` reads."""
        amount = read(self.value(), where=self.where)
        if amount > LARGEST and read.__name__ != "duration_ns":
            raise self.wrong("is more than anything can be")
        return amount


def read_yaml_file(path: Path) -> Entry:
    """Read a YAML file with one document.

    Raises
    ------
    RejectedError
        When it cannot be read or is no YAML; says where.
    """
    try:
        raw = path.read_bytes()
        if len(raw) > MOST_BYTES:
            raise RejectedError(f"is larger than {MOST_BYTES >> 20} MiB", where=str(path))
        node = yaml.compose(raw.decode(), yaml.SafeLoader)
    except OSError as error:
        raise RejectedError(f"cannot be read: {error.strerror}", where=str(path)) from None
    except UnicodeDecodeError:
        raise RejectedError("is no text in UTF-8", where=str(path)) from None
    except RecursionError:
        raise RejectedError("is nested too deep", where=str(path)) from None
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f"{path}:{mark.line + 1}" if mark else str(path)
        raise RejectedError(f"is no YAML: {error.problem or error.context}", where=where) from None
    except yaml.YAMLError as error:
        raise RejectedError(f"is no YAML: {str(error).splitlines()[0]}", where=str(path)) from None
    if node is None:
        raise RejectedError("is empty", where=str(path))
    return Entry(str(path), "", node)
