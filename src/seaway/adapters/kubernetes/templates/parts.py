"""Parts: the replicas of one cluster that one pod template can serve."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace

from seaway.adapters.kubernetes.templates.names import digest
from seaway.domain.deployment import Deployment
from seaway.domain.errors import InvariantError
from seaway.domain.placement import DeviceSlice, Placement


@dataclass(frozen=True, slots=True)
class Part:
    """Replicas that share node, devices and amounts.

    Attributes
    ----------
    cluster, node
        Where they go.
    slices
        What each takes of each device, in the order of the devices. Where an instance of a MIG device begins is
        left out: no vGPU layer can be told.
    replicas
        Their numbers, ascending.
    """

    cluster: str
    node: str
    slices: tuple[DeviceSlice, ...]
    replicas: tuple[int, ...]

    @property
    def digest(self) -> str:
        """Stands for the part in names; the same whichever of its replicas are meant."""
        taken = [[each.uuid, each.memory_mib, each.core_milli, each.mig_profile] for each in self.slices]
        return digest([self.cluster, self.node, taken])

    def only(self, *replicas: int) -> Part:
        """Return the part with these of its replicas."""
        return replace(self, replicas=tuple(each for each in self.replicas if each in replicas))

    def without(self, *replicas: int) -> Part:
        """Return the part with the others of its replicas."""
        return replace(self, replicas=tuple(each for each in self.replicas if each not in replicas))


@dataclass(frozen=True, slots=True)
class Group:
    """Replicas that run from one pod template: a part, some of one, or several.

    Attributes
    ----------
    role
        What they are among others of their workload; empty where each part has a workload of its own.
    """

    parts: tuple[Part, ...]
    role: str = ""

    @property
    def replicas(self) -> tuple[int, ...]:
        """Their numbers, ascending."""
        return tuple(sorted(each for part in self.parts for each in part.replicas))

    @property
    def digest(self) -> str:
        """Stands for the group in names and labels; no two groups of an attempt have the same."""
        if not self.role:
            return self.parts[0].digest
        return digest([self.role, *(part.digest for part in self.parts)])

    @property
    def nodes(self) -> tuple[str, ...]:
        """Where they go, by name."""
        return tuple(sorted({part.node for part in self.parts}))


def parts(deployment: Deployment) -> tuple[Part, ...]:
    """Group a deployment's replicas.

    Returns
    -------
    parts
        In the order of their first replicas, whatever the order of the placements.

    Raises
    ------
    InvariantError
        When there are no placements, one is for another cluster, or a replica is placed twice.
    """
    grouped: dict[tuple[str, tuple[DeviceSlice, ...]], list[int]] = defaultdict(list)
    seen: set[int] = set()
    for placement in sorted(deployment.placements, key=lambda each: each.replica):
        if placement.cluster != deployment.cluster or placement.replica in seen:
            raise InvariantError(f"{deployment.name}: replica {placement.replica} is placed twice or elsewhere")
        seen.add(placement.replica)
        grouped[placement.node, _slices(placement)].append(placement.replica)
    if not grouped:
        raise InvariantError(f"{deployment.name}: there is nothing to deploy in {deployment.cluster}")
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
