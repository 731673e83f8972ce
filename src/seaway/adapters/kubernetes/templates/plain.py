"""``job``: what ends by itself; an Indexed Job for each part."""

from __future__ import annotations

from dataclasses import replace

from seaway.adapters.kubernetes.templates.context import Context
from seaway.adapters.kubernetes.templates.manifest import Manifest
from seaway.adapters.kubernetes.templates.names import PART, selector
from seaway.adapters.kubernetes.templates.parts import Group
from seaway.adapters.kubernetes.templates.pods import Pod, pod_template
from seaway.adapters.kubernetes.templates.services import port_service

PLAIN = Pod()


def render_job(context: Context) -> list[Manifest]:
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


def render_deployment(context: Context) -> list[Manifest]:
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


QUEUE_NAME = "kueue.x-k8s.io/queue-name"


def render_kueue(context: Context) -> list[Manifest]:
    """Write down what `job` does, its Jobs suspended and with the name of a LocalQueue.

    Kueue takes the suspension back when it lets a Job in. Writing the Job again would suspend what runs, so it may
    only be created. Each part is let in for itself, a gang's as well.
    """
    return [_queued(context, each) if each.kind == "Job" else each for each in render_job(context)]


def _queued(context: Context, manifest: Manifest) -> Manifest:
    body = manifest.body
    queue = context.options.local_queue or context.spec.queue
    metadata = {**body["metadata"], "labels": {**body["metadata"]["labels"], QUEUE_NAME: queue}}
    queued = {**body, "metadata": metadata, "spec": {"suspend": True, **body["spec"]}}
    return replace(manifest, body=queued, create_only=True)
