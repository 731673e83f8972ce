"""Gaudi, TPU and AMD devices that their vendors' plugins count, with the labels of their feature discovery."""

from __future__ import annotations

import pytest

from seaway.adapters.kubernetes.device_plugins.counted import GAUDI_MEMORY, TPU_TOPOLOGY
from seaway.adapters.kubernetes.device_plugins.nodes import read_node
from seaway.adapters.kubernetes.device_plugins.pods import read_pod
from seaway.adapters.kubernetes.device_plugins.views import DevicePlugin, NodeView, ProblemKind
from seaway.domain.device import Device, DeviceMode
from tests.unit.adapters.kubernetes.device_plugins.samples import kinds, node, pod

GAUDI = {"habana.ai/device.family": "gaudi", "habana.ai/device.type": "GAUDI2", "habana.ai/device.count": "8"}
TPU = {
    "cloud.google.com/gke-tpu-accelerator": "tpu-v5-lite-podslice",
    TPU_TOPOLOGY: "4x4",
    "cloud.google.com/gke-nodepool": "slice-a",
}
MI300X = {"amd.com/gpu.product-name": "AMD_Instinct_MI300X_OAM", "amd.com/gpu.vram": "192G"}


def read(amounts: dict[str, str], labels: dict[str, str], capacity: dict[str, str] | None = None) -> NodeView:
    """Read a node with these resources and labels."""
    return read_node("alpha", node(None, amounts, labels, capacity))


def test_gaudi_cards_are_counted_and_connected() -> None:
    """The generation in the labels gives the memory of a card, and all cards of a node are one island."""
    view = read({"habana.ai/gaudi": "8"}, GAUDI)
    assert len(view.node.devices) == 8
    assert view.node.devices[3] == Device(
        "alpha/n1/gaudi-3",
        3,
        "Intel Gaudi 2",
        96 * 1024,
        "Gaudi",
        share_limit=1,
        mode=DeviceMode.WHOLE,
        even_shares=True,
        island=0,
    )
    assert {each.resources.plugin for each in view.accesses} == {DevicePlugin.COUNTING}
    assert view.problems == ()


@pytest.mark.parametrize(
    ("labels", "model", "memory_mib", "problems"),
    [
        ({"habana.ai/device.type": "GAUDI3"}, "Intel Gaudi 3", 131_072, []),
        ({"habana.ai/device.type": "GAUDI"}, "Intel Gaudi", 32_768, []),
        ({"habana.ai/device.type": "", "habana.ai/device.name": "gaudi2"}, "Intel Gaudi 2", 98_304, []),
        (GAUDI | {GAUDI_MEMORY: "98000"}, "Intel Gaudi 2", 98_000, []),
        (GAUDI | {GAUDI_MEMORY: "96GB"}, "Intel Gaudi 2", 98_304, [ProblemKind.BROKEN]),
        ({}, "Intel Gaudi", 0, [ProblemKind.UNCERTAIN]),
    ],
)
def test_gaudi_generations(labels: dict[str, str], model: str, memory_mib: int, problems: list[ProblemKind]) -> None:
    """A label that an administrator sets takes precedence, and unknown generations have no memory."""
    view = read({"habana.ai/gaudi": "1"}, labels)
    [device] = view.node.devices
    assert (device.model, device.memory_mib, device.island) == (model, memory_mib, -1)
    assert kinds(view) == problems


def test_all_chips_of_a_tpu_node_are_one_device() -> None:
    """A pod must request all of them, and select the labels of the slice; a pod of others holds the device too."""
    view = read({"google.com/tpu": "4"}, TPU)
    [device], [access] = view.node.devices, view.accesses
    assert (device.model, device.vendor, device.memory_mib) == ("TPU v5e 4x4", "TPU", 4 * 16_384)
    assert access.units == 4
    assert access.selector == {label: TPU[label] for label in TPU if "tpu" in label}
    holds = read_pod(pod(limits={"google.com/tpu": "4"}, nodeName="n1"), view).held
    assert [(each.resource, each.memory_mib) for each in holds] == [("google.com/tpu", device.memory_mib)]


@pytest.mark.parametrize(
    ("chips", "topology", "nodes", "problems"),
    [
        (4, "4x4", 4, []),
        (4, "2x2x4", 4, []),
        (8, "2x4", 1, []),
        (4, "2x2x1", 1, []),
        (3, "4x4", 1, [ProblemKind.BROKEN]),
        (8, "2x2", 1, []),
    ],
)
def test_nodes_of_a_tpu_slice(chips: int, topology: str, nodes: int, problems: list[ProblemKind]) -> None:
    """They follow from the topology and the chips of a node; the node pool names a slice of several nodes."""
    view = read({"google.com/tpu": str(chips)}, TPU | {TPU_TOPOLOGY: topology})
    [device] = view.node.devices
    assert (device.slice_nodes, device.tpu_slice) == (nodes, "slice-a" if nodes > 1 else "")
    assert kinds(view) == problems


