"""State of a simulated cluster, advanced by explicit times.

The module never waits, locks or reads a clock. One heap contains all future events by time. `advance` processes due
events, and adds them to the change log and the journal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from heapq import heapify, heappop, heappush
from itertools import count
from typing import Any

from seaway.adapters.simulated.faults import Course, Faults, draw_course
from seaway.adapters.simulated.journal import (
    Created,
    DeviceChanged,
    Ended,
    Entry,
    Journal,
    NodeChanged,
    Opened,
    Refused,
    Removed,
    ReplicasLost,
    Resized,
    Started,
)
from seaway.adapters.simulated.ledger import ClusterLedger, DeviceLedger, Key, NodeLedger
from seaway.adapters.simulated.workload import LIVE, Record
from seaway.application.ports.backend import Answer, ChangeLog
from seaway.domain.cluster import Cluster
from seaway.domain.deployment import Cause, Deployment, WorkloadPhase
from seaway.domain.errors import RejectedError
from seaway.domain.placement import Placement
from seaway.domain.reasons import Reason, in_cluster

NS_PER_S = 1_000_000_000
DONE = Answer(done=True)


@dataclass(slots=True)
class Orders:
    """Injected faults of later deployments.

    Attributes
    ----------
    start_delay_ns
        Start delay of a workload.
    refusal
        Reason for refusing every deployment; empty for none.
    start_error
        Reason for failing every workload at its start; empty for none.
    """

    start_delay_ns: int
    refusal: str = ""
    start_error: str = ""


class ClusterState:
    """Workloads, nodes and devices of one cluster.

    Parameters
    ----------
    cluster
        The cluster without workloads.
    faults
        Random faults.
    journal
        Receiver of all events.
    orders
        Injected faults, which may change at any time.
    retained
        Minimum number of changes in the log.

    Attributes
    ----------
    journal
        Current journal, which may be replaced.
    log
        Log of changes.
    records
        Listed workloads, live or ended.
    """

    def __init__(self, cluster: Cluster, faults: Faults, journal: Journal, orders: Orders, retained: int) -> None:
        self.name = cluster.name
        self.ledger = ClusterLedger(cluster)
        self.log: ChangeLog[Key | None] = ChangeLog(retained)  # the key None means the nodes and devices
        self.records: dict[Key, Record] = {}
        self.orders = orders
        self._faults = faults
        self.journal = journal
        self._heap: list[tuple[int, int, Callable[[Any, int], None], Any]] = []
        self._numbers = count()

    @property
    def next_due_ns(self) -> int | None:
        """Time of the next scheduled event; None if there is none."""
        return self._heap[0][0] if self._heap else None

    def advance(self, now_ns: int) -> None:
        """Process all due events."""
        heap = self._heap
        while heap and heap[0][0] <= now_ns:
            due_ns, _, act, subject = heappop(heap)
            act(subject, due_ns)

    def later(self, due_ns: int | None, act: Callable[[Any, int], None], subject: Any = None) -> None:  # noqa: ANN401
        """Schedule a call of `act` with `subject` and the due time; None for never."""
        if due_ns is not None:
            heappush(self._heap, (due_ns, next(self._numbers), act, subject))

    # Workloads

    def create(self, deployment: Deployment, now_ns: int) -> Answer:
        """Create a deployment, unless it exists or does not fit. Replicas that have completed do not run again."""
        key = (deployment.job_id, deployment.attempt)
        if key in self.records:
            return self._resize(self.records[key], deployment, now_ns)
        running = tuple(each for each in deployment.placements if not (each.completed or each.leaving))
        if deployment.placements and not running:
            return DONE
        deployment = replace(deployment, placements=_staying(replace(deployment, placements=running)))
        spec = deployment.spec
        runs_ns = None if spec.expected_duration_s is None else spec.expected_duration_s * NS_PER_S
        fate = draw_course(self._faults, f"{self.name}/{deployment.name}", self.orders.start_delay_ns, runs_ns)
        if self.orders.start_error:
            fate = Course(fate.refused, fate.starts_after_ns, 0, self.orders.start_error)
        everywhere = self._port_error(deployment)
        why = self.orders.refusal or fate.refused or self._validation_error(deployment) or everywhere
        request = spec.demand.request
        why = why or self.ledger.take(key, deployment.placements, request.cpu_milli, request.memory_mib)
        if why:
            self.journal.add(Refused(now_ns, *key, why))
            return Answer(done=False, refused=True, reason=in_cluster(self.name, why), everywhere=why == everywhere)
        made = _made(deployment, fate, now_ns)
        self.records[key] = record = Record(made)
        self.journal.add(made)
        self.log.add(key)
        self.later(record.due_ns, self._step, record)
        return DONE

    def _resize(self, record: Record, deployment: Deployment, now_ns: int) -> Answer:
        """Give a live workload the replicas of a deployment, unless the new ones do not fit."""
        wanted, before = _staying(deployment), record.made.placements
        if record.phase not in LIVE or wanted == before:
            return DONE
        made = record.made
        had, keeps = ({each.replica for each in placements} for placements in (before, wanted))
        added = tuple(each for each in wanted if each.replica not in had)
        if why := self.orders.refusal or self.ledger.take(record.key, added, made.cpu_milli, made.memory_mib):
            self.journal.add(Refused(now_ns, *record.key, why))
            return Answer(done=False, refused=True, reason=in_cluster(self.name, why))
        removed = [each for each in before if each.replica not in keeps]
        self.ledger.give_back(record.key, removed, made.cpu_milli, made.memory_mib)
        entry = Resized(now_ns, *record.key, wanted, now_ns + self.orders.start_delay_ns)
        record.resize(entry)
        self.journal.add(entry)
        self.log.add(record.key)
        self.later(entry.ready_ns, self._report, record.key)
        self.later(record.due_ns, self._step, record)
        return DONE

    def _report(self, key: Key, _: int) -> None:
        """Report a workload whose new replicas have started."""
        if key in self.records:
            self.log.add(key)

    def remove(self, key: Key, now_ns: int, *, vanished: bool = False) -> bool:
        """Remove a workload; return whether it existed."""
        record = self.records.pop(key, None)
        if record is None:
            return False
        if record.phase in LIVE:
            self._give_back(record)
        record.phase = WorkloadPhase.GONE
        self.journal.add(Removed(now_ns, *key, vanished))
        self.log.add(key)
        self._compact_heap()
        return True

    def fail(self, record: Record, now_ns: int, reason: str) -> None:
        """Fail a live workload by itself."""
        if record.phase in LIVE:
            self._end(record, Ended(now_ns, *record.key, succeeded=False, reason=reason))

    def _fail_lost_replicas(self, record: Record, now_ns: int, reason: str, lost: list[int]) -> None:
        """Fail replicas of a live workload whose node or device failed. Only an elastic one continues without them."""
        if record.phase not in LIVE:
            return
        if record.made.elastic and {*lost, *record.failed_replicas} < {each.replica for each in record.made.placements}:
            entry = ReplicasLost(now_ns, *record.key, tuple(lost), reason)
            record.lose(entry)
            self.journal.add(entry)
            self.log.add(record.key)
        else:
            self._end(record, Ended(now_ns, *record.key, False, reason, tuple(lost), Cause.INFRASTRUCTURE))

    def node(self, name: str) -> NodeLedger:
        """Return a node, or raise `RejectedError`."""
        if name not in self.ledger.nodes:
            raise RejectedError(f"cluster {self.name!r} has no node {name!r}")
        return self.ledger.nodes[name]

    def device(self, uuid: str) -> tuple[NodeLedger, DeviceLedger]:
        """Return a device and its node, or raise `RejectedError`."""
        if uuid not in self.ledger.devices:
            raise RejectedError(f"cluster {self.name!r} has no device {uuid!r}")
        node = self.ledger.devices[uuid]
        return node, node.devices[uuid]

    def find(self, key: Key) -> Record:
        """Return a listed workload.

        Raises
        ------
        RejectedError
            When it does not exist.
        """
        if key not in self.records:
            raise RejectedError(Reason("no_workload", cluster=self.name, job=key[0], number=key[1]))
        return self.records[key]

    # Nodes and devices

    def set_node(self, node: NodeLedger, now_ns: int, *, ready: bool, until_ns: int | None = None) -> None:
        """Fail a node with its workloads, or recover it."""
        if not ready:
            node.back_ns = until_ns
            self.later(until_ns, self._node_back, node)
        if node.ready == ready:
            return
        node.ready = ready
        self.journal.add(NodeChanged(now_ns, node.node.name, ready, until_ns))
        self._touch(node)
        if not ready:
            for record in [self.records[key] for key in node.workloads]:
                lost = [each.replica for each in record.made.placements if each.node == node.node.name]
                self._fail_lost_replicas(record, now_ns, Reason("node_failed", node=node.node.name), lost)

    def set_device(
        self, node: NodeLedger, device: DeviceLedger, now_ns: int, *, healthy: bool, until_ns: int | None = None
    ) -> None:
        """Make a device unhealthy and fail the workloads that use it, or make it healthy."""
        if not healthy:
            device.back_ns = until_ns
            self.later(until_ns, self._device_back, (node, device))
        if device.healthy == healthy:
            return
        device.healthy = healthy
        uuid = device.device.uuid
        self.journal.add(DeviceChanged(now_ns, node.node.name, uuid, healthy, until_ns))
        self._touch(node)
        if not healthy:
            for record in [self.records[key] for key in node.workloads]:
                lost = [each.replica for each in record.made.placements if uuid in {one.uuid for one in each.slices}]
                if lost:
                    self._fail_lost_replicas(record, now_ns, Reason("device_failed", device=uuid), lost)

    # Restore and compaction

    def restore(self, entries: Iterable[Entry]) -> int:
        """Restore the state from a journal without adding entries; return the number of starts."""
        times = 0
        for entry in entries:
            if isinstance(entry, Opened):
                times = entry.times
            elif isinstance(entry, NodeChanged):
                self._restore_node(entry)
            elif isinstance(entry, DeviceChanged):
                self._restore_device(entry)
            else:
                self._restore_copy(entry)
        for record in self.records.values():
            self.later(record.due_ns, self._step, record)
            for ready_ns in {*record.late_ns.values()}:
                self.later(ready_ns, self._report, record.key)
        return times

    def entries(self, now_ns: int, times: int) -> Iterator[Entry]:
        """Yield a minimal journal of the state."""
        yield Opened(now_ns, times)
        for record in self.records.values():
            yield record.made
            if record.phase is WorkloadPhase.RUNNING:
                yield Started(record.made.starts_ns, *record.key)
            elif record.ended_ns is not None:
                succeeded = record.phase is WorkloadPhase.SUCCEEDED
                yield Ended(
                    record.ended_ns, *record.key, succeeded, record.reason, record.failed_replicas, record.cause
                )
            if record.phase in LIVE and record.failed_replicas:
                yield ReplicasLost(now_ns, *record.key, record.failed_replicas, record.reason)
        for node in self.ledger.troubled():
            if node.ready != node.node.ready:
                yield NodeChanged(now_ns, node.node.name, node.ready, node.back_ns)
            for uuid, device in node.devices.items():
                if device.healthy != device.device.healthy:
                    yield DeviceChanged(now_ns, node.node.name, uuid, device.healthy, device.back_ns)

    # Scheduled events

    def _step(self, record: Record, due_ns: int) -> None:
        if record.due_ns != due_ns:
            return
        made = record.made
        if record.phase is WorkloadPhase.STARTING and not (made.fails and made.ends_ns == made.starts_ns):
            record.phase = WorkloadPhase.RUNNING
            self.journal.add(Started(due_ns, *record.key))
            self.log.add(record.key)
            self.later(record.due_ns, self._step, record)
        elif record.phase is WorkloadPhase.RUNNING and made.vanishes_ns == due_ns:
            self.remove(record.key, due_ns, vanished=True)
        else:
            self._end(record, Ended(due_ns, *record.key, not made.fails, made.fails))

    def _end(self, record: Record, entry: Ended) -> None:
        record.end(entry)
        self._give_back(record)
        self.journal.add(entry)
        self.log.add(record.key)
        self._compact_heap()

    def _give_back(self, record: Record) -> None:
        made = record.made
        self.ledger.give_back(record.key, made.placements, made.cpu_milli, made.memory_mib)

    def _compact_heap(self) -> None:
        """Remove obsolete events from the heap when they outnumber the others."""
        if len(self._heap) > 4 * len(self.records) + 1024:
            heap = self._heap
            heap[:] = [each for each in heap if not isinstance(each[3], Record) or each[3].due_ns == each[0]]
            heapify(heap)

    def _node_back(self, node: NodeLedger, due_ns: int) -> None:
        if node.back_ns == due_ns:
            self.set_node(node, due_ns, ready=True)

    def _device_back(self, pair: tuple[NodeLedger, DeviceLedger], due_ns: int) -> None:
        node, device = pair
        if device.back_ns == due_ns:
            self.set_device(node, device, due_ns, healthy=True)

    # Details

    def _touch(self, node: NodeLedger) -> None:
        self.ledger.touch(node.node.name)
        self.log.add(None)

    def _validation_error(self, deployment: Deployment) -> str:
        """Return the error of an invalid deployment, independent of capacity; empty for none."""
        if deployment.cluster != self.name:
            return Reason("for_other_cluster", cluster=deployment.cluster)
        if not deployment.placements:
            return Reason("places_no_replica")
        replicas = [each.replica for each in deployment.placements]
        if len(set(replicas)) != len(replicas):
            return Reason("places_replica_twice")
        return ""

    def _port_error(self, deployment: Deployment) -> str:
        """Return the error of a port of nodes that another job has; empty for none."""
        for port in deployment.spec.expose.node_ports:
            if any(
                port in each.made.expose.node_ports and job != deployment.job_id
                for (job, _), each in self.records.items()
            ):
                return Reason("node_port_taken", port=port)
        return ""

    def _restore_node(self, entry: NodeChanged) -> None:
        node = self.ledger.nodes.get(entry.node)
        if node is not None:
            node.ready, node.back_ns = entry.ready, None if entry.ready else entry.until_ns
            self.ledger.touch(entry.node)
            self.later(node.back_ns, self._node_back, node)

    def _restore_device(self, entry: DeviceChanged) -> None:
        node = self.ledger.nodes.get(entry.node)
        if node is not None and entry.uuid in node.devices:
            device = node.devices[entry.uuid]
            device.healthy, device.back_ns = entry.healthy, None if entry.healthy else entry.until_ns
            self.ledger.touch(entry.node)
            self.later(device.back_ns, self._device_back, (node, device))

    def _restore_copy(self, entry: Created | Refused | Started | Resized | ReplicasLost | Ended | Removed) -> None:
        key = (entry.job_id, entry.attempt)
        if isinstance(entry, Created):
            self._require_known(entry)
            self.records[key] = Record(entry)
            self.ledger.force(key, entry.placements, entry.cpu_milli, entry.memory_mib)
        elif isinstance(entry, Started):
            self.find(key).phase = WorkloadPhase.RUNNING
        elif isinstance(entry, Resized):
            record = self.find(key)
            self._give_back(record)
            record.resize(entry)
            self.ledger.force(key, entry.placements, record.made.cpu_milli, record.made.memory_mib)
        elif isinstance(entry, ReplicasLost):
            self.find(key).lose(entry)
        elif isinstance(entry, Ended):
            record = self.find(key)
            record.end(entry)
            self._give_back(record)
        elif isinstance(entry, Removed):
            record = self.find(key)
            del self.records[key]
            if record.phase in LIVE:
                self._give_back(record)

    def _require_known(self, entry: Created) -> None:
        for each in entry.placements:
            node = self.ledger.nodes.get(each.node)
            if node is None or any(taken.uuid not in node.devices for taken in each.slices):
                raise RejectedError(
                    f"the journal of cluster {self.name!r} places job {entry.job_id!r} on node {each.node!r}, which "
                    "the fleet does not have so; give the fleet the journal was written for, or another data folder"
                )


def _staying(deployment: Deployment) -> tuple[Placement, ...]:
    """Return the placements of the replicas that are not being removed, as they were made."""
    stay = (each for each in deployment.placements if not each.leaving)
    return tuple(replace(each, beside="", completed=False) if each.beside or each.completed else each for each in stay)


def _made(deployment: Deployment, fate: Course, now_ns: int) -> Created:
    spec = deployment.spec
    request = spec.demand.request
    starts_ns = now_ns + fate.starts_after_ns
    after = partial(_after, starts_ns)
    return Created(
        now_ns,
        deployment.job_id,
        deployment.attempt,
        spec.name,
        spec.tenant,
        spec.run.image,
        request.cpu_milli,
        request.memory_mib,
        deployment.placements,
        starts_ns,
        after(fate.ends_after_ns),
        fate.fails,
        after(fate.vanishes_after_ns),
        tuple(each.number for each in spec.ports),
        spec.expose,
        spec.copy_of,
        spec.elastic,
        bool(deployment.ranks) and deployment.ranks[0] == deployment.cluster,
    )


def _after(starts_ns: int, delay_ns: int | None) -> int | None:
    return None if delay_ns is None else starts_ns + delay_ns
