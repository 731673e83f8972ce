"""``deployment``: what runs until it is stopped; a Deployment for each part."""

from __future__ import annotations

from seaway.adapters.kubernetes.templates.context import Context
from seaway.adapters.kubernetes.templates.labels import PART, selector
from seaway.adapters.kubernetes.templates.manifest import Manifest
from seaway.adapters.kubernetes.templates.pods import Pod, pod_template
from seaway.adapters.kubernetes.templates.services import port_service


def render(context: Context) -> list[Manifest]:
    """Write down a service and Deployments. Containers are restarted: a service that crashed is to come back."""
    written = port_service(context)
    for group in context.groups:
        template = pod_template(context, group, Pod(restart="Always"), ("spec", "template"))
        spec = {
            "replicas": len(group.replicas),
            "revisionHistoryLimit": 0,
            "selector": {"matchLabels": {**selector(context.deployment), PART: group.digest}},
            "strategy": {"type": "Recreate"},  # its devices are taken by the pods that are there
            "template": template.body,
        }
        body = context.workload("apps/v1", "Deployment", spec, group)
        written += [*template.claims, Manifest(body, template.pins, group.replicas)]
    return written
