"""What is really used of devices, where a user measures it: not what was promised, which is booked elsewhere."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple, Protocol, runtime_checkable


class Used(NamedTuple):
    """What was measured, each None where it was not; a tuple, for there are very many.

    Attributes
    ----------
    memory_bytes
        Memory of a device.
    core_milli
        Thousandths of a whole device's cores.
    age_s
        For how long it has been known, where that is asked for.
    """

    memory_bytes: int | None
    core_milli: int | None
    age_s: float = 0.0


def add_up(parts: Iterable[Used | None]) -> Used | None:
    """Return the sum; a figure that one part lacks the sum lacks too, and None is for no figure at all."""
    memory_bytes: int | None = None
    core_milli: int | None = None
    for number, part in enumerate(parts):
        memory, cores = (part.memory_bytes, part.core_milli) if part else (None, None)
        memory_bytes = memory if number == 0 else _sum(memory_bytes, memory)
        core_milli = cores if number == 0 else _sum(core_milli, cores)
    return None if memory_bytes is None and core_milli is None else Used(memory_bytes, core_milli)


def _sum(one: int | None, other: int | None) -> int | None:
    return None if one is None or other is None else one + other


Held = tuple[str, str, str]
"""Uuid of a device, and namespace and name of a pod."""


@dataclass(frozen=True, slots=True)
class NodeUsage:
    """What was measured on a node last.

    Attributes
    ----------
    age_s
        Seconds since then.
    devices
        By uuid.
    containers
        Of each pod on each device, by the container's name.
    """

    age_s: float
    devices: Mapping[str, Used]
    containers: Mapping[Held, Mapping[str, Used]]

    def device(self, uuid: str) -> Used | None:
        """Return what is used of a device, with its age."""
        used = self.devices.get(uuid)
        return used._replace(age_s=self.age_s) if used else None

    def container(self, uuid: str, namespace: str, pod: str, container: str) -> Used | None:
        """Return what a container uses of a device; all of its pod's where its name is not known."""
        there = self.containers.get((uuid, namespace, pod))
        if there is None:
            return None
        return there.get(container) if container else add_up(there.values())


@runtime_checkable
class Measuring(Protocol):
    """A backend that knows what is really used; not every one does."""

    @property
    def cluster(self) -> str:
        """Its name."""

    def usage(self) -> Mapping[str, NodeUsage]:
        """Return what was measured, by node, without what is too old; asks nobody."""


def usage_of(cluster: str, backends: Iterable[object]) -> Mapping[str, NodeUsage]:
    """Return what was measured in a cluster, by node; nothing where no one measures."""
    for each in backends:
        if isinstance(each, Measuring) and each.cluster == cluster:
            return each.usage()
    return {}
