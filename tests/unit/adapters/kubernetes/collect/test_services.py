"""Addresses of a job's ports, from services, Ingresses and HTTPRoutes."""

from __future__ import annotations

import json
from typing import Any

import pytest

from seaway.adapters.kubernetes.collect.services import (
    IngressObject,
    NodeHost,
    RouteObject,
    ServiceObject,
    endpoints,
    node_host,
    widest_first,
)
from seaway.adapters.kubernetes.objects.core import NodeAddress
from seaway.adapters.kubernetes.objects.decode import Broken, read_item
from seaway.domain.deployment import Workload, WorkloadPhase

Found = list[tuple[str, str]]
IN_CLUSTER = ("sw.seaway.svc:80", "cluster")
TAKEN = {"loadBalancer": {"ingress": [{"ip": "192.0.2.7"}]}}
HOST = NodeHost("node-1", "10.0.0.1", external=False)


def read(kind: type[Any], spec: dict[str, Any], status: dict[str, Any] | None = None, **marks: str) -> Any:  # noqa: ANN401
    """Read an object with these annotations."""
    meta = {"name": "sw", "namespace": "seaway", "annotations": marks}
    item = read_item(json.dumps({"metadata": meta, "spec": spec, "status": status or {}}).encode(), kind)
    assert not isinstance(item, Broken)
    return item


@pytest.mark.parametrize(
    ("spec", "status", "host", "found"),
    [
        ({"ports": [{"port": 80}, {"port": 90}]}, {}, None, [IN_CLUSTER, ("sw.seaway.svc:90", "cluster")]),
        ({"ports": []}, {}, None, []),
        ({"clusterIP": "None", "ports": [{"port": 29500}]}, {}, None, []),
        ({"type": "LoadBalancer", "ports": [{"port": 80}]}, TAKEN, None, [("192.0.2.7:80", "outside")]),
        ({"type": "LoadBalancer", "ports": [{"port": 80}]}, {}, None, [IN_CLUSTER, ("", "none")]),
        (
            {"type": "NodePort", "ports": [{"port": 80, "nodePort": 30080}]},
            {},
            HOST,
            [("10.0.0.1:30080", "nodes"), IN_CLUSTER],
        ),
        (
            {"type": "NodePort", "ports": [{"port": 80, "nodePort": 30080}]},
            {},
            NodeHost("node-1", "2001:db8::7", external=True),
            [("[2001:db8::7]:30080", "outside"), IN_CLUSTER],
        ),
        ({"type": "NodePort", "ports": [{"port": 80, "nodePort": 30080}]}, {}, None, [IN_CLUSTER, ("", "none")]),
    ],
)
def test_a_service_has_addresses_for_those_who_reach_it(
    spec: dict[str, Any], status: dict[str, Any], host: NodeHost | None, found: Found
) -> None:
    """A load balancer or a node serves clients outside, and says so if it has no address for them; names come last."""
    reported = widest_first(endpoints(read(ServiceObject, spec, status), lambda: host))
    assert [(each.address, each.reach.value) for each in reported] == found
    for each in reported:
        assert each.reason or each.reach.value in ("outside", "cluster")


AT_NODE = {"type": "NodePort", "ports": [{"port": 29500, "nodePort": 31337}]}
BALANCED = {"type": "LoadBalancer", "ports": [{"port": 29500, "nodePort": 31337}]}
OF_POD = {"clusterIP": "None", "ports": [{"port": 29500}]}


@pytest.mark.parametrize(
    ("spec", "status", "host", "ip", "found"),
    [
        (AT_NODE, {}, HOST, "", ("10.0.0.1:31337", "clusters")),
        (AT_NODE, {}, None, "", ("", "none")),
        (BALANCED, TAKEN, HOST, "", ("192.0.2.7:29500", "clusters")),
        (BALANCED, {}, HOST, "", ("", "none")),
        (OF_POD, {}, HOST, "10.244.0.9", ("10.244.0.9:29500", "clusters")),
        (OF_POD, {}, HOST, "2001:db8::9", ("[2001:db8::9]:29500", "clusters")),
        (OF_POD, {}, HOST, "", ("", "none")),
    ],
)
def test_rank_0_of_a_ring_has_one_address_for_other_clusters(
    spec: dict[str, Any], status: dict[str, Any], host: NodeHost | None, ip: str, found: tuple[str, str]
) -> None:
    """It is that of a node, a load balancer or its pod, as the service says; without one there is a reason."""
    service = read(ServiceObject, spec, status, **{"seaway.io/rank-0": "true"})
    (only,) = endpoints(service, lambda: host, ip)
    assert (only.address, only.reach.value) == found
    assert only.reason or only.address


