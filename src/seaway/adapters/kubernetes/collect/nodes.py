"""Nodes of one cluster, with the resource slices of their devices."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, KeysView, Mapping
from dataclasses import replace
from enum import Enum, auto

from seaway.adapters.kubernetes.collect.changes import Problems
from seaway.adapters.kubernetes.collect.services import NodeHost, node_host
from seaway.adapters.kubernetes.device_plugins.nodes import read_node
from seaway.adapters.kubernetes.device_plugins.views import NodeView, PluginOptions, Problem, ProblemKind
from seaway.adapters.kubernetes.facts import facts_of_nodes
from seaway.adapters.kubernetes.objects.core import Meta, NodeObject
from seaway.adapters.kubernetes.objects.dra import ResourceSlice
from seaway.adapters.kubernetes.templates.pinning import HOSTNAME
from seaway.domain.cluster import Cluster
from seaway.domain.deployment import Cause
from seaway.domain.node import Node

DEVICES = "devices"


class DuplicateDevices:
    """Detection of devices listed by several nodes. Each device counts on one node: the newest of the reachable ones.

    Attributes
    ----------
    problems
        Problems of the nodes that lose devices to others.
    """

    def __init__(self) -> None:
        self._times: Counter[str] = Counter()
        self._duplicated: set[str] = set()
        self.problems: dict[str, Problem] = {}

    def count(self, before: NodeView | None, now: NodeView | None) -> None:
        """Update the device counts after a change of a node; None means that the node does not exist."""
        for view, step in ((before, -1), (now, 1)):
            for device in view.node.devices if view else ():
                self._times[device.uuid] += step
                if self._times[device.uuid] > 1:
                    self._duplicated.add(device.uuid)
                else:
                    self._duplicated.discard(device.uuid)
                if not self._times[device.uuid]:
                    del self._times[device.uuid]

    def resolve(self, views: Mapping[str, NodeView], written: Mapping[str, NodeObject]) -> dict[str, Node]:
        """Return the nodes that lose devices, and record their problems."""
        self.problems = {}
        if not self._duplicated:
            return {}
        listing: defaultdict[str, list[str]] = defaultdict(list)
        for name, view in views.items():
            for uuid in self._duplicated.intersection(view.devices):
                listing[uuid].append(name)
        owners = {
            uuid: max(names, key=lambda name: (views[name].reachable, written[name].metadata.creation_timestamp, name))
            for uuid, names in listing.items()
        }
        left: dict[str, Node] = {}
        for name in sorted({name for names in listing.values() for name in names}):
            node = views[name].node
            retained = tuple(device for device in node.devices if owners.get(device.uuid, name) == name)
            if len(retained) < len(node.devices):
                others = ", ".join(sorted({owners.get(device.uuid, name) for device in node.devices} - {name}))
                said = f"{len(node.devices) - len(retained)} are listed by {others} too and counted there"
                text = f"{said}; delete the stale node"
                self.problems[name] = Problem(ProblemKind.UNUSABLE, DEVICES, text)
                left[name] = replace(node, devices=retained)
        return left


NODE = "node"
SLICE = "resource slice"


CONTROL_PLANE = frozenset({"node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master"})
"""Taints of nodes for the cluster's own components."""


def is_control_plane(node: NodeObject) -> bool:
    """Report whether a node is reserved for the cluster's control plane, whatever taints a job tolerates.

    A node that has the label only, as in a cluster of one node, is open to other work.
    """
    return any(mark.key in CONTROL_PLANE and mark.effect != "PreferNoSchedule" for mark in node.spec.taints)


def is_same(uid: str, version: str, meta: Meta) -> bool:
    """Report whether an object has the same UID and version."""
    return bool(version) and (uid, version) == (meta.uid, meta.resource_version)


class NodeChange(Enum):
    """Kind of change of a node."""

    NONE = auto()
    """No change, as after a heartbeat."""
    OTHER = auto()
    """A change that does not affect devices. The use by pods is unchanged."""
    DEVICES = auto()
    """A change of devices or their terms, or an added or removed node. Its pods must be read again."""


