"""The fake for kube-scheduler and HAMi."""

from __future__ import annotations

import json

import pytest

from tests.fakes.kubernetes import ApiServer
from tests.fakes.kubernetes.kinds import EVENTS, NODES, PODS, Json
from tests.unit.fakes.kubernetes.bodies import node, pod

GPU = "nvidia.com/gpu"


def placed(cluster: ApiServer, name: str = "a") -> str:
    """Return the node of a pod, or nothing."""
    cluster.settle()
    found = cluster.get(PODS, "default", name)
    assert found is not None
    return str(found["spec"].get("nodeName", ""))


def refusal(cluster: ApiServer, name: str = "a") -> str:
    """Return why a pod waits."""
    assert placed(cluster, name) == ""
    found = cluster.get(PODS, "default", name)
    assert found is not None
    (one,) = [one for one in found["status"]["conditions"] if one["type"] == "PodScheduled"]
    assert (one["status"], one["reason"]) == ("False", "Unschedulable")
    return str(one["message"])


def slice_of(memory: int = 1000, cores: int = 10, count: int = 1) -> Json:
    """Return limits for a share of cards."""
    return {GPU: str(count), "nvidia.com/gpumem": str(memory), "nvidia.com/gpucores": str(cores)}


def on_name(name: str) -> Json:
    """Return an affinity that requires a node by name."""
    field = {"key": "metadata.name", "operator": "In", "values": [name]}
    required = {"nodeSelectorTerms": [{"matchFields": [field]}]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}


def test_selectors_and_affinity_choose_the_node(cluster: ApiServer) -> None:
    """A nodeSelector and an affinity on the name bring a pod to that node."""
    for name in ("n1", "n2", "n3"):
        cluster.create(node(name))
    cluster.create(pod("a", nodeSelector={"kubernetes.io/hostname": "n2"}))
    cluster.create(pod("b", affinity=on_name("n3")))
    assert placed(cluster, "a") == "n2"
    assert placed(cluster, "b") == "n3"


def test_resources_are_counted(cluster: ApiServer) -> None:
    """A node takes pods until a resource is used up, and again when one is gone."""
    cluster.create(node("n1", cpu="2"))
    cluster.create(pod("a", limits={"cpu": "1500m"}))
    cluster.create(pod("b", limits={"cpu": "1"}))
    assert placed(cluster, "a") == "n1"
    assert refusal(cluster, "b") == "0/1 nodes are available: 1 Insufficient cpu."
    assert "FailedScheduling" in [one["reason"] for one in cluster.list(EVENTS, fields="involvedObject.name=b")]
    cluster.delete(PODS, "default", "a")
    assert placed(cluster, "b") == "n1"


def test_pods_are_counted(cluster: ApiServer) -> None:
    """A node takes so many pods, whatever they ask for, and another once one has ended."""
    cluster.create(node("n1", more={"pods": "1"}))
    cluster.create(pod("a", {"testbed/run-seconds": "0"}, restartPolicy="Never"))
    cluster.create(pod("b"))
    assert placed(cluster, "b") == "n1"
    cluster.create(pod("c"))
    assert refusal(cluster, "c") == "0/1 nodes are available: 1 Too many pods."


def test_kubelets_turn_pods_away_that_are_too_many(cluster: ApiServer) -> None:
    """Anything that names its node passes by the scheduler; what was there first stays."""
    cluster.create(node("n1", more={"pods": "2"}))
    for name in "abc":
        cluster.create(pod(name, nodeName="n1"))
        cluster.settle()
    statuses = [found["status"] for found in cluster.list(PODS)]
    assert [each["phase"] for each in statuses] == ["Running", "Running", "Failed"]
    assert statuses[2]["reason"] == "OutOfpods"
    assert statuses[2]["message"].endswith("pods, requested: 1, used: 2, capacity: 2")
    cluster.delete(PODS, "default", "a")
    cluster.create(pod("d", nodeName="n1"))
    cluster.settle()
    assert [found["status"]["phase"] for found in cluster.list(PODS)] == ["Running", "Failed", "Running"]


def test_extended_resources_are_counted(cluster: ApiServer) -> None:
    """Cards of a node without HAMi are counted like any resource."""
    cluster.create(node("n1", more={GPU: "1"}))
    cluster.create(pod("a", limits={GPU: "1"}))
    cluster.create(pod("b", limits={GPU: "1"}))
    assert placed(cluster, "a") == "n1"
    assert "Insufficient nvidia.com/gpu" in refusal(cluster, "b")


def test_taints_and_cordons_keep_pods_away(cluster: ApiServer) -> None:
    """A taint that is not tolerated and a cordon keep pods away until they are gone."""
    cluster.create(node("n1"))
    cluster.patch(NODES, "", "n1", {"spec": {"taints": [{"key": "a", "value": "b", "effect": "NoSchedule"}]}})
    cluster.create(pod("a"))
    cluster.create(pod("b", tolerations=[{"key": "a", "operator": "Exists"}]))
    assert "untolerated taint {a: b}" in refusal(cluster, "a")
    assert placed(cluster, "b") == "n1"
    cluster.patch(NODES, "", "n1", {"spec": {"taints": None, "unschedulable": True}})
    assert "unschedulable" in refusal(cluster, "a")
    cluster.patch(NODES, "", "n1", {"spec": {"unschedulable": None}})
    assert placed(cluster, "a") == "n1"


def test_pods_of_other_schedulers_are_left_alone(cluster: ApiServer) -> None:
    """A pod that names another scheduler is not looked at."""
    cluster.create(node("n1"))
    cluster.create(pod("a", schedulerName="mine"))
    assert placed(cluster, "a") == ""