@pytest.mark.parametrize(
    ("labels", "model", "memory_mib", "problems"),
    [
        (
            TPU | {"cloud.google.com/gke-tpu-accelerator": "tpu-v5p-slice", TPU_TOPOLOGY: "2x2x2"},
            "TPU v5p 2x2x2",
            389_120,
            [],
        ),
        (
            TPU | {"cloud.google.com/gke-tpu-accelerator": "tpu-v6e-slice", TPU_TOPOLOGY: "2x2"},
            "TPU v6e 2x2",
            131_072,
            [],
        ),
        (TPU | {TPU_TOPOLOGY: "four"}, "TPU v5e", 65_536, [ProblemKind.BROKEN]),
        ({}, "TPU", 0, [ProblemKind.UNCERTAIN]),
        ({"cloud.google.com/gke-tpu-accelerator": "tpu-v99"}, "TPU tpu-v99", 0, [ProblemKind.UNCERTAIN]),
    ],
)
def test_tpu_generations(labels: dict[str, str], model: str, memory_mib: int, problems: list[ProblemKind]) -> None:
    """The accelerator in the labels gives the memory of a chip."""
    view = read({"google.com/tpu": "4"}, labels)
    [device] = view.node.devices
    assert (device.model, device.memory_mib) == (model, memory_mib)
    assert kinds(view) == problems


def test_tpu_node_with_a_failed_chip_accepts_no_work() -> None:
    """The device needs all chips."""
    view = read({"google.com/tpu": "3"}, TPU, {"google.com/tpu": "4"})
    [device] = view.node.devices
    assert (device.healthy, device.reason) == (False, "only 0 of 1 google.com/tpu are allocatable")


@pytest.mark.parametrize(
    ("amounts", "labels", "devices"),
    [
        ({"amd.com/gpu": "2"}, MI300X, [("gpu-0", "AMD Instinct MI300X OAM", 196_608, 1_000)] * 2),
        ({"amd.com/gpu": "1"}, {"beta.amd.com/gpu.vram.16G": "1"}, [("gpu-0", "AMD GPU", 16_384, 1_000)]),
        (
            {"amd.com/spx_nps1": "1", "amd.com/cpx_nps4": "8"},
            MI300X,
            [
                *[("cpx_nps4-0", "AMD Instinct MI300X OAM CPX_NPS4", 24_576, 125)] * 8,
                ("spx_nps1-0", "AMD Instinct MI300X OAM", 196_608, 1_000),
            ],
        ),
        (
            {"amd.com/gpu": "2"},
            MI300X | {"amd.com/gpu.compute-memory-partition": "dpx_nps2"},
            [("gpu-0", "AMD Instinct MI300X OAM DPX_NPS2", 98_304, 500)] * 2,
        ),
        ({"amd.com/gpu": "0", "amd.com/gpumem": "7"}, MI300X, []),
    ],
)
def test_amd_cards_and_partitions(
    amounts: dict[str, str], labels: dict[str, str], devices: list[tuple[str, str, int, int]]
) -> None:
    """Partitions have an equal share of the memory and cores of their card, by resource name or by label."""
    found = read(amounts, labels).node.devices
    assert [(each.model, each.memory_mib, each.core_milli) for each in found] == [each[1:] for each in devices]
    if devices:
        assert found[0].uuid == f"alpha/n1/{devices[0][0]}"
    assert len({each.uuid for each in found}) == len(found)


def test_register_of_hami_takes_precedence() -> None:
    """Cards in HAMi's register are not counted again."""
    register = '[{"id":"AMD-1","count":10,"devmem":196592,"devcore":100,"type":"MI300X","health":true}]'
    view = read_node("alpha", node({"hami.io/node-amd-register": register}, {"amd.com/gpu": "10"}, MI300X))
    assert [each.model for each in view.node.devices] == ["MI300X"]


@pytest.mark.parametrize("resource", ["habana.ai/gaudi", "google.com/tpu", "amd.com/gpu"])
def test_impossible_numbers_are_ignored(resource: str) -> None:
    """A number that no node can have is reported."""
    view = read({resource: "100000"}, GAUDI | TPU | MI300X)
    assert view.node.devices == ()
    assert kinds(view) == [ProblemKind.BROKEN]
