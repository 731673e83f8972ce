"""Services for the ports of a deployment, and for the names of its replicas."""

from __future__ import annotations

from typing import Any

from seaway.adapters.kubernetes.templates.context import Context
from seaway.adapters.kubernetes.templates.manifest import Manifest
from seaway.adapters.kubernetes.templates.names import selector

PEERS = "peers"


def port_service(context: Context, chosen: dict[str, str] | None = None) -> list[Manifest]:
    """Return the service of a job's ports; none for a job without ports.

    Parameters
    ----------
    chosen
        Further labels of the serving pods; None for all pods.
    """
    ports = [_port(f"port-{port}", port) for port in dict.fromkeys(context.spec.run.ports)]
    if not ports:
        return []
    return [_service(context, "", {"selector": {**selector(context.deployment), **(chosen or {})}, "ports": ports})]


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