def test_only_a_name_in_the_cluster_says_that_nothing_else_reaches_it() -> None:
    """The only address of a ClusterIP tells that clients outside do not reach it."""
    (only,) = endpoints(read(ServiceObject, {"ports": [{"port": 80}]}), lambda: None)
    assert only.reason == "it is a ClusterIP: only pods of the cluster reach it"


RULES = {
    "rules": [{"host": "chat.example.com", "http": {"paths": [{"backend": {"service": {"port": {"number": 80}}}}]}}]
}


@pytest.mark.parametrize(
    ("spec", "status", "found"),
    [
        (RULES, {}, ("http://chat.example.com", "none", "no Ingress controller has accepted it yet")),
        ({**RULES, "tls": [{"hosts": []}]}, TAKEN, ("https://chat.example.com", "outside", "")),
    ],
)
def test_an_ingress_answers_by_its_host_name(
    spec: dict[str, Any], status: dict[str, Any], found: tuple[str, str, str]
) -> None:
    """The URL has the host and the scheme of its TLS; until a controller accepts the Ingress, no client reaches it."""
    (only,) = endpoints(read(IngressObject, spec, status), lambda: None)
    assert (only.address, only.reach.value, only.reason, only.port) == (*found, 80)


@pytest.mark.parametrize(
    ("conditions", "reach", "note"),
    [
        ([], "none", "no Gateway has accepted it yet"),
        ([{"type": "Accepted", "status": "True"}], "outside", ""),
        (
            [{"type": "Accepted", "status": "False", "message": "not allowed by its listeners"}],
            "none",
            "the Gateway does not accept it: not allowed by its listeners",
        ),
    ],
)
def test_a_route_answers_once_a_gateway_accepts_it(conditions: list[dict[str, str]], reach: str, note: str) -> None:
    """A refusal of the Gateway is reported in its words."""
    spec = {"hostnames": ["chat.example.com"], "rules": [{"backendRefs": [{"name": "sw", "port": 80}]}]}
    (only,) = endpoints(read(RouteObject, spec, {"parents": [{"conditions": conditions}]}), lambda: None)
    assert (only.address, only.reach.value, only.reason) == ("http://chat.example.com", reach, note)


def test_the_external_address_of_a_node_precedes_its_internal_one() -> None:
    """A node without an external address has its internal one, and one without any has none."""
    internal, external = NodeAddress("InternalIP", "10.0.0.1"), NodeAddress("ExternalIP", "192.0.2.1")
    assert node_host("n", [internal, external]) == NodeHost("n", "192.0.2.1", external=True)
    assert node_host("n", [internal]) == NodeHost("n", "10.0.0.1", external=False)
    assert node_host("n", [NodeAddress("Hostname", "n")]) is None


def test_the_address_of_a_workload_is_the_one_with_the_widest_reach() -> None:
    """Ports of one host are listed together, and a URL stands alone."""
    ports = {"type": "NodePort", "ports": [{"port": 80, "nodePort": 30080}, {"port": 90, "nodePort": 30090}]}
    service = endpoints(read(ServiceObject, ports), lambda: HOST)
    route = endpoints(read(IngressObject, RULES, TAKEN), lambda: None)
    by_node = Workload("a", 1, "alpha", WorkloadPhase.RUNNING, endpoints=widest_first(service))
    by_host = Workload("a", 1, "alpha", WorkloadPhase.RUNNING, endpoints=widest_first((*service, *route)))
    assert (by_node.address, by_host.address) == ("10.0.0.1:30080,30090", "http://chat.example.com")
