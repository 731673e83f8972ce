"""Requests for parts of GPUs, on nodes as vendors describe them, from the control plane to the pods.

The control plane runs with all its threads on API servers in memory.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from seaway.application.changes import Change
from seaway.application.views import DeviceView
from seaway.domain.errors import RejectedError
from seaway.domain.job import Demand, DeviceRules, GpuTopology, ResourceRequest
from seaway.domain.job_spec import JobSpec
from seaway.domain.job_state import JobState
from seaway.domain.placement import DeviceSlice
from seaway.domain.queues import Queue
from tests.conformance.test_kubernetes_backends import gpu_node
from tests.fakes.kubernetes import ApiServer
from tests.fakes.kubernetes.controllers import hami
from tests.integration.test_cluster_faults import World

pytestmark = pytest.mark.slow

Json = dict[str, Any]
ANY_DEVICE = DeviceRules()


@pytest.fixture
def made(tmp_path: Path) -> Iterator[World]:
    """Create a control plane with one cluster."""
    it = World(tmp_path, karmada=False, names=("alpha",))
    try:
        yield it
    finally:
        it.close()


def node(name: str, amounts: Json, labels: Json) -> Json:
    """Write a node of a device plugin that counts its devices."""
    amounts = {"cpu": "64", "memory": "512Gi", "pods": "110", **amounts}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, **labels}},
        "status": {
            "allocatable": amounts,
            "capacity": amounts,
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


def seen(made: World, name: str) -> None:
    """Wait until the control plane has a node."""
    made.wait(lambda: name in {each.name for each in made.plane.overview.nodes("alpha")}, f"the node {name}")


def placed(made: World, job_id: str) -> tuple[str, list[DeviceSlice]]:
    """Return the node of a job that runs, and its slices."""
    made.wait(lambda: made.state(job_id) is JobState.RUNNING, "the job")
    [placement] = made.store.attempts(job_id)[-1].placements
    return placement.node, list(placement.slices)


def limits(made: World, job_id: str) -> Json:
    """Return the limits of a job's container that name devices."""
    [(_, pod)] = made.pods(job_id)
    found: Json = pod["spec"]["containers"][0]["resources"]["limits"]
    return {name: amount for name, amount in found.items() if "/" in name}


def refused(made: World, request: ResourceRequest, rules: DeviceRules = ANY_DEVICE, replicas: int = 1) -> str:
    """Return the reason why a job, or a gang of several replicas, is not admitted."""
    with pytest.raises(RejectedError) as caught:
        made.plane.admission.admit(JobSpec("work", Demand(request, rules), replicas, gang=replicas > 1))
    return caught.value.message


def mixed_mig_node(server: ApiServer) -> None:
    """Add a node of an A100 in MIG mode, in the mixed strategy of NVIDIA's plugin."""
    labels = {
        "nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB",
        "nvidia.com/gpu.count": "1",
        "nvidia.com/gpu.replicas": "0",
        "nvidia.com/mig.strategy": "mixed",
    }
    for profile, count, memory in (("3g.40gb", 1, 40_192), ("1g.10gb", 2, 9_728), ("1g.10gb.me", 1, 9_728)):
        labels |= {
            f"nvidia.com/mig-{profile}.count": str(count),
            f"nvidia.com/mig-{profile}.memory": str(memory),
            f"nvidia.com/mig-{profile}.product": f"NVIDIA-A100-SXM4-80GB-MIG-{profile}",
            f"nvidia.com/mig-{profile}.replicas": "1",
        }
    amounts = {"nvidia.com/mig-3g.40gb": "1", "nvidia.com/mig-1g.10gb": "2", "nvidia.com/mig-1g.10gb.me": "1"}
    server.put(node("cut", {"nvidia.com/gpu": "0", **amounts}, labels))


