"""The kinds of instances that can be drawn, by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType

import numpy as np

from seaway.domain.errors import RejectedError
from seaway.learning.instances.instance import Instance
from seaway.learning.instances.study import NetworkKind, PlacementKind
from seaway.learning.instances.wide import TraceKind, WideKind

Draw = Callable[[np.random.Generator], Instance]
"""Draws an instance; from the same state of the generator, the same instance."""

KINDS: Mapping[str, Draw] = MappingProxyType(
    {"placement": PlacementKind(), "network": NetworkKind(), "trace": TraceKind(), "any": WideKind()}
)
"""Generators by name."""


def kind_of(name: str) -> Draw:
    """Return what draws instances of a kind.

    Raises
    ------
    RejectedError
        When there is none of that name.
    """
    if name not in KINDS:
        raise RejectedError(f"instances of the kind {name!r} cannot be generated; available: {', '.join(KINDS)}")
    return KINDS[name]


def drawn(kind: str, count: int, seed: int) -> list[Instance]:
    """Draw instances, each from its own number and the seed; raises as `kind_of` does."""
    return [generate_one(kind, number, seed) for number in range(count)]


def generate_one(kind: str, number: int, seed: int) -> Instance:
    """Draw the instance of a number, named after what it is drawn from; raises as `kind_of` does."""
    instance = kind_of(kind)(np.random.default_rng((seed, number)))
    return replace(instance, name=f"{family_of(kind, seed)}{number}")


def family_of(kind: str, seed: int) -> str:
    """Return what the names of drawn instances have before their numbers."""
    return f"{kind}-seed{seed}-"
