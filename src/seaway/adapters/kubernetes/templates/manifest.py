"""Manifests and the pins of their placement."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any

import yaml

from seaway.adapters.kubernetes.templates.names import digest, numbers_text
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
    absent
        True if the object must not exist any more, because all its replicas are leaving.
    """

    body: dict[str, Any]
    pins: tuple[Pin, ...] = ()
    replicas: tuple[int, ...] = ()
    create_only: bool = False
    absent: bool = False

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

    @property
    def namespace(self) -> str:
        """Namespace of the object."""
        return str(self.body["metadata"]["namespace"])


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
class Group:
    """Replicas with one pod template.

    Attributes
    ----------
    placements
        Their placements, by replica. Slices are in the order of the devices, and without the start of a MIG instance,
        because no device plugin accepts it.
    role
        Role in the workload; empty if each group has its own workload.
    leaving
        Placements of replicas that are being removed, in the same form.
    began
        Indexes of all replicas that it may ever have; empty if unknown.
    """

    placements: tuple[Placement, ...]
    role: str = ""
    leaving: tuple[Placement, ...] = ()
    began: str = ""

    @property
    def replicas(self) -> tuple[int, ...]:
        """Indexes of the replicas, ascending."""
        return tuple(each.replica for each in self.placements)

    @property
    def every(self) -> tuple[Placement, ...]:
        """Placements of all replicas that still exist."""
        return (*self.placements, *self.leaving)

    @property
    def began_with(self) -> str:
        """Indexes of the replicas with which the workload was created. Its pod template must not change later."""
        known = self.began or next((each.beside for each in self.every if each.beside), "")
        return known or numbers_text(sorted(each.replica for each in self.every))

    @property
    def wave(self) -> int:
        """Number of the resize that added its replicas, if it has one place."""
        return self.every[0].wave

    @property
    def nodes(self) -> tuple[str, ...]:
        """Names of the nodes."""
        return tuple(sorted({each.node for each in self.every}))

    @property
    def digest(self) -> str:
        """Digest of the role and the places for names and labels, unique in an attempt; independent of the replicas."""
        if self.began:
            return digest([self.role, self.began])
        places = [_digest(each) for each in self.places()]
        return digest([self.role, *places]) if self.role else places[0]

    def places(self) -> tuple[Placement, ...]:
        """Return one placement for each node with equal devices and amounts, by its first replica."""
        return tuple(group.every[0] for group in self.alike())

    def alike(self) -> tuple[Group, ...]:
        """Return a group for each of its places."""
        found: dict[Hashable, list[Placement]] = defaultdict(list)
        for each in self.every:
            found[each.place].append(each)
        return tuple(_group(placements, self.role) for placements in found.values())

    def split(self, first: str, rest: str) -> tuple[Group, Group]:
        """Return the first replica, which is replica 0 except in a ring, and the other ones, with their roles."""
        lead = min(each.replica for each in self.every)
        return (
            _group((each for each in self.every if each.replica == lead), first),
            _group((each for each in self.every if each.replica != lead), rest),
        )


def _group(placements: Iterable[Placement], role: str = "") -> Group:
    every = sorted(placements, key=lambda each: each.replica)
    stay, leave = (tuple(each for each in every if each.leaving is leaves) for leaves in (False, True))
    return Group(stay, role, leave)


def group_of(deployment: Deployment) -> Group:
    """Return all replicas of a deployment, independent of the order of its placements.

    Raises
    ------
    InvariantError
        When there are no placements, one is for another cluster, or a replica has two placements.
    """
    placements = sorted(deployment.placements, key=lambda each: each.replica)
    for before, each in zip([None, *placements], placements, strict=False):
        if each.cluster != deployment.cluster or (before and before.replica == each.replica):
            raise InvariantError(f"{deployment.name}: replica {each.replica} is placed twice or elsewhere")
    if all(each.leaving for each in placements):
        raise InvariantError(f"{deployment.name}: nothing to deploy in {deployment.cluster}")
    return _group(replace(each, slices=_slices(each)) for each in placements)


def _digest(placement: Placement) -> str:
    """Return the digest of a node, devices and amounts, and of the resize that added the replicas."""
    slices = [[each.uuid, each.memory_mib, each.core_milli, each.mig_profile] for each in placement.slices]
    return digest([placement.cluster, placement.node, slices, *([placement.wave] if placement.wave else [])])


def _slices(placement: Placement) -> tuple[DeviceSlice, ...]:
    return tuple(
        sorted(
            (replace(each, mig_start=-1) for each in placement.slices),
            key=lambda each: (each.uuid, each.memory_mib, each.core_milli, each.mig_profile),
        )
    )
