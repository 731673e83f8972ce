"""Resource accounting of simulated clusters, independent of the control plane, and its audit."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from seaway.adapters.simulated.journal import Created, Ended, Entry, Removed, Resized, journal_path, read_journal
from seaway.domain.cluster import Cluster, Fleet
from seaway.domain.device import Device, DeviceMode
from seaway.domain.node import Node
from seaway.domain.placement import DeviceSlice, Placement
from seaway.domain.reasons import Reason

Key = tuple[str, int]
"""Key of a workload: job ID and attempt."""


@dataclass(slots=True, eq=False)
class DeviceLedger:
    """Free resources of a device."""

    device: Device
    memory_mib: int
    core_milli: int
    slots: int
    healthy: bool
    back_ns: int | None = None
    mig_used: int = 0

    def refuses(self, taken: DeviceSlice) -> str:
        """Return the reason why a slice cannot be allocated; empty if it can."""
        name = self.device.uuid
        if not self.healthy or self.device.cordoned:
            return Reason("device_cordoned" if self.healthy else "device_is_unhealthy", device=name)
        if taken.memory_mib > self.memory_mib:
            return Reason("device_memory_left", device=name, left=self.memory_mib, needed=taken.memory_mib)
        mig = self.device.mode is DeviceMode.MIG  # core shares are rounded up, so their sum may exceed the device
        if taken.core_milli > self.core_milli and not mig:
            return Reason("device_cores_left", device=name, left=self.core_milli, needed=taken.core_milli)
        if self.slots < 1:
            return Reason("device_full", device=name)
        return self._refuses_instance(taken) if mig else ""

    def move(self, taken: DeviceSlice, sign: int) -> None:
        """Allocate (`sign` 1) or free (−1) a slice."""
        self.memory_mib -= sign * taken.memory_mib
        self.core_milli -= sign * taken.core_milli
        self.slots -= sign
        if self.device.mode is DeviceMode.MIG:
            self.mig_used ^= self._cover(taken)

    def _refuses_instance(self, taken: DeviceSlice) -> str:
        cover = self._cover(taken)
        if cover and not cover & self.mig_used:
            return ""
        instance = {"device": self.device.uuid, "profile": taken.mig_profile}
        return Reason("mig_taken" if cover else "mig_missing", **instance, start=taken.mig_start)

    def _cover(self, taken: DeviceSlice) -> int:
        """Return the memory slices of a MIG instance as bits; 0 if the device does not support the instance."""
        for profile in self.device.mig_profiles:
            if profile.name == taken.mig_profile and taken.mig_start in profile.starts:
                return ((1 << profile.size) - 1) << taken.mig_start
        return 0


@dataclass(slots=True, eq=False)
class NodeLedger:
    """Free resources of a node, and its workloads."""

    node: Node
    place: int
    cpu_milli: int
    memory_mib: int
    devices: dict[str, DeviceLedger]
    ready: bool
    back_ns: int | None = None
    workloads: dict[Key, int] = field(default_factory=dict)

    def refuses(self, placement: Placement, cpu_milli: int, memory_mib: int) -> str:
        """Return the reason why a replica does not fit the node, ignoring its devices; empty if it fits."""
        if not self.ready:
            return Reason("node_is_not_ready", node=self.node.name)
        if cpu_milli > self.cpu_milli:
            return Reason("node_cpu_left", node=self.node.name, left=self.cpu_milli, needed=cpu_milli)
        if memory_mib > self.memory_mib:
            return Reason("node_memory_left", node=self.node.name, left=self.memory_mib, needed=memory_mib)
        for taken in placement.slices:
            if taken.uuid not in self.devices:
                return Reason("node_without_device", node=self.node.name, device=taken.uuid)
        return ""


class ClusterLedger:
    """Resources of all nodes and devices of a cluster.

    Parameters
    ----------
    cluster
        The cluster without workloads.
    """

    def __init__(self, cluster: Cluster) -> None:
        self.nodes = {node.name: _node_allocation(node, place) for place, node in enumerate(cluster.nodes)}
        self.devices = {uuid: link_table for link_table in self.nodes.values() for uuid in link_table.devices}
        self._cluster = cluster
        self._seen = list(cluster.nodes)
        self._changed: set[str] = set()

    def take(self, key: Key, placements: Sequence[Placement], cpu_milli: int, memory_mib: int) -> str:
        """Allocate all resources of a workload, or none; return the reason of a refusal, or an empty text.

        Parameters
        ----------
        cpu_milli, memory_mib
            Resources of each replica.
        """
        for done, placement in enumerate(placements):
            why = self._take_one(key, placement, cpu_milli, memory_mib)
            if why:
                self.give_back(key, placements[:done], cpu_milli, memory_mib)
                return why
        return ""

    def give_back(self, key: Key, placements: Sequence[Placement], cpu_milli: int, memory_mib: int) -> None:
        """Free the resources that `take` allocated."""
        for placement in placements:
            link_table = self.nodes[placement.node]
            for taken in placement.slices:
                link_table.devices[taken.uuid].move(taken, -1)
            self._move(link_table, key, -1, cpu_milli, memory_mib)

    def force(self, key: Key, placements: Sequence[Placement], cpu_milli: int, memory_mib: int) -> None:
        """Allocate the resources of an existing workload, regardless of the state of its nodes and devices."""
        for placement in placements:
            link_table = self.nodes[placement.node]
            for taken in placement.slices:
                link_table.devices[taken.uuid].move(taken, 1)
            self._move(link_table, key, 1, cpu_milli, memory_mib)

    def open(self) -> None:
        """Mark all nodes as ready and all devices as healthy, so that only capacity counts."""
        for node in self.nodes.values():
            node.ready = True
            for device in node.devices.values():
                device.healthy = True

    def touch(self, node: str) -> None:
        """Mark a node as changed."""
        self._changed.add(node)

    def inventory(self) -> Cluster:
        """Return the current state of the cluster."""
        if self._changed:
            for name in self._changed:
                link_table = self.nodes[name]
                self._seen[link_table.place] = _seen(link_table)
            self._changed.clear()
            self._cluster = replace(self._cluster, nodes=tuple(self._seen))
        return self._cluster

    def troubled(self) -> Iterator[NodeLedger]:
        """Yield the nodes that failed or have a failed device."""
        for link_table in self.nodes.values():
            if link_table.ready != link_table.node.ready or any(
                each.healthy != each.device.healthy for each in link_table.devices.values()
            ):
                yield link_table

    def _take_one(self, key: Key, placement: Placement, cpu_milli: int, memory_mib: int) -> str:
        link_table = self.nodes.get(placement.node)
        if link_table is None:
            return Reason("node_not_found", place=placement.node)
        why = link_table.refuses(placement, cpu_milli, memory_mib)
        if why:
            return why
        for done, taken in enumerate(placement.slices):
            device = link_table.devices[taken.uuid]
            why = device.refuses(taken)
            if why:
                for given in placement.slices[:done]:
                    link_table.devices[given.uuid].move(given, -1)
                return why
            device.move(taken, 1)
        self._move(link_table, key, 1, cpu_milli, memory_mib)
        return ""

    @staticmethod
    def _move(link_table: NodeLedger, key: Key, sign: int, cpu_milli: int, memory_mib: int) -> None:
        link_table.cpu_milli -= sign * cpu_milli
        link_table.memory_mib -= sign * memory_mib
        count = link_table.workloads.get(key, 0) + sign
        if count:
            link_table.workloads[key] = count
        else:
            del link_table.workloads[key]


def _node_allocation(node: Node, place: int) -> NodeLedger:
    devices = {
        each.uuid: DeviceLedger(each, each.memory_mib, each.core_milli, each.share_limit, each.healthy)
        for each in node.devices
    }
    return NodeLedger(node, place, node.cpu_milli, node.memory_mib, devices, node.ready)


def _seen(link_table: NodeLedger) -> Node:
    """Return a node as reported, with its readiness and the health of its devices."""
    devices = tuple(
        each.device if each.device.healthy == each.healthy else replace(each.device, healthy=each.healthy)
        for each in link_table.devices.values()
    )
    return replace(link_table.node, devices=devices, ready=link_table.ready)


def read_journals(fleet: Fleet, data: Path) -> dict[str, list[Entry]]:
    """Read the journals of a fleet's clusters from their data folder, by cluster."""
    return {each.name: read_journal(journal_path(data, each.name)) for each in fleet.clusters}


