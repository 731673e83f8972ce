"""What is in one cluster, as the control loop asks for it: changes since a cursor."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from seaway.adapters.kubernetes.collect.attempts import Attempts, ObjectKey
from seaway.adapters.kubernetes.collect.changes import ChangeNotifier
from seaway.adapters.kubernetes.collect.device_shares import DeviceShares
from seaway.adapters.kubernetes.collect.gates import Gate
from seaway.adapters.kubernetes.collect.health import Health
from seaway.adapters.kubernetes.collect.limits import Limits
from seaway.adapters.kubernetes.collect.nodes import NODE, SLICE, NodeChange, Nodes, is_same
from seaway.adapters.kubernetes.collect.owned import attempt_of, broken_labels
from seaway.adapters.kubernetes.collect.pods import PodSummary, summarise_pod
from seaway.adapters.kubernetes.collect.problems import Problems
from seaway.adapters.kubernetes.collect.rejections import Attempt, Rejection
from seaway.adapters.kubernetes.collect.workloads import WorkloadObject, WorkloadPart, read_workload
from seaway.adapters.kubernetes.device_plugins.pods import node_of
from seaway.adapters.kubernetes.device_plugins.views import NodeView, PluginOptions, Problem
from seaway.adapters.kubernetes.objects.core import NodeObject, PodObject
from seaway.adapters.kubernetes.objects.decode import Broken
from seaway.adapters.kubernetes.objects.dra import ResourceClaim, ResourceSlice
from seaway.adapters.kubernetes.objects.meta import Meta
from seaway.adapters.kubernetes.templates.pinning import HOSTNAME
from seaway.application.ports.backend import Changes, CollectorState
from seaway.domain.cluster import Cluster
from seaway.domain.deployment import UnmanagedPod, Workload, WorkloadPhase

POD = "pod"
CLAIM = "resource claim"

T = TypeVar("T")


class ClusterView:
    """The view of one cluster: told by its sources on the event loop, asked by the control loop's threads.

    Parameters
    ----------
    cluster
        The cluster without its nodes: what configuration says of it.
    health
        Whether its sources answer.
    schedule
        Has something called after so many seconds, on the event loop.
    limits
        How it deals with what takes long.
    namespace
        Where Seaway's own objects are.
    plugin_options
        What its vGPU layer names otherwise than usual.

    Attributes
    ----------
    name
        The cluster's.
    unreachable_timeout_s
        How long it may be silent.
    """

    def __init__(
        self,
        cluster: Cluster,
        health: Health,
        schedule: Callable[[float, Callable[[], None]], object],
        limits: Limits | None = None,
        namespace: str = "seaway",
        plugin_options: PluginOptions | None = None,
    ) -> None:
        limits = limits or Limits()
        self.name = cluster.name
        self.unreachable_timeout_s = limits.unreachable_timeout_s
        self.namespace = namespace
        self._health = health
        self._changes: ChangeNotifier[Attempt | str | None] = ChangeNotifier(cluster.name, health, limits, schedule)
        """Of attempts by their key, other pods by their name, None for the nodes."""
        self._problems = Problems(cluster.name)
        self._nodes = Nodes(cluster, self._problems, plugin_options)
        self._shares = DeviceShares(namespace)
        self._pods: dict[str, PodSummary] = {}
        self._attempts = Attempts(
            cluster.name, limits, self._changes.call_later, self._changes.add, self._nodes.unschedulable_cause
        )
        self._listed: set[str] = set()
        self._leftovers: frozenset[Attempt] = frozenset()

    @property
    def failing(self) -> bool:
        """Whether something of the cluster fails right now."""
        return self._health.failing_s > 0

    # What the control loop asks.

    def changes(self, cursor: str, wait_s: float) -> Changes:
        """Return what changed since `cursor`; see the port `Backend`."""
        with self._changes.lock:
            return replace(self._changes_since(self._changes.since(cursor, wait_s)), age_s=self._health.age_s)

    def node(self, name: str) -> NodeView | None:
        """Return a node with what is known of its dialects."""
        with self._changes.lock:
            return self._nodes.get(name)

    def hostname(self, node: str) -> str:
        """Return the label by which pods choose a node."""
        known = self.node(node)
        return known.node.labels.get(HOSTNAME, node) if known else node

    def replica_pods(self, attempt: Attempt) -> dict[int, PodSummary]:
        """Return the pod of each replica of an attempt that has one."""
        with self._changes.lock:
            return self._attempts.replica_pods(attempt)

    def pods_of(self, attempt: Attempt) -> list[PodSummary]:
        """Return all pods of an attempt: also those that end, while another is there for the same replica."""
        with self._changes.lock:
            return self._attempts.pods(attempt)

    def objects_of(self, attempt: Attempt) -> set[ObjectKey]:
        """Return the objects of an attempt: the path of all of their kind, and ``namespace/name``."""
        with self._changes.lock:
            return self._attempts.objects(attempt)

    def problems(self) -> dict[str, tuple[Problem, ...]]:
        """Return what is wrong with objects, by what they are and their name, like ``pod/NAMESPACE/NAME``."""
        with self._changes.lock:
            return self._problems.all()

    def collector_state(self) -> CollectorState:
        """Return how collecting goes."""
        with self._changes.lock:
            return CollectorState(self._problems.counts(), self._health.failing())

    def close(self) -> None:
        """Let waiting calls return."""
        self._changes.close()

    def wake(self) -> None:
        """Have waiting calls look whether the cluster is still heard."""
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

    # What the sources tell.

    def put_node(self, written: NodeObject) -> None:
        """Take a node as it is now."""
        with self._changes.lock:
            self._node_changed(written.metadata.name, self._nodes.put(written))

    def drop_node(self, name: str) -> None:
        """Note that a node is gone."""
        with self._changes.lock:
            self._problems.put(NODE, name)
            self._node_changed(name, self._nodes.drop(name))

    async def replace_nodes(self, written: Sequence[NodeObject]) -> None:
        """Take these for all nodes."""
        await self._changes.process(self._nodes.names - {each.metadata.name for each in written}, self.drop_node)
        await self._changes.process(self._nodes.changed(written), self.put_node)
        self._listed_all(NODE)

    def put_slices(self, changed: Iterable[ResourceSlice], gone: Collection[str] = ()) -> None:
        """Take resource slices as they are now, and note which, by name, are gone."""
        with self._changes.lock:
            for name in gone:
                self._problems.put(SLICE, name)
            for node, step in self._nodes.put_slices(changed, gone).items():
                self._node_changed(node, step)

    async def replace_slices(self, written: Sequence[ResourceSlice]) -> None:
        """Take these for all resource slices."""
        await self._changes.process(self._nodes.changed_slices(written), lambda found: self.put_slices(*found))
        self._listed_all(SLICE)

    def put_claim(self, claim: ResourceClaim) -> None:
        """Take a resource claim as it is now."""
        with self._changes.lock:
            self._problems.put(CLAIM, claim.metadata.full_name)
            self._reread_pods(self._shares.put_claim(claim))

    def drop_claim(self, name: str) -> None:
        """Note that a resource claim is gone."""
        with self._changes.lock:
            self._problems.put(CLAIM, name)
            self._reread_pods(self._shares.drop_claim(name))

    async def replace_claims(self, written: Sequence[ResourceClaim]) -> None:
        """Take these for all resource claims; those that are gone are so last, as with pods."""
        there = {each.metadata.full_name for each in written}
        await self._changes.process(written, self.put_claim)
        await self._changes.process(self._shares.claims - there, self.drop_claim)
        self._listed_all(CLAIM)

    def put_pod(self, written: PodObject) -> None:
        """Take a pod as it is now."""
        with self._changes.lock:
            view, again = self._shares.read(written, self._nodes.get(node_of(written)))
            seen = summarise_pod(written, view, self.namespace)
            self._problems.put(POD, seen.full_name, view.problems + broken_labels(written.metadata, self.namespace))
            before = self._pods.get(seen.full_name)
            self._pods[seen.full_name] = seen
            if before != seen:
                self._attempts.put_pod(before, seen)
                self._note_pods(before, seen)
            if again:
                self._reread_pods(again)

    def drop_pod(self, full_name: str) -> None:
        """Note that a pod is gone."""
        with self._changes.lock:
            before = self._pods.pop(full_name, None)
            self._problems.put(POD, full_name)
            if before:
                self._attempts.put_pod(before, None)
                self._note_pods(before)
            self._reread_pods(self._shares.forget(full_name))

    async def replace_pods(self, written: Sequence[PodObject]) -> None:
        """Take these for all pods.

        Those that are gone are so last: whoever looks meanwhile may see devices held that are free, and none free that
        is held.
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
        """Take an object of an attempt that runs nothing, as it is now."""
        key, name = attempt_of(meta, self.namespace), meta.full_name
        self._take(kind, name, WorkloadPart(*key, "", ()) if key else None, meta)

    def put_workload(self, kind: str, written: WorkloadObject) -> None:
        """Take a workload as it is now."""
        name = written.metadata.full_name
        self._take(kind, name, read_workload(written, self.namespace), written.metadata)

    def drop_workload(self, kind: str, full_name: str) -> None:
        """Note that a workload is gone."""
        self._take(kind, full_name, None)

    async def replace_workloads(self, kind: str, written: Sequence[WorkloadObject]) -> None:
        """Take these for all workloads of a kind; see `replace_objects`."""
        named = {each.metadata.full_name: each for each in written}
        await self._replace(kind, named, self.put_workload)

    async def replace_objects(self, kind: str, written: Sequence[Meta]) -> None:
        """Take these for all objects of a kind that runs nothing.

        Any but the first list may pass over some that came and went since the last: no view ever had them, and whoever
        waits for them is told before long all that there is.
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

    def put_address(self, key: Attempt, address: str) -> None:
        """Take where a service of an attempt answers; empty for nowhere."""
        with self._changes.lock:
            self._attempts.put_address(key, address)

    def addressed(self) -> set[Attempt]:
        """Return the attempts of which a service answers."""
        return self._attempts.addressed()

    def mark_missing(self, attempt: Attempt) -> None:
        """Note that what was to bring an attempt here is gone: if nothing of it came, nothing else tells of that."""
        with self._changes.lock:
            if self._attempts.workload(attempt) is None:
                self._changes.add(attempt)

    def known(self) -> set[Attempt]:
        """Return the attempts of which there is anything here."""
        with self._changes.lock:
            return self._attempts.known()

    def set_leftovers(self, attempts: frozenset[Attempt]) -> None:
        """Take these for attempts of which something is left elsewhere, and nothing here: they are told with the rest.

        What is gone meanwhile is told as gone once more, which does no harm.
        """
        with self._changes.lock:
            new, self._leftovers = attempts - self._leftovers, attempts
            if new:
                self._changes.schedule_relist()

    def reject(self, key: Attempt, source: str, rejection: Rejection) -> None:
        """Take what a source says is denied of an attempt here."""
        with self._changes.lock:
            self._attempts.rejections.reject(key, source, rejection)

    def allow(self, source: str) -> None:
        """Note that a source says nothing is denied, any more."""
        with self._changes.lock:
            self._attempts.rejections.allow(source)

    def set_gate(self, key: Attempt, source: str, gate: Gate | None) -> None:
        """Take what a source says holds an attempt back here; None for nothing, any more."""
        with self._changes.lock:
            self._attempts.gates.put(key, source, gate)

    def broken(self, what: str, found: Broken) -> None:
        """Forget what was known of an object that cannot be read; say so once, and count it while that lasts.

        An object of an attempt stays what it was last known for: it is there, and must be removed one day.

        Parameters
        ----------
        what
            What it is; of an object of an attempt the path of all of its kind.
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

    # Keeping the books.

    def _node_changed(self, node: str, step: NodeChange) -> None:
        """Tell of what came of something that was told of a node."""
        if step is not NodeChange.NONE:
            self._changes.add(None)
        if step is NodeChange.DEVICES:
            self._reread_pods(self._shares.on(node))

    def _reread_pods(self, pods: Iterable[str]) -> None:
        """Read pods again of which more, or something else, is known than when they were last heard."""
        for pod in self._shares.pods(pods):
            self.put_pod(pod)

    def _listed_all(self, what: str) -> None:
        with self._changes.lock:
            self._problems.listed(what)

    def _take(self, kind: str, full_name: str, read: WorkloadPart | None, meta: Meta | None = None) -> None:
        """Take an object of an attempt as it was read, and note what is wrong with its marks; None for gone."""
        with self._changes.lock:
            self._attempts.put_workload((kind, full_name), read)
            self._problems.put(kind, full_name, broken_labels(meta, self.namespace) if meta else ())

    def _note_pods(self, *pods: PodSummary | None) -> None:
        for each in pods:
            if each:
                self._changes.add(each.attempt or each.full_name)


def _unmanaged_pod_of(pod: PodSummary) -> UnmanagedPod:
    return UnmanagedPod(pod.full_name, pod.node, pod.slices, pod.cpu_milli, pod.memory_mib, pod.holders, pod.pods)
