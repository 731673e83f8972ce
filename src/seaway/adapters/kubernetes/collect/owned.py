"""Index of the objects of each attempt. Seaway uses it to remove all objects and to detect deletions."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence, Set

from seaway.adapters.kubernetes.collect.drift import DriftTracker
from seaway.adapters.kubernetes.device_plugins.views import Problem, ProblemKind
from seaway.adapters.kubernetes.objects.core import Meta, OwnedItem
from seaway.adapters.kubernetes.objects.decode import Broken
from seaway.adapters.kubernetes.templates.names import (
    ATTEMPT,
    CLUSTER,
    DEVICES,
    JOB,
    MANAGED_BY,
    MANAGER,
    REPLICAS,
    TENANT,
    numbers_of,
)
from seaway.adapters.kubernetes.templates.namespaces import Namespaces
from seaway.adapters.kubernetes.templates.registry import ROUTES, KindName, Templates
from seaway.adapters.kubernetes.templates.safety import KINDS
from seaway.domain import job_spec as ids
from seaway.domain.deployment import ObjectDrift
from seaway.domain.job_spec import ServiceType

SELECTOR = f"{MANAGED_BY}={MANAGER},{JOB}"
"""Label selector of Seaway's objects."""

MAX_DIGITS = 9


def attempt_of(meta: Meta, namespaces: Namespaces) -> tuple[str, int] | None:
    """Return the job and attempt of an object; None if it does not belong to this Seaway instance.

    Another instance may use the same cluster with its own namespaces.
    """
    job_id, attempt = meta.labels.get(JOB, ""), meta.labels.get(ATTEMPT, "")
    if not job_id or not _is_ours(meta, namespaces) or ids.decode(job_id) is None:
        return None
    return (job_id, int(attempt)) if attempt.isascii() and attempt.isdigit() and len(attempt) <= MAX_DIGITS else None


def _is_ours(meta: Meta, namespaces: Namespaces) -> bool:
    """Report whether the labels and the namespace of an object are those of this Seaway instance."""
    return meta.labels.get(MANAGED_BY) == MANAGER and namespaces.owns(meta.namespace, meta.labels.get(TENANT, ""))


def allocated_devices(meta: Meta, namespaces: Namespaces) -> tuple[str, ...]:
    """Return the devices in the annotation of a Seaway pod; ignore the annotation on other pods."""
    reported = meta.annotations.get(DEVICES, "")
    return tuple(reported.split(",")) if reported and attempt_of(meta, namespaces) else ()


def broken_labels(meta: Meta, namespaces: Namespaces) -> tuple[Problem, ...]:
    """Return the problems of the labels on one of Seaway's objects. Without valid labels its attempt is unknown."""
    if JOB not in meta.labels or not _is_ours(meta, namespaces):
        return ()
    if attempt_of(meta, namespaces) is None:
        said = f"{meta.labels[JOB]!r} and {meta.labels.get(ATTEMPT, '')!r} are not a job and attempt; it is ignored"
        return (Problem(ProblemKind.BROKEN, f"{JOB}, {ATTEMPT}", said),)
    reported = meta.annotations.get(REPLICAS, "")
    try:
        numbers_of(reported)
    except ValueError:
        said = f"{reported[:60]!r} is not a list of numbers; the object counts for no replica"
        return (Problem(ProblemKind.BROKEN, REPLICAS, said),)
    return ()


ObjectKey = tuple[str, str]
"""Path of a kind's objects, and ``namespace/name``."""

AttemptKey = tuple[str, int, str]
"""Job, attempt and cluster."""


class OwnerIndex:
    """Index of the attempts' objects in one API server, for one event loop.

    Parameters
    ----------
    namespaces
        Namespaces of the objects.
    workload_gone
        Called with an attempt when one of its workloads is gone.

    Attributes
    ----------
    workloads
        Paths of the workload kinds.
    """

    def __init__(self, namespaces: Namespaces, workload_gone: Callable[[AttemptKey], None]) -> None:
        self._namespaces = namespaces
        self._workload_gone = workload_gone
        self.workloads: set[str] = set()
        self._objects: defaultdict[AttemptKey, set[ObjectKey]] = defaultdict(set)
        self._keys: dict[ObjectKey, AttemptKey] = {}
        self._idle: set[AttemptKey] = set()

    def of(self, key: AttemptKey) -> set[ObjectKey]:
        """Return the objects of an attempt for a cluster."""
        return set(self._objects.get(key, ()))

    def owner(self, place: ObjectKey) -> AttemptKey | None:
        """Return the attempt of an object; None if the object is unknown."""
        return self._keys.get(place)

    def find(self, kind: str, full_name: str) -> AttemptKey | None:
        """Return the attempt of an object by its kind and ``namespace/name``; None if it is unknown."""
        plurals = (f"/{kind.lower()}s", f"/{kind.lower()}es")
        found = (key for (path, name), key in self._keys.items() if name == full_name and path.endswith(plurals))
        return next(found, None)

    def idle(self) -> Set[AttemptKey]:
        """Return a live set of the attempts that have objects, but no workload."""
        return self._idle

    def put(self, kind: str, meta: Meta) -> None:
        """Add an object."""
        owner = attempt_of(meta, self._namespaces)
        if owner:
            place = (kind, f"{meta.namespace}/{meta.name}")
            key = (*owner, meta.annotations.get(CLUSTER, ""))
            if self._keys.get(place, key) != key:  # a later attempt took it over
                self._forget(place)
            self._keys[place] = key
            self._objects[key].add(place)
            self._update_idle(key)

    def drop(self, kind: str, full_name: str) -> None:
        """Remove an object."""
        key = self._forget((kind, full_name))
        if key and kind in self.workloads:
            self._workload_gone(key)

    def _forget(self, place: ObjectKey) -> AttemptKey | None:
        """Remove an object from its attempt; return the attempt."""
        key = self._keys.pop(place, None)
        if key:
            self._objects[key].discard(place)
            if not self._objects[key]:
                del self._objects[key]
            self._update_idle(key)
        return key

    def _update_idle(self, key: AttemptKey) -> None:
        """Update the set of idle attempts."""
        places = self._objects.get(key)
        if places and self.workloads.isdisjoint(kind for kind, _ in places):
            self._idle.add(key)
        else:
            self._idle.discard(key)