def test_mig_profile_is_requested_by_name(made: World) -> None:
    """A pod requests the resource of its profile; a profile that no node has is refused with the nearest."""
    mixed_mig_node(made.members["alpha"])
    seen(made, "cut")
    large = made.submit(request=ResourceRequest(500, 256, 1, mig="3g.40gb"))
    where, slices = placed(made, large)
    assert (where, [(each.mig_profile, each.memory_mib) for each in slices]) == ("cut", [("3g.40gb", 40_192)])
    assert limits(made, large) == {"nvidia.com/mig-3g.40gb": "1"}
    media = made.submit(request=ResourceRequest(500, 256, 1, mig="1g.10gb+me"))
    assert [each.mig_profile for each in placed(made, media)[1]] == ["1g.10gb+me"]
    assert limits(made, media) == {"nvidia.com/mig-1g.10gb.me": "1"}
    said = refused(made, ResourceRequest(500, 256, 1, mig="2g.20gb"))
    assert "it would fit with mig 3g.40gb instead of 2g.20gb (alpha/cut)" in said
    waiting = made.submit(request=ResourceRequest(500, 256, 1, mig="3g.40gb"))
    made.wait(lambda: made.state(waiting) is JobState.QUEUED, "that the second has no room")
    made.wait(
        lambda: "it would fit with mig 1g.10gb instead" in made.plane.overview.reason(made.job(waiting)).message, "why"
    )


def linked_node(server: ApiServer) -> None:
    """Add a node of four GPUs that HAMi registers, of which the first and third and the others are linked."""
    body = gpu_node("linked", 4)
    uuids = [f"GPU-linked-{at}" for at in range(4)]
    scores = [
        {
            "uuid": one,
            "score": {other: 420 if (at + to) % 2 == 0 else 20 for to, other in enumerate(uuids) if to != at},
        }
        for at, one in enumerate(uuids)
    ]
    body["metadata"]["annotations"]["hami.io/node-nvidia-score"] = json.dumps(scores)
    server.put(body)


def allocated(pod: Json) -> set[str]:
    """Return the devices that HAMi gave a pod."""
    return {uuid for uuid, _, _ in hami.read_devices(pod["metadata"]["annotations"][hami.ALLOCATED])}


PAIRS = [{"GPU-linked-0", "GPU-linked-2"}, {"GPU-linked-1", "GPU-linked-3"}]


def test_gpus_of_a_replica_are_in_one_nvlink_island(made: World) -> None:
    """Seaway and HAMi choose linked GPUs, for several replicas of one workload too."""
    linked_node(made.members["alpha"])
    seen(made, "linked")
    close = DeviceRules(topology=GpuTopology.SAME_ISLAND)
    request = ResourceRequest(500, 256, 2, 20_000, 0, 400)
    single = made.submit(request=request, devices=close)
    where, slices = placed(made, single)
    assert (where, {each.uuid for each in slices}) == ("linked", PAIRS[0])
    [(_, pod)] = made.pods(single)
    assert pod["metadata"]["annotations"]["hami.io/gpu-scheduler-policy"] == "topology-aware"
    assert allocated(pod) in PAIRS
    both = made.submit(request=replace(request, gpu_milli=700), devices=close, replicas=2, gang=True)
    made.wait(lambda: made.state(both) is JobState.QUEUED, "that it waits")
    made.finish(single)
    made.wait(lambda: made.state(both) is JobState.RUNNING, "both replicas")
    placements = made.store.attempts(both)[-1].placements
    assert sorted(sorted(each.uuid for each in place.slices) for place in placements) == sorted(map(sorted, PAIRS))
    assert sorted(sorted(allocated(pod)) for _, pod in made.pods(both)) == sorted(map(sorted, PAIRS))


