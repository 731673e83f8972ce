"""Cards that are counted, not listed: NVIDIA's own plugin, other vendors under HAMi; and Volcano's register."""

from __future__ import annotations

import json

import pytest

from seaway.adapters.kubernetes.device_plugins.findings import unhealthy
from seaway.adapters.kubernetes.device_plugins.nodes import read_node
from seaway.adapters.kubernetes.device_plugins.views import DevicePlugin, PluginOptions, ProblemKind
from seaway.domain.device import Device, DeviceMode, MigProfile
from tests.unit.adapters.kubernetes.device_plugins.samples import CARDS, REGISTER, A, B, kinds, node

GPU = "nvidia.com/gpu"
LABELS = {
    "nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB",
    "nvidia.com/gpu.count": "2",
    "nvidia.com/gpu.memory": "81920",
    "nvidia.com/gpu.replicas": "1",
    "nvidia.com/mig.strategy": "single",
}
A100 = "NVIDIA A100-SXM4-80GB"


def test_whole_cards_get_ids_of_cluster_node_and_number() -> None:
    """Ids are stable, and unique in the fleet; one pod has a card."""
    view = read_node("alpha", node(allocatable={GPU: "2"}, labels=LABELS))
    assert view.node.devices == (
        Device("alpha/n1/gpu-0", 0, A100, 81920, share_limit=1, mode=DeviceMode.WHOLE, even_shares=True),
        Device("alpha/n1/gpu-1", 1, A100, 81920, share_limit=1, mode=DeviceMode.WHOLE, even_shares=True),
    )
    assert {access.resources.plugin for access in view.accesses} == {DevicePlugin.COUNTING}
    assert view.problems == ()
    assert read_node("", node(allocatable={GPU: "2"}, labels=LABELS)).node.devices[0].uuid == "n1/gpu-0"


@pytest.mark.parametrize("resource", [GPU, "nvidia.com/gpu.shared"])
def test_time_slicing_makes_shares_without_a_bound_on_memory(resource: str) -> None:
    """Cards have as many shares as replicas; either the resource or the product name marks sharing."""
    labels = {**LABELS, "nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB-SHARED", "nvidia.com/gpu.replicas": "4"}
    view = read_node("alpha", node(allocatable={resource: "8"}, labels=labels))
    assert [(device.model, device.share_limit) for device in view.node.devices] == [(A100, 4), (A100, 4)]
    assert {(device.even_shares, device.mode) for device in view.node.devices} == {(True, DeviceMode.SHARED)}
    assert not view.accesses[0].resources.isolated
    assert view.accesses[0].resources.count == resource


def test_mps_shares_are_bounded() -> None:
    """MPS limits the memory of each client to its share."""
    labels = {**LABELS, "nvidia.com/gpu.replicas": "4", "nvidia.com/gpu.sharing-strategy": "mps"}
    view = read_node("alpha", node(allocatable={GPU: "8"}, labels=labels))
    assert view.node.devices[0].mode is DeviceMode.MPS
    assert view.accesses[0].resources.isolated


def test_replicas_of_zero_mean_one() -> None:
    """The label is 0 when all cards of the node are split into instances of several sizes."""
    view = read_node("alpha", node(allocatable={GPU: "2"}, labels={**LABELS, "nvidia.com/gpu.replicas": "0"}))
    assert len(view.node.devices) == 2


def test_instances_of_one_size_are_devices() -> None:
    """With strategy single, nvidia.com/gpu counts instances, and the labels describe one."""
    labels = {
        "nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB-MIG-3g.40gb",
        "nvidia.com/gpu.count": "2",
        "nvidia.com/gpu.memory": "40192",
    }
    view = read_node("alpha", node(allocatable={GPU: "2"}, labels=labels))
    assert view.node.devices[1] == Device(
        "alpha/n1/mig-3g.40gb-1",
        1,
        A100,
        40192,
        core_milli=428,
        share_limit=1,
        mode=DeviceMode.MIG,
        mig_profiles=(MigProfile("3g.40gb", 40192, 428, 3, 1, (0,)),),
    )


def test_instances_that_do_not_fit_their_strategy_are_left_out() -> None:
    """Their labels have the value invalid."""
    labels = {"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB-MIG-INVALID", "nvidia.com/gpu.count": "0"}
    view = read_node("alpha", node(allocatable={GPU: "1"}, labels=labels))
    assert view.node.devices == ()
    assert kinds(view) == [ProblemKind.UNUSABLE]


