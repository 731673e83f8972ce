"""Devices with equal shares, or whole: allocations for jobs, and the use by others."""

from __future__ import annotations

from typing import Any

import pytest

from seaway.adapters.kubernetes.device_plugins.assign import assign_devices
from seaway.adapters.kubernetes.device_plugins.nodes import read_node
from seaway.adapters.kubernetes.device_plugins.pods import read_pod
from seaway.adapters.kubernetes.device_plugins.views import NodeView
from seaway.domain.device import DeviceMode
from seaway.domain.placement import DeviceSlice
from seaway.scheduling.snapshot.snapshot import Snapshot
from seaway.testing.plugins import cluster, fleet, job
from tests.unit.adapters.kubernetes.device_plugins.samples import A100, A, claim, listed, node, pod, resource_slice
from tests.unit.scheduling.requesting import refusals, slices

LABELS = {"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB", "nvidia.com/gpu.memory": "81559"}
SMALL: dict[str, Any] = {"gpu_memory_mib": 4_000}
NONE: dict[str, Any] = {}


def counted(resource: str, **labels: str) -> NodeView:
    """Read a node of NVIDIA's plugin, with one device."""
    more = {f"nvidia.com/{key}": text for key, text in labels.items()}
    return read_node("alpha", node(allocatable={resource: labels.get("gpu.replicas", "1")}, labels=LABELS | more))


def snapshot(view: NodeView) -> Snapshot:
    """Create a fleet of one node."""
    return Snapshot(fleet(cluster(view.node)))


@pytest.mark.parametrize(
    ("resource", "labels", "each"),
    [
        ("nvidia.com/gpu", {}, (81_559, 1_000)),
        ("nvidia.com/gpu", {"gpu.replicas": "4"}, (20_389, 250)),
        ("nvidia.com/gpu.shared", {"gpu.replicas": "4"}, (20_389, 250)),
        ("nvidia.com/gpu", {"gpu.replicas": "4", "gpu.sharing-strategy": "mps"}, (20_389, 250)),
        ("nvidia.com/mig-1g.10gb", {"mig-1g.10gb.memory": "9856"}, (9_856, 142)),
    ],
)
def test_of_counted_devices_a_job_ledgers_what_another_pod_would_hold(
    resource: str, labels: dict[str, str], each: tuple[int, int]
) -> None:
    """A job that requests less is allocated, and shown with, a whole card, share or instance."""
    view = counted(resource, **labels)
    [taken] = slices(snapshot(view), job(gpus=1, **SMALL))
    other = read_pod(pod(limits={resource: "1"}), view)
    [held] = assign_devices(view, {"other": other.held}, {})["other"]
    assert taken == held.slice
    assert (taken.memory_mib, taken.core_milli) == each


@pytest.mark.parametrize("asked", [NONE, SMALL, {"gpu_milli": 500}, {"gpu_memory_percent": 20}])
def test_of_a_card_of_a_driver_a_job_ledgers_all_that_its_claim_holds(asked: dict[str, Any]) -> None:
    """A claim uses all of a card that is not shared."""
    listing = resource_slice([listed("gpu-0", type="gpu", uuid=A, productName=A100)])
    view = read_node("alpha", node(), [listing])
    [taken] = slices(snapshot(view), job(gpus=1, **asked))
    given = claim([{"driver": "gpu.nvidia.com", "device": "gpu-0"}])
    [held] = read_pod(pod(), view, [given]).held
    assert taken == held.slice == DeviceSlice(A, 40_960, 1_000)


def test_who_requests_for_more_than_a_card_is_refused_for_memory() -> None:
    """A whole card has no more than its memory."""
    asked = job(gpus=1, gpu_memory_mib=90_000)
    assert refusals(snapshot(counted("nvidia.com/gpu")), asked) == ["too little memory on each GPU"]


@pytest.mark.parametrize(
    ("labels", "mode"),
    [
        ({}, "whole"),
        ({"gpu.replicas": "4"}, "shared"),
        ({"gpu.replicas": "4", "gpu.sharing-strategy": "mps"}, "mps"),
    ],
)
def test_jobs_choose_by_how_a_card_is_shared_out(labels: dict[str, str], mode: str) -> None:
    """A job for one kind of sharing only gets cards of that kind: none of these has HAMi's limits."""
    there = snapshot(counted("nvidia.com/gpu", **labels))
    refused = {way for way in DeviceMode if refusals(there, job(gpus=1, modes={way}, **SMALL)) != [""]}
    assert set(DeviceMode) - refused == {DeviceMode(mode)}


def test_a_card_whose_size_no_one_says_goes_to_anyone_requests_for_none() -> None:
    """It is counted, without memory; all its cores are allocated."""
    view = read_node("alpha", node(allocatable={"nvidia.com/gpu": "1"}))
    [taken] = slices(snapshot(view), job(gpus=1))
    assert (taken.memory_mib, taken.core_milli) == (0, 1_000)
