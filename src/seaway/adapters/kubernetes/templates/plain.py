"""Templates ``job`` for workloads that end (an Indexed Job for each part), ``deployment`` and ``kueue``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from seaway.adapters.kubernetes.templates.context import Context
from seaway.adapters.kubernetes.templates.manifest import Group, Manifest
from seaway.adapters.kubernetes.templates.names import (
    COMPLETED,
    INDEX,
    PART,
    RANK_0,
    RANK_0_OF_RING,
    object_name,
    selector,
)
from seaway.adapters.kubernetes.templates.pods import Pod, pod_template
from seaway.adapters.kubernetes.templates.runtime import backoff_limit
from seaway.domain.deployment import ADDRESS, PORT
from seaway.domain.errors import RejectedError
from seaway.domain.job_spec import POD, ServiceType
from seaway.domain.reasons import Reason
from seaway.domain.runtime import SEAWAY_FILES, PortProtocol

PEERS = "peers"

INGRESS = ("networking.k8s.io/v1", "Ingress")
HTTP_ROUTE = ("gateway.networking.k8s.io/v1", "HTTPRoute")
"""Versions and kinds of routes by host name."""


SCHEME = "seaway.io/scheme"
"""Annotation of a route: scheme of its URLs."""


def port_service(
    context: Context, chosen: dict[str, str] | None = None, default: ServiceType | None = None
) -> list[Manifest]:
    """Return the service of a job's ports, with its route by host name if it has one; empty for a job without ports.

    Parameters
    ----------
    chosen
        Additional labels of the serving pods; None for all pods.
    default
        Type of the service if the job chooses none; None for the operator's default.
    """
    ports = [_port(f"port-{each.number}", each.number, each.protocol) for each in context.spec.ports]
    if not ports:
        return []
    for port, at_node in zip(ports, context.spec.expose.node_ports, strict=False):
        port["nodePort"] = at_node
    kind = context.spec.expose.type or default or context.options.exposure.default
    spec = {"selector": {**selector(context.deployment), **(chosen or {})}, "ports": ports}
    if kind in (ServiceType.NODE_PORT, ServiceType.LOAD_BALANCER):
        spec = {"type": kind.value, **spec}
    service = _named(context, "v1", "Service", spec)
    return [service, _route(context, kind, ports[0]["port"])] if kind.by_host else [service]


def _named(context: Context, api: str, kind: str, spec: dict[str, Any]) -> Manifest:
    """Return an object with the name of the job's service."""
    metadata = {**context.metadata(context.whole, context.replicas), "name": context.service}
    return Manifest({"apiVersion": api, "kind": kind, "metadata": metadata, "spec": spec})


def _route(context: Context, kind: ServiceType, port: int) -> Manifest:
    """Return the object that leads HTTP clients of the job's host name to a port of its service.

    References
    ----------
    networking.k8s.io/v1 Ingress; gateway.networking.k8s.io/v1 HTTPRoute.
    """
    exposure, name = context.options.exposure, context.service
    host = context.spec.expose.host or f"{context.deployment.service_id}.{exposure.domain}"
    if kind is ServiceType.INGRESS:
        backend = {"service": {"name": name, "port": {"number": port}}}
        paths = [{"path": "/", "pathType": "Prefix", "backend": backend}]
        spec: dict[str, Any] = {"rules": [{"host": host, "http": {"paths": paths}}]}
        if exposure.ingress_class:
            spec["ingressClassName"] = exposure.ingress_class
        if exposure.https:
            spec["tls"] = [{"hosts": [host]}]
        route = _named(context, *INGRESS, spec)
    else:
        namespace, _, gateway = exposure.gateway.partition("/")
        parents = [{"name": gateway, "namespace": namespace}]
        rules = [{"backendRefs": [{"name": name, "port": port}]}]
        route = _named(context, *HTTP_ROUTE, {"parentRefs": parents, "hostnames": [host], "rules": rules})
    route.body["metadata"]["annotations"][SCHEME] = "https" if exposure.https else "http"
    return route


