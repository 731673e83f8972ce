"""Addresses of an attempt's services."""

from __future__ import annotations

import json
from typing import Any

import pytest

from seaway.adapters.kubernetes.collect.pods import ServiceObject, address
from seaway.adapters.kubernetes.objects.decode import Broken, read_item


@pytest.mark.parametrize(
    ("spec", "status", "answers"),
    [
        ({"clusterIP": "10.0.0.1", "ports": [{"port": 80}, {"port": 90}]}, {}, "sw.seaway.svc:80,90"),
        ({"ports": [{"port": 80}]}, {"loadBalancer": {"ingress": [{"ip": "192.0.2.7"}]}}, "192.0.2.7:80"),
        ({"clusterIP": "10.0.0.1"}, {}, ""),
        ({"clusterIP": "None", "ports": [{"port": 29500}]}, {}, ""),
    ],
)
def test_services_answer_outside_if_they_can(spec: dict[str, Any], status: dict[str, Any], answers: str) -> None:
    """A load balancer's address precedes the name in the cluster; a headless service has no address."""
    body = {"metadata": {"name": "sw", "namespace": "seaway"}, "spec": spec, "status": status}
    service = read_item(json.dumps(body).encode(), ServiceObject)
    assert not isinstance(service, Broken)
    assert address(service) == answers
