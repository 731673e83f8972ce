"""``rayjob``: a Ray cluster for one job, by KubeRay.

References
----------
ray.io/v1 RayJob (KubeRay 1.x).
"""

from __future__ import annotations

import shlex

from seaway.adapters.kubernetes.templates.context import Context
from seaway.adapters.kubernetes.templates.manifest import Manifest
from seaway.adapters.kubernetes.templates.pods import Pod
from seaway.adapters.kubernetes.templates.raycluster import assemble, cluster_spec


def render(context: Context) -> list[Manifest]:
    """Write down one RayJob, whose entry point is what the job says to run.

    KubeRay hands it in over HTTP, so there is no pod that Seaway did not place. How the job ended the RayJob's
    status says, for Ray's pods do not end: KubeRay removes them, so that their devices are free then.
    """
    run = context.spec.run
    cluster, templates = cluster_spec(context, ("spec", "rayClusterSpec"), Pod(command=(), args=()))
    spec = {
        "entrypoint": shlex.join((*run.command, *run.args)),
        "submissionMode": "HTTPMode",
        "backoffLimit": 0,
        "shutdownAfterJobFinishes": True,
        "rayClusterSpec": cluster,
    }
    return assemble(context, "RayJob", spec, templates)