def peers_service(context: Context, port: int) -> Manifest:
    """Return the service that gives each pod a DNS name, ready or not."""
    spec = {
        "clusterIP": "None",
        "publishNotReadyAddresses": True,
        "selector": selector(context.deployment),
        "ports": [_port("rendezvous", port)],
    }
    return _service(context, PEERS, spec)


def peer(context: Context, pod: str) -> str:
    """Return the DNS name of a pod in its cluster."""
    return f"{pod}.{context.name(context.whole, PEERS)}.{context.options.namespace}.svc"


def _port(name: str, port: int, protocol: PortProtocol = PortProtocol.TCP) -> dict[str, Any]:
    return {"name": name, "port": port, "targetPort": port, "protocol": protocol.value}


def _service(context: Context, role: str, spec: dict[str, Any]) -> Manifest:
    metadata = context.metadata(context.whole, context.replicas, role)
    return Manifest({"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": spec})


PLAIN = Pod()


RANKS = "SEAWAY_RANKS"
"""Variable with the ranks of a part's pods, in the order of their indexes."""

RING = "SEAWAY_RING"
"""Variable with the cluster of each rank of a ring over several clusters, separated by commas."""

DEFAULT_PORT = 29_500
"""Port on which replica 0 serves the others; the default of torchrun."""

MAX_HOSTFILE = 128 << 10
"""Maximum size of a list of hosts, bytes. All annotations of a pod have 256 KiB at most."""


def render_job(context: Context) -> list[Manifest]:
    """Return a service if the job has ports, and the Jobs.

    Replicas of a gang or a ring get the variables of distributed launchers, and services for their names.
    """
    spec, groups = context.spec, context.groups
    together = spec.ring or (spec.gang and spec.replicas > 1 and bool(spec.run.command))
    if not together or spec.elastic:
        return port_service(context) + [each for group in groups for each in indexed_job(context, group, PLAIN)]
    hosts = hostfile(context)
    jobs = [each for group in groups for each in indexed_job(context, group, _ranked(context, group, hosts))]
    return [*ring_services(context), *port_service(context), *jobs]


def _ranked(context: Context, group: Group, hosts: str) -> Pod:
    """Return the pod of a replica that knows its rank, the address of rank 0, and the hosts of its cluster."""
    address, port = master(context)
    env = {"WORLD_SIZE": str(context.spec.replicas), "LOCAL_RANK": "0", PORT: port, ADDRESS: address}
    env |= {**dict(ring_variables(context)), **host_variables(hosts)}
    fields = {"subdomain": context.name(context.whole, PEERS)}
    if len(group.replicas) == 1:
        env["RANK"] = str(group.replicas[0])
        pod = Pod(env=tuple(env.items()))
    else:
        listed, command = rank_by_index(context, group, "RANK")
        pod = Pod(env=(*env.items(), *listed), command=command)
    return replace(pod, fields=fields, hostfile=hosts, rank_0_port=rank_0_port(context))


def hostfile(context: Context) -> str:
    """Return the hosts of this cluster by rank, in the format of Open MPI; empty if there are too many."""
    names = ((group, object_name(context.deployment, group.digest)) for group in context.groups)
    hosts = {
        replica: peer(context, f"{name}-{at}") for group, name in names for at, replica in enumerate(group.replicas)
    }
    slots = max(context.spec.demand.request.gpus, 1)
    text = "".join(f"{hosts[rank]} slots={slots}\n" for rank in sorted(hosts))
    return text if len(text) <= MAX_HOSTFILE else ""


def host_variables(hosts: str) -> dict[str, str]:
    """Return the variable with the path of a list of hosts; none without a list."""
    return {"SEAWAY_HOSTFILE": f"{SEAWAY_FILES}/hostfile"} if hosts else {}


def ring_variables(context: Context) -> tuple[tuple[str, str], ...]:
    """Return the variable with the clusters of a ring; none without a ring over several clusters."""
    of_ring = context.spec.ring and context.deployment.ranks
    return ((RING, ",".join(context.deployment.ranks)),) if of_ring else ()


