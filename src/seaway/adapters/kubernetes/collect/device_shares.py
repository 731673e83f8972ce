"""Device shares of pods, also those known only by number, in resource claims, or of pods that ended."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

import msgspec
from msgspec.structs import replace as replace_struct

from seaway.adapters.kubernetes.collect.owned import allocated_devices
from seaway.adapters.kubernetes.device_plugins.assign import assign_devices
from seaway.adapters.kubernetes.device_plugins.pods import node_of, read_pod
from seaway.adapters.kubernetes.device_plugins.views import Held, NodeView, PodView
from seaway.adapters.kubernetes.objects.core import PodObject
from seaway.adapters.kubernetes.objects.dra import ResourceClaim
from seaway.adapters.kubernetes.templates.namespaces import Namespaces

READ = ("hami.io", "volcano.sh", "seaway.io", "batch.kubernetes.io")
"""Domains of the annotations that Seaway reads. Other annotations are not cached."""

_DECODER = msgspec.json.Decoder(PodObject)
_ENCODER = msgspec.json.Encoder()


class PodCache:
    """Cache of pods by name, ``namespace/name``, and by node.

    Pods are stored as JSON, which needs a fraction of the memory.
    """

    def __init__(self) -> None:
        self._written: dict[str, bytes] = {}
        self._nodes: dict[str, str] = {}
        self._on: defaultdict[str, dict[str, None]] = defaultdict(dict)

    def put(self, name: str, pod: PodObject) -> None:
        """Store the current version of a pod."""
        node = node_of(pod)
        if self._nodes.get(name) != node:
            self.drop(name)
            self._nodes[name] = node
            self._on[node][name] = None
        annotations = {key: text for key, text in pod.metadata.annotations.items() if key.partition("/")[0] in READ}
        lean = replace_struct(pod, metadata=replace_struct(pod.metadata, annotations=annotations))
        self._written[name] = _ENCODER.encode(lean)

    def drop(self, name: str) -> None:
        """Remove a pod."""
        if self._written.pop(name, None) is not None:
            there = self._on[node := self._nodes.pop(name)]
            del there[name]
            if not there:
                del self._on[node]

    def on(self, node: str) -> list[str]:
        """Return the pods on a node, in order of arrival."""
        return list(self._on.get(node, ()))

    def read(self, names: Iterable[str]) -> Iterator[PodObject]:
        """Yield the cached pods among the named ones."""
        for name in names:
            if written := self._written.get(name):
                yield _DECODER.decode(written)


class Claims:
    """Index of resource claims and of the pods that use them, both by ``namespace/name``.

    They may arrive in any order.
    """

    def __init__(self) -> None:
        self._claims: dict[str, ResourceClaim] = {}
        self._users: defaultdict[str, dict[str, None]] = defaultdict(dict)
        self._used: dict[str, tuple[str, ...]] = {}

    @property
    def names(self) -> set[str]:
        """Names of all claims."""
        return set(self._claims)

    def put(self, claim: ResourceClaim) -> list[str]:
        """Add or update a claim; return the pods that its change affects."""
        name = f"{claim.metadata.namespace}/{claim.metadata.name}"
        before = self._claims.get(name)
        self._claims[name] = claim
        return [] if before is not None and before.status == claim.status else self._users_of(name)

    def drop(self, name: str) -> list[str]:
        """Remove a claim; return the pods that used it."""
        return [] if self._claims.pop(name, None) is None else self._users_of(name)

    def used_by(self, name: str, pod: PodObject) -> list[ResourceClaim]:
        """Record the claims that a pod uses; return the known ones."""
        used = tuple(dict.fromkeys(_named(pod))) if pod.spec.resource_claims else ()
        if used != self._used.get(name, ()):
            self.forget(name)
            if used:
                self._used[name] = used
            for each in used:
                self._users[each][name] = None
        return [claim for each in used if (claim := self._claims.get(each))]

    def forget(self, name: str) -> None:
        """Remove a pod."""
        for each in self._used.pop(name, ()):
            del self._users[each][name]
            if not self._users[each]:
                del self._users[each]

    def _users_of(self, claim: str) -> list[str]:
        return list(self._users.get(claim, ()))


def _named(pod: PodObject) -> Iterator[str]:
    """Yield the full names of a pod's claims, from its spec and from claim templates."""
    named = [each.resource_claim_name for each in pod.spec.resource_claims]
    made = [each.resource_claim_name for each in pod.status.resource_claim_statuses]
    for name in filter(None, named + made):
        yield f"{pod.metadata.namespace}/{name}"


