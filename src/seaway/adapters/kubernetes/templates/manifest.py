"""A manifest, and what pins it to its place."""

from __future__ import annotations

from collections.abc import Iterable
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import yaml

from seaway.domain.errors import InvariantError

Step = str | int
Path = tuple[Step, ...]
"""Keys and places in lists, from a manifest's root."""


@dataclass(frozen=True, slots=True)
class Pin:
    """A value that is put in somewhere: what RFC 6902 calls ``add``.

    Attributes
    ----------
    path
        Where; all but the last step are there already.
    """

    path: Path
    value: Any

    @property
    def pointer(self) -> str:
        """The path as a JSON pointer (RFC 6901)."""
        return "".join(f"/{str(step).replace('~', '~0').replace('/', '~1')}" for step in self.path)


@dataclass(frozen=True, slots=True)
class Manifest:
    """An object to be written.

    Attributes
    ----------
    body
        The object without its pins: it says what runs, not where.
    pins
        What ties it to nodes and devices.
    replicas
        Numbers of the job's replicas that run in it; empty for what runs nothing.
    create_only
        Whether another user changes what stands in it, so that it may be created, but not written again.
    """

    body: dict[str, Any]
    pins: tuple[Pin, ...] = ()
    replicas: tuple[int, ...] = ()
    create_only: bool = False

    def pinned(self) -> dict[str, Any]:
        """Return the object with its pins in it; not to be changed."""
        if not self.pins:
            return self.body
        body = deepcopy(self.body)
        for pin in self.pins:
            at = find(body, pin.path[:-1])
            if not isinstance(at, dict):
                raise InvariantError(f"a pin at {pin.pointer} has nothing to hold on to")
            at[str(pin.path[-1])] = deepcopy(pin.value)
        return body

    @property
    def kind(self) -> str:
        """What it is."""
        return str(self.body["kind"])

    @property
    def name(self) -> str:
        """What it is called."""
        return str(self.body["metadata"]["name"])


def find(body: object, path: Path) -> Any:  # noqa: ANN401  # whatever stands there
    """Return what stands at a path; None where there is nothing."""
    for step in path:
        if isinstance(body, dict):
            body = body.get(step)
        elif isinstance(body, list) and isinstance(step, int) and step < len(body):
            body = body[step]
        else:
            return None
    return body


class _Dumper(yaml.SafeDumper):
    """Writes lists indented, no aliases, and nothing broken over lines."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        super().increase_indent(flow, False)

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ANN401  # whatever is written
        return True


def as_yaml(manifests: Iterable[Manifest]) -> str:
    """Write manifests, pins and all, as one YAML text; equal manifests give equal bytes."""
    return yaml.dump_all(
        [each.pinned() for each in manifests],
        Dumper=_Dumper,
        sort_keys=False,
        explicit_start=True,
        width=1_000_000,
        allow_unicode=True,
    )
