"""``kueue``: a job that Kueue lets in when its queue has room."""

from __future__ import annotations

from dataclasses import replace

from seaway.adapters.kubernetes.templates import job
from seaway.adapters.kubernetes.templates.context import Context
from seaway.adapters.kubernetes.templates.manifest import Manifest

QUEUE_NAME = "kueue.x-k8s.io/queue-name"


def render(context: Context) -> list[Manifest]:
    """Write down what `job` does, its Jobs suspended and with the name of a LocalQueue.

    Kueue takes the suspension back when it lets a Job in. Writing the Job again would suspend what runs, so it may
    only be created. Each part is let in for itself, a gang's as well.
    """
    return [_queued(context, each) if each.kind == "Job" else each for each in job.render(context)]


def _queued(context: Context, manifest: Manifest) -> Manifest:
    body = manifest.body
    queue = context.options.local_queue or context.spec.queue
    metadata = {**body["metadata"], "labels": {**body["metadata"]["labels"], QUEUE_NAME: queue}}
    queued = {**body, "metadata": metadata, "spec": {"suspend": True, **body["spec"]}}
    return replace(manifest, body=queued, create_only=True)
