"""Karmada policies for the objects of a deployment, and their order.

Workloads are sent without pins, and OverridePolicies add the pins. A workload of one part goes to only one cluster, so
it could contain its pins. The separation has three advantages. Users see the plain job in Karmada. If a user changes
the binding, the workload does not refer to another cluster's nodes. A changed pin is visible as a changed pin. The cost
is one small object per workload.

References
----------
policy.karmada.io/v1alpha1 PropagationPolicy and OverridePolicy; work.karmada.io/v1alpha2 ResourceBinding.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from seaway.adapters.kubernetes.templates.context import Context, TemplateOptions
from seaway.adapters.kubernetes.templates.manifest import Manifest
from seaway.adapters.kubernetes.templates.names import MANAGED_BY, MANAGER, MAX_LABEL_LENGTH, TENANT, digest
from seaway.domain.deployment import Deployment
from seaway.domain.errors import RejectedError

SCHEDULER = "seaway"
"""Scheduler name of bindings that Karmada's own scheduler ignores."""

POLICY_API = "policy.karmada.io/v1alpha1"

MAX_SELECTED = 500
"""Maximum number of objects in one PropagationPolicy, which has a limited size. A job may have 10,000 objects."""


@dataclass(frozen=True, slots=True)
class Binding:
    """Required content of an object's ResourceBinding.

    Attributes
    ----------
    name
        Name that Karmada derives for it.
    clusters
        Value of ``spec.clusters``.
    """

    name: str
    clusters: tuple[dict[str, Any], ...]


def for_karmada(deployment: Deployment, options: TemplateOptions, manifests: Sequence[Manifest]) -> list[Manifest]:
    """Return all objects for Karmada's control plane, in the order of creation.

    OverridePolicies come first, because Karmada does not update a workload for a later OverridePolicy.
    PropagationPolicies and the objects that they select follow, in the order of `manifests`.

    Raises
    ------
    RejectedError
        When a user or controller in the cluster must change an object, because Karmada would undo the change.
    """
    if once := [each.name for each in manifests if each.create_only]:
        raise RejectedError(
            f"Karmada would write {once[0]!r} again and again, against another writer: "
            f"a {deployment.spec.template} must be sent directly to its cluster",
            where="template",
        )
    context = Context.of(deployment, options)
    absent = [each for each in manifests if each.absent]
    manifests = [each for each in manifests if not each.absent]
    overrides = [_override(context, each) for each in manifests if each.pins]
    pieces = [manifests[first : first + MAX_SELECTED] for first in range(0, len(manifests), MAX_SELECTED)]
    policies = [_propagation(context, piece, number) for number, piece in enumerate(pieces)]
    neutral = [Manifest(each.body, (), each.replicas) for each in manifests]
    obsolete = [replace(_override(context, each), absent=True) for each in absent]
    return [*overrides, *policies, *neutral, *absent, *obsolete]


def binding(deployment: Deployment, manifest: Manifest) -> Binding:
    """Return the ResourceBinding of an object.

    It has the replicas of the workload, or 0 for an object without replicas.
    """
    name = binding_name(manifest.body)
    target: dict[str, Any] = {"name": deployment.cluster}
    if manifest.replicas:
        target["replicas"] = len(manifest.replicas)
    return Binding(name, (target,))


def binding_name(body: Mapping[str, Any]) -> str:
    """Return the name that Karmada derives for the ResourceBinding of an object."""
    return f"{body['metadata']['name']}-{body['kind'].lower()}".replace(":", ".")


def content_policy(namespace: str, tenant: str, bodies: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the policy that sends the content of a tenant's namespace to all members, present and future.

    Karmada's own scheduler assigns the members.
    """
    names = {"apiVersion": POLICY_API, "kind": "PropagationPolicy"}
    labels = {MANAGED_BY: MANAGER, TENANT: tenant}
    spec = {
        "resourceSelectors": [_selector(each) for each in bodies],
        "conflictResolution": "Overwrite",
        "placement": {"clusterAffinity": {}, "clusterTolerations": [{"operator": "Exists"}]},
    }
    return {**names, "metadata": {"name": "seaway-namespace", "namespace": namespace, "labels": labels}, "spec": spec}


def _propagation(context: Context, manifests: Sequence[Manifest], number: int) -> Manifest:
    spec = {
        "schedulerName": SCHEDULER,
        "resourceSelectors": [_selector(each.body) for each in manifests],
        "placement": {
            "clusterAffinity": {"clusterNames": [context.deployment.cluster]},
            # Karmada must not evict work: Seaway decides when a cluster is lost.
            "clusterTolerations": [{"operator": "Exists"}],
            "replicaScheduling": {"replicaSchedulingType": "Duplicated"},
        },
    }
    metadata = context.metadata(context.whole, context.replicas, str(number) if number else "")
    return Manifest({"apiVersion": POLICY_API, "kind": "PropagationPolicy", "metadata": metadata, "spec": spec})


def _override(context: Context, manifest: Manifest) -> Manifest:
    patches = [{"path": pin.pointer, "operator": "add", "value": pin.value} for pin in manifest.pins]
    rule = {
        "targetCluster": {"clusterNames": [context.deployment.cluster]},
        "overriders": {"plaintext": patches},
    }
    metadata = {**manifest.body["metadata"], "name": _override_name(manifest)}
    spec = {"resourceSelectors": [_selector(manifest.body)], "overrideRules": [rule]}
    return Manifest({"apiVersion": POLICY_API, "kind": "OverridePolicy", "metadata": metadata, "spec": spec})


def _override_name(manifest: Manifest) -> str:
    """Return the name of an object's policy. It includes the kind, because names are unique only per kind."""
    name = f"{manifest.name}-{manifest.kind.lower()}"
    return name if len(name) <= MAX_LABEL_LENGTH else f"{manifest.name[: MAX_LABEL_LENGTH - 9]}-{digest(name)}"


def _selector(body: Mapping[str, Any]) -> dict[str, str]:
    metadata = body["metadata"]
    return {
        "apiVersion": body["apiVersion"],
        "kind": body["kind"],
        "namespace": metadata["namespace"],
        "name": metadata["name"],
    }
