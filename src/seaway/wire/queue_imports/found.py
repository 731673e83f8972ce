"""Queues that a file describes, and the fields that have no counterpart."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from math import ceil, lcm
from typing import Any

from seaway.domain.amounts import CPU, GPU_CORES, GPU_MEMORY, GPUS, MEMORY, parse_amounts, written_amounts
from seaway.domain.errors import RejectedError
from seaway.domain.numbers import exact_number
from seaway.domain.queues import MAX_PRIORITY, Backfill, Order, Preemption, Preempts, Reclaim
from seaway.domain.tenancy import MAX_WEIGHT, require_name

Fields = Mapping[str, Any]

_QUANTITY = re.compile(r"([0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE]([+-]?[0-9]{1,2})|(n|u|m|[kKMGTPE]i?))?", re.ASCII)
LONGEST = 40
"""Maximum length of a quantity in an error, characters."""

_POWERS = "KMGTPE"
_SMALL = {"n": Fraction(1, 10**9), "u": Fraction(1, 10**6), "m": Fraction(1, 1000)}

_UNITS: Mapping[str, tuple[str, Fraction]] = {
    "cpu": (CPU, Fraction(1000)),
    "memory": (MEMORY, Fraction(1, 1 << 20)),
    "gpu": (GPUS, Fraction(1000)),
    "gpus": (GPUS, Fraction(1000)),
    "nvidia.com/gpumem": (GPU_MEMORY, Fraction(1)),
    "volcano.sh/vgpu-memory": (GPU_MEMORY, Fraction(1)),
    "nvidia.com/gpucores": (GPU_CORES, Fraction(10)),
    "volcano.sh/vgpu-cores": (GPU_CORES, Fraction(10)),
}
"""Resource and number of its units per unit of a Kubernetes resource. vGPU memory is in MiB, vGPU cores in percent."""

NEVER: tuple[object, ...] = ("Never", "None", False, None, "", {}, [])
"""Values of a field that changes nothing."""


@dataclass(frozen=True, slots=True)
class Left:
    """Field that cannot be imported, with the reason."""

    source: str
    field: str
    reason: str


@dataclass(slots=True)
class FoundQueue:
    """A queue to set. Amounts are those of `seaway.domain.amounts`; None keeps the current value.

    Attributes
    ----------
    source
        Kind and name of the object in the file.
    """

    source: str
    name: str
    parent: str = ""
    weight: Fraction = Fraction(1)
    priority: int = 0
    guarantee: dict[str, int] = field(default_factory=dict)
    limit: dict[str, int] = field(default_factory=dict)
    lending_limit: dict[str, int] | None = None
    order: Order | None = None
    backfill: Backfill | None = None
    open: bool | None = None
    preemption: Preemption | None = None
    preempts: Preempts | None = None
    reclaim: Reclaim | None = None
    preemptible: bool | None = None

    def fields(self) -> dict[str, Any]:
        """Return the fields of `QueueIn`, with None for those that stay."""
        return {
            "parent": self.parent,
            "weight": int(self.weight),
            "priority": self.priority,
            "guarantee": written_amounts(self.guarantee),
            "limit": written_amounts(self.limit),
            "lending_limit": None if self.lending_limit is None else written_amounts(self.lending_limit),
            "order": self.order and self.order.value,
            "backfill": self.backfill and self.backfill.value,
            "open": self.open,
            "preemption": self.preemption and self.preemption.value,
            "preempts": self.preempts and self.preempts.value,
            "reclaim": self.reclaim and self.reclaim.value,
            "preemptible": self.preemptible,
        }


@dataclass(slots=True)
class Found:
    """Content of a file."""

    queues: list[FoundQueue] = field(default_factory=list)
    left: list[Left] = field(default_factory=list)

    def leave(self, source: str, name: str, reason: str) -> None:
        """Report a field that cannot be imported."""
        self.left.append(Left(source, name, reason))

    def leave_others(self, source: str, given: Fields, known: Sequence[str], reasons: Mapping[str, str]) -> None:
        """Report all fields except known ones and those whose value changes nothing."""
        for name, value in given.items():
            if name not in known and not _is_never(value):
                self.leave(source, name, reasons.get(name, "unknown field"))

    def add(self, queue: FoundQueue) -> None:
        """Add a queue with a valid and new name; report others."""
        try:
            require_name("queue", queue.name)
        except RejectedError as error:
            self.leave(queue.source, "name", error.message)
            return
        if any(each.name == queue.name for each in self.queues):
            self.leave(queue.source, "name", f"the file has another queue {queue.name!r}")
            return
        self.queues.append(queue)

    def entries(self, source: str, at: str, given: object) -> list[Fields]:
        """Return the mappings of a list; report what is not one."""
        if given is None:
            return []
        if not isinstance(given, list) or not all(isinstance(each, Mapping) for each in given):
            self.leave(source, at, "is not a list of mappings")
        return [each for each in given if isinstance(each, Mapping)] if isinstance(given, list) else []

    def amounts(self, source: str, at: str, given: object) -> dict[str, int]:
        """Return the amounts of a mapping of resources; report those without a counterpart."""
        if given in (None, {}):
            return {}
        if not isinstance(given, Mapping):
            self.leave(source, at, "is not a mapping of resources to amounts")
            return {}
        amounts: dict[str, int] = {}
        for name, value in given.items():
            if (read := self.amount(source, f"{at}.{name}", str(name), value)) is not None:
                amounts[read[0]] = amounts.get(read[0], 0) + read[1]
        return amounts

    def amount(self, source: str, at: str, name: str, value: object) -> tuple[str, int] | None:
        """Return the resource and amount of a quantity; report it and return None if it has no counterpart."""
        unit = unit_of(name)
        try:
            if unit is None:
                ((resource, amount),) = parse_amounts({name: value}).items()
                return resource, amount
            return unit[0], ceil(quantity(value) * unit[1])
        except RejectedError as error:
            known = unit is not None or not error.message.startswith("unknown resource")
            self.leave(source, at, error.message if known else "queues do not count this resource")
            return None

    def weigh(self) -> None:
        """Make all weights whole numbers, by one common factor."""
        factor = lcm(*(each.weight.denominator for each in self.queues))
        for each in self.queues:
            weight = each.weight * factor
            if weight > MAX_WEIGHT:
                self.leave(each.source, "weight", f"is {weight}, more than {MAX_WEIGHT}, which it gets")
            each.weight = min(weight, Fraction(MAX_WEIGHT))
        if factor > 1:
            self.leave("all queues", "weight", f"is multiplied by {factor}, because weights are whole numbers")

    def parents_first(self) -> Iterator[FoundQueue]:
        """Yield the queues, each after its parent. A queue of a cycle is yielded last."""
        waiting = list(self.queues)
        while waiting:
            names = {each.name for each in waiting}
            ready = [each for each in waiting if each.parent not in names] or waiting
            yield from ready
            waiting = [each for each in waiting if each not in ready]


def unit_of(name: str) -> tuple[str, Fraction] | None:
    """Return the resource of a Kubernetes resource, and its units; None without a counterpart."""
    return _UNITS["gpu"] if name.endswith("/gpu") else _UNITS.get(name)


def quantity(value: object) -> Fraction:
    """Parse a Kubernetes quantity, such as ``2``, ``500m`` or ``36Gi``.

    Raises
    ------
    RejectedError
        If it is invalid or negative.
    """
    text = str(value) if isinstance(value, int | float | str) and not isinstance(value, bool) else ""
    match = _QUANTITY.fullmatch(text)
    number = exact_number(match[1]) if match else None
    if match is None or number is None:
        said = repr(value) if len(text) <= LONGEST else f"{text[:LONGEST]!r}..."
        raise RejectedError(f"{said} is not a Kubernetes quantity, like 2, 500m or 36Gi")
    exponent, suffix = match[2], match[3] or ""
    if exponent:
        scale: int = 10 ** abs(int(exponent))
        return number / scale if exponent.startswith("-") else number * scale
    if suffix in _SMALL:
        return number * _SMALL[suffix]
    steps = _POWERS.index(suffix[0].upper()) + 1 if suffix else 0
    base: int = 1024 if suffix.endswith("i") else 1000
    return number * Fraction(base**steps)


def whole(value: object, least: int, found: Found, source: str, at: str, otherwise: int) -> int:
    """Return a whole number; report others and return `otherwise`."""
    if isinstance(value, int) and not isinstance(value, bool) and least <= value <= MAX_PRIORITY:
        return value
    if value is not None:
        found.leave(source, at, f"{value!r} is not a whole number from {least} to {MAX_PRIORITY}")
    return otherwise


def mapping(value: object) -> Fields:
    """Return a mapping; an empty one for other values."""
    return value if isinstance(value, Mapping) else {}


def _is_never(value: object) -> bool:
    return value in NEVER or (isinstance(value, Mapping) and all(map(_is_never, value.values())))