class CountedShares:
    """Shares known only by number, on each node, and the devices assigned to them."""

    def __init__(self) -> None:
        self._held: defaultdict[str, dict[str, tuple[Held, ...]]] = defaultdict(dict)
        self._nodes: dict[str, str] = {}
        self._named: dict[str, tuple[str, ...]] = {}
        self._allocated: dict[str, tuple[str, ...]] = {}

    def put(
        self, name: str, held: tuple[Held, ...], view: NodeView, allocated: Sequence[str]
    ) -> tuple[tuple[Held, ...], list[str]]:
        """Set the shares of a pod.

        Parameters
        ----------
        name
            The pod, ``namespace/name``.
        view
            Node of the pod.
        allocated
            Devices that Seaway reserved for the pod, if known.

        Returns
        -------
        held, others
            Shares of the pod, with devices where possible; and the pods of its node whose assigned devices changed.
        """
        node = view.node.name
        others = self.drop(name) if self._nodes.get(name, node) != node else []
        there = self._held[node]
        self._nodes[name], there[name], self._allocated[name] = node, held, tuple(allocated)
        found = assign_devices(view, there, self._named, self._allocated)
        for pod, shares in found.items():
            named = _name_counted(shares)
            if named != self._named.get(pod, ()):
                self._named[pod] = named
                if pod != name:
                    others.append(pod)
        return found[name], others

    def drop(self, name: str) -> list[str]:
        """Remove the shares of a pod; return the pods without a device that may get one of its devices."""
        if (node := self._nodes.pop(name, None)) is None:
            return []
        there = self._held[node]
        del there[name], self._allocated[name]
        self._named.pop(name, None)
        if not there:
            del self._held[node]
        return [pod for pod, held in there.items() if len(self._named.get(pod, ())) < len(held)]


def _name_counted(held: Sequence[Held]) -> tuple[str, ...]:
    return tuple(each.uuid for each in held if each.uuid)


class DeviceShares:
    """Reader of the device shares of pods. It stores the state for later updates. Pods are named ``namespace/name``.

    Parameters
    ----------
    namespaces
        Namespace of Seaway's pods.
    """

    def __init__(self, namespaces: Namespaces) -> None:
        self._namespaces = namespaces
        self._claims = Claims()
        self._counted = CountedShares()
        self._pods = PodCache()

    def read(self, pod: PodObject, view: NodeView | None) -> tuple[PodView, list[str]]:
        """Read a pod. Shares known only by number get devices that stay assigned while the pod uses them.

        Returns
        -------
        view, again
            The pod's use of the node, and the pods to read again.
        """
        name = f"{pod.metadata.namespace}/{pod.metadata.name}"
        found = read_pod(pod, view, self._claims.used_by(name, pod))
        if found.final:
            self._pods.drop(name)
        else:
            self._pods.put(name, pod)
        if view is None or not found.alive or all(each.uuid for each in found.held):
            return found, self._counted.drop(name)
        held, again = self._counted.put(name, found.held, view, allocated_devices(pod.metadata, self._namespaces))
        return replace(found, held=held), again

    def forget(self, name: str) -> list[str]:
        """Remove a deleted pod; return the pods to read again."""
        self._claims.forget(name)
        self._pods.drop(name)
        return self._counted.drop(name)

    def put_claim(self, claim: ResourceClaim) -> list[str]:
        """Update a claim; return the pods to read again."""
        return self._claims.put(claim)

    def drop_claim(self, name: str) -> list[str]:
        """Remove a claim, ``namespace/name``; return the pods to read again."""
        return self._claims.drop(name)

    @property
    def claims(self) -> set[str]:
        """Names of all claims."""
        return self._claims.names

    def on(self, node: str) -> list[str]:
        """Return the pods to read again when the devices of a node change."""
        return self._pods.on(node)

    def pods(self, names: Iterable[str]) -> Iterator[PodObject]:
        """Yield the cached versions of the named pods."""
        return self._pods.read(names)