def test_instances_of_several_sizes_stand_beside_whole_cards() -> None:
    """With strategy mixed, each size has a resource; gpu.count still counts all cards."""
    labels = {
        **LABELS,
        "nvidia.com/mig.strategy": "mixed",
        "nvidia.com/mig-1g.10gb.count": "2",
        "nvidia.com/mig-1g.10gb.memory": "9856",
        "nvidia.com/mig-1g.10gb.product": "NVIDIA-A100-SXM4-80GB-MIG-1g.10gb",
        "nvidia.com/mig-3g.40gb.memory": "40192",
    }
    amounts = {GPU: "1", "nvidia.com/mig-1g.10gb": "2", "nvidia.com/mig-3g.40gb": "1"}
    view = read_node("alpha", node(allocatable=amounts, labels=labels))
    assert [(device.uuid, device.memory_mib, device.model) for device in view.node.devices] == [
        ("alpha/n1/gpu-0", 81920, A100),
        ("alpha/n1/mig-1g.10gb-0", 9856, A100),
        ("alpha/n1/mig-1g.10gb-1", 9856, A100),
        ("alpha/n1/mig-3g.40gb-0", 40192, A100),
    ]
    assert [access.resources.count for access in view.accesses] == [
        GPU,
        "nvidia.com/mig-1g.10gb",
        "nvidia.com/mig-1g.10gb",
        "nvidia.com/mig-3g.40gb",
    ]
    assert view.problems == ()


def test_cards_that_are_not_allocatable_are_not_healthy() -> None:
    """The plugin does not name them, so the last ones are marked."""
    view = read_node("alpha", node(allocatable={GPU: "1"}, labels=LABELS, capacity={GPU: "2"}))
    assert [device.healthy for device in view.node.devices] == [True, False]
    assert kinds(view) == [ProblemKind.UNUSABLE]


def test_cards_of_several_models_are_of_no_known_one() -> None:
    """The labels have one model and count only its cards."""
    view = read_node("alpha", node(allocatable={GPU: "3"}, labels=LABELS))
    assert [(device.model, device.memory_mib) for device in view.node.devices] == [("NVIDIA GPU", 0)] * 3
    assert kinds(view) == [ProblemKind.UNCERTAIN]


def test_cards_without_labels_are_counted() -> None:
    """Without feature discovery the model is unknown."""
    view = read_node("alpha", node(allocatable={GPU: "2"}))
    assert [device.model for device in view.node.devices] == ["NVIDIA GPU", "NVIDIA GPU"]
    assert kinds(view) == [ProblemKind.UNCERTAIN]


@pytest.mark.parametrize("amount", ["5000", "9e18"])
def test_an_absurd_number_of_cards_is_no_card(amount: str) -> None:
    """The number is limited, to protect memory."""
    view = read_node("alpha", node(allocatable={GPU: amount, "kunlunxin.com/xpu": amount}, labels=LABELS))
    assert view.node.devices == ()
    assert ProblemKind.BROKEN in kinds(view)


def test_a_label_that_is_no_number_is_reported() -> None:
    """The card is still counted, and the problem is reported."""
    view = read_node("alpha", node(allocatable={GPU: "2"}, labels={**LABELS, "nvidia.com/gpu.memory": "much"}))
    assert [device.memory_mib for device in view.node.devices] == [0, 0]
    assert kinds(view) == [ProblemKind.BROKEN]


@pytest.mark.parametrize(
    ("amounts", "ids", "memory", "shares"),
    [
        ({"cambricon.com/mlu.smlu.vcore": "200", "cambricon.com/mlu.smlu.vmemory": "192"},
         ["n1-cambricon-mlu-0", "n1-cambricon-mlu-1"], 24576, 100),
        ({"mthreads.com/sgpu-core": "32", "mthreads.com/sgpu-memory": "192"},
         ["n1-mthreads-0", "n1-mthreads-1"], 49152, 100),
        ({"kunlunxin.com/xpu": "2"}, ["n1-kunlun-0", "n1-kunlun-1"], 98304, 1),
        ({"metax-tech.com/gpu": "1"}, ["n1-metax-0"], 65536, 1),
        ({"enflame.com/gcu": "1"}, ["n1-GCU-0"], 100, 1),
        ({"aws.amazon.com/neuron": "2", "aws.amazon.com/neuroncore": "4"}, ["n1-AWSNeuron-0", "n1-AWSNeuron-1"], 0, 2),
    ],
)  # fmt: skip
def test_vendors_without_a_register_are_counted(
    amounts: dict[str, str | int | float], ids: list[str], memory: int, shares: int
) -> None:
    """HAMi's rules and ids apply; ids have the cluster as prefix, as they contain only the node's name."""
    view = read_node("alpha", node(allocatable=amounts))
    assert [device.uuid for device in view.node.devices] == [f"alpha/{name}" for name in ids]
    assert [access.plugin_id for access in view.accesses] == ids
    assert {(device.memory_mib, device.share_limit, device.core_milli) for device in view.node.devices} == {
        (memory, shares, 1000)
    }
    assert view.problems == ()


