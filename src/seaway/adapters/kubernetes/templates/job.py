"""``job``: what ends by itself; an Indexed Job for each part."""

from __future__ import annotations

from seaway.adapters.kubernetes.templates.context import Context
from seaway.adapters.kubernetes.templates.manifest import Manifest
from seaway.adapters.kubernetes.templates.parts import Group
from seaway.adapters.kubernetes.templates.pods import Pod, pod_template
from seaway.adapters.kubernetes.templates.services import port_service

PLAIN = Pod()


def render(context: Context) -> list[Manifest]:
    """Write down a service for jobs with ports, and Jobs."""
    return port_service(context) + [each for group in context.groups for each in indexed_job(context, group, PLAIN)]


def indexed_job(context: Context, group: Group, pod: Pod) -> list[Manifest]:
    """Write down the Job of one part, and what its pods refer to.

    Nothing in it tries again (Seaway does, elsewhere if need be) or tidies up (Seaway wants to see how it ended).
    It is indexed, so that pods can be told apart: the one of index i is the i-th of the part's replicas.
    """
    template = pod_template(context, group, pod, ("spec", "template"))
    spec = {
        "completions": len(group.replicas),
        "parallelism": len(group.replicas),
        "completionMode": "Indexed",
        "backoffLimit": 0,
        "template": template.body,
    }
    body = context.workload("batch/v1", "Job", spec, group)
    return [*template.claims, Manifest(body, template.pins, group.replicas)]
