"""Which kinds of objects Seaway looks at in its own namespace: all that its templates write, and what others left."""

from __future__ import annotations

from collections.abc import Mapping

from seaway.adapters.kubernetes.objects.meta import Meta
from seaway.adapters.kubernetes.templates.registry import KindName, Templates
from seaway.adapters.kubernetes.templates.safety import KINDS

SERVICE = KindName("v1", "Service")
ANY = (SERVICE, KindName("resource.k8s.io/v1", "ResourceClaimTemplate"))
"""What every template may write, whatever its workload is."""

CORE: Mapping[KindName, str] = {
    SERVICE: "/api/v1/services",
    KindName("apps/v1", "Deployment"): "/apis/apps/v1/deployments",
    KindName("batch/v1", "Job"): "/apis/batch/v1/jobs",
}
"""What no cluster may do without, and where it is; for others servers are asked."""

PLAIN = frozenset(
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
    return tuple(dict.fromkeys((*ANY, *(kind for each in templates.values() for kind in each.writes))))


def left_by_others(kinds: tuple[KindName, ...]) -> tuple[str, ...]:
    """Return the kinds, as ``kind.group``, of which templates that are not there any more may have left something."""
    return tuple(sorted(KINDS - {each.qualified for each in kinds}))


def source_of(kind: KindName) -> str:
    """Return what a cluster's health calls a kind: its path where that is known beforehand, else what it is."""
    return CORE.get(kind) or f"{kind.version}/{kind.kind}"


def is_made_by_another(meta: Meta) -> bool:
    """Tell whether a controller made an object of one of Seaway's, and takes it away with that: marks are handed on."""
    return any(each.controller for each in meta.owner_references)