def ring_services(context: Context) -> list[Manifest]:
    """Return the service that gives the pods of this cluster names, and that of rank 0 for other clusters."""
    return [peers_service(context, rank_0_port(context)), *rank_0_service(context)]


def rank_0_service(
    context: Context, chosen: dict[str, str] | None = None, port: int = 0, *, within: bool = False
) -> list[Manifest]:
    """Return the service by which other clusters reach rank 0; none in their clusters, or if the job has an address.

    Parameters
    ----------
    chosen
        Labels of the pod of rank 0; None for a pod of an Indexed Job.
    port
        Port of rank 0; 0 for that of the job.
    within
        True to return a service also if all replicas are in one cluster.
    """
    kind = context.options.exposure.ring if context.deployment.ranks else POD if within else ""
    if not kind or 0 not in context.replicas or ADDRESS in dict(context.spec.run.env):
        return []
    if chosen is None:
        group = next(each for each in context.groups if 0 in each.replicas)
        chosen = {PART: group.digest, INDEX: str(group.replicas.index(0))}
    ports = [_port("rendezvous", port or rank_0_port(context))]
    known = next((each.address for each in context.deployment.placements if not each.replica), "")
    if known and kind == ServiceType.NODE_PORT:  # if the service was deleted, other clusters still use this port
        ports[0]["nodePort"] = int(known.rpartition(":")[2])
    reached = {"clusterIP": "None"} if kind == POD else {"type": kind}
    selected = {**selector(context.deployment), **chosen}
    service = _service(
        context, RANK_0, {**reached, "publishNotReadyAddresses": True, "selector": selected, "ports": ports}
    )
    if context.deployment.ranks:
        service.body["metadata"]["annotations"][RANK_0_OF_RING] = "true"
    return [service]


def rank_0_name(context: Context) -> str:
    """Return the name of the service of rank 0 in its cluster."""
    return f"{context.name(context.whole, RANK_0)}.{context.options.namespace}.svc"


def rank_0_port(context: Context) -> int:
    """Return the port of replica 0; the job can override the default."""
    text = dict(context.spec.run.env).get(PORT, str(DEFAULT_PORT))
    if not (text.isascii() and text.isdigit() and 0 < int(text) < 1 << 16):
        raise RejectedError(Reason("not_a_port", name=PORT, value=text[:60]), where="run.env")
    return int(text)


def master(context: Context, at_home: str = "") -> tuple[str, str]:
    """Return the address and port of replica 0; the job can override the default.

    Parameters
    ----------
    at_home
        Address in the cluster of replica 0; empty for the name of its pod in an Indexed Job.

    Raises
    ------
    RejectedError
        If replica 0 is in another cluster, and its address is unknown.
    """
    port = str(rank_0_port(context))
    if said := dict(context.spec.run.env).get(ADDRESS):
        return said, port
    for group in context.groups:
        if 0 in group.replicas:
            pod = f"{object_name(context.deployment, group.digest)}-{group.replicas.index(0)}"
            return at_home or peer(context, pod), port
    if context.deployment.rank_0:
        host, _, port = context.deployment.rank_0.rpartition(":")
        return host.strip("[]"), port
    raise RejectedError(
        Reason("rank_0_elsewhere", name=ADDRESS),
        where="run.env",
    )


def rank_by_index(context: Context, group: Group, *names: str) -> tuple[tuple[tuple[str, str], ...], tuple[str, ...]]:
    """Return a variable and a command that give each pod of a part with several replicas its rank.

    Parameters
    ----------
    names
        Variables for the rank.

    Raises
    ------
    RejectedError
        If the job has no command.
    """
    return ranks(group.replicas), rank_command(context, "$JOB_COMPLETION_INDEX", dict.fromkeys(names, '"$rank"'))


def ranks(replicas: Sequence[int]) -> tuple[tuple[str, str], ...]:
    """Return the variable with the ranks of pods, in the order of their indexes."""
    return ((RANKS, " ".join(map(str, replicas))),)


