"""Devices that several nodes of one cluster list."""

from __future__ import annotations

import json
from typing import Any

import pytest

from seaway.adapters.kubernetes.collect.changes import Problems
from seaway.adapters.kubernetes.collect.nodes import Nodes
from seaway.adapters.kubernetes.objects.core import NodeObject
from seaway.adapters.kubernetes.objects.decode import read_item
from seaway.domain.cluster import Cluster
from tests.conformance.test_kubernetes_backends import gpu_node

OLD, NEW = "2026-01-01T00:00:00Z", "2026-05-01T00:00:00Z"


def written(name: str, like: str, cards: int = 2, *, created: str = OLD, answers: bool = True) -> NodeObject:
    """Write a node that registers the cards of a machine."""
    body: dict[str, Any] = gpu_node(like, cards)
    body["metadata"] |= {"name": name, "creationTimestamp": created}
    body["status"]["conditions"] = [{"type": "Ready", "status": "True" if answers else "Unknown"}]
    found = read_item(json.dumps(body).encode(), NodeObject)
    assert isinstance(found, NodeObject)
    return found


@pytest.fixture
def problems() -> Problems:
    """Create an empty record of problems."""
    return Problems("alpha")


@pytest.fixture
def nodes(problems: Problems) -> Nodes:
    """Create a cluster of two machines."""
    made = Nodes(Cluster("alpha"), problems)
    made.put(written("m1", "m1"))
    made.put(written("m2", "m2"))
    return made


def devices(nodes: Nodes) -> dict[str, int]:
    """Return the number of devices that each node offers, and check that none is offered twice."""
    reported = nodes.inventory()
    uuids = [device.uuid for node in reported.nodes for device in node.devices]
    assert len(uuids) == len(set(uuids))
    return {node.name: len(node.devices) for node in reported.nodes}


@pytest.mark.parametrize(
    ("old", "new", "owner"),
    [
        ({}, {"created": NEW}, "other"),
        ({"created": NEW}, {}, "m1"),
        ({"answers": False, "created": NEW}, {}, "other"),
        ({}, {"created": NEW, "answers": False}, "m1"),
        ({"answers": False}, {"created": NEW, "answers": False}, "other"),
    ],
    ids=["newer", "older", "old-is-down", "new-is-down", "both-are-down"],
)
def test_a_device_is_with_the_newest_node_that_answers(
    nodes: Nodes, problems: Problems, old: dict[str, Any], new: dict[str, Any], owner: str
) -> None:
    """A machine may be added under a new name while its old node remains, in either order."""
    nodes.put(written("other", "m1", **new))
    nodes.put(written("m1", "m1", **old))
    loser = "m1" if owner == "other" else "other"
    assert devices(nodes) == {"m2": 2, owner: 2, loser: 0}
    assert [trouble.text for trouble in problems.all()[f"node/{loser}"]] == [
        f"2 are listed by {owner} too and counted there; delete the stale node"
    ]
    assert set(problems.all()) == {f"node/{loser}"}


def test_what_is_not_listed_twice_stays(nodes: Nodes) -> None:
    """A node that loses to another leaves out only the devices that both list."""
    nodes.put(written("other", "m1", 1, created=NEW))
    assert devices(nodes) == {"m1": 1, "m2": 2, "other": 1}


def test_it_is_reported_once_and_over_when_one_node_is_gone(
    nodes: Nodes, problems: Problems, caplog: pytest.LogCaptureFixture
) -> None:
    """The problem lasts while both list the devices, whatever else changes."""
    nodes.put(written("other", "m1", created=NEW))
    for answers in (False, True, False):
        nodes.put(written("m1", "m1", answers=answers))
        assert devices(nodes) == {"m1": 0, "m2": 2, "other": 2}
    assert len(caplog.messages) == 1
    nodes.drop("other")
    assert devices(nodes) == {"m1": 2, "m2": 2}
    assert not problems.all()
    nodes.put(written("other", "m1", created=NEW))
    assert devices(nodes) == {"m1": 0, "m2": 2, "other": 2}
    nodes.put(written("m1", "elsewhere"))
    assert devices(nodes) == {"m1": 2, "m2": 2, "other": 2}
    assert not problems.all()
