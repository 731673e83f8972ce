"""New lists are processed in batches, so that no cluster blocks others, and without reading unchanged objects."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest

from seaway.adapters.kubernetes.collect import changes as news
from seaway.adapters.kubernetes.collect import view as module
from seaway.adapters.kubernetes.collect.health import Health
from seaway.adapters.kubernetes.collect.pods import PodSummary, summarise_pod
from seaway.adapters.kubernetes.collect.view import ClusterView
from seaway.adapters.kubernetes.device_plugins.views import PodView
from seaway.adapters.kubernetes.objects.core import NodeObject, PodObject
from seaway.adapters.kubernetes.objects.dra import ResourceSlice
from seaway.adapters.kubernetes.templates.namespaces import Namespaces
from seaway.domain.cluster import Cluster
from seaway.domain.errors import UnavailableError
from tests.unit.adapters.kubernetes.collect.test_view import decoded, node
from tests.unit.adapters.kubernetes.device_plugins.samples import A, B, C, listed


@pytest.fixture
def health() -> Health:
    """Return the health of a cluster's pods."""
    return Health(["/api/v1/pods"])


@pytest.fixture
def view(health: Health, monkeypatch: pytest.MonkeyPatch) -> ClusterView:
    """Create a view that processes one object per batch."""
    monkeypatch.setattr(news, "TIME_SLICE_S", 0.0)
    return ClusterView(Cluster("alpha"), health, lambda _, __: None)


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Record which pods are read."""
    found: list[str] = []

    def noted(pod: PodObject, taken: PodView, namespace: Namespaces) -> PodSummary:
        found.append(pod.metadata.name)
        return summarise_pod(pod, taken, namespace)

    monkeypatch.setattr(module, "summarise_pod", noted)
    return found


def pod(name: str, version: int = 1, uid: str = "") -> PodObject:
    """Write a pod in one of its versions."""
    meta = {"name": name, "namespace": "ns", "uid": uid or name, "resourceVersion": str(version)}
    container = {"name": "c", "resources": {"requests": {"cpu": "1"}}}
    return decoded(
        {"metadata": meta, "spec": {"nodeName": "n1", "containers": [container]}, "status": {"phase": "Running"}},
        PodObject,
    )


def there(view: ClusterView) -> str:
    """Return the names of all pods in a view."""
    return " ".join(sorted(each.name.removeprefix("ns/") for each in view.changes("", 0).unmanaged_pods))


async def watched(view: ClusterView, listing: Coroutine[Any, Any, None]) -> list[str]:
    """Process a list; return the views between its batches."""
    seen: list[str] = []
    task = asyncio.create_task(listing)
    while not task.done():
        await asyncio.sleep(0)
        try:
            seen.append(there(view))
        except UnavailableError:
            seen.append("nothing")
    await task
    return seen


def test_others_have_their_turn_while_a_list_is_taken_over(view: ClusterView, health: Health) -> None:
    """New objects of a list show first, and deleted ones go last: held resources never look free in between."""
    asyncio.run(view.replace_pods([pod("a"), pod("b")]))
    health.succeeded("/api/v1/pods")
    seen = asyncio.run(watched(view, view.replace_pods([pod("b"), pod("c"), pod("d")])))
    assert list(dict.fromkeys(seen)) == ["a b", "a b c", "a b c d", "b c d"]


def test_a_view_counts_when_all_of_its_first_list_is_taken_over(view: ClusterView, health: Health) -> None:
    """Half a list is not reported; the cluster counts as observed once it is complete."""
    seen = asyncio.run(watched(view, view.replace_pods([pod("a"), pod("b"), pod("c")])))
    assert len(seen) >= 3
    assert set(seen) == {"nothing"}
    health.succeeded("/api/v1/pods")
    assert there(view) == "a b c"


def test_what_did_not_change_is_not_read_again(view: ClusterView, health: Health, reads: list[str]) -> None:
    """Only changed, re-created and new pods are read."""
    health.succeeded("/api/v1/pods")
    asyncio.run(view.replace_pods([pod("a"), pod("b"), pod("c"), pod("d")]))
    view.put_pod(pod("b", 5))
    reads.clear()
    asyncio.run(view.replace_pods([pod("a"), pod("b", 5), pod("c", 7), pod("d", uid="other"), pod("e")]))
    assert reads == ["c", "d", "e"]
    assert there(view) == "a b c d e"


def test_a_pod_of_another_version_that_says_the_same_is_no_news(view: ClusterView, health: Health) -> None:
    """It causes no notification, and the next list does not report it again."""
    health.succeeded("/api/v1/pods")
    asyncio.run(view.replace_pods([pod("a")]))
    cursor = view.changes("", 0).cursor
    asyncio.run(view.replace_pods([pod("a", 2)]))
    assert view.changes(cursor, 0).unmanaged_pods == ()


def test_nodes_that_changed_are_taken_from_a_list(view: ClusterView, health: Health) -> None:
    """Changed nodes are updated, deleted ones are dropped, and unchanged ones are not read again."""
    health.succeeded("/api/v1/pods")
    first = [versioned("n1", 1, "True"), versioned("n2", 1, "True"), versioned("n3", 1, "True")]
    asyncio.run(view.replace_nodes(first))
    retained = view.node("n2")
    asyncio.run(view.replace_nodes([versioned("n1", 2, "False"), versioned("n2", 1, "True")]))
    assert ready(view) == {"n1": False, "n2": True}
    assert view.node("n2") is retained


def test_slices_that_changed_are_taken_from_a_list(view: ClusterView, health: Health) -> None:
    """A node's pool is read with all its new slices and without its old ones, and other nodes' are unchanged."""
    health.succeeded("/api/v1/pods")
    asyncio.run(view.replace_nodes([versioned("n1", 1, "True"), versioned("n2", 1, "True")]))
    asyncio.run(view.replace_slices([resource_slice("s1", "n1", 1, A), resource_slice("s2", "n2", 1, B)]))
    retained = view.node("n2")
    assert uuids(view, "n1") == [A]
    now = [resource_slice("s3", "n1", 2, C), resource_slice("s2", "n2", 1, B)]
    assert asyncio.run(devices_seen(view, view.replace_slices(now), "n1")) == [[A], [C]]
    assert view.node("n2") is retained
    asyncio.run(view.replace_slices(now[1:]))
    assert (uuids(view, "n1"), uuids(view, "n2")) == ([], [B])


def resource_slice(name: str, at: str, generation: int, uuid: str) -> ResourceSlice:
    """Write a slice that is all of its node's pool."""
    pool = {"name": at, "generation": generation, "resourceSliceCount": 1}
    card = listed("gpu-0", type="gpu", uuid=uuid, productName="NVIDIA A100-SXM4-40GB")
    spec = {"driver": "gpu.nvidia.com", "nodeName": at, "pool": pool, "devices": [card]}
    return decoded({"metadata": {"name": name, "uid": name, "resourceVersion": "1"}, "spec": spec}, ResourceSlice)


