"""Manifests and the pins of their placement."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any

import yaml

from seaway.adapters.kubernetes.templates.names import digest
from seaway.domain.deployment import Deployment
from seaway.domain.errors import InvariantError
from seaway.domain.placement import DeviceSlice, Placement

Step = str | int
Path = tuple[Step, ...]
"""Keys and list indexes from a manifest's root."""


@dataclass(frozen=True, slots=True)
class Pin:
    """Value to insert into a manifest: ``add`` of RFC 6902.

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
    """Object to write.

    Attributes
    ----------
    body
        Object without its pins, independent of its placement.
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
    """YAML dumper with indented lists, and without aliases and line breaks in values."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        super().increase_indent(flow, False)

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ANN401  # any value
        return True


def as_yaml(manifests: Iterable[Manifest]) -> str:
    """Return manifests with their pins as one YAML text. Equal manifests give equal bytes."""
    return yaml.dump_all(
        [each.pinned() for each in manifests],
        Dumper=_Dumper,
        sort_keys=False,
        explicit_start=True,
        width=1_000_000,
        allow_unicode=True,
    )


@dataclass(frozen=True, slots=True)
class Part:
    """Replicas with the same node, devices and amounts.

    Attributes
    ----------
    cluster, node
        Cluster and node of the replicas.
    slices
        Device shares of each replica, in the order of the devices. The start of a MIG instance is omitted, because no
        device plugin accepts it.
    replicas
        Indexes of the replicas, ascending.
    """

    cluster: str
    node: str
    slices: tuple[DeviceSlice, ...]
    replicas: tuple[int, ...]

    @property
    def digest(self) -> str:
        """Digest of the part for names; independent of its replicas."""
        taken = [[each.uuid, each.memory_mib, each.core_milli, each.mig_profile] for each in self.slices]
        return digest([self.cluster, self.node, taken])

    def only(self, *replicas: int) -> Part:
        """Return the part with only the given replicas."""
        return replace(self, replicas=tuple(each for each in self.replicas if each in replicas))

    def without(self, *replicas: int) -> Part:
        """Return the part without the given replicas."""
        return replace(self, replicas=tuple(each for each in self.replicas if each not in replicas))


@dataclass(frozen=True, slots=True)
class Group:
    """Replicas with one pod template: a part, some replicas of a part, or several parts.

    Attributes
    ----------
    role
        Role in the workload; empty if each part has its own workload.
    """

    parts: tuple[Part, ...]
    role: str = ""

    @property
    def replicas(self) -> tuple[int, ...]:
        """Indexes of the replicas, ascending."""
        return tuple(sorted(each for part in self.parts for each in part.replicas))

    @property
    def digest(self) -> str:
        """Digest of the group for names and labels, unique in an attempt."""
        if not self.role:
            return self.parts[0].digest
        return digest([self.role, *(part.digest for part in self.parts)])

    @property
    def nodes(self) -> tuple[str, ...]:
        """Names of the nodes."""
        return tuple(sorted({part.node for part in self.parts}))


def parts(deployment: Deployment) -> tuple[Part, ...]:
    """Group the replicas of a deployment.

    Returns
    -------
    parts
        Parts in the order of their first replicas, independent of the order of the placements.

    Raises
    ------
    InvariantError
        When there are no placements, a placement is for another cluster, or a replica has two placements.
    """
    grouped: dict[tuple[str, tuple[DeviceSlice, ...]], list[int]] = defaultdict(list)
    seen: set[int] = set()
    for placement in sorted(deployment.placements, key=lambda each: each.replica):
        if placement.cluster != deployment.cluster or placement.replica in seen:
            raise InvariantError(f"{deployment.name}: replica {placement.replica} is placed twice or elsewhere")
        seen.add(placement.replica)
        grouped[placement.node, _slices(placement)].append(placement.replica)
    if not grouped:
        raise InvariantError(f"{deployment.name}: nothing to deploy in {deployment.cluster}")
    return tuple(
        Part(deployment.cluster, node, slices, tuple(replicas)) for (node, slices), replicas in grouped.items()
    )


def _slices(placement: Placement) -> tuple[DeviceSlice, ...]:
    return tuple(
        sorted(
            (replace(each, mig_start=-1) for each in placement.slices),
            key=lambda each: (each.uuid, each.memory_mib, each.core_milli, each.mig_profile),
        )
    )
