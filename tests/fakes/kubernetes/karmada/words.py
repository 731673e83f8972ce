"""Karmada's names, and functions that several of its parts use."""

from __future__ import annotations

from collections.abc import Mapping
from zlib import crc32

from tests.fakes.kubernetes.kinds import DEPLOYMENTS, JOBS, PODS, REPLICA_SETS, SERVICES, STATEFUL_SETS, Json, Kind

BINDING_ID = "resourcebinding.karmada.io/permanent-id"
BINDING_NAME = "resourcebinding.karmada.io/name"
BINDING_NAMESPACE = "resourcebinding.karmada.io/namespace"
POLICY_ID = "propagationpolicy.karmada.io/permanent-id"
POLICY_NAME = "propagationpolicy.karmada.io/name"
POLICY_NAMESPACE = "propagationpolicy.karmada.io/namespace"
WORK_ID = "work.karmada.io/permanent-id"
WORK_NAME = "work.karmada.io/name"
WORK_NAMESPACE = "work.karmada.io/namespace"
MANAGED = "karmada.io/managed"
TEMPLATE_UID = "resourcetemplate.karmada.io/uid"
TEMPLATE_GENERATION = "resourcetemplate.karmada.io/generation"
CONFLICT_RESOLUTION = "work.karmada.io/conflict-resolution"
APPLIED_OVERRIDES = "policy.karmada.io/applied-overrides"
BINDING_FINALIZER = "karmada.io/binding-controller"
WORK_FINALIZER = "karmada.io/execution-controller"
CLUSTER_FINALIZER = "karmada.io/cluster-controller"
NOT_READY = "cluster.karmada.io/not-ready"
DEFAULT_SCHEDULER = "default-scheduler"
SPACE = "karmada-es-"

REPLICAS: Mapping[Kind, tuple[str, ...]] = {
    DEPLOYMENTS: ("spec", "replicas"),
    REPLICA_SETS: ("spec", "replicas"),
    STATEFUL_SETS: ("spec", "replicas"),
    JOBS: ("spec", "parallelism"),
}
"""Path of the replica count in the kinds that can be divided among clusters."""


def work_name(kind: str, namespace: str, name: str) -> str:
    """Return the name of the works of an object."""
    mark = crc32(f"{namespace}-{name}-{kind}".lower().encode())
    letters = "bcdfghjklmnpqrstvwxz2456789"
    return f"{name}-" + "".join(letters[ord(digit) % len(letters)] for digit in str(mark))


def prune(kind: Kind, body: Json) -> Json:
    """Return the part of a template that goes to the members; the body is modified."""
    body.pop("status", None)
    meta = body["metadata"]
    for name in (
        *("creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "generation", "managedFields"),
        *("resourceVersion", "selfLink", "uid", "ownerReferences", "finalizers"),
    ):
        meta.pop(name, None)
    if kind is JOBS and not body["spec"].get("manualSelector"):
        body["spec"].pop("selector", None)
        labels = body["spec"]["template"]["metadata"].get("labels", {})
        for prefix in ("batch.kubernetes.io/", ""):
            labels.pop(f"{prefix}controller-uid", None)
            labels.pop(f"{prefix}job-name", None)
    if kind is SERVICES and body["spec"].get("clusterIP") != "None":
        body["spec"].pop("clusterIP", None)
        body["spec"].pop("clusterIPs", None)
    if kind is PODS:
        body["spec"].pop("nodeName", None)
    return body


def replicas_of(kind: Kind, body: Json) -> int | None:
    """Return the replica count of an object; None if its kind has none."""
    path = REPLICAS.get(kind)
    return int(body[path[0]].get(path[1], 1)) if path else None


def divided(placement: Json) -> bool:
    """Report whether replicas are divided among clusters (rather than repeated in each)."""
    return (placement.get("replicaScheduling") or {}).get("replicaSchedulingType") == "Divided"


def share(total: int, weights: Mapping[str, int]) -> dict[str, int]:
    """Divide a number by weights; the remainder goes to the heaviest.

    Examples
    --------
    >>> share(5, {"a": 1, "b": 1})
    {'a': 3, 'b': 2}
    """
    whole = sum(weights.values()) or 1
    found = {name: total * weight // whole for name, weight in weights.items()}
    left = total - sum(found.values())
    for name in sorted(weights, key=lambda one: (-weights[one], one))[:left]:
        found[name] += 1
    return found
