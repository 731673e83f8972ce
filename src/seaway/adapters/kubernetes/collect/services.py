"""Services of attempts: where what runs there answers."""

from __future__ import annotations

import msgspec

from seaway.adapters.kubernetes.objects.meta import Meta
from seaway.adapters.kubernetes.objects.part import Part

HEADLESS = "None"


class ServicePort(Part, frozen=True):
    """A port of a service."""

    port: int = 0


class ServiceSpec(Part, frozen=True):
    """What is wanted of a service."""

    type: str = "ClusterIP"
    cluster_ip: str = msgspec.field(default="", name="clusterIP")
    ports: tuple[ServicePort, ...] = ()


class Ingress(Part, frozen=True):
    """Where a load balancer lets in."""

    ip: str = ""
    hostname: str = ""


class LoadBalancer(Part, frozen=True):
    """What a load balancer says of itself."""

    ingress: tuple[Ingress, ...] = ()


class ServiceStatus(Part, frozen=True):
    """What is seen of a service."""

    load_balancer: LoadBalancer = LoadBalancer()


class ServiceObject(Part, frozen=True):
    """A service."""

    metadata: Meta = Meta()
    spec: ServiceSpec = ServiceSpec()
    status: ServiceStatus = ServiceStatus()


def address(service: ServiceObject) -> str:
    """Return where a service answers: outside of its cluster if it can, else its name inside.

    Empty without ports, and for one that only gives pods names.
    """
    if service.spec.cluster_ip == HEADLESS:
        return ""
    ports = ",".join(str(each.port) for each in service.spec.ports)
    if not ports:
        return ""
    outside = next((each.hostname or each.ip for each in service.status.load_balancer.ingress), "")
    host = outside or f"{service.metadata.name}.{service.metadata.namespace}.svc"
    return f"{host}:{ports}"
