"""Resource requests of pods, and resources of nodes.

Init containers run one after another before the other containers. The pod requests the larger of the two amounts.
Sidecars start among the init containers and keep running.

References
----------
Kubernetes, "Sidecar Containers": resource sharing within containers; "Pod Overhead".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import repeat

from seaway.adapters.kubernetes import quantities
from seaway.adapters.kubernetes.device_plugins.findings import LARGEST, MAX_CPU_MILLI, Findings
from seaway.adapters.kubernetes.device_plugins.views import Problem, ProblemKind
from seaway.adapters.kubernetes.objects.core import Container, NodeObject, PodSpec, Quantity, Resources
from seaway.domain.errors import RejectedError

Reader = Callable[[Quantity], int]


def cpu_milli(spec: PodSpec, problems: list[Problem]) -> int:
    """Return the CPU that a pod requests, in thousandths of a core."""
    return _counted("cpu", _effective(spec, "cpu", quantities.milli, problems), MAX_CPU_MILLI, problems)


def memory_mib(spec: PodSpec, problems: list[Problem]) -> int:
    """Return the memory that a pod requests, in MiB."""
    return _counted("memory", _effective(spec, "memory", quantities.mebibytes, problems), LARGEST, problems)


def devices(spec: PodSpec, resource: str, problems: list[Problem]) -> int:
    """Return the number of devices of a resource that a pod requests."""
    return _over_containers(spec, lambda resources: _requested(resources, resource, quantities.integer, problems))


def requesting_containers(spec: PodSpec, resource: str) -> Iterator[int]:
    """Yield the container of each requested device; indexes count init containers first.

    Containers that keep running come before init containers, so that the first containers are those that count for the
    pod.
    """
    first = len(spec.init_containers)
    numbered = [*enumerate(spec.containers, first), *enumerate(spec.init_containers)]
    for at, container in sorted(numbered, key=lambda each: each[0] < first and not each[1].sidecar):
        yield from repeat(at, _requested(container.resources, resource, quantities.integer, []))


def _counted(resource: str, amount: int, most: int, problems: list[Problem]) -> int:
    if amount > most:
        problems.append(Problem(ProblemKind.BROKEN, resource, "no node has as much as it requests; it counts as 0"))
        return 0
    return amount


def _effective(spec: PodSpec, resource: str, read: Reader, problems: list[Problem]) -> int:
    overhead = _read(spec.overhead, resource, read, problems)
    if resource in spec.resources.requests or resource in spec.resources.limits:
        return _requested(spec.resources, resource, read, problems) + overhead
    return _over_containers(spec, lambda resources: _requested(resources, resource, read, problems)) + overhead


def _over_containers(spec: PodSpec, requested: Callable[[Resources], int]) -> int:
    sidecars, peak = 0, 0
    for container in spec.init_containers:
        amount = requested(container.resources)
        if container.sidecar:
            sidecars += amount
        peak = max(peak, sidecars if container.sidecar else sidecars + amount)
    return max(peak, sidecars + _sum(spec.containers, requested))


def _sum(containers: Iterable[Container], requested: Callable[[Resources], int]) -> int:
    return sum(requested(container.resources) for container in containers)


def _requested(resources: Resources, resource: str, read: Reader, problems: list[Problem]) -> int:
    """Return the request of one container; the default is its limit."""
    amounts = resources.requests if resource in resources.requests else resources.limits
    return _read(amounts, resource, read, problems)


def _read(amounts: Mapping[str, Quantity], resource: str, read: Reader, problems: list[Problem]) -> int:
    if resource not in amounts:
        return 0
    try:
        return read(amounts[resource])
    except RejectedError as error:
        problems.append(Problem(ProblemKind.BROKEN, resource, str(error)))
        return 0


MAX_CARDS = 1024
"""Maximum number of cards of a node. A larger number is an error, and the limit bounds the memory use."""


class Amounts:
    """Resources of a node. Invalid amounts are reported as problems and count as 0."""

    def __init__(self, node: NodeObject, findings: Findings) -> None:
        self._node = node
        self._findings = findings

    def mentions(self, resource: str) -> bool:
        """Report whether the status contains a resource, even with the amount 0."""
        return resource in self._node.status.allocatable or resource in self._node.status.capacity

    def allocatable(self, resource: str) -> int:
        """Return the allocatable amount of a resource, an integer from 0 to 2^31 - 1."""
        return min(self._read("allocatable", self._node.status.allocatable.get(resource), resource, whole), LARGEST)

    def capacity(self, resource: str) -> int:
        """Return the capacity of a resource, an integer from 0 to 2^31 - 1."""
        return min(self._read("capacity", self._node.status.capacity.get(resource), resource, whole), LARGEST)

    def cpu_milli(self) -> int:
        """Return the allocatable CPU in thousandths of a core."""
        return self._counted("cpu", milli, MAX_CPU_MILLI)

    def memory_mib(self) -> int:
        """Return the allocatable memory in MiB."""
        return self._counted("memory", mebibytes, LARGEST)

    def pods(self) -> int | None:
        """Return the maximum number of pods; None if the node does not report it."""
        return self.allocatable("pods") if "pods" in self._node.status.allocatable else None

    def _counted(self, resource: str, read: Callable[[Quantity], int], most: int) -> int:
        found = self._read("allocatable", self._node.status.allocatable.get(resource), resource, read)
        if found > most:
            self._findings.broken(f"status.allocatable: {resource}", "no node has so much; it counts as nothing")
            return 0
        return found

    def _read(self, part: str, amount: Quantity | None, resource: str, read: Callable[[Quantity], int]) -> int:
        if amount is None:
            return 0
        try:
            found = read(amount)
        except RejectedError as error:
            self._findings.broken(f"status.{part}: {resource}", str(error))
            return 0
        return found


def whole(amount: Quantity) -> int:
    """Return an available count, rounded down."""
    return quantities.integer(amount, down=True)


def milli(amount: Quantity) -> int:
    """Return an available amount in thousandths, rounded down."""
    return quantities.milli(amount, down=True)


def mebibytes(amount: Quantity) -> int:
    """Return an available amount of memory in MiB, rounded down."""
    return quantities.mebibytes(amount, down=True)