def violations(fleet: Fleet, journals: Mapping[str, Iterable[Entry]]) -> list[str]:
    """Return the violated rules; empty if there are none.

    The rules: no cluster has a workload twice. No job has workloads of two attempts at the same time, in any clusters.
    No node and no device is overcommitted.

    Parameters
    ----------
    journals
        Entries of each cluster. Their times must come from one clock. If the end of a workload and the start of another
        have the same time, the end counts as earlier.
    """
    found = [f"cluster {each.name}: {why}" for each in fleet.clusters for why in _overbooked(each, journals[each.name])]
    found.extend(_two_attempts(journals))
    return found


def _overbooked(cluster: Cluster, entries: Iterable[Entry]) -> Iterator[str]:
    ledger = ClusterLedger(cluster)
    ledger.open()
    live: dict[Key, Created] = {}
    for entry in entries:
        if isinstance(entry, Created):
            key = (entry.job_id, entry.attempt)
            if key in live:
                yield f"job {key[0]}, attempt {key[1]} was created twice"
            why = ledger.take(key, entry.placements, entry.cpu_milli, entry.memory_mib)
            if why:
                yield f"job {key[0]}, attempt {key[1]} was created, but {why}"
            else:
                live[key] = entry
        elif isinstance(entry, Resized):
            before = live[entry.job_id, entry.attempt]
            key, figures = (entry.job_id, entry.attempt), (before.cpu_milli, before.memory_mib)
            ledger.give_back(key, before.placements, *figures)
            if why := ledger.take(key, entry.placements, *figures):
                yield f"job {key[0]}, attempt {key[1]} was resized, but {why}"
                del live[key]
            else:
                live[key] = replace(before, placements=entry.placements)
        elif isinstance(entry, Ended | Removed):
            over = live.pop((entry.job_id, entry.attempt), None)
            if over is not None:
                ledger.give_back((over.job_id, over.attempt), over.placements, over.cpu_milli, over.memory_mib)