def rank_command(context: Context, index: str, exports: Mapping[str, str]) -> tuple[str, ...]:
    """Return the command of the job in a shell that selects the rank of a pod by its index.

    It is a shell, because no field of Kubernetes maps an index to a rank.

    Parameters
    ----------
    index
        The index in the shell.
    exports
        Variables that the command gets, with their values in the shell, in which ``$rank`` is the rank.

    Raises
    ------
    RejectedError
        If the job has no command.
    """
    run = context.spec.run
    if not run.command:
        raise RejectedError(Reason("shell_gives_ranks"), where="run.command")
    choose = (
        f"i=0; for rank in ${RANKS}; do "
        f'[ "$i" = "{index}" ] && break; i=$((i+1)); done; '
        f'export {" ".join(f"{name}={value}" for name, value in exports.items())}; exec "$@"'
    )
    return ("/bin/sh", "-c", choose, "sh", *run.command)


def indexed_job(context: Context, group: Group, pod: Pod) -> list[Manifest]:
    """Return the Job of one part, and the claims of its pods.

    The Job never retries, because Seaway retries, also on other nodes, and counts restarts in place. It never cleans
    up, because Seaway reads the result. A completed Job is not written again. In Karmada it is suspended, since Karmada
    creates deleted objects again. A Job is indexed to identify pods: the pod with index i is the i-th of the part's
    replicas. Fewer completions end the pods with the highest indexes (KEP-3715).
    """
    if not group.replicas:
        return [Manifest(context.workload("batch/v1", "Job", {}, group), absent=True)]
    over = all(each.completed for each in group.placements)
    if over and not context.options.shared:
        return []
    template = pod_template(context, group, pod, ("spec", "template"))
    spec = {
        "completions": len(group.replicas),
        "parallelism": len(group.replicas),
        "completionMode": "Indexed",
        "backoffLimit": backoff_limit(context.spec),
        "template": template.body,
    }
    body = context.workload("batch/v1", "Job", spec, group)
    if over:
        suspend_completed(body)
    return [*template.claims, Manifest(body, template.pins, group.replicas)]


def suspend_completed(job: dict[str, Any]) -> None:
    """Mark a Job as completed, so that it runs no pods if Karmada creates it again."""
    job["spec"]["suspend"] = True
    job["metadata"]["annotations"][COMPLETED] = "true"


def render_deployment(context: Context) -> list[Manifest]:
    """Return a service and Deployments. Ended containers are restarted, because a crashed service must recover."""
    written = port_service(context)
    for group in context.groups:
        if not group.replicas:
            written.append(Manifest(context.workload("apps/v1", "Deployment", {}, group), absent=True))
            continue
        template = pod_template(context, group, Pod(restart="Always"), ("spec", "template"))
        spec = {
            "replicas": len(group.replicas),
            "revisionHistoryLimit": 0,
            "selector": {"matchLabels": {**selector(context.deployment), PART: group.digest}},
            "strategy": {"type": "Recreate"},  # existing pods hold the devices
            "template": template.body,
        }
        body = context.workload("apps/v1", "Deployment", spec, group)
        written += [*template.claims, Manifest(body, template.pins, group.replicas)]
    return written


QUEUE_NAME = "kueue.x-k8s.io/queue-name"


def render_kueue(context: Context) -> list[Manifest]:
    """Return the objects of `job`, with suspended Jobs and the name of a LocalQueue.

    Kueue resumes a Job when it admits the Job. An update would suspend a running Job, so the Job may only be
    created. Kueue admits each part separately, even in a gang.
    """
    return [_queued(context, each) if each.kind == "Job" else each for each in render_job(context)]


def _queued(context: Context, manifest: Manifest) -> Manifest:
    body = manifest.body
    queue = context.options.local_queue or context.spec.queue
    metadata = {**body["metadata"], "labels": {**body["metadata"]["labels"], QUEUE_NAME: queue}}
    queued = {**body, "metadata": metadata, "spec": {"suspend": True, **body["spec"]}}
    return replace(manifest, body=queued, create_only=True)