class OwnedSink:
    """Receiver of the objects of one kind for an `OwnerIndex`.

    Parameters
    ----------
    kind
        Path of the kind's objects.
    runs
        True for a kind of workloads.
    drifted
        Called with the attempt of an object, the object, and what others changed in it; without a text, nothing.
    """

    def __init__(
        self,
        owned: OwnerIndex,
        kind: str,
        *,
        runs: bool = False,
        drifted: Callable[[AttemptKey, ObjectKey, ObjectDrift], None] = lambda *_: None,
    ) -> None:
        self._owned = owned
        self._kind = kind
        self._drifted = drifted
        self._drift = DriftTracker()
        if runs:
            owned.workloads.add(kind)
        self._names: set[str] = set()

    async def replace(self, items: Sequence[OwnedItem]) -> None:
        """Replace all objects."""
        for name in self._names - {each.metadata.full_name for each in items}:
            self._forget(name)
        self._names.clear()
        for each in items:
            self.put(each)

    def put(self, item: OwnedItem) -> None:
        """Add or update an object."""
        place = (self._kind, item.metadata.full_name)
        self._names.add(place[1])
        self._owned.put(self._kind, item.metadata)
        if key := self._owned.owner(place):
            self._drifted(key, place, self._drift.look(place, item.metadata))

    def drop(self, item: OwnedItem) -> None:
        """Remove an object."""
        self._names.discard(item.metadata.full_name)
        self._forget(item.metadata.full_name)

    def _forget(self, name: str) -> None:
        place = (self._kind, name)
        if key := self._owned.owner(place):
            self._drifted(key, place, ObjectDrift(""))
        self._drift.forget(place)
        self._owned.drop(*place)

    def broken(self, what: Broken) -> None:
        """Ignore an object without valid metadata: its attempt is unknown."""


SERVICE = KindName("v1", "Service")
INGRESS, HTTP_ROUTE = (ROUTES[each] for each in (ServiceType.INGRESS, ServiceType.HTTP_ROUTE))
ALWAYS_WRITTEN = (SERVICE, KindName("resource.k8s.io/v1", "ResourceClaimTemplate"))
"""Kinds that every template may write."""

CORE: Mapping[KindName, str] = {
    SERVICE: "/api/v1/services",
    KindName("apps/v1", "Deployment"): "/apis/apps/v1/deployments",
    KindName("batch/v1", "Job"): "/apis/batch/v1/jobs",
}
"""Kinds that every cluster has, with their paths. Other kinds require API discovery."""

PASSIVE_KINDS = frozenset(
    {
        "ConfigMap",
        "PersistentVolumeClaim",
        "Secret",
        "Service",
        "Ingress.networking.k8s.io",
        "HTTPRoute.gateway.networking.k8s.io",
        "NetworkPolicy.networking.k8s.io",
        "PodDisruptionBudget.policy",
        "ResourceClaimTemplate.resource.k8s.io",
    }
)
"""Kinds that run nothing, as ``kind.group``."""


def kinds_of(templates: Templates) -> tuple[KindName, ...]:
    """Return all kinds that templates write."""
    return tuple(dict.fromkeys((*ALWAYS_WRITTEN, *(kind for each in templates.values() for kind in each.writes))))


def leftover_kinds(kinds: tuple[KindName, ...]) -> tuple[str, ...]:
    """Return the kinds, as ``kind.group``, that only removed templates may have written."""
    return tuple(sorted(KINDS - {each.qualified for each in kinds}))


def source_of(kind: KindName) -> str:
    """Return the health source of a kind: its path if it is in `CORE`, else version and kind."""
    return CORE.get(kind) or f"{kind.version}/{kind.kind}"


def has_controller(meta: Meta) -> bool:
    """Report whether a controller created an object and deletes it with its owner. Controllers copy Seaway's labels."""
    return any(each.controller for each in meta.owner_references)
