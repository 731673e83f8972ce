"""Requests for parts of GPUs, on nodes as vendors describe them, from the control plane to the pods.

The control plane runs with all its threads on API servers in memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from seaway.domain.errors import RejectedError
from seaway.domain.job import Demand, ResourceRequest
from seaway.domain.job_spec import JobSpec
from seaway.domain.job_state import JobState
from seaway.domain.placement import DeviceSlice
from tests.fakes.kubernetes import ApiServer
from tests.integration.test_cluster_faults import World

pytestmark = pytest.mark.slow

Json = dict[str, Any]


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


def refused(made: World, request: ResourceRequest) -> str:
    """Return the reason why a job is not admitted."""
    with pytest.raises(RejectedError) as caught:
        made.plane.admission.admit(JobSpec("work", Demand(request)))
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
