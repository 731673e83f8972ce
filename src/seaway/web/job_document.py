"""A job as YAML, and what stands where in it."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import yaml

from seaway.domain.errors import RejectedError
from seaway.domain.units import FIGURES
from seaway.wire.job_in import JobIn
from seaway.wire.yaml import Loader, read_yaml

Document = dict[str, Any]
"""A job as it is written, nested as in YAML."""

LARGEST = 64 * 1024
"""Characters of a text that is shown in a form, too; what is longer goes to the API as it is."""

FIRST = tuple(JobIn.model_fields)
"""Fields in the order in which they are written."""


def read_document(text: str) -> Document:
    """Read a job in YAML.

    Raises
    ------
    RejectedError
        When it is too long for a form, no YAML, no mapping of names to values, or holds a number that is too long.
    """
    if len(text) > LARGEST:
        raise RejectedError(f"has more than {LARGEST:,} characters")
    read = read_yaml(text)
    if read is None:
        return {}
    if not isinstance(read, dict) or not all(isinstance(name, str) for name in read):
        raise RejectedError("must be a mapping of names to values, like `name: train`")
    try:
        repr(read)
    except ValueError:  # Python writes no number of thousands of digits, which hexadecimal may have
        raise RejectedError("holds a number of too many digits") from None
    return read


def written(document: Mapping[str, Any]) -> str:
    """Write a job in YAML: known fields in their order, then what else there is; nothing for an empty one."""
    if not document:
        return ""
    order = {name: at for at, name in enumerate(FIRST)}
    ordered = dict(sorted(document.items(), key=lambda each: order.get(each[0], len(order))))
    text: str = yaml.dump(ordered, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=100)
    return text


def value_at(document: Mapping[str, Any], path: str) -> Any:  # noqa: ANN401  # anything that YAML may hold
    """Return what stands at a path like ``resources.gpus``; None for nothing."""
    here: Any = document
    for step in path.split("."):
        here = here.get(step) if isinstance(here, Mapping) else None
    return here


def changed(document: Document, path: str, value: object) -> Document:
    """Return a job with something else at a path; None takes away what is there, and parts that are empty then."""
    step, _, rest = path.partition(".")
    result = dict(document)
    if rest:
        inner = result.get(step)
        value = changed(inner if isinstance(inner, dict) else {}, rest, value) or None
    if value is None:
        result.pop(step, None)
    else:
        result[step] = value
    return result


_Plain: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)


class _Dumper(_Plain):  # type: ignore[misc]  # either of the two
    """Writes lists of plain values on one line, and everything out that appears twice."""

    def ignore_aliases(self, data: object) -> bool:
        """Write everything out."""
        return True


def _short_list(dumper: yaml.SafeDumper, value: list[Any]) -> yaml.SequenceNode:
    plain = not any(isinstance(each, list | dict) for each in value)
    return dumper.represent_sequence("tag:yaml.org,2002:seq", value, flow_style=plain)


_Dumper.add_representer(list, _short_list)


NUMBER = re.compile(r"-?\d{1,15}(\.\d{1,15})?")
"""A number; what has more digits stays text, of which the API says what is wrong with it."""

STEP = re.compile(r"[^.\[\]]+")


@dataclass(frozen=True, slots=True)
class Kind:
    """How a field is written in a form.

    Attributes
    ----------
    read
        Makes a value of what was typed, which is not empty.
    shown
        Makes text of a value that is of this kind.
    """

    read: Callable[[str], Any]
    shown: Callable[[Any], str]


def amount(text: str) -> int | float | str:
    """Read a number as one, and what has a unit as text."""
    if not NUMBER.fullmatch(text):
        return text
    return float(text) if "." in text else int(text)


def _list(text: str) -> list[int | float | str]:
    return [amount(each.strip()) for each in text.split(",") if each.strip()]


def _names(text: str) -> list[str]:
    return [each.strip() for each in text.split(",") if each.strip()]


def _command(text: str) -> list[str]:
    """Read a command as shells do; where a quote is still open, as its words."""
    try:
        return shlex.split(text)
    except ValueError:
        return text.split()


def _pairs(text: str) -> dict[str, str]:
    """Read lines of ``NAME=VALUE``."""
    lines = [line for line in text.splitlines() if line.strip()]
    return {line.partition("=")[0].strip(): line.partition("=")[2].strip() for line in lines}


def _joined(value: Any) -> str:  # noqa: ANN401  # anything that YAML may hold
    return ", ".join(map(str, value))


TEXT = Kind(str, str)
AMOUNT = Kind(amount, str)
NAMES = Kind(_names, _joined)
NUMBERS = Kind(_list, _joined)
COMMAND = Kind(_command, lambda value: shlex.join(map(str, value)))
PAIRS = Kind(_pairs, lambda value: "\n".join(f"{name}={each}" for name, each in value.items()))


def shown(document: Mapping[str, Any], path: str, kind: Kind) -> str:
    """Return what a field of a form shows of a job."""
    value = value_at(document, path)
    if value is None:
        return ""
    try:
        return kind.shown(value)
    except (TypeError, AttributeError):  # it is of another kind, which the API will say
        return str(value)


def typed(text: str, kind: Kind) -> Any:  # noqa: ANN401  # anything that YAML may hold
    """Return what was typed into a field as a value; None for nothing."""
    return kind.read(text.strip()) if text.strip() else None


def field_of(where: str, fields: Mapping[str, object]) -> str:
    """Return the form's field that an error's place belongs to, like ``run.ports`` for ``run.ports[2]``; else empty."""
    steps = STEP.findall(where)
    for end in range(len(steps), 0, -1):
        if (path := ".".join(steps[:end])) in fields:
            return path
    return ""


def path_of(figure: str) -> str:
    """Return where a job has a figure of an explanation, like ``gpu_memory_mib``; empty where nothing can be set."""
    word = FIGURES.get(figure, ("",))[0]
    return next((path for path in SETTABLE if path.endswith(f".{word}")), "")


SETTABLE = (
    *(f"resources.{name}" for name in ("gpus", "gpu_memory", "gpu_cores", "cpu", "memory")),
    *(f"network.{name}" for name in ("max_latency", "max_jitter", "max_loss", "min_bandwidth")),
)
"""Fields that hold a figure."""


def lines_of(text: str) -> dict[str, int]:
    """Return on which line each field stands, by path like ``run.ports[0]``, from 1, in what `read_document` takes."""
    lines: dict[str, int] = {}
    root = yaml.compose(text, Loader)
    if root is not None:
        _walk(root, "", lines)
    return lines


def line_of(lines: Mapping[str, int], path: str) -> int | None:
    """Return the line of a field, or of what it would be a part of; None for the job as a whole."""
    while path and path not in lines:
        path = path[: max(path.rfind("."), path.rfind("["), 0)]
    return lines.get(path)


def _walk(node: yaml.Node, path: str, lines: dict[str, int]) -> None:
    """Note on which line everything below a node stands."""
    if isinstance(node, yaml.SequenceNode):
        for at, part in enumerate(node.value):
            lines[f"{path}[{at}]"] = part.start_mark.line + 1
            _walk(part, f"{path}[{at}]", lines)
    elif isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            name = f"{path}.{key.value}" if path else str(key.value)
            lines[name] = key.start_mark.line + 1
            _walk(value, name, lines)
