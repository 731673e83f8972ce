"""``torchrun``: distributed PyTorch without an operator; Indexed Jobs whose pods find each other.

References
----------
PyTorch ``torch/distributed/run.py``: each option is read from the variable ``PET_<OPTION>`` where it is not given.
"""

from __future__ import annotations

from seaway.adapters.kubernetes.templates.context import Context
from seaway.adapters.kubernetes.templates.job import indexed_job
from seaway.adapters.kubernetes.templates.labels import INDEX, PART
from seaway.adapters.kubernetes.templates.manifest import Manifest
from seaway.adapters.kubernetes.templates.names import object_name
from seaway.adapters.kubernetes.templates.parts import Group
from seaway.adapters.kubernetes.templates.pods import Pod
from seaway.adapters.kubernetes.templates.services import PEERS, peer, peers_service, port_service
from seaway.domain.errors import RejectedError

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


def render(context: Context) -> list[Manifest]:
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
        raise RejectedError(f"{PORT} is {text[:60]!r}, but has to be a port", where="run.env")
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
