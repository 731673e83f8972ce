"""Pods are read again after changes of their node or claims: a view does not depend on the order of events."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seaway.adapters.kubernetes.collect import device_shares as shares
from seaway.adapters.kubernetes.collect.health import Health
from seaway.adapters.kubernetes.collect.view import ClusterView
from seaway.adapters.kubernetes.device_plugins.pods import read_pod
from seaway.adapters.kubernetes.objects.core import NodeObject, PodObject
from seaway.adapters.kubernetes.objects.dra import ResourceClaim, ResourceSlice
from seaway.application.ports.backend import Changes
from seaway.domain.cluster import Cluster
from tests.unit.adapters.kubernetes.device_plugins.samples import A, B, decoded, listed

JOB = "01k9zj5q8e0ab"
MARKS = {"seaway.io/job": JOB, "seaway.io/attempt": "1", "app.kubernetes.io/managed-by": "seaway"}
ASCEND = '[{"id":"Ascend910B3-0","count":4,"devmem":65536,"devcore":20,"type":"Ascend910B3","health":true}]'
HAMI = f'[{{"id":"{A}","count":10,"devmem":40960,"devcore":100,"type":"NVIDIA A100","health":true}}]'

Reported = Callable[[ClusterView], None]


def node(name: str, annotations: Mapping[str, str] | None = None, nvidia_gpus: int = 0, tapes: int = 0) -> NodeObject:
    """Write a node that is ready."""
    amounts = {"cpu": "64", "memory": "256Gi", "nvidia.com/gpu": str(nvidia_gpus), "example.com/tape": str(tapes)}
    return decoded(
        {
            "metadata": {"name": name, "annotations": annotations or {}},
            "status": {
                "allocatable": amounts,
                "capacity": amounts,
                "conditions": [{"type": "Ready", "status": "True"}],
            },
        },
        NodeObject,
    )


def counted(name: str, number: int) -> NodeObject:
    """Write a node whose cards NVIDIA's plugin counts."""
    return node(name, nvidia_gpus=number)


def pod(
    name: str,
    at: str,
    annotations: Mapping[str, str] | None = None,
    gpus: int = 0,
    labels: Mapping[str, str] | None = None,
    **spec: Any,  # noqa: ANN401  # fields of a spec
) -> PodObject:
    """Write a running pod; with labels in Seaway's namespace, else in another."""
    limits = {"nvidia.com/gpu": str(gpus)} if gpus else {}
    meta = {"name": name, "namespace": "seaway" if labels else "ns", "uid": name, "labels": labels or {}}
    container = {"name": "c", "resources": {"limits": limits}}
    return decoded(
        {
            "metadata": {**meta, "annotations": annotations or {}},
            "spec": {"nodeName": at, "containers": [container], **spec},
            "status": {"phase": "Running"},
        },
        PodObject,
    )


def ours(name: str, at: str, devices: str, gpus: int = 1, replica: int = 0) -> PodObject:
    """Write a pod of Seaway with the devices allocated to it."""
    notes = {"seaway.io/replicas": str(replica), "seaway.io/devices": devices}
    return pod(name, at, notes, gpus, {**MARKS, "seaway.io/part": name})


def resource_slice(name: str, at: str, *devices: Mapping[str, Any]) -> ResourceSlice:
    """Write a slice that is all of its node's pool."""
    pool = {"name": at, "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": "gpu.nvidia.com", "nodeName": at, "pool": pool, "devices": devices}
    return decoded({"metadata": {"name": name}, "spec": spec}, ResourceSlice)


def claim(name: str, at: str, device: str, user: str) -> ResourceClaim:
    """Write a claim with one allocated device, for one pod."""
    result = {"driver": "gpu.nvidia.com", "pool": at, "device": device}
    status = {
        "allocation": {"devices": {"results": [result]}},
        "reservedFor": [{"resource": "pods", "name": user, "uid": user}],
    }
    return decoded({"metadata": {"name": name, "namespace": "ns"}, "status": status}, ResourceClaim)


CARD = listed("gpu-0", type="gpu", uuid=B, productName="NVIDIA A100-SXM4-40GB")
CLAIMING = pod("claiming", "dra", resourceClaims=[{"name": "g", "resourceClaimName": "gpu"}])
CLAIM = claim("gpu", "dra", "gpu-0", "claiming")
SLICE = resource_slice("s1", "dra", CARD)
ASCENDING = {"hami.io/vgpu-node": "npu", "hami.io/Ascend910B3-devices-allocated": "Ascend910B3-0,Ascend910B3,16384,5:;"}
SHARING = {"hami.io/vgpu-node": "hami", "hami.io/vgpu-devices-allocated": f"{A},NVIDIA,500,5:;"}

LAST: Sequence[Reported] = (
    lambda view: view.put_node(node("dra")),
    lambda view: view.put_slices((SLICE,)),
    lambda view: view.put_claim(CLAIM),
    lambda view: view.put_pod(CLAIMING),
    lambda view: view.put_node(node("npu", {"hami.io/node-register-Ascend910B3": ASCEND})),
    lambda view: view.put_pod(pod("ascending", "npu", ASCENDING)),
    lambda view: view.put_node(node("hami", {"hami.io/node-nvidia-register": HAMI}, 10)),
    lambda view: view.put_pod(pod("sharing", "hami", SHARING, gpus=1)),
    lambda view: view.put_node(counted("plugin", 2)),
    lambda view: view.put_pod(ours("mine", "plugin", "alpha/plugin/gpu-0,alpha/other/gpu-1")),
    lambda view: view.put_pod(pod("theirs", "plugin", gpus=1)),
)
"""The final objects, each reported once."""