def test_hami_writes_what_it_allocated(cluster: ApiServer) -> None:
    """A pod for HAMi has node, devices and phase as annotations, and the node as a label."""
    cluster.create(node("n1", cards=2))
    cluster.create(pod("a", limits=slice_of(8000, 30)))
    assert placed(cluster, "a") == "n1"
    found = cluster.get(PODS, "default", "a")
    assert found is not None
    annotations = found["metadata"]["annotations"]
    uuid = annotations["hami.io/vgpu-devices-allocated"].partition(",")[0]
    assert uuid.startswith("GPU-n1-")
    assert annotations["hami.io/vgpu-devices-allocated"] == f"{uuid},NVIDIA,8000,30:;"
    assert annotations["hami.io/vgpu-devices-to-allocate"] == ";"
    assert annotations["hami.io/bind-phase"] == "success"
    assert annotations["hami.io/vgpu-node"] == found["metadata"]["labels"]["hami.io/vgpu-node"] == "n1"
    assert found["spec"]["schedulerName"] == "hami-scheduler"


def test_hami_keeps_to_the_card_that_is_named(cluster: ApiServer) -> None:
    """use-gpuuuid pins a pod to a card; one that is nowhere leaves it waiting."""
    cluster.create(node("n1", cards=4))
    cluster.create(pod("a", {"nvidia.com/use-gpuuuid": "GPU-n1-2"}, limits=slice_of()))
    cluster.create(pod("b", {"nvidia.com/use-gpuuuid": "GPU-none"}, limits=slice_of()))
    placed(cluster, "a")
    found = cluster.get(PODS, "default", "a")
    assert found is not None
    assert found["metadata"]["annotations"]["hami.io/vgpu-devices-allocated"].startswith("GPU-n1-2,")
    assert "CardUuidMismatch" in refusal(cluster, "b")
    reasons = [one["reason"] for one in cluster.list(EVENTS, fields="involvedObject.name=b")]
    assert {"FailedScheduling", "FilteringFailed"} <= set(reasons)


@pytest.mark.parametrize(
    ("first", "second", "reason"),
    [
        (slice_of(80000, 10), slice_of(2000, 10), "CardInsufficientMemory"),
        (slice_of(1000, 60), slice_of(1000, 50), "CardInsufficientCore"),
        (slice_of(1000, 10), slice_of(1000, 100), "CardInsufficientCore"),
        (slice_of(1000, 100), slice_of(1000, 0), "CardComputeUnitsExhausted"),
        (slice_of(1000, 0), slice_of(1000, 100), "ExclusiveDeviceAllocateConflict"),
        (slice_of(1000, 0), slice_of(1000, 0, 2), "NodeInsufficientDevice"),
    ],
)
def test_hami_refuses_what_does_not_fit(cluster: ApiServer, first: Json, second: Json, reason: str) -> None:
    """Anything that is left of a card decides, in HAMi's order of rules."""
    cluster.create(node("n1", cards=1))
    cluster.create(pod("a", limits=first))
    assert placed(cluster, "a") == "n1"
    cluster.create(pod("b", limits=second))
    assert reason in refusal(cluster, "b")
    cluster.delete(PODS, "default", "a")
    assert placed(cluster, "b") == ("" if reason == "NodeInsufficientDevice" else "n1")


def test_hami_passes_over_cards_that_are_ill_or_cordoned(cluster: ApiServer) -> None:
    """A card without health, or on the cordon list, takes nothing new."""
    body = node("n1", cards=2)
    cards = json.loads(body["metadata"]["annotations"]["hami.io/node-nvidia-register"])
    del cards[0]["health"]
    body["metadata"]["annotations"]["hami.io/node-nvidia-register"] = json.dumps(cards)
    body["metadata"]["annotations"]["hami.io/device-cordon"] = "GPU-n1-1"
    cluster.create(body)
    cluster.create(pod("a", limits=slice_of()))
    assert "Card" in refusal(cluster, "a")
    cluster.patch(NODES, "", "n1", {"metadata": {"annotations": {"hami.io/device-cordon": None}}})
    assert placed(cluster, "a") == "n1"


def test_hami_counts_what_others_hold(cluster: ApiServer) -> None:
    """Pods that were there before, by their annotations, count as well."""
    cluster.create(node("n1", cards=1))
    held = {"hami.io/vgpu-node": "n1", "hami.io/vgpu-devices-allocated": "GPU-n1-0,NVIDIA,81000,50:;"}
    body = pod("old", held, nodeName="n1")
    body["metadata"]["labels"] = {"hami.io/vgpu-node": "n1"}
    cluster.put({**body, "status": {"phase": "Running"}})
    cluster.create(pod("a", limits=slice_of(2000)))
    assert "CardInsufficientMemory" in refusal(cluster, "a")


def test_hami_fills_in_what_is_missing(cluster: ApiServer) -> None:
    """A bare card means a whole one, and memory alone means one card."""
    cluster.create(node("n1", cards=2))
    cluster.create(pod("a", limits={GPU: "1"}))
    cluster.create(pod("b", limits={"nvidia.com/gpumem": "500"}))
    held = []
    for name in "ab":
        assert placed(cluster, name) == "n1"
        found = cluster.get(PODS, "default", name)
        assert found is not None
        held.append(found["metadata"]["annotations"]["hami.io/vgpu-devices-allocated"].split(",", 2)[2])
    assert held == ["81920,100:;", "500,0:;"]