def test_one_workload_of_several_replicas_keeps_their_islands(made: World) -> None:
    """The pods of a torchrun job share a template, and HAMi gives each of them linked GPUs."""
    linked_node(made.members["alpha"])
    seen(made, "linked")
    request, close = ResourceRequest(500, 256, 2, 20_000, 0, 700), DeviceRules(topology=GpuTopology.BEST_EFFORT)
    job_id = made.submit(
        request=request, devices=close, replicas=2, gang=True, template="torchrun", command=("python", "train.py")
    )
    made.wait(lambda: made.state(job_id) is JobState.RUNNING, "the job")
    assert sorted(sorted(allocated(pod)) for _, pod in made.pods(job_id)) == sorted(map(sorted, PAIRS))


def test_jobs_without_an_island_are_refused_or_take_the_closest(made: World) -> None:
    """Three linked GPUs do not exist: same-island is refused with the nearest that fits, which then runs."""
    linked_node(made.members["alpha"])
    seen(made, "linked")
    request = ResourceRequest(500, 256, 3, 20_000, 0, 300)
    said = refused(made, request, DeviceRules(topology=GpuTopology.SAME_ISLAND))
    assert "GPUs not in one NVLink island; it would fit with gpus 2 instead of 3 (alpha/linked)" in said
    job_id = made.submit(request=request, devices=DeviceRules(topology=GpuTopology.BEST_EFFORT))
    assert len(placed(made, job_id)[1]) == 3


def test_islands_of_a_node_label_are_shown_and_used(made: World) -> None:
    """An administrator labels the node, and the fleet and the decisions follow."""
    alpha = made.members["alpha"]
    body = gpu_node("labelled", 4)
    alpha.put(body)
    seen(made, "labelled")
    request = ResourceRequest(500, 256, 2, 20_000, 0, 300)
    close = DeviceRules(topology=GpuTopology.SAME_ISLAND)
    assert "GPUs not in one NVLink island" in refused(made, request, close)
    body["metadata"]["labels"]["topology.seaway.io/nvlink"] = "0.3_1-2"
    alpha.put(body)
    made.wait(
        lambda: [each.island for each in devices(made, "labelled")] == [0, 1, 1, 0], "the islands in the fleet's view"
    )
    job_id = made.submit(request=request, devices=close)
    assert {each.uuid for each in placed(made, job_id)[1]} == {"GPU-labelled-0", "GPU-labelled-3"}


def devices(made: World, node: str) -> list[DeviceView]:
    """Return the devices of a node as users see them."""
    return [device for each in made.plane.overview.nodes("alpha") if each.name == node for device in each.devices]


def test_size_of_gpus_is_matched_if_the_queue_wants_it(made: World) -> None:
    """The aim `memory` of the policy `balanced` leaves large GPUs free, on the nodes as HAMi registers them."""
    body = gpu_node("small", 1)
    register = body["metadata"]["annotations"]["hami.io/node-nvidia-register"]
    body["metadata"]["annotations"]["hami.io/node-nvidia-register"] = register.replace("81920", "23034").replace(
        "A100-SXM4-80GB", "L4"
    )
    made.members["alpha"].put(body)
    seen(made, "small")
    options = {"weights": {"free": 1, "memory": 9}}
    made.plane.writer.commit([Change(put=[Queue("default", policy="balanced", policy_options=options)])])
    made.wait(lambda: made.plane.controller.live.queues["default"].policy == "balanced", "the policy")
    first, second = (made.submit(request=ResourceRequest(500, 256, 1, 20_000, 0, 300)) for _ in range(2))
    assert sorted(placed(made, each)[0] == "small" for each in (first, second)) == [False, True]


