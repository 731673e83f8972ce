"""Amounts of resources as a node's status has them."""

from __future__ import annotations

from collections.abc import Callable

from seaway.adapters.kubernetes import quantities
from seaway.adapters.kubernetes.dialects.findings import Findings
from seaway.adapters.kubernetes.dialects.sizes import LARGEST, MOST_CPU_MILLI
from seaway.adapters.kubernetes.objects.node import NodeObject
from seaway.adapters.kubernetes.objects.part import Quantity
from seaway.domain.errors import RejectedError

MOST_CARDS = 1024
"""More cards than that no node has; a larger number is an error, and must not fill the memory."""


class Amounts:
    """What a node has of each resource; what cannot be read is noted and counts as 0."""

    def __init__(self, node: NodeObject, findings: Findings) -> None:
        self._node = node
        self._findings = findings

    def mentions(self, resource: str) -> bool:
        """Tell whether the status has a resource at all, be it 0."""
        return resource in self._node.status.allocatable or resource in self._node.status.capacity

    def allocatable(self, resource: str) -> int:
        """Return what pods can get of a resource, a whole number from 0 to 2^31 - 1."""
        return min(self._read("allocatable", self._node.status.allocatable.get(resource), resource, whole), LARGEST)

    def capacity(self, resource: str) -> int:
        """Return what the node has of a resource, a whole number from 0 to 2^31 - 1."""
        return min(self._read("capacity", self._node.status.capacity.get(resource), resource, whole), LARGEST)

    def cpu_milli(self) -> int:
        """Return the CPU that pods can get, thousandths."""
        return self._counted("cpu", milli, MOST_CPU_MILLI)

    def memory_mib(self) -> int:
        """Return the memory that pods can get, MiB."""
        return self._counted("memory", mebibytes, LARGEST)

    def pods(self) -> int | None:
        """Return how many pods the node takes; None where it does not say."""
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
    """Read a number of things."""
    return quantities.integer(amount, down=True)


def milli(amount: Quantity) -> int:
    """Read thousandths that are there."""
    return quantities.milli(amount, down=True)


def mebibytes(amount: Quantity) -> int:
    """Read memory that is there."""
    return quantities.mebibytes(amount, down=True)
