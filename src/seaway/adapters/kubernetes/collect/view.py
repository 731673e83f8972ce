"""View of one cluster for the control loop: its changes since a cursor."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from msgspec import structs

from seaway.adapters.kubernetes.collect.attempts import Attempts, Gate, ObjectKey
from seaway.adapters.kubernetes.collect.changes import ChangeNotifier, Limits, Problems
from seaway.adapters.kubernetes.collect.device_shares import DeviceShares
from seaway.adapters.kubernetes.collect.drift import DriftTracker, without_fields
from seaway.adapters.kubernetes.collect.health import Health
from seaway.adapters.kubernetes.collect.nodes import NODE, SLICE, NodeChange, Nodes, is_same
from seaway.adapters.kubernetes.collect.owned import attempt_of, broken_labels
from seaway.adapters.kubernetes.collect.pods import PodSummary, summarise_pod
from seaway.adapters.kubernetes.collect.rejections import Attempt, Rejection
from seaway.adapters.kubernetes.collect.services import Exposing
from seaway.adapters.kubernetes.collect.workloads import WorkloadObject, WorkloadPart, read_workload
from seaway.adapters.kubernetes.device_plugins.pods import node_of
from seaway.adapters.kubernetes.device_plugins.views import NodeView, PluginOptions, Problem
from seaway.adapters.kubernetes.objects.core import Meta, NodeObject, OwnedMeta, PodObject
from seaway.adapters.kubernetes.objects.decode import Broken
from seaway.adapters.kubernetes.objects.dra import ResourceClaim, ResourceSlice
from seaway.adapters.kubernetes.templates.namespaces import Namespaces
from seaway.adapters.kubernetes.templates.pinning import HOSTNAME
from seaway.application.ports.backend import Changes, CollectorState
from seaway.domain.cluster import Cluster
from seaway.domain.deployment import ObjectDrift, UnmanagedPod, Workload, WorkloadPhase

POD = "pod"
CLAIM = "resource claim"

T = TypeVar("T")


class ClusterView:
    """View of one cluster. Sources update it on the event loop; threads of the control loop read it.

    Parameters
    ----------
    cluster
        The cluster without its nodes, from the configuration.
    health
        Health of its sources.
    schedule
        Schedules a call on the event loop after a number of seconds.
    limits
        Time limits.
    namespaces
        Namespaces of Seaway's objects.
    plugin_options
        Custom names of annotations and labels of its vGPU device plugin.

    Attributes
    ----------
    name
        Name of the cluster.
    unreachable_timeout_s
        Time without contact after which the cluster counts as unreachable.
    """

    def __init__(
        self,
        cluster: Cluster,
        health: Health,
        schedule: Callable[[float, Callable[[], None]], object],
        limits: Limits | None = None,
        namespaces: Namespaces | None = None,
        plugin_options: PluginOptions | None = None,
    ) -> None:
        limits = limits or Limits()
        self.name = cluster.name
        self.unreachable_timeout_s = limits.unreachable_timeout_s
        self.namespaces = namespaces or Namespaces()
        self._health = health
        self._changes: ChangeNotifier[Attempt | str | None] = ChangeNotifier(cluster.name, health, limits, schedule)
        """Keys of changes: attempts, names of unmanaged pods, and None for the nodes."""
        self._problems = Problems(cluster.name)
        self._nodes = Nodes(cluster, self._problems, plugin_options)
        self._shares = DeviceShares(self.namespaces)
        self._pods: dict[str, PodSummary] = {}
        self._attempts = Attempts(
            cluster.name,
            limits,
            self._changes.call_later,
            self._changes.add,
            self._nodes.unschedulable_cause,
            self._nodes.host,
        )
        self._drift = DriftTracker()
        self._listed: set[str] = set()
        self._leftovers: frozenset[Attempt] = frozenset()

    @property
    def failing(self) -> bool:
        """True if a source fails now."""
        return self._health.failing_s > 0

    # Calls of the control loop.

    def changes(self, cursor: str, wait_s: float) -> Changes:
        """Return the changes since `cursor`; see the port `Backend`."""
        with self._changes.lock:
            return replace(self._changes_since(self._changes.since(cursor, wait_s)), age_s=self._health.age_s)

    def node(self, name: str) -> NodeView | None:
        """Return a node, decoded for its device plugins."""
        with self._changes.lock:
            return self._nodes.get(name)

    def hostname(self, node: str) -> str:
        """Return the hostname label of a node."""
        known = self.node(node)
        return known.node.labels.get(HOSTNAME, node) if known else node

    def replica_pods(self, attempt: Attempt) -> dict[int, PodSummary]:
        """Return the pods of an attempt by replica."""
        with self._changes.lock:
            return self._attempts.replica_pods(attempt)

    def pods_of(self, attempt: Attempt) -> list[PodSummary]:
        """Return all pods of an attempt, including terminating pods that were already replaced."""
        with self._changes.lock:
            return self._attempts.pods(attempt)

    def objects_of(self, attempt: Attempt) -> set[ObjectKey]:
        """Return the objects of an attempt: the path of the kind, and ``namespace/name``."""
        with self._changes.lock:
            return self._attempts.objects(attempt)

    def may_be_of(self, attempt: Attempt, place: ObjectKey) -> bool:
        """Report whether an object may belong to an attempt: it is not one of a later attempt with the same name."""
        with self._changes.lock:
            owner = self._attempts.owner(place)
            return owner is None or owner == attempt

    def problems(self) -> dict[str, tuple[Problem, ...]]:
        """Return the problems of objects by kind and name, such as ``pod/NAMESPACE/NAME``."""
        with self._changes.lock:
            return self._problems.all()

    def collector_state(self) -> CollectorState:
        """Return the state of the collector."""
        with self._changes.lock:
            return CollectorState(self._problems.counts(), self._health.failing())

    def close(self) -> None:
        """End all waiting calls."""
        self._changes.close()

    def wake(self) -> None:
        """Wake waiting threads, so that they check the cluster's health."""
        self._changes.wake()

    def _changes_since(self, found: dict[Attempt | str | None, None] | None) -> Changes:
        if found is None:
            known = self._attempts.known() | self._leftovers
            workloads = [self._attempts.workload(key) or Workload(*key, self.name, WorkloadPhase.GONE) for key in known]
            unmanaged_pods = [
                _unmanaged_pod_of(pod) for pod in self._pods.values() if pod.attempt is None and pod.holds_resources
            ]
            return Changes(self._changes.cursor, True, tuple(workloads), self._nodes.inventory(), tuple(unmanaged_pods))
        inventory = self._nodes.inventory() if None in found else None
        attempts = [key for key in found if isinstance(key, tuple)]
        names = [key for key in found if isinstance(key, str)]
        workloads = [self._attempts.workload(key) or Workload(*key, self.name, WorkloadPhase.GONE) for key in attempts]
        return Changes(
            self._changes.cursor, False, tuple(workloads), inventory, tuple(self._unmanaged_pod(name) for name in names)
        )

    def _unmanaged_pod(self, name: str) -> UnmanagedPod:
        pod = self._pods.get(name)
        return _unmanaged_pod_of(pod) if pod and pod.holds_resources else UnmanagedPod(name, "")

    def describe(self, cluster: Cluster) -> None:
        """Change the properties of the cluster without its nodes."""
        with self._changes.lock:
            if self._nodes.describe(cluster):
                self._changes.add(None)

    # Updates from the sources.

    def put_node(self, written: NodeObject) -> None:
        """Add or update a node."""
        with self._changes.lock:
            self._node_changed(written.metadata.name, self._nodes.put(written))

    def drop_node(self, name: str) -> None:
        """Remove a node."""
        with self._changes.lock:
            self._problems.put(NODE, name)
            self._node_changed(name, self._nodes.drop(name))

    async def replace_nodes(self, written: Sequence[NodeObject]) -> None:
        """Replace all nodes."""
        await self._changes.process(self._nodes.names - {each.metadata.name for each in written}, self.drop_node)
        await self._changes.process(self._nodes.changed(written), self.put_node)
        self._listed_all(NODE)

    def put_slices(self, changed: Iterable[ResourceSlice], gone: Collection[str] = ()) -> None:
        """Update resource slices, and remove those named in `gone`."""
        with self._changes.lock:
            for name in gone:
                self._problems.put(SLICE, name)
            for node, step in self._nodes.put_slices(changed, gone).items():
                self._node_changed(node, step)

    async def replace_slices(self, written: Sequence[ResourceSlice]) -> None:
        """Replace all resource slices."""
        await self._changes.process(self._nodes.changed_slices(written), lambda found: self.put_slices(*found))
        self._listed_all(SLICE)

    def put_claim(self, claim: ResourceClaim) -> None:
        """Add or update a resource claim."""
        with self._changes.lock:
            self._problems.put(CLAIM, claim.metadata.full_name)
            self._reread_pods(self._shares.put_claim(claim))

    def drop_claim(self, name: str) -> None:
        """Remove a resource claim."""
        with self._changes.lock:
            self._problems.put(CLAIM, name)
            self._reread_pods(self._shares.drop_claim(name))

    async def replace_claims(self, written: Sequence[ResourceClaim]) -> None:
        """Replace all resource claims. Remove deleted claims last, as for pods."""
        there = {each.metadata.full_name for each in written}
        await self._changes.process(written, self.put_claim)
        await self._changes.process(self._shares.claims - there, self.drop_claim)
        self._listed_all(CLAIM)

    def put_pod(self, written: PodObject) -> None:
        """Add or update a pod."""
        with self._changes.lock:
            view, again = self._shares.read(written, self._nodes.get(node_of(written)))
            seen = summarise_pod(written, view, self.namespaces)
            self._problems.put(POD, seen.full_name, view.problems + broken_labels(written.metadata, self.namespaces))
            before = self._pods.get(seen.full_name)
            self._pods[seen.full_name] = seen
            if before != seen:
                self._attempts.put_pod(before, seen)
                self._note_pods(before, seen)
            if again:
                self._reread_pods(again)

    def drop_pod(self, full_name: str) -> None:
        """Remove a pod."""
        with self._changes.lock:
            before = self._pods.pop(full_name, None)
            self._problems.put(POD, full_name)
            if before:
                self._attempts.put_pod(before, None)
                self._note_pods(before)
            self._reread_pods(self._shares.forget(full_name))

    async def replace_pods(self, written: Sequence[PodObject]) -> None:
        """Replace all pods.

        Remove deleted pods last. Readers may then see free devices as used, but never used devices as free.
        """
        there: set[str] = set()

        def take(each: PodObject) -> None:
            name = each.metadata.full_name
            there.add(name)
            known = self._pods.get(name)
            if known is None or not is_same(known.uid, known.resource_version, each.metadata):
                self.put_pod(each)

        await self._changes.process(written, take)
        await self._changes.process(self._pods.keys() - there, self.drop_pod)
        self._listed_all(POD)

    def put_object(self, kind: str, meta: Meta) -> None:
        """Add or update an object of an attempt that runs nothing."""
        key, name = attempt_of(meta, self.namespaces), meta.full_name
        self._take(kind, name, WorkloadPart(*key, "", (), uid=meta.uid) if key else None, meta)
        if key and not isinstance(meta, OwnedMeta):
            self.set_drift(key, (kind, name), ObjectDrift(""))

    def put_workload(self, kind: str, written: WorkloadObject) -> None:
        """Add or update a workload."""
        name = written.metadata.full_name
        self._take(kind, name, read_workload(written, self.namespaces), written.metadata)
        self._note_drift((kind, name), written.metadata)

    def drop_workload(self, kind: str, full_name: str) -> None:
        """Remove a workload."""
        self._take(kind, full_name, None)
        self._drift.forget((kind, full_name))

    async def replace_workloads(self, kind: str, written: Sequence[WorkloadObject]) -> None:
        """Replace all workloads of a kind; see `replace_objects`."""
        named = {each.metadata.full_name: each for each in written}
        await self._replace(kind, named, self.put_workload)

    async def replace_objects(self, kind: str, written: Sequence[Meta]) -> None:
        """Replace all objects of a kind that runs nothing.

        A list after the first may miss objects that were created and deleted since the previous list. The view never
        contained them, so schedule a full report for clients that wait for them.
        """
        await self._replace(kind, {each.full_name: each for each in written}, self.put_object)

    async def _replace(self, kind: str, named: Mapping[str, T], put: Callable[[str, T], None]) -> None:
        there = named.keys() | self._problems.unreadable_names(kind)
        await self._changes.process(named.values(), lambda each: put(kind, each))
        await self._changes.process(self._attempts.named(kind) - there, lambda name: self.drop_workload(kind, name))
        self._listed_all(kind)
        if kind not in self._listed:
            self._listed.add(kind)
        else:
            self._changes.schedule_relist()

    def put_exposing(self, kind: str, exposing: Exposing) -> None:
        """Add or update an object that gives ports of an attempt an address."""
        place = (kind, exposing.metadata.full_name)
        self.put_object(kind, exposing.metadata)
        self._note_drift(place, exposing.metadata)
        slim = structs.replace(exposing, metadata=without_fields(exposing.metadata))
        with self._changes.lock:
            self._attempts.put_exposing(place, slim)

    async def replace_exposing(self, kind: str, written: Sequence[Exposing]) -> None:
        """Replace all such objects of a kind; see `replace_objects`."""
        await self._replace(kind, {each.metadata.full_name: each for each in written}, self.put_exposing)

    def set_drift(self, attempt: Attempt, place: ObjectKey, drift: ObjectDrift) -> None:
        """Record what others changed in an object of an attempt; without a text, nothing."""
        with self._changes.lock:
            self._attempts.put_drift(attempt, place, drift)

    def mark_missing(self, attempt: Attempt) -> None:
        """Report an attempt as gone if it has no workload here, because the object that was to create it is deleted."""
        with self._changes.lock:
            if self._attempts.workload(attempt) is None:
                self._changes.add(attempt)

    def known(self) -> set[Attempt]:
        """Return the attempts with any object in this cluster."""
        with self._changes.lock:
            return self._attempts.known()

    def set_leftovers(self, attempts: frozenset[Attempt]) -> None:
        """Set the attempts with leftovers elsewhere and no object here. Full reports mark them as gone.

        A repeated report of a gone attempt has no effect.
        """
        with self._changes.lock:
            new, self._leftovers = attempts - self._leftovers, attempts
            if new:
                self._changes.schedule_relist()

    def reject(self, key: Attempt, source: str, rejection: Rejection) -> None:
        """Record a source's rejection of an attempt."""
        with self._changes.lock:
            self._attempts.rejections.reject(key, source, rejection)

    def allow(self, source: str) -> None:
        """Withdraw the rejection of a source."""
        with self._changes.lock:
            self._attempts.rejections.allow(source)

    def set_gate(self, key: Attempt, source: str, gate: Gate | None) -> None:
        """Set the gate that a source reports for an attempt; None removes it."""
        with self._changes.lock:
            self._attempts.gates.put(key, source, gate)

    def broken(self, what: str, found: Broken) -> None:
        """Remove the data of an object that cannot be decoded. Log it once, and count it until it can be decoded.

        An object of an attempt keeps its last state, because it exists and must be removed later.

        Parameters
        ----------
        what
            Kind of the object; for an object of an attempt, the path of the kind.
        """
        name = f"{found.namespace}/{found.name}" if found.namespace else found.name
        drops: dict[str, Callable[[], None]] = {
            NODE: lambda: self.drop_node(name),
            POD: lambda: self.drop_pod(name),
            SLICE: lambda: self.put_slices((), (name,)),
            CLAIM: lambda: self.drop_claim(name),
        }
        with self._changes.lock, self._problems.unreadable(what, name, found.text):
            if found.name and what in drops:
                drops[what]()

    # Internal updates.

    def _node_changed(self, node: str, step: NodeChange) -> None:
        """Record the change of a node."""
        if step is not NodeChange.NONE:
            self._changes.add(None)
        if step is NodeChange.DEVICES:
            self._reread_pods(self._shares.on(node))

    def _reread_pods(self, pods: Iterable[str]) -> None:
        """Read pods again after a change of nodes or claims."""
        for pod in self._shares.pods(pods):
            self.put_pod(pod)

    def _listed_all(self, what: str) -> None:
        with self._changes.lock:
            self._problems.listed(what)

    def _take(self, kind: str, full_name: str, read: WorkloadPart | None, meta: Meta | None = None) -> None:
        """Replace the state of an attempt's object, and record problems of its labels; None removes the object."""
        with self._changes.lock:
            self._attempts.put_workload((kind, full_name), read)
            self._problems.put(kind, full_name, broken_labels(meta, self.namespaces) if meta else ())

    def _note_drift(self, place: ObjectKey, meta: OwnedMeta) -> None:
        """Compare the owners of an object's fields with those at its latest write."""
        if key := attempt_of(meta, self.namespaces):
            self.set_drift(key, place, self._drift.look(place, meta))

    def _note_pods(self, *pods: PodSummary | None) -> None:
        for each in pods:
            if each:
                self._changes.add(each.attempt or each.full_name)


def _unmanaged_pod_of(pod: PodSummary) -> UnmanagedPod:
    return UnmanagedPod(pod.full_name, pod.node, pod.slices, pod.cpu_milli, pod.memory_mib, pod.holders, pod.pods)