BEFORE: Sequence[Reported] = (
    lambda view: view.put_node(node("plugin")),
    lambda view: view.put_node(counted("plugin", 1)),
    lambda view: view.put_node(node("npu")),
    lambda view: view.drop_node("plugin"),
    lambda view: view.drop_node("dra"),
    lambda view: view.put_slices((resource_slice("s1", "plugin", CARD),)),
    lambda view: view.put_slices((), ("s1",)),
    lambda view: view.put_claim(claim("gpu", "dra", "gpu-0", "another")),
    lambda view: view.drop_claim("ns/gpu"),
    lambda view: view.put_pod(pod("claiming", "plugin", gpus=1)),
    lambda view: view.put_pod(pod("theirs", "npu", ASCENDING)),
    lambda view: view.put_pod(pod("another", "plugin", gpus=1)),
    lambda view: view.drop_pod("ns/another"),
    lambda view: view.drop_pod("seaway/mine"),
)
"""Possible earlier objects."""


def new_view() -> ClusterView:
    """Create an empty view."""
    return ClusterView(Cluster("alpha"), Health(()), lambda _, __: None)


def state(reported: Changes) -> tuple[Any, ...]:
    """Return the objects in a fixed order."""
    return (
        reported.inventory,
        sorted(reported.unmanaged_pods, key=lambda each: each.name),
        sorted(map(repr, reported.workloads)),
    )


def held(reported: Changes) -> dict[str, list[str]]:
    """Return the devices of every pod."""
    theirs = {each.name: [taken.uuid for taken in each.slices] for each in reported.unmanaged_pods}
    replicas = [each for copy in reported.workloads for each in copy.replicas]
    return theirs | {each.pod: [taken.uuid for taken in each.slices] for each in replicas}


@given(st.lists(st.sampled_from(BEFORE), max_size=8), st.permutations(LAST))
def test_a_view_is_the_same_in_whatever_order_it_was_reported(before: list[Reported], last: list[Reported]) -> None:
    """Node, slice, claim and pod may come in any order, after earlier versions: the final view is the same."""
    view = new_view()
    for tell in before:
        tell(view)
    for tell in last:
        tell(view)
    view.drop_pod("ns/another")
    found = view.changes("", 0)
    assert held(found) == {
        "ns/claiming": [B],
        "ns/ascending": ["alpha/npu/Ascend910B3-0"],
        "ns/sharing": [A],
        "seaway/mine": ["alpha/plugin/gpu-0"],
        "ns/theirs": ["alpha/plugin/gpu-1"],
    }
    straight = new_view()
    for tell in LAST:
        tell(straight)
    assert state(found) == state(straight.changes("", 0))


def test_what_is_read_again_is_reported() -> None:
    """A cursor from before gets the pods whose devices are known only now."""
    view = new_view()
    view.put_node(node("dra"))
    view.put_claim(CLAIM)
    view.put_pod(CLAIMING)
    cursor = view.changes("", 0).cursor
    view.put_slices((SLICE,))
    reported = view.changes(cursor, 0)
    assert held(reported) == {"ns/claiming": [B]}
    view.put_slices((), ("s1",))
    assert held(view.changes(reported.cursor, 0)) == {"ns/claiming": []}


def test_a_heartbeat_has_no_pod_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only changed devices cause it, and only for pods that are on the node and depend on it."""
    view = new_view()
    read: list[str] = []

    def noting(pod: PodObject, *others: Any) -> Any:  # noqa: ANN401  # as it is
        read.append(pod.metadata.name)
        return read_pod(pod, *others)

    monkeypatch.setattr(shares, "read_pod", noting)
    view.put_node(counted("plugin", 2))
    view.put_node(counted("another", 2))
    view.put_pod(pod("counted", "plugin", gpus=1))
    view.put_pod(pod("plain", "plugin"))
    view.put_pod(pod("sharing", "plugin", {**SHARING, "hami.io/vgpu-node": "plugin"}))
    view.put_pod(pod("elsewhere", "another", gpus=1))
    read.clear()
    view.put_node(counted("plugin", 2))
    view.put_node(node("plugin", {"heartbeat": "1"}, 2, tapes=1))
    assert read == []
    view.put_node(counted("plugin", 3))
    assert read == ["counted"]


def test_a_pod_that_waited_for_a_device_gets_one_that_is_given_back() -> None:
    """If pods outnumber devices for a while, each gets one in the end."""
    view = new_view()
    view.put_node(counted("plugin", 1))
    view.put_pod(pod("old", "plugin", gpus=1))
    view.put_pod(pod("new", "plugin", gpus=1))
    first = view.changes("", 0)
    assert held(first) == {"ns/old": ["alpha/plugin/gpu-0"], "ns/new": []}
    view.drop_pod("ns/old")
    assert held(view.changes(first.cursor, 0)) == {"ns/old": [], "ns/new": ["alpha/plugin/gpu-0"]}


def test_what_only_says_that_it_was_reserved_is_not_believed() -> None:
    """Seaway's pods are in its namespace; any user may write annotations elsewhere."""
    view = new_view()
    view.put_node(counted("plugin", 2))
    view.put_pod(pod("first", "plugin", gpus=1))
    view.put_pod(pod("liar", "plugin", {"seaway.io/devices": "alpha/plugin/gpu-0"}, gpus=1))
    found = held(view.changes("", 0))
    assert found == {"ns/first": ["alpha/plugin/gpu-0"], "ns/liar": ["alpha/plugin/gpu-1"]}
