"""``pytorchjob``: distributed PyTorch by Kubeflow's training operator.

References
----------
kubeflow.org/v1 PyTorchJob (training operator 1.x).
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from seaway.adapters.kubernetes.templates.context import Context, PodTemplate
from seaway.adapters.kubernetes.templates.manifest import Manifest
from seaway.adapters.kubernetes.templates.names import INDEX, PART, ROLE, object_name, selector
from seaway.adapters.kubernetes.templates.parts import Group
from seaway.adapters.kubernetes.templates.pinning import HOSTNAME
from seaway.adapters.kubernetes.templates.plain import indexed_job
from seaway.adapters.kubernetes.templates.pods import Pod, pod_template
from seaway.adapters.kubernetes.templates.services import PEERS, peer, peers_service, port_service
from seaway.domain.errors import RejectedError

MASTER, WORKER = "Master", "Worker"


def render_pytorchjob(context: Context) -> list[Manifest]:
    """Write down one PyTorchJob: replica 0 is its master, the others are workers.

    There is one pod template for all workers. Where they go to several nodes it lists all of those, and the devices of
    all of them; as a device is on one node only, what each node offers is still just what was chosen there. Which
    worker goes where the cluster's scheduler decides. Nodes that take equally many workers are held to that; where
    they take unequally many and devices are shared, it may fill them otherwise than planned, which Seaway sees by
    what it reads back.
    """
    roles: dict[str, Any] = {}
    templates: list[PodTemplate] = []
    for group in _split(context):
        if group.replicas:
            template = _template(context, group)
            roles[group.role] = {"replicas": len(group.replicas), "restartPolicy": "Never", "template": template.body}
            templates.append(template)
    spec = {
        "nprocPerNode": str(max(context.spec.demand.request.gpus, 1)),
        "runPolicy": {"backoffLimit": 0, "cleanPodPolicy": "None"},
        "pytorchReplicaSpecs": roles,
    }
    pins = tuple(pin for template in templates for pin in template.pins)
    claims = [claim for template in templates for claim in template.claims]
    body = context.workload("kubeflow.org/v1", "PyTorchJob", spec)
    return [
        *port_service(context, {ROLE: MASTER.lower()}),
        *claims,
        Manifest(body, pins, context.replicas),
    ]


def _split(context: Context) -> tuple[Group, Group]:
    """Return replica 0, and the rest."""
    first = tuple(part.only(0) for part in context.parts if 0 in part.replicas)
    rest = tuple(part.without(0) for part in context.parts if part.replicas != (0,))
    return Group(first, MASTER), Group(rest, WORKER)


def _template(context: Context, group: Group) -> PodTemplate:
    pod = Pod(
        "pytorch",
        role=group.role.lower(),
        ports=group.role == MASTER,
        shared_memory=True,
        fields=_evenly(context, group),
    )
    return pod_template(context, group, pod, ("spec", "pytorchReplicaSpecs", group.role, "template"))


def _evenly(context: Context, group: Group) -> dict[str, Any]:
    """Hold several nodes to equal numbers of pods, where they are to have equal ones."""
    each = Counter(part.node for part in group.parts for _ in part.replicas)
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
"""Where replica 0 listens for the others, as torchrun has it."""

RANKS = "SEAWAY_RANKS"
"""Variable with the ranks of a part's pods, in the order of their indices."""

CHOOSE_RANK = (
    f"i=0; for rank in ${RANKS}; do "
    '[ "$i" = "$JOB_COMPLETION_INDEX" ] && break; i=$((i+1)); done; '
    'export NODE_RANK="$rank" PET_NODE_RANK="$rank"; exec "$@"'
)
"""Shell that a part of several replicas starts with: no field of Kubernetes turns an index into a rank."""


def render_torchrun(context: Context) -> list[Manifest]:
    """Write down the pods' service, one for ports, and Jobs whose pods know their ranks: the replicas' numbers.

    Ports are answered by the lowest rank that is in this cluster.
    """
    first = context.groups[0]
    port = _port(context)
    chosen = {PART: first.digest, INDEX: "0"}
    written = [peers_service(context, port), *port_service(context, chosen)]
    for group in context.groups:
        written += indexed_job(context, group, _pod(context, group, port))
    return written


def _port(context: Context) -> int:
    """Return where replica 0 listens: where the job says, if it does."""
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
        return Pod(env=_with_torchrun(env), fields=fields, shared_memory=True)
    if not spec.run.command:
        raise RejectedError(
            "is needed: replicas that share devices are given their ranks by a shell", where="run.command"
        )
    command = ("/bin/sh", "-c", CHOOSE_RANK, "sh", *spec.run.command)
    ranks = ((RANKS, " ".join(map(str, group.replicas))),)
    return Pod(env=_with_torchrun(env) + ranks, command=command, fields=fields, shared_memory=True)


def _with_torchrun(env: dict[str, str]) -> tuple[tuple[str, str], ...]:
    return (*env.items(), *((f"PET_{name}", value) for name, value in env.items()))


def _master(context: Context) -> str:
    """Return where replica 0 is reached: where the job says, if it does."""
    if said := dict(context.spec.run.env).get(ADDRESS):
        return said
    for part in context.parts:
        if 0 in part.replicas:
            return peer(context, f"{object_name(context.deployment, part.digest)}-{part.replicas.index(0)}")
    raise RejectedError(
        f"replica 0 is in another cluster, and nothing says how it is reached from there: set {ADDRESS}, or keep "
        "replicas together by placement.clusters or between_replicas",
        where="run.env",
    )
