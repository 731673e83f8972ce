"""``pytorchjob``: distributed PyTorch by Kubeflow's training operator.

References
----------
kubeflow.org/v1 PyTorchJob (training operator 1.x).
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from seaway.adapters.kubernetes.templates.context import Context, PodTemplate
from seaway.adapters.kubernetes.templates.labels import ROLE, selector
from seaway.adapters.kubernetes.templates.manifest import Manifest
from seaway.adapters.kubernetes.templates.parts import Group
from seaway.adapters.kubernetes.templates.pinning import HOSTNAME
from seaway.adapters.kubernetes.templates.pods import Pod, pod_template
from seaway.adapters.kubernetes.templates.services import port_service

MASTER, WORKER = "Master", "Worker"


def render(context: Context) -> list[Manifest]:
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