class Nodes:
    """Nodes of a cluster, as received and as decoded.

    Parameters
    ----------
    cluster
        The cluster without its nodes.
    problems
        Receiver of the problems of nodes and slices.
    plugin_options
        Custom names of annotations and labels.
    """

    def __init__(self, cluster: Cluster, problems: Problems, plugin_options: PluginOptions | None = None) -> None:
        self._described = cluster
        self._problems = problems
        self._plugin_options = plugin_options or PluginOptions()
        self._written: dict[str, NodeObject] = {}
        self._slices: dict[str, ResourceSlice] = {}
        self._slices_of: defaultdict[str, dict[str, ResourceSlice]] = defaultdict(dict)
        self._views: dict[str, NodeView] = {}
        self._cluster: Cluster | None = None
        self._duplicates = DuplicateDevices()

    def describe(self, cluster: Cluster) -> bool:
        """Change the properties of the cluster without its nodes; report whether they differ."""
        if cluster == self._described:
            return False
        self._described, self._cluster = cluster, None
        return True

    @property
    def names(self) -> KeysView[str]:
        """Names of the nodes that can be decoded."""
        return self._written.keys()

    def changed(self, written: Iterable[NodeObject]) -> Iterator[NodeObject]:
        """Yield the nodes that differ from their stored versions."""
        for each in written:
            known = self._written.get(each.metadata.name)
            if known is None or not is_same(known.metadata.uid, known.metadata.resource_version, each.metadata):
                yield each

    def changed_slices(self, written: Iterable[ResourceSlice]) -> list[tuple[list[ResourceSlice], list[str]]]:
        """Return the difference to a full list of slices, by node: the slices to put and the names to drop."""
        found: defaultdict[str, tuple[list[ResourceSlice], list[str]]] = defaultdict(lambda: ([], []))
        gone = dict(self._slices)
        for each in written:
            known = gone.pop(each.metadata.name, None)
            if known is None or not is_same(known.metadata.uid, known.metadata.resource_version, each.metadata):
                found[each.spec.node_name][0].append(each)
        for name, known in gone.items():
            found[known.spec.node_name][1].append(name)
        return list(found.values())

    def get(self, name: str) -> NodeView | None:
        """Return a node; None if it does not exist."""
        return self._views.get(name)

    def host(self, preferred: Iterable[str]) -> NodeHost | None:
        """Return the address of a node for clients: of a preferred node, unless only others have an external one."""
        ready = [name for name, view in self._views.items() if view.reachable]
        names = dict.fromkeys([*(each for each in preferred if each in self._views), *sorted(ready)])
        hosts = [host for each in names if (host := node_host(each, self._written[each].status.addresses))]
        return min(hosts, key=lambda each: not each.external, default=None)

    def inventory(self) -> Cluster:
        """Return the cluster with its nodes. A device that several nodes list counts on one of them."""
        if self._cluster is None:
            before = self._duplicates.problems
            left = self._duplicates.resolve(self._views, self._written)
            for name in before.keys() | left.keys():
                if name in self._views:
                    self._log_problems(name)
            workers = sorted(name for name in self._views if not is_control_plane(self._written[name]))
            nodes = tuple(left.get(name, self._views[name].node) for name in workers)
            facts = self._described.facts.over(facts_of_nodes(nodes))
            self._cluster = replace(self._described, nodes=nodes, facts=facts)
        return self._cluster

    def _log_problems(self, name: str) -> None:
        """Record all problems of a node."""
        double = self._duplicates.problems.get(name)
        self._problems.put(NODE, name, (*self._views[name].problems, *([double] if double else [])))

    def unschedulable_cause(self, hostname: str) -> Cause:
        """Return the cause of an unschedulable pod. If its node is down, the cause is an infrastructure failure.

        Parameters
        ----------
        hostname
            Hostname label of the pinned node; empty if the pod is not pinned to one node.
        """
        pinned = [view.node for view in self._views.values() if view.node.labels.get(HOSTNAME) == hostname]
        return Cause.UNSCHEDULABLE if not hostname or any(node.ready for node in pinned) else Cause.INFRASTRUCTURE

    def put(self, written: NodeObject) -> NodeChange:
        """Add or update a node."""
        name = written.metadata.name
        self._written[name] = written
        slices = self._slices_of[name].values() if name in self._slices_of else ()
        before, view = self._views.get(name), read_node(self._described.name, written, slices, self._plugin_options)
        if before == view:
            return NodeChange.NONE
        self._views[name] = view
        self._cluster = None
        self._duplicates.count(before, view)
        self._log_problems(name)
        same = before is not None and before.accesses == view.accesses and before.node.devices == view.node.devices
        return NodeChange.OTHER if same else NodeChange.DEVICES

    def drop(self, name: str) -> NodeChange:
        """Remove a node that is gone or cannot be decoded."""
        self._written.pop(name, None)
        before = self._views.pop(name, None)
        if before is None:
            return NodeChange.NONE
        self._duplicates.count(before, None)
        self._cluster = None
        return NodeChange.DEVICES

    def put_slices(self, changed: Iterable[ResourceSlice], gone: Iterable[str] = ()) -> dict[str, NodeChange]:
        """Update and remove slices; return the changes by node."""
        touched = [self._take_slice(name) for name in gone]
        for each in changed:
            name, node = each.metadata.name, each.spec.node_name
            touched += [self._take_slice(name), node]
            self._slices[name] = self._slices_of[node][name] = each
            self._problems.put(SLICE, name)
        return {node: self.put(self._written[node]) for node in dict.fromkeys(touched) if node in self._written}

    def _take_slice(self, name: str) -> str:
        """Remove a slice; return its node."""
        before = self._slices.pop(name, None)
        if before is None:
            return ""
        there = self._slices_of[before.spec.node_name]
        del there[name]
        if not there:
            del self._slices_of[before.spec.node_name]
        return before.spec.node_name
