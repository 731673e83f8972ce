"""Parts: groups of replicas in one cluster that can share a pod template."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace

from seaway.adapters.kubernetes.templates.names import digest
from seaway.domain.deployment import Deployment
from seaway.domain.errors import InvariantError
from seaway.domain.placement import DeviceSlice, Placement


@dataclass(frozen=True, slots=True)
class Part:
    """Replicas with the same node, devices and amounts.

    Attributes
    ----------
    cluster, node
        Their place.
    slices
        Device shares of each replica, in the order of the devices. The start of a MIG instance is omitted, because no
        device plugin accepts it.
    replicas
        Their indexes, ascending.
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
        When there are no placements, one is for another cluster, or a replica has two placements.
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