def test_half_of_kunluns_cards_hang_on_the_second_numa_node() -> None:
    """HAMi assumes the same."""
    view = read_node("alpha", node(allocatable={"kunlunxin.com/xpu": "4"}))
    assert [device.numa for device in view.node.devices] == [0, 0, 1, 1]


def test_enflames_cards_are_cut_by_profiles() -> None:
    """The largest profile defines the memory of a card; a broken card does not affect others."""
    text = (
        '{"devices":[{"index":"0","minor":"0","capacity":6},{"index":"1","capacity":"x"},{"index":"2","capacity":"6"}],'
        '"profiles":{"1g.6gb":"0","3g.20gb":"1","6g.40gb":"2"}}'
    )
    view = read_node("alpha", node({"enflame.com/gcu-drs-capacity": text}, {"enflame.com/gcu": "3"}))
    assert [(device.uuid, device.memory_mib, device.share_limit) for device in view.node.devices] == [
        ("alpha/n1-enflame-drs-0", 40960, 6),
        ("alpha/n1-enflame-drs-2", 40960, 6),
    ]
    assert kinds(view) == [ProblemKind.BROKEN]


VOLCANO = f"{A},10,16384,NVIDIA-NVIDIA A10,true,hami-core:{B},10,16384,NVIDIA-NVIDIA A10,false,hami-core:"
VOLCANO_KEY = "volcano.sh/node-vgpu-register"


def test_volcano_registers_cards_in_lines_of_its_own() -> None:
    """A line has id, shares, memory, model, health, mode."""
    view = read_node("alpha", node({VOLCANO_KEY: VOLCANO}, {"volcano.sh/vgpu-number": "20"}))
    assert view.node.devices == (
        Device(A, 0, "NVIDIA A10", 16384, core_steps=100),
        Device(B, 1, "NVIDIA A10", 16384, healthy=False, core_steps=100, reason=unhealthy(VOLCANO_KEY)),
    )
    assert view.problems == ()


def test_volcanos_memory_comes_in_units_of_its_factor() -> None:
    """Nodes do not report the factor, so it is a setting; a card that is too small shows a wrong value."""
    small = node({VOLCANO_KEY: f"{A},10,160,NVIDIA A10,true,hami-core:"}, {"volcano.sh/vgpu-number": "20"})
    assert kinds(read_node("alpha", small)) == [ProblemKind.UNCERTAIN]
    reported = read_node("alpha", small, options=PluginOptions(volcano_memory_factor=100))
    assert (reported.node.devices[0].memory_mib, reported.problems) == (16000, ())


def test_volcanos_mig_cards_take_no_new_work() -> None:
    """Their register has no sizes."""
    view = read_node("alpha", node({VOLCANO_KEY: f"{A},7,40960,A100,true,mig:"}, {"volcano.sh/vgpu-number": "7"}))
    assert view.node.devices[0].cordoned
    assert kinds(view) == [ProblemKind.UNUSABLE]


def test_volcanos_register_outlives_its_plugin() -> None:
    """Without its plugin the cards are unhealthy, as with HAMi."""
    view = read_node("alpha", node({VOLCANO_KEY: VOLCANO}))
    assert [device.healthy for device in view.node.devices] == [False, False]


def test_of_two_registers_the_one_whose_plugin_runs_counts() -> None:
    """HAMi's counts if both run; the other is stale."""
    notes = {VOLCANO_KEY: VOLCANO, REGISTER: json.dumps(CARDS)}
    both = read_node("alpha", node(notes, {GPU: "30", "volcano.sh/vgpu-number": "20"}))
    moved = read_node("alpha", node(notes, {GPU: "0", "volcano.sh/vgpu-number": "20"}))
    assert {access.resources.plugin for access in both.accesses} == {DevicePlugin.HAMI}
    assert {access.resources.plugin for access in moved.accesses} == {DevicePlugin.VOLCANO}
    assert kinds(both) == kinds(moved) == [ProblemKind.UNCERTAIN]
