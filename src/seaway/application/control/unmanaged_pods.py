"""GPU use of unmanaged pods in a cluster, by node."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import replace

from seaway.domain.deployment import UnmanagedPod
from seaway.domain.job import Demand, Job, ResourceRequest
from seaway.domain.placement import DeviceSlice, Placement
from seaway.scheduling.allocations import Allocation, allocate_all
from seaway.scheduling.snapshot.snapshot import Snapshot

FULL = 1 << 30
"""Upper bound of sums, above the capacity of any node or device, that columns can represent."""


class Occupied:
    """Unmanaged pods of one cluster, with one allocation per node.

    Allocations are per node, not per pod: a cluster has tens of thousands of pods, and a change updates only one node.
    """

    def __init__(self, cluster: str) -> None:
        self._cluster = cluster
        self._where: dict[str, str] = {}
        self._by_node: defaultdict[str, dict[str, UnmanagedPod]] = defaultdict(dict)
        self._bookings: dict[str, Allocation] = {}

    def __len__(self) -> int:
        return len(self._where)

    def __iter__(self) -> Iterator[UnmanagedPod]:
        for there in self._by_node.values():
            yield from there.values()

    @property
    def nodes(self) -> Iterable[str]:
        """Nodes with unmanaged pods."""
        return self._by_node.keys()

    def on(self, node: str) -> Iterable[UnmanagedPod]:
        """Return the unmanaged pods of a node."""
        return self._by_node[node].values() if node in self._by_node else ()

    def take(self, unmanaged_pods: Iterable[UnmanagedPod], snapshot: Snapshot, *, complete: bool) -> set[str]:
        """Apply unmanaged pods; return the changed nodes.

        Parameters
        ----------
        complete
            Whether the list is complete.
        """
        reported = {each.name: each for each in unmanaged_pods}
        if complete:
            reported = {name: UnmanagedPod(name, "") for name in self._where if name not in reported} | reported
        changed: set[str] = set()
        for pod in reported.values():
            changed |= self._put(pod)
        self._allocate(changed, snapshot)
        return changed

    def allocate_again(self, snapshot: Snapshot) -> None:
        """Allocate all pods on a new snapshot."""
        self._bookings.clear()
        self._allocate(list(self._by_node), snapshot)

    def _put(self, pod: UnmanagedPod) -> set[str]:
        """Record the node of an unmanaged pod; return the affected nodes."""
        before = self._where.get(pod.name, "")
        if before and self._by_node[before][pod.name] == pod:
            return set()
        if before:
            del self._by_node[before][pod.name], self._where[pod.name]
        if pod.node:
            self._where[pod.name] = pod.node
            self._by_node[pod.node][pod.name] = pod
        return {before, pod.node} - {""}

    def _allocate(self, nodes: Iterable[str], snapshot: Snapshot) -> None:
        held: list[tuple[Job, tuple[Placement, ...], int]] = []
        there: list[str] = []
        for node in nodes:
            if allocated := self._bookings.pop(node, None):
                allocated.release(snapshot)
            if self._by_node[node]:
                there.append(node)
                held.append(self._holding(node))
            else:
                del self._by_node[node]
        self._bookings.update(zip(there, allocate_all(snapshot, held), strict=True))

    def _holding(self, node: str) -> tuple[Job, tuple[Placement, ...], int]:
        """Return the pods of a node as one job with one replica, and their number."""
        there = self._by_node[node].values()
        cpu_milli, memory_mib = sum([each.cpu_milli for each in there]), sum([each.memory_mib for each in there])
        request = ResourceRequest(min(cpu_milli, FULL), min(memory_mib, FULL))
        slices = _within(tuple([taken for each in there for taken in each.slices]))
        place = Placement(f"{self._cluster}/{node}", 0, self._cluster, node, slices)
        return Job(place.job, Demand(request)), (place,), sum([each.pods for each in there])


def _within(slices: tuple[DeviceSlice, ...]) -> tuple[DeviceSlice, ...]:
    """Limit the use of each device to an amount that columns can represent."""
    if sum([each.memory_mib + each.core_milli for each in slices]) <= FULL:
        return slices
    left: defaultdict[str, list[int]] = defaultdict(lambda: [FULL, FULL])
    cut = []
    for each in slices:
        memory_mib, core_milli = left[each.uuid]
        taken = replace(each, memory_mib=min(each.memory_mib, memory_mib), core_milli=min(each.core_milli, core_milli))
        left[each.uuid] = [memory_mib - taken.memory_mib, core_milli - taken.core_milli]
        cut.append(taken)
    return tuple(cut)
