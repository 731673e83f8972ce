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
from seaway.adapters.kubernetes.templates.names import INDEX, PART, REPLICA_INDEX, ROLE, selector
from seaway.adapters.kubernetes.templates.pinning import HOSTNAME
from seaway.adapters.kubernetes.templates.plain import (
    PEERS,
    host_variables,
    hostfile,
    indexed_job,
    master,
    port_service,
    rank_0_port,
    rank_0_service,
    rank_by_index,
    rank_command,
    ranks,
    ring_services,
    ring_variables,
)
from seaway.adapters.kubernetes.templates.pods import Pod, pod_template
from seaway.adapters.kubernetes.templates.runtime import backoff_limit, restart_policy
from seaway.domain.deployment import ADDRESS, PORT

MASTER, WORKER = "Master", "Worker"

OPERATOR_PORT = 23_456
"""Port on which the training operator lets the master serve the workers."""


def render_pytorchjob(context: Context) -> list[Manifest]:
    """Return one PyTorchJob. Replica 0 is its master, the others are workers.

    All workers share one pod template. For workers on several nodes, it lists all nodes and the devices of all of them.
    A device is on only one node, so each node still offers only its chosen devices. The cluster's scheduler assigns
    workers to nodes. If all nodes get equally many workers, a constraint enforces that. With unequal numbers and shared
    devices, the result may differ from the plan; Seaway then reads it from the pods.

    An elastic job has only workers, and a rendezvous at which they join and leave. A ring has one PyTorchJob in each
    cluster, whose master is the lowest rank there.
    """
    elastic = context.spec.elastic
    roles: dict[str, Any] = {}
    templates: list[PodTemplate] = []
    command, env = _in_ring(context)
    for group in (_elastic(context),) if elastic else context.group.split(MASTER, WORKER):
        if group.replicas:
            template = _template(context, group, command, env)
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
        *rank_0_service(context, {ROLE: MASTER.lower()}, OPERATOR_PORT),
        *port_service(context, {REPLICA_INDEX: "0"} if elastic else {ROLE: MASTER.lower()}),
        *claims,
        Manifest(body, pins, context.replicas),
    ]


def _elastic(context: Context) -> Group:
    """Return the workers of an elastic job, which has no master. New workers must not change the old ones' template."""
    return replace(context.group, role=WORKER, began=f"0-{context.spec.max_replicas - 1}")


def _in_ring(context: Context) -> tuple[tuple[str, ...] | None, tuple[tuple[str, str], ...]]:
    """Return the command and variables of pods in a ring over clusters; none without one.

    The operator sets ranks within its PyTorchJob, and sets them last. So a shell maps them to those of the ring.
    """
    spec = context.spec
    if not context.deployment.ranks:
        return None, ()
    replicas = str(spec.replicas)
    exports = {"RANK": '"$rank"', "PET_NODE_RANK": '"$rank"', "PET_NNODES": replicas}
    exports["WORLD_SIZE"] = str(spec.replicas * max(spec.demand.request.gpus, 1))
    if 0 not in context.replicas or ADDRESS in dict(spec.run.env):
        address, port = master(context)
        exports |= {ADDRESS: f'"{address}"', PORT: port, f"PET_{ADDRESS}": f'"{address}"', f"PET_{PORT}": port}
    return rank_command(context, "${RANK:-0}", exports), (*ring_variables(context), *ranks(context.replicas))


def _template(
    context: Context, group: Group, command: tuple[str, ...] | None, env: tuple[tuple[str, str], ...]
) -> PodTemplate:
    pod = Pod(
        "pytorch",
        env=env,
        command=command,
        role=group.role.lower(),
        rank_0_port=OPERATOR_PORT if group.role == MASTER else 0,
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


def render_torchrun(context: Context) -> list[Manifest]:
    """Return the pods' services, a service for ports, and Jobs with ranks equal to the replicas' indexes.

    The lowest rank in this cluster serves the ports.
    """
    first = context.groups[0]
    chosen = {PART: first.digest, INDEX: "0"}
    written = [*ring_services(context), *port_service(context, chosen)]
    hosts = hostfile(context)
    for group in context.groups:
        written += indexed_job(context, group, _pod(context, group, hosts))
    return written


def _pod(context: Context, group: Group, hosts: str) -> Pod:
    spec = context.spec
    address, port = master(context)
    per_node = str(max(spec.demand.request.gpus, 1))
    env = {
        ADDRESS: address,
        PORT: port,
        "NNODES": str(spec.replicas),
        "NPROC_PER_NODE": per_node,
    }
    more = (*ring_variables(context), *host_variables(hosts).items())
    fields = {"subdomain": context.name(context.whole, PEERS)}
    if len(group.replicas) == 1:
        env["NODE_RANK"] = str(group.replicas[0])
        pod = Pod(env=_with_torchrun(env) + more)
    else:
        listed, command = rank_by_index(context, group, "NODE_RANK", "PET_NODE_RANK")
        pod = Pod(env=(*_with_torchrun(env), *more, *listed), command=command)
    return replace(pod, fields=fields, shared_memory=True, hostfile=hosts, rank_0_port=rank_0_port(context))


def _with_torchrun(env: dict[str, str]) -> tuple[tuple[str, str], ...]:
    return (*env.items(), *((f"PET_{name}", value) for name, value in env.items()))
