"""Templates ``raycluster``, for a permanent Ray cluster with KubeRay, and ``rayjob``.

References
----------
ray.io/v1 RayCluster (KubeRay 1.x).
"""

from __future__ import annotations

import shlex
from dataclasses import replace
from typing import Any

from seaway.adapters.kubernetes.templates.context import Context, PodTemplate
from seaway.adapters.kubernetes.templates.manifest import Group, Manifest, Path
from seaway.adapters.kubernetes.templates.names import ROLE
from seaway.adapters.kubernetes.templates.plain import port_service
from seaway.adapters.kubernetes.templates.pods import Pod, pod_template
from seaway.adapters.kubernetes.templates.runtime import setup_text
from seaway.domain.runtime import WORKDIR

HEAD, WORKER = "head", "worker"


def render_raycluster(context: Context) -> list[Manifest]:
    """Return one RayCluster. Each pod runs the job's command before Ray starts."""
    spec, templates = cluster_spec(context, ("spec",), Pod())
    return assemble(context, "RayCluster", spec, templates)


def cluster_spec(context: Context, at: Path, pod: Pod) -> tuple[dict[str, Any], list[PodTemplate]]:
    """Return the spec of a Ray cluster: replica 0 is its head, and each part is a worker group.

    Parameters
    ----------
    at
        Path of the spec in its workload.
    pod
        Options of the pods.
    """
    head, workers = context.group.split(HEAD, WORKER)
    templates = [_template(context, head, pod, (*at, "headGroupSpec", "template"))]
    params = _params(context)
    spec: dict[str, Any] = {
        "headGroupSpec": {"rayStartParams": {"dashboard-host": "0.0.0.0", **params}, "template": templates[0].body}
    }
    groups: list[dict[str, Any]] = []
    for group in workers.alike():
        path = (*at, "workerGroupSpecs", len(groups), "template")
        templates.append(_template(context, group, pod, path))
        count = len(group.replicas)
        groups.append(
            {
                "groupName": f"part-{replace(group, role='').digest}",
                "replicas": count,
                "minReplicas": count,
                "maxReplicas": count,
                "rayStartParams": params,
                "template": templates[-1].body,
            }
        )
    if groups:
        spec["workerGroupSpecs"] = groups
    return spec, templates


def assemble(context: Context, kind: str, spec: dict[str, Any], templates: list[PodTemplate]) -> list[Manifest]:
    """Return the workload, preceded by its service and claims."""
    claims = [claim for template in templates for claim in template.claims]
    pins = tuple(pin for template in templates for pin in template.pins)
    body = context.workload("ray.io/v1", kind, spec)
    return [*port_service(context, {ROLE: HEAD}), *claims, Manifest(body, pins, context.replicas)]


def _params(context: Context) -> dict[str, str]:
    """Return the start parameters with Ray's number of devices in a pod.

    KubeRay infers it only from some resource names.
    """
    gpus = context.spec.demand.request.gpus
    return {"num-gpus": str(gpus)} if gpus else {}


def _template(context: Context, group: Group, pod: Pod, at: Path) -> PodTemplate:
    command = context.spec.run.command if pod.command is None else pod.command
    if setup := setup_text(context.spec.runtime):  # KubeRay joins the words, and adds the start of Ray
        command = (f"{setup} &&" if command else setup, *command)
    listens = group.role == HEAD
    own = Pod(f"ray-{group.role}", role=group.role, command=command, args=pod.args, wrapped=False, ports=listens)
    return pod_template(context, group, own, at)


def render_rayjob(context: Context) -> list[Manifest]:
    """Return one RayJob with the job's command as entry point.

    KubeRay submits it over HTTP, so Seaway places every pod. The RayJob's status reports the result,
    because Ray's pods do not end by themselves. KubeRay deletes them after the job, which frees their devices.
    """
    run = context.spec.run
    cluster, templates = cluster_spec(context, ("spec", "rayClusterSpec"), Pod(command=(), args=()))
    inside = f"cd {WORKDIR} && " if context.spec.runtime.workdir else ""
    spec = {
        "entrypoint": inside + shlex.join((*run.command, *run.args)),
        "submissionMode": "HTTPMode",
        "backoffLimit": 0,
        "shutdownAfterJobFinishes": True,
        "rayClusterSpec": cluster,
    }
    return assemble(context, "RayJob", spec, templates)