def test_jobs_run_on_gaudi_tpu_and_partitions_of_amd(made: World) -> None:
    """Each job gets devices of its vendor, and its pod requests the resource of the vendor's plugin."""
    alpha = made.members["alpha"]
    alpha.put(node("gaudi", {"habana.ai/gaudi": "8"}, {"habana.ai/device.type": "GAUDI2"}))
    slice_labels = {
        "cloud.google.com/gke-tpu-accelerator": "tpu-v5-lite-podslice",
        "cloud.google.com/gke-tpu-topology": "2x4",
    }
    for at in range(2):
        alpha.put(node(f"tpu-{at}", {"google.com/tpu": "4"}, slice_labels))
    amd = {"amd.com/gpu.product-name": "AMD_Instinct_MI300X_OAM", "amd.com/gpu.vram": "192G"}
    alpha.put(node("amd", {"amd.com/cpx_nps4": "8"}, amd))
    for name in ("gaudi", "tpu-0", "tpu-1", "amd"):
        seen(made, name)
    close = DeviceRules(vendors=frozenset({"Gaudi"}), topology=GpuTopology.SAME_ISLAND)
    gaudi = made.submit(request=ResourceRequest(500, 256, 4), devices=close)
    assert placed(made, gaudi)[0] == "gaudi"
    assert limits(made, gaudi) == {"habana.ai/gaudi": "4"}
    part = made.submit(
        request=ResourceRequest(500, 256, 2, 20_000), devices=DeviceRules(models=frozenset({f"{AMD} CPX_NPS4"}))
    )
    assert placed(made, part)[0] == "amd"
    assert limits(made, part) == {"amd.com/cpx_nps4": "2"}
    rules = DeviceRules(models=frozenset({"TPU v5e 2x4"}))
    tpu = made.submit(request=ResourceRequest(500, 256, 1), devices=rules, replicas=2, gang=True)
    made.wait(lambda: made.state(tpu) is JobState.RUNNING, "the slice")
    assert {each.node for each in made.store.attempts(tpu)[-1].placements} == {"tpu-0", "tpu-1"}
    for _, pod in made.pods(tpu):
        assert pod["spec"]["containers"][0]["resources"]["limits"]["google.com/tpu"] == "4"
        assert slice_labels.items() <= pod["spec"]["nodeSelector"].items()
    said = refused(made, ResourceRequest(500, 256, 4), rules, replicas=2)
    assert "it would fit with gpus 1 instead of 4 (alpha/tpu-0 and 1 other node)" in said


def tpu_node(name: str, pool: str, topology: str) -> Json:
    """Write a node of a slice as GKE labels it."""
    labels = {
        "cloud.google.com/gke-nodepool": pool,
        "cloud.google.com/gke-tpu-accelerator": "tpu-v5-lite-podslice",
        "cloud.google.com/gke-tpu-topology": topology,
    }
    return node(name, {"google.com/tpu": "4"}, labels)


def test_a_gang_takes_all_nodes_of_one_tpu_slice(made: World) -> None:
    """Of two slices with equal nodes, all replicas are in one; the next gang gets the other, and a third waits."""
    names = [f"{pool}-{at}" for at in range(2) for pool in ("a", "b")]
    for name in names:
        made.members["alpha"].put(tpu_node(name, name[0], "2x4"))
    for name in names:
        seen(made, name)
    rules = DeviceRules(vendors=frozenset({"TPU"}))
    request = ResourceRequest(500, 256, 1)
    gangs = [made.submit(request=request, devices=rules, replicas=2, gang=True) for _ in range(3)]
    for gang in gangs[:2]:
        made.wait(lambda gang=gang: made.state(gang) is JobState.RUNNING, "a slice")  # type: ignore[misc]
    nodes = [{each.node for each in made.store.attempts(gang)[-1].placements} for gang in gangs[:2]]
    assert sorted(map(sorted, nodes)) == [["a-0", "a-1"], ["b-0", "b-1"]]
    made.wait(lambda: made.state(gangs[2]) is JobState.QUEUED, "that it waits")
    made.finish(gangs[0])
    made.wait(lambda: made.state(gangs[2]) is JobState.RUNNING, "the slice that is free again")
    assert {each.node for each in made.store.attempts(gangs[2])[-1].placements} == nodes[0]
    needs = "TPU slice that needs a gang with one replica per node: TPU v5e 2x4 (2 nodes)"
    for replicas in (1, 3):
        assert needs in refused(made, request, rules, replicas)


AMD = "AMD Instinct MI300X OAM"
