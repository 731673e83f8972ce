"""What goes with a deployment's objects through Karmada, and in which order.

Workloads are sent as neutral templates, and OverridePolicies put in what pins them. A workload of one part goes to
one cluster only, so it could as well carry its pins itself; kept apart, what users see in Karmada is their job
in plain words, a template never binds another cluster's nodes should its binding be changed by hand, and a changed
pin is seen for what it is. The price is one small object for each workload.

References
----------
policy.karmada.io/v1alpha1 PropagationPolicy and OverridePolicy; work.karmada.io/v1alpha2 ResourceBinding.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from seaway.adapters.kubernetes.templates.context import Context, TemplateOptions
from seaway.adapters.kubernetes.templates.manifest import Manifest
from seaway.adapters.kubernetes.templates.names import MAX_LABEL_LENGTH, digest
from seaway.domain.deployment import Deployment
from seaway.domain.errors import RejectedError

SCHEDULER = "seaway"
"""Whose bindings Karmada's own scheduler leaves alone."""

POLICY_API = "policy.karmada.io/v1alpha1"

MAX_SELECTED = 500
"""Objects of one PropagationPolicy; 10,000 would not go into one."""


@dataclass(frozen=True, slots=True)
class Binding:
    """What the ResourceBinding of an object has to say.

    Attributes
    ----------
    name
        As Karmada derives it.
    clusters
        For ``spec.clusters``.
    """

    name: str
    clusters: tuple[dict[str, Any], ...]


def for_karmada(deployment: Deployment, options: TemplateOptions, manifests: Sequence[Manifest]) -> list[Manifest]:
    """Return all that is to be written into Karmada's control plane, in the order in which it must be.

    OverridePolicies come first: Karmada does not look at a workload again when one comes later. Then come
    PropagationPolicies and what they select, in the order of `manifests`.

    Raises
    ------
    RejectedError
        When a user in the cluster is to change an object, which Karmada would undo.
    """
    if once := [each.name for each in manifests if each.create_only]:
        raise RejectedError(
            f"Karmada would write {once[0]!r} again and again, against whoever else changes it: "
            f"a {deployment.spec.template} has to go straight into its cluster",
            where="template",
        )
    context = Context.of(deployment, options)
    overrides = [_override(context, each) for each in manifests if each.pins]
    pieces = [manifests[first : first + MAX_SELECTED] for first in range(0, len(manifests), MAX_SELECTED)]
    policies = [_propagation(context, piece, number) for number, piece in enumerate(pieces)]
    neutral = [Manifest(each.body, (), each.replicas) for each in manifests]
    return [*overrides, *policies, *neutral]


def binding(deployment: Deployment, manifest: Manifest) -> Binding:
    """Return where Karmada is to be told that an object goes.

    Replicas are the workload's own; 0 for what has none.
    """
    name = f"{manifest.name}-{manifest.kind.lower()}".replace(":", ".")
    target: dict[str, Any] = {"name": deployment.cluster}
    if manifest.replicas:
        target["replicas"] = len(manifest.replicas)
    return Binding(name, (target,))


def _propagation(context: Context, manifests: Sequence[Manifest], number: int) -> Manifest:
    spec = {
        "schedulerName": SCHEDULER,
        "resourceSelectors": [_selector(each) for each in manifests],
        "placement": {
            "clusterAffinity": {"clusterNames": [context.deployment.cluster]},
            # Seaway decides when a cluster is lost; Karmada is not to take work away from it before.
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
    spec = {"resourceSelectors": [_selector(manifest)], "overrideRules": [rule]}
    return Manifest({"apiVersion": POLICY_API, "kind": "OverridePolicy", "metadata": metadata, "spec": spec})


def _override_name(manifest: Manifest) -> str:
    """Name a policy after its object; objects of several kinds may have one name."""
    name = f"{manifest.name}-{manifest.kind.lower()}"
    return name if len(name) <= MAX_LABEL_LENGTH else f"{manifest.name[: MAX_LABEL_LENGTH - 9]}-{digest(name)}"


def _selector(manifest: Manifest) -> dict[str, str]:
    metadata = manifest.body["metadata"]
    return {
        "apiVersion": manifest.body["apiVersion"],
        "kind": manifest.kind,
        "namespace": metadata["namespace"],
        "name": metadata["name"],
    }
