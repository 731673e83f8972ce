"""The owners of devices that several nodes list are computed once for all readers."""

from __future__ import annotations

from dataclasses import replace

from seaway.application.control.device_claims import Claims
from seaway.domain.cluster import Cluster
from seaway.domain.device import Device
from seaway.domain.node import Node


def node(name: str, *uuids: str) -> Node:
    """Create a node that lists some devices."""
    return Node(name, 8000, 1024, tuple(Device(uuid, at, "A100", 81_920) for at, uuid in enumerate(uuids)))


def test_what_several_nodes_list_is_gathered_again_only_when_that_changes() -> None:
    """Every cluster reads them at every sample and view: other changes of a node do not recompute them."""
    claims = Claims()
    alpha, beta = Cluster("alpha", (node("a", "GPU-1", "GPU-2"),)), Cluster("beta", (node("b", "GPU-1"), node("c")))
    claims.take("alpha", None, alpha)
    claims.take("beta", None, beta)
    before = claims.duplicates()
    assert before["alpha"].listed == {("beta", "b"): {"GPU-1": "a"}}
    assert before["beta"].lacking == {"b": {"GPU-1"}}
    assert before["beta"].elsewhere == {"GPU-1"}
    more = replace(beta, nodes=(replace(beta.nodes[0], cpu_milli=9000), beta.nodes[1]))
    claims.take("beta", beta, more)
    assert claims.duplicates() is before
    down = replace(alpha, nodes=(replace(alpha.nodes[0], ready=False),))
    claims.take("alpha", alpha, down)
    assert claims.duplicates()["beta"].listed == {("alpha", "a"): {"GPU-1": "b"}}
    claims.take("beta", more, replace(more, nodes=more.nodes[1:]))
    assert claims.duplicates() == {}
