"""Measured use of devices, for backends that support it, and metrics of jobs. Allocations are separate."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol, runtime_checkable

from seaway.domain.scaling import Metric


class Used(NamedTuple):
    """Measured use; None for an unmeasured value. A tuple for compact storage.

    Attributes
    ----------
    memory_bytes
        Memory of a device.
    core_milli
        Thousandths of the cores of a whole device.
    age_s
        Age of the measurement, if relevant.
    """

    memory_bytes: int | None
    core_milli: int | None
    age_s: float = 0.0


def add_up(parts: Iterable[Used | None]) -> Used | None:
    """Return the sum. A value missing in one part is None in the sum. The sum is None if both values are."""
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
"""UUID of a device, and namespace and name of a pod."""


@dataclass(frozen=True, slots=True)
class NodeUsage:
    """Latest measurement of a node.

    Attributes
    ----------
    age_s
        Seconds since the measurement.
    devices
        Use by UUID.
    containers
        Use by device and pod, and then by container name.
    """

    age_s: float
    devices: Mapping[str, Used]
    containers: Mapping[Held, Mapping[str, Used]]

    def device(self, uuid: str) -> Used | None:
        """Return the use of a device, with its age."""
        used = self.devices.get(uuid)
        return used._replace(age_s=self.age_s) if used else None

    def container(self, uuid: str, namespace: str, pod: str, container: str) -> Used | None:
        """Return the use of a device by a container, or by the whole pod if the container is unknown."""
        there = self.containers.get((uuid, namespace, pod))
        if there is None:
            return None
        return there.get(container) if container else add_up(there.values())


@runtime_checkable
class Measuring(Protocol):
    """Backend that measures the use of devices; optional."""

    @property
    def cluster(self) -> str:
        """Name of the cluster."""

    def usage(self) -> Mapping[str, NodeUsage]:
        """Return the latest measurements by node, without outdated ones; sends no request."""


def usage_of(cluster: str, backends: Iterable[object]) -> Mapping[str, NodeUsage]:
    """Return the measured use of a cluster, by node; empty without measurements."""
    for each in backends:
        if isinstance(each, Measuring) and each.cluster == cluster:
            return each.usage()
    return {}


@dataclass(frozen=True, slots=True)
class Question:
    """Metric of one job.

    Attributes
    ----------
    job_id, name, tenant, queue
        The job.
    query
        Query of the job for the metric `Metric.QUERY`.
    """

    metric: Metric
    job_id: str
    name: str
    tenant: str
    queue: str
    query: str = ""


class Metrics(Protocol):
    """Source of metrics of jobs."""

    def obstacle(self, metric: Metric) -> str:
        """Return the reason why jobs cannot use a metric; empty if they can."""

    def read(self, questions: Sequence[Question]) -> Sequence[float | str]:
        """Return the value for each question, or the reason why there is none. Ends in bounded time."""