def _two_attempts(journals: Mapping[str, Iterable[Entry]]) -> Iterator[str]:
    """Check the workloads of all clusters in chronological order."""
    steps = sorted(_steps(journals), key=lambda step: step[:2])
    live: defaultdict[str, set[tuple[str, int]]] = defaultdict(set)
    for _, begins, cluster, (job_id, attempt) in steps:
        if not begins:
            live[job_id].discard((cluster, attempt))
            continue
        for other_cluster, other in sorted(live[job_id]):
            if other != attempt:
                yield (
                    f"job {job_id}: attempt {attempt} began in cluster {cluster} while attempt {other} "
                    f"was alive in cluster {other_cluster}"
                )
        live[job_id].add((cluster, attempt))


def _steps(journals: Mapping[str, Iterable[Entry]]) -> Iterator[tuple[int, bool, str, Key]]:
    """Yield each start (True) and end (False) of a workload once."""
    for cluster, entries in journals.items():
        live: set[Key] = set()
        for entry in entries:
            if isinstance(entry, Created):
                live.add((entry.job_id, entry.attempt))
                yield entry.at_ns, True, cluster, (entry.job_id, entry.attempt)
            elif isinstance(entry, Ended | Removed) and (entry.job_id, entry.attempt) in live:
                live.discard((entry.job_id, entry.attempt))
                yield entry.at_ns, False, cluster, (entry.job_id, entry.attempt)
