"""Digests of instances: a run goes on only with those that it began with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from hashlib import sha256

from seaway.learning.instances.instance import Instance

MIX = "job mix of "
"""Begins what the past jobs of an instance are called, behind which stands its name."""


def digest_of(instance: Instance) -> str:
    """Digest of fleet and jobs: 64 hexadecimal digits, the same for equal instances in any process."""
    return _digest((instance.fleet, instance.jobs))


def digest_of_mix(instance: Instance) -> str:
    """Digest of the past jobs that an instance has."""
    return _digest(tuple(instance.mix))


def _digest(value: object) -> str:
    parts: list[str] = []
    _write(value, parts)
    return sha256("\0".join(parts).encode()).hexdigest()


def _write(value: object, parts: list[str]) -> None:
    if is_dataclass(value):
        parts.append(type(value).__name__)
        for each in fields(value):
            _write(getattr(value, each.name), parts)
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
