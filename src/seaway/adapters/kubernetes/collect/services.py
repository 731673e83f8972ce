"""Endpoints of jobs, from services, Ingresses and HTTPRoutes.

References
----------
Kubernetes API, v1.36: core/v1 Service, networking.k8s.io/v1 Ingress. Gateway API, v1.4: gateway.networking.k8s.io/v1
HTTPRoute, conditions of its parents.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

import msgspec

from seaway.adapters.kubernetes.objects.core import Condition, Meta, NodeAddress, OwnedMeta, Part
from seaway.adapters.kubernetes.templates.names import RANK_0_OF_RING
from seaway.adapters.kubernetes.templates.plain import SCHEME
from seaway.domain.deployment import Endpoint, Reach
from seaway.domain.job_spec import ServiceType
from seaway.domain.reasons import Reason

HEADLESS = "None"


class ServicePort(Part, frozen=True):
    """A port of a service."""

    port: int = 0
    node_port: int = 0


class ServiceSpec(Part, frozen=True):
    """Specification of a service."""

    type: str = ServiceType.CLUSTER_IP.value
    cluster_ip: str = msgspec.field(default="", name="clusterIP")
    ports: tuple[ServicePort, ...] = ()


class LoadBalancerIngress(Part, frozen=True):
    """Address of a load balancer."""

    ip: str = ""
    hostname: str = ""


class LoadBalancer(Part, frozen=True):
    """Status of a load balancer."""

    ingress: tuple[LoadBalancerIngress, ...] = ()


class ServiceStatus(Part, frozen=True):
    """Status of a service or an Ingress."""

    load_balancer: LoadBalancer = LoadBalancer()


class ServiceObject(Part, frozen=True):
    """A service."""

    metadata: OwnedMeta = OwnedMeta()
    spec: ServiceSpec = ServiceSpec()
    status: ServiceStatus = ServiceStatus()


class BackendPort(Part, frozen=True):
    """Port of a service in an Ingress."""

    number: int = 0


class BackendService(Part, frozen=True):
    """Service of an Ingress."""

    port: BackendPort = BackendPort()


class IngressBackend(Part, frozen=True):
    """Backend of a path."""

    service: BackendService = BackendService()


class IngressPath(Part, frozen=True):
    """Path of a rule."""

    path: str = ""
    backend: IngressBackend = IngressBackend()


class IngressHttp(Part, frozen=True):
    """Paths of a rule."""

    paths: tuple[IngressPath, ...] = ()


class IngressRule(Part, frozen=True):
    """Rule of an Ingress for a host."""

    host: str = ""
    http: IngressHttp = IngressHttp()


class IngressSpec(Part, frozen=True):
    """Specification of an Ingress."""

    rules: tuple[IngressRule, ...] = ()
    tls: tuple[dict[str, Any], ...] = ()


class IngressObject(Part, frozen=True):
    """An Ingress."""

    metadata: OwnedMeta = OwnedMeta()
    spec: IngressSpec = IngressSpec()
    status: ServiceStatus = ServiceStatus()


class RouteBackend(Part, frozen=True):
    """Backend of a rule."""

    port: int = 0


class RouteRule(Part, frozen=True):
    """Rule of a route."""

    backend_refs: tuple[RouteBackend, ...] = ()


class RouteSpec(Part, frozen=True):
    """Specification of a route."""

    hostnames: tuple[str, ...] = ()
    rules: tuple[RouteRule, ...] = ()


class RouteParent(Part, frozen=True):
    """Status of a route at a Gateway."""

    conditions: tuple[Condition, ...] = ()


class RouteStatus(Part, frozen=True):
    """Status of a route."""

    parents: tuple[RouteParent, ...] = ()


class RouteObject(Part, frozen=True):
    """An HTTPRoute."""

    metadata: OwnedMeta = OwnedMeta()
    spec: RouteSpec = RouteSpec()
    status: RouteStatus = RouteStatus()


Exposing = ServiceObject | IngressObject | RouteObject
"""Object that gives ports of a job an address."""


@dataclass(frozen=True, slots=True)
class NodeHost:
    """Address of a node.

    Attributes
    ----------
    external
        True if clients outside the cluster reach it.
    """

    node: str
    host: str
    external: bool


def node_host(node: str, addresses: Iterable[NodeAddress]) -> NodeHost | None:
    """Return the address of a node, an external one if it has one; None without an address."""
    known = {each.type: each.address for each in reversed(tuple(addresses))}
    for kind in ("ExternalIP", "ExternalDNS", "InternalIP"):
        if known.get(kind):
            return NodeHost(node, known[kind], kind != "InternalIP")
    return None


def endpoints(found: Exposing, host_of: Callable[[], NodeHost | None], rank_0_ip: str = "") -> tuple[Endpoint, ...]:
    """Return the endpoints that an object gives to a job.

    Parameters
    ----------
    host_of
        Returns the address of a node of the cluster, for ports of nodes.
    rank_0_ip
        Address of the pod of replica 0; empty if it has none here.
    """
    if isinstance(found, ServiceObject):
        if RANK_0_OF_RING in found.metadata.annotations:
            return _of_rank_0(found, host_of, rank_0_ip)
        return _of_service(found, host_of)
    return _of_ingress(found) if isinstance(found, IngressObject) else _of_route(found)


def widest_first(found: Iterable[Endpoint]) -> tuple[Endpoint, ...]:
    """Return endpoints in the order of their reach, each once."""
    order = list(Reach)
    return tuple(sorted(dict.fromkeys(found), key=lambda each: order.index(each.reach)))


def _of_rank_0(service: ServiceObject, host_of: Callable[[], NodeHost | None], ip: str) -> tuple[Endpoint, ...]:
    """Return the address at which other clusters reach rank 0 of a ring: the widest one, or that of its pod."""
    if service.spec.cluster_ip == HEADLESS:
        why = "" if ip else Reason("rank_0_without_address")
        host = f"[{ip}]" if ":" in ip else ip
        reach = Reach.NONE if why else Reach.CLUSTERS
        return tuple(
            Endpoint(f"{host}:{each.port}" if ip else "", each.port, reach, why) for each in service.spec.ports
        )
    found = _of_service(service, host_of)
    first = found[:1] if found and found[0].reach is not Reach.CLUSTER else ()
    return tuple(replace(each, reach=Reach.CLUSTERS if each.address else Reach.NONE) for each in first)


def _of_service(service: ServiceObject, host_of: Callable[[], NodeHost | None]) -> tuple[Endpoint, ...]:
    spec, meta = service.spec, service.metadata
    if spec.cluster_ip == HEADLESS:
        return ()
    inside = f"{meta.name}.{meta.namespace}.svc"
    outside = next((each.hostname or each.ip for each in service.status.load_balancer.ingress), "")
    if outside:
        return tuple(Endpoint(f"{outside}:{each.port}", each.port, Reach.OUTSIDE) for each in spec.ports)
    found: list[Endpoint] = []
    if spec.type == ServiceType.LOAD_BALANCER:
        why: str = Reason("balancer_without_address")
        found += [Endpoint("", each.port, Reach.NONE, why) for each in spec.ports]
    if any(each.node_port for each in spec.ports):
        found += _at_node(spec, host_of())
    why = "" if found else Reason("inside_only", type=ServiceType.CLUSTER_IP.value)
    found += [Endpoint(f"{inside}:{each.port}", each.port, Reach.CLUSTER, why) for each in spec.ports]
    return tuple(found)


def _at_node(spec: ServiceSpec, at: NodeHost | None) -> list[Endpoint]:
    if at is None:
        why: str = Reason("nodes_without_address")
        return [Endpoint("", each.port, Reach.NONE, why) for each in spec.ports]
    reach = Reach.OUTSIDE if at.external else Reach.NODES
    why = "" if at.external else Reason("internal_address", host=at.host, node=at.node)
    host = f"[{at.host}]" if ":" in at.host else at.host
    return [Endpoint(f"{host}:{each.node_port}", each.port, reach, why) for each in spec.ports if each.node_port]


def _of_ingress(ingress: IngressObject) -> tuple[Endpoint, ...]:
    ready = bool(ingress.status.load_balancer.ingress)
    why = "" if ready else Reason("ingress_not_accepted")
    scheme = "https" if ingress.spec.tls else "http"
    return tuple(
        _by_host(ingress.metadata, scheme, rule.host, path.backend.service.port.number, why, path.path.rstrip("/"))
        for rule in ingress.spec.rules
        if rule.host
        for path in rule.http.paths
    )


def _of_route(route: RouteObject) -> tuple[Endpoint, ...]:
    said = [each for parent in route.status.parents for each in parent.conditions if each.type == "Accepted"]
    why: str = Reason("route_not_accepted")
    if any(each.status == "True" for each in said):
        why = ""
    elif said:
        why = Reason("gateway_refuses", why=said[0].message or said[0].reason)
    ports = [each.port for rule in route.spec.rules for each in rule.backend_refs]
    return tuple(
        _by_host(route.metadata, "http", host, port, why) for host in route.spec.hostnames for port in ports[:1]
    )


def _by_host(meta: Meta, scheme: str, host: str, port: int, why: str, path: str = "") -> Endpoint:
    url = f"{meta.annotations.get(SCHEME, scheme)}://{host}{path}"
    return Endpoint(url, port, Reach.NONE if why else Reach.OUTSIDE, why)
