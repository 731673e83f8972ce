"""Manifests and the pins of their placement."""

from __future__ import annotations

from collections.abc import Iterable
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import yaml

from seaway.domain.errors import InvariantError

Step = str | int
Path = tuple[Step, ...]
"""Keys and list indexes from a manifest's root."""


@dataclass(frozen=True, slots=True)
class Pin:
    """A value to insert: ``add`` of RFC 6902.

    Attributes
    ----------
    path
        Path of the value. All steps except the last one exist already.
    """

    path: Path
    value: Any

    @property
    def pointer(self) -> str:
        """Path as a JSON pointer (RFC 6901)."""
        return "".join(f"/{str(step).replace('~', '~0').replace('/', '~1')}" for step in self.path)


@dataclass(frozen=True, slots=True)
class Manifest:
    """An object to write.

    Attributes
    ----------
    body
        Object without its pins, which defines the work, but not its place.
    pins
        Values that bind it to nodes and devices.
    replicas
        Indexes of the job's replicas in it; empty for an object that runs nothing.
    create_only
        True if others change the object, so that Seaway may create it, but not update it.
    """

    body: dict[str, Any]
    pins: tuple[Pin, ...] = ()
    replicas: tuple[int, ...] = ()
    create_only: bool = False

    def pinned(self) -> dict[str, Any]:
        """Return the object with its pins. Do not change the result."""
        if not self.pins:
            return self.body
        body = deepcopy(self.body)
        for pin in self.pins:
            at = find(body, pin.path[:-1])
            if not isinstance(at, dict):
                raise InvariantError(f"a pin at {pin.pointer} has no target")
            at[str(pin.path[-1])] = deepcopy(pin.value)
        return body

    @property
    def kind(self) -> str:
        """Kind of the object."""
        return str(self.body["kind"])

    @property
    def name(self) -> str:
        """Name of the object."""
        return str(self.body["metadata"]["name"])


def find(body: object, path: Path) -> Any:  # noqa: ANN401  # any value
    """Return the value at a path; None if there is none."""
    for step in path:
        if isinstance(body, dict):
            body = body.get(step)
        elif isinstance(body, list) and isinstance(step, int) and step < len(body):
            body = body[step]
        else:
            return None
    return body


class _Dumper(yaml.SafeDumper):
    """YAML dumper with indented lists, without aliases and line breaks in values."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        super().increase_indent(flow, False)

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ANN401  # any value
        return True


def as_yaml(manifests: Iterable[Manifest]) -> str:
    """Return manifests with their pins as one YAML text; equal manifests give equal bytes."""
    return yaml.dump_all(
        [each.pinned() for each in manifests],
        Dumper=_Dumper,
        sort_keys=False,
        explicit_start=True,
        width=1_000_000,
        allow_unicode=True,
    )
