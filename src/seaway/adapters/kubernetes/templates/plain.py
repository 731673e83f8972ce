"""Templates ``job`` for workloads that end (an Indexed Job for each part), ``deployment`` and ``kueue``."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from seaway.adapters.kubernetes.templates.context import Context
from seaway.adapters.kubernetes.templates.manifest import Group, Manifest
from seaway.adapters.kubernetes.templates.names import PART, selector
from seaway.adapters.kubernetes.templates.pods import Pod, pod_template
from seaway.adapters.kubernetes.templates.runtime import backoff_limit
from seaway.domain.errors import RejectedError
from seaway.domain.job_spec import ServiceType

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
    ports = [_port(f"port-{port}", port) for port in dict.fromkeys(context.spec.run.ports)]
    if not ports:
        return []
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


def _port(name: str, port: int) -> dict[str, Any]:
    return {"name": name, "port": port, "targetPort": port, "protocol": "TCP"}


def _service(context: Context, role: str, spec: dict[str, Any]) -> Manifest:
    metadata = context.metadata(context.whole, context.replicas, role)
    return Manifest({"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": spec})


PLAIN = Pod()


RANKS = "SEAWAY_RANKS"
"""Variable with the ranks of a part's pods, in the order of their indexes."""

RING = "SEAWAY_RING"
"""Variable with the cluster of each rank of a ring over several clusters, separated by commas."""


def render_job(context: Context) -> list[Manifest]:
    """Return a service if the job has ports, and the Jobs. Replicas of a ring get their rank."""
    pods = ((group, _ranked(context, group) if context.spec.ring else PLAIN) for group in context.groups)
    return port_service(context) + [each for group, pod in pods for each in indexed_job(context, group, pod)]


def _ranked(context: Context, group: Group) -> Pod:
    env = (("WORLD_SIZE", str(context.spec.replicas)), *ring_variables(context))
    if len(group.replicas) == 1:
        return Pod(env=(("RANK", str(group.replicas[0])), *env))
    ranks, command = rank_by_index(context, group, "RANK")
    return Pod(env=(*env, *ranks), command=command)


def ring_variables(context: Context) -> tuple[tuple[str, str], ...]:
    """Return the variable with the clusters of a ring; none without a ring over several clusters."""
    return ((RING, ",".join(context.deployment.ring)),) if context.deployment.ring else ()


def rank_by_index(context: Context, group: Group, *names: str) -> tuple[tuple[tuple[str, str], ...], tuple[str, ...]]:
    """Return a variable and a command that give each pod of a part with several replicas its rank.

    The command is a shell, because no field of Kubernetes maps an index to a rank.

    Parameters
    ----------
    names
        Variables for the rank.

    Raises
    ------
    RejectedError
        If the job has no command.
    """
    run = context.spec.run
    if not run.command:
        raise RejectedError(
            "is needed: replicas that share devices are given their ranks by a shell", where="run.command"
        )
    exports = " ".join(f'{name}="$rank"' for name in names)
    choose = (
        f"i=0; for rank in ${RANKS}; do "
        '[ "$i" = "$JOB_COMPLETION_INDEX" ] && break; i=$((i+1)); done; '
        f'export {exports}; exec "$@"'
    )
    ranks = ((RANKS, " ".join(map(str, group.replicas))),)
    return ranks, ("/bin/sh", "-c", choose, "sh", *run.command)


def indexed_job(context: Context, group: Group, pod: Pod) -> list[Manifest]:
    """Return the Job of one part, and the claims of its pods.

    The Job never retries, because Seaway retries, also on other nodes, and counts restarts in place. It never cleans
    up, because Seaway reads the result. It is indexed to identify pods: the pod with index i is the i-th of the part's
    replicas. Fewer completions end the pods with the highest indexes (KEP-3715).
    """
    if not group.replicas:
        return [Manifest(context.workload("batch/v1", "Job", {}, group), absent=True)]
    template = pod_template(context, group, pod, ("spec", "template"))
    spec = {
        "completions": len(group.replicas),
        "parallelism": len(group.replicas),
        "completionMode": "Indexed",
        "backoffLimit": backoff_limit(context.spec),
        "template": template.body,
    }
    body = context.workload("batch/v1", "Job", spec, group)
    return [*template.claims, Manifest(body, template.pins, group.replicas)]


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
