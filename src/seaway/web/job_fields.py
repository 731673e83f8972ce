"""Fields of a form that fills in a job: what is typed as a value, a value as it is shown, and which field is meant."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from seaway.domain.amounts import FIGURES
from seaway.web.job_document import value_at

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