def uuids(view: ClusterView, name: str) -> list[str]:
    """Return the devices of a node."""
    found = view.node(name)
    assert found is not None
    return [each.uuid for each in found.node.devices]


async def devices_seen(view: ClusterView, listing: Coroutine[Any, Any, None], name: str) -> list[list[str]]:
    """Process a list; return a node's devices between its batches."""
    seen = [uuids(view, name)]
    task = asyncio.create_task(listing)
    while not task.done():
        await asyncio.sleep(0)
        if uuids(view, name) != seen[-1]:
            seen.append(uuids(view, name))
    await task
    return seen


def versioned(name: str, version: int, says: str) -> NodeObject:
    """Write a node in one of its versions."""
    made = node(name, says)
    meta = {"name": name, "uid": name, "resourceVersion": str(version), "labels": made.metadata.labels}
    conditions = [{"type": "Ready", "status": says}]
    amounts = {"cpu": "8", "memory": "16Gi"}
    return decoded({"metadata": meta, "status": {"allocatable": amounts, "conditions": conditions}}, NodeObject)


def ready(view: ClusterView) -> dict[str, bool]:
    """Return the readiness of the nodes."""
    inventory = view.changes("", 0).inventory
    assert inventory is not None
    return {each.name: each.ready for each in inventory.nodes}
