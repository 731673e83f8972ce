"""Templates ``pytorchjob``, for distributed PyTorch with Kubeflow's training operator, and ``torchrun``.

References
----------
kubeflow.org/v1 PyTorchJob (training operator 1.x).
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

from seaway.adapters.kubernetes.templates.context import Context, PodTemplate
from seaway.adapters.kubernetes.templates.manifest import Group, Manifest
from seaway.adapters.kubernetes.templates.names import INDEX, PART, ROLE, object_name, selector
from seaway.adapters.kubernetes.templates.pinning import HOSTNAME
from seaway.adapters.kubernetes.templates.plain import (
    PEERS,
    indexed_job,
    peer,
    peers_service,
    port_service,
    rank_by_index,
    ring_variables,
)
from seaway.adapters.kubernetes.templates.pods import Pod, pod_template
from seaway.adapters.kubernetes.templates.runtime import backoff_limit, restart_policy
from seaway.domain.errors import RejectedError

MASTER, WORKER = "Master", "Worker"

REPLICA_INDEX = "training.kubeflow.org/replica-index"
"""Label that the training operator sets on pods."""


def render_pytorchjob(context: Context) -> list[Manifest]:
    """Return one PyTorchJob. Replica 0 is its master, the others are workers.

    All workers share one pod template. For workers on several nodes, it lists all nodes and the devices of all of them.
    A device is on only one node, so each node still offers only its chosen devices. The cluster's scheduler assigns
    workers to nodes. If all nodes get equally many workers, a constraint enforces that. With unequal numbers and shared
    devices, the result may differ from the plan; Seaway then reads it from the pods.

    An elastic job has only workers, and a rendezvous at which they join and leave.
    """
    elastic = context.spec.elastic
    roles: dict[str, Any] = {}
    templates: list[PodTemplate] = []
    for group in (_elastic(context),) if elastic else context.group.split(MASTER, WORKER):
        if group.replicas:
            template = _template(context, group)
            roles[group.role] = {
                "replicas": len(group.replicas),
                "restartPolicy": restart_policy(context.spec, "Never"),
                "template": template.body,
            }
            templates.append(template)
    spec = {
        "nprocPerNode": str(max(context.spec.demand.request.gpus, 1)),
        "runPolicy": {"backoffLimit": backoff_limit(context.spec), "cleanPodPolicy": "None"},
        "pytorchReplicaSpecs": roles,
    }
    if elastic:
        bounds = {"minReplicas": context.spec.least_replicas, "maxReplicas": context.spec.max_replicas}
        spec["elasticPolicy"] = {"rdzvBackend": "c10d", **bounds}
    pins = tuple(pin for template in templates for pin in template.pins)
    claims = [claim for template in templates for claim in template.claims]
    body = context.workload("kubeflow.org/v1", "PyTorchJob", spec)
    return [
        *port_service(context, {REPLICA_INDEX: "0"} if elastic else {ROLE: MASTER.lower()}),
        *claims,
        Manifest(body, pins, context.replicas),
    ]


def _elastic(context: Context) -> Group:
    """Return the workers of an elastic job, which has no master. New workers must not change the old ones' template."""
    return replace(context.group, role=WORKER, began=f"0-{context.spec.max_replicas - 1}")


def _template(context: Context, group: Group) -> PodTemplate:
    pod = Pod(
        "pytorch",
        role=group.role.lower(),
        ports=group.role == MASTER or context.spec.elastic,
        shared_memory=True,
        fields={} if context.spec.elastic else _equal_spread(context, group),
    )
    return pod_template(context, group, pod, ("spec", "pytorchReplicaSpecs", group.role, "template"))


def _equal_spread(context: Context, group: Group) -> dict[str, Any]:
    """Return a constraint for equal numbers of pods on each node, if the plan has equal numbers."""
    each = Counter(placement.node for placement in group.placements)
    if len(each) < 2 or len(set(each.values())) > 1:
        return {}
    same = {"matchLabels": {**selector(context.deployment), ROLE: group.role.lower()}}
    spread = {
        "maxSkew": 1,
        "topologyKey": HOSTNAME,
        "whenUnsatisfiable": "DoNotSchedule",
        "nodeAffinityPolicy": "Honor",
        "labelSelector": same,
    }
    return {"topologySpreadConstraints": [spread]}


ADDRESS, PORT = "MASTER_ADDR", "MASTER_PORT"
DEFAULT_PORT = 29_500
"""Port on which replica 0 serves the others; the default of torchrun."""


def render_torchrun(context: Context) -> list[Manifest]:
    """Return the pods' service, a service for ports, and Jobs with ranks equal to the replicas' indexes.

    The lowest rank in this cluster serves the ports.
    """
    first = context.groups[0]
    port = _port(context)
    chosen = {PART: first.digest, INDEX: "0"}
    written = [peers_service(context, port), *port_service(context, chosen)]
    for group in context.groups:
        written += indexed_job(context, group, _pod(context, group, port))
    return written


def _port(context: Context) -> int:
    """Return the port of replica 0; the job can override the default."""
    text = dict(context.spec.run.env).get(PORT, str(DEFAULT_PORT))
    if not (text.isascii() and text.isdigit() and 0 < int(text) < 1 << 16):
        raise RejectedError(f"{PORT} is {text[:60]!r}, but must be a port", where="run.env")
    return int(text)


def _pod(context: Context, group: Group, port: int) -> Pod:
    spec = context.spec
    per_node = str(max(spec.demand.request.gpus, 1))
    env = {
        ADDRESS: _master(context),
        PORT: str(port),
        "NNODES": str(spec.replicas),
        "NPROC_PER_NODE": per_node,
    }
    fields = {"subdomain": context.name(context.whole, PEERS)}
    if len(group.replicas) == 1:
        env["NODE_RANK"] = str(group.replicas[0])
        return Pod(env=_with_torchrun(env) + ring_variables(context), fields=fields, shared_memory=True)
    ranks, command = rank_by_index(context, group, "NODE_RANK", "PET_NODE_RANK")
    env_of_all = (*_with_torchrun(env), *ring_variables(context), *ranks)
    return Pod(env=env_of_all, command=command, fields=fields, shared_memory=True)


def _with_torchrun(env: dict[str, str]) -> tuple[tuple[str, str], ...]:
    return (*env.items(), *((f"PET_{name}", value) for name, value in env.items()))


def _master(context: Context) -> str:
    """Return the address of replica 0; the job can override the default."""
    if said := dict(context.spec.run.env).get(ADDRESS):
        return said
    for group in context.groups:
        if 0 in group.replicas:
            return peer(context, f"{object_name(context.deployment, group.digest)}-{group.replicas.index(0)}")
    raise RejectedError(
        f"replica 0 is in another cluster, and its address is unknown there: set {ADDRESS}, or keep "
        "replicas in one cluster with placement.clusters or between_replicas",
        where="run.env",
    )
