"""Instances of a run, from folders and generated."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import MISSING, Field, fields, is_dataclass
from hashlib import sha256
from pathlib import Path

from seaway.domain.errors import RejectedError
from seaway.learning.instances.instance import Instance, read_instances
from seaway.learning.instances.wide import drawn
from seaway.learning.settings import Run


def read_all(run: Run) -> Sequence[Instance]:
    """Read and generate the instances of a run, those from folders first.

    Raises
    ------
    RejectedError
        When a folder has no instances, a file is invalid, or instances of a kind cannot be generated.
    """
    found = read_instances([Path(path) for path in run.instances])
    for kind in run.draw:
        try:
            found += drawn(kind, run.settings.draws, run.settings.draw_seed)
        except RejectedError as error:
            raise RejectedError(error.message, where="--draw") from None
    return found


MIX = "job mix of "
"""Prefix of the name of an instance's past jobs."""


def digest_of(instance: Instance) -> str:
    """Return the digest of fleet and jobs, 64 hexadecimal digits.

    Equal instances have equal digests in all processes.
    """
    return _digest((instance.fleet, instance.jobs))


def digest_of_mix(instance: Instance) -> str:
    """Return the digest of the past jobs of an instance."""
    return _digest(tuple(instance.mix))


def _digest(value: object) -> str:
    parts: list[str] = []
    _write(value, parts)
    return sha256("\0".join(parts).encode()).hexdigest()


def _default(field: Field[object]) -> object:
    """Return the default of a field. Parts with their default are left out, so that new fields change no digest."""
    return field.default if field.default_factory is MISSING else field.default_factory()


def _write(value: object, parts: list[str]) -> None:
    if is_dataclass(value):
        parts.append(type(value).__name__)
        for each in fields(value):
            if (part := getattr(value, each.name)) != _default(each):
                parts.append(each.name)
                _write(part, parts)
    elif isinstance(value, tuple | list):
        parts.append(f"({len(value)}")
        for each in value:
            _write(each, parts)
    elif isinstance(value, frozenset | set):
        parts.append(f"{{{len(value)}")
        parts.extend(sorted(map(repr, value)))
    elif isinstance(value, Mapping):
        parts.append(f"[{len(value)}")
        parts.extend(sorted(f"{key!r}:{each!r}" for key, each in value.items()))
    else:
        parts.append(repr(value))
