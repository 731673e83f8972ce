"""Which objects there are of each attempt, so that all of them can be removed, and that one is gone is noticed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence, Set

from seaway.adapters.kubernetes.device_plugins.views import Problem, ProblemKind
from seaway.adapters.kubernetes.objects.decode import Broken
from seaway.adapters.kubernetes.objects.meta import Item, Meta
from seaway.adapters.kubernetes.templates.names import (
    ATTEMPT,
    CLUSTER,
    DEVICES,
    JOB,
    MANAGED_BY,
    MANAGER,
    REPLICAS,
    numbers_of,
)
from seaway.adapters.kubernetes.templates.registry import KindName, Templates
from seaway.adapters.kubernetes.templates.safety import KINDS
from seaway.domain import job_spec as ids

SELECTOR = f"{MANAGED_BY}={MANAGER},{JOB}"
"""Selects them."""

MAX_DIGITS = 9


def attempt_of(meta: Meta, namespace: str) -> tuple[str, int] | None:
    """Return the job and attempt that an object belongs to; None for one that is not of this Seaway.

    Another one may use the same cluster, with a namespace of its own.
    """
    job_id, attempt = meta.labels.get(JOB, ""), meta.labels.get(ATTEMPT, "")
    ours = meta.namespace == namespace and meta.labels.get(MANAGED_BY) == MANAGER and ids.decode(job_id) is not None
    if not ours or not (attempt.isascii() and attempt.isdigit() and len(attempt) <= MAX_DIGITS):
        return None
    return job_id, int(attempt)


def allocated_devices(meta: Meta, namespace: str) -> tuple[str, ...]:
    """Return the devices that Seaway says on a pod of its own that it booked; none on others, whatever they say."""
    told = meta.annotations.get(DEVICES, "")
    return tuple(told.split(",")) if told and attempt_of(meta, namespace) else ()


def broken_labels(meta: Meta, namespace: str) -> tuple[Problem, ...]:
    """Say what of Seaway's marks on an object of its own cannot be read; without them no one knows what it is of."""
    if JOB not in meta.labels or meta.namespace != namespace or meta.labels.get(MANAGED_BY) != MANAGER:
        return ()
    if attempt_of(meta, namespace) is None:
        said = f"{meta.labels[JOB]!r} and {meta.labels.get(ATTEMPT, '')!r} are no job and attempt; it is no one's"
        return (Problem(ProblemKind.BROKEN, f"{JOB}, {ATTEMPT}", said),)
    told = meta.annotations.get(REPLICAS, "")
    try:
        numbers_of(told)
    except ValueError:
        said = f"{told[:60]!r} is not a list of numbers; it stands for no replica"
        return (Problem(ProblemKind.BROKEN, REPLICAS, said),)
    return ()


ObjectKey = tuple[str, str]
"""Path of all objects of a kind, and ``namespace/name``."""

AttemptKey = tuple[str, int, str]
"""Job, attempt and cluster."""


class OwnerIndex:
    """Keeps the objects of attempts, of one API server. For one event loop.

    Parameters
    ----------
    namespace
        Where they are.
    workload_gone
        Told of attempts of which a workload is gone.

    Attributes
    ----------
    workloads
        The kinds of workloads, by the path of all of their objects.
    """

    def __init__(self, namespace: str, workload_gone: Callable[[AttemptKey], None]) -> None:
        self._namespace = namespace
        self._workload_gone = workload_gone
        self.workloads: set[str] = set()
        self._objects: defaultdict[AttemptKey, set[ObjectKey]] = defaultdict(set)
        self._keys: dict[ObjectKey, AttemptKey] = {}
        self._idle: set[AttemptKey] = set()

    def of(self, key: AttemptKey) -> set[ObjectKey]:
        """Return the objects of an attempt for a cluster."""
        return set(self._objects[key]) if key in self._objects else set()

    def idle(self) -> Set[AttemptKey]:
        """Return the attempts of which there are objects, but no workload, as it is kept up to date."""
        return self._idle

    def put(self, kind: str, meta: Meta) -> None:
        """Note that an object is there."""
        owner = attempt_of(meta, self._namespace)
        if owner:
            place = (kind, f"{meta.namespace}/{meta.name}")
            self._keys[place] = key = (*owner, meta.annotations.get(CLUSTER, ""))
            self._objects[key].add(place)
            self._update_idle(key)

    def drop(self, kind: str, full_name: str) -> None:
        """Note that an object is gone."""
        place = (kind, full_name)
        key = self._keys.pop(place, None)
        if key:
            self._objects[key].discard(place)
            if not self._objects[key]:
                del self._objects[key]
            self._update_idle(key)
            if kind in self.workloads:
                self._workload_gone(key)

    def _update_idle(self, key: AttemptKey) -> None:
        """Note whether an attempt has objects, but no workload."""
        places = self._objects.get(key)
        if places and self.workloads.isdisjoint(kind for kind, _ in places):
            self._idle.add(key)
        else:
            self._idle.discard(key)


class OwnedSink:
    """Tells of all objects of one kind.

    Parameters
    ----------
    kind
        The path of all of its objects.
    runs
        Whether it is one of workloads.
    """

    def __init__(self, owned: OwnerIndex, kind: str, *, runs: bool = False) -> None:
        self._owned = owned
        self._kind = kind
        if runs:
            owned.workloads.add(kind)
        self._names: set[str] = set()

    async def replace(self, items: Sequence[Item]) -> None:
        """Take these for all there are."""
        for name in self._names - {each.metadata.full_name for each in items}:
            self._owned.drop(self._kind, name)
        self._names.clear()
        for each in items:
            self.put(each)

    def put(self, item: Item) -> None:
        """Take an object as it is now."""
        self._names.add(item.metadata.full_name)
        self._owned.put(self._kind, item.metadata)

    def drop(self, item: Item) -> None:
        """Note that an object is gone."""
        self._names.discard(item.metadata.full_name)
        self._owned.drop(self._kind, item.metadata.full_name)

    def broken(self, what: Broken) -> None:
        """Do nothing: metadata that cannot be read names no attempt."""


SERVICE = KindName("v1", "Service")
ALWAYS_WRITTEN = (SERVICE, KindName("resource.k8s.io/v1", "ResourceClaimTemplate"))
"""What every template may write, whatever its workload is."""

CORE: Mapping[KindName, str] = {
    SERVICE: "/api/v1/services",
    KindName("apps/v1", "Deployment"): "/apis/apps/v1/deployments",
    KindName("batch/v1", "Job"): "/apis/batch/v1/jobs",
}
"""What no cluster may do without, and where it is; for others servers are asked."""

PASSIVE_KINDS = frozenset(
    {
        "ConfigMap",
        "PersistentVolumeClaim",
        "Secret",
        "Service",
        "Ingress.networking.k8s.io",
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
    """Return the kinds, as ``kind.group``, of which templates that are not there any more may have left something."""
    return tuple(sorted(KINDS - {each.qualified for each in kinds}))


def source_of(kind: KindName) -> str:
    """Return what a cluster's health calls a kind: its path where that is known beforehand, else what it is."""
    return CORE.get(kind) or f"{kind.version}/{kind.kind}"


def has_controller(meta: Meta) -> bool:
    """Tell whether a controller made an object of one of Seaway's, and takes it away with that: marks are handed on."""
    return any(each.controller for each in meta.owner_references)
