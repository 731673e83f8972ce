"""Metrics of collecting from a cluster."""

from __future__ import annotations

from seaway.adapters.kubernetes.collect.health import Health
from seaway.adapters.kubernetes.collect.view import ClusterView
from seaway.adapters.kubernetes.objects.core import Meta, NodeObject
from seaway.application.ports.backend import Collecting
from seaway.domain.cluster import Cluster

REGISTER = "hami.io/node-nvidia-register"


def node(register: str = "") -> NodeObject:
    """Create a node; with a register, HAMi's."""
    return NodeObject(metadata=Meta(name="node-1", annotations={REGISTER: register} if register else {}))


def test_broken_annotations_are_counted_while_they_are_there() -> None:
    """Each kind of problem has its count, also 0; a fixed or deleted object no longer counts."""
    view = ClusterView(Cluster("east", ()), Health(("nodes",)), lambda _, __: None)
    assert isinstance(view, Collecting)
    assert view.collector_state().problems == {"broken": 0, "unusable": 0, "uncertain": 0}
    view.put_node(node("[{"))
    assert view.collector_state().problems["broken"] == 1
    view.put_node(node())
    assert view.collector_state().problems["broken"] == 0
    view.put_node(node("[{"))
    view.drop_node("node-1")
    assert view.collector_state().problems["broken"] == 0


def test_each_source_says_for_how_long_it_fails() -> None:
    """Sources that answer report 0, so that each always has a series."""
    now_s = 100.0
    health = Health(("nodes", "pods"), lambda: now_s)
    assert health.failing() == {"nodes": 0, "pods": 0}
    health.failed("nodes", "refused")
    now_s = 107.0
    health.failed("nodes", "refused again")
    assert health.failing() == {"nodes": 7, "pods": 0}
    health.succeeded("nodes")
    assert health.failing() == {"nodes": 0, "pods": 0}
