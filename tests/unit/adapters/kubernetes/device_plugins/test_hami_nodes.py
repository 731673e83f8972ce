"""HAMi's registers, from v2.4 to v2.10, and the use of their cards."""

from __future__ import annotations

import json
from typing import Any

import pytest

from seaway.adapters.kubernetes.device_plugins.findings import unhealthy
from seaway.adapters.kubernetes.device_plugins.nodes import read_node
from seaway.adapters.kubernetes.device_plugins.views import DevicePlugin, NodeView, PluginOptions, ProblemKind
from seaway.domain.device import Device, DeviceMode, MigProfile
from tests.unit.adapters.kubernetes.device_plugins.samples import (
    A100,
    CARDS,
    MIG_CARD,
    REGISTER,
    A,
    B,
    C,
    hami,
    kinds,
    node,
)

SEVEN = f"{A},10,24576,100,NVIDIA-Tesla T4,0,true:{B},10,24576,100,NVIDIA-Tesla T4,1,false:"
NINE = f"{A},10,24576,100,NVIDIA-NVIDIA A10,0,true,3,hami-core:{B},5,49152,200,NVIDIA-NVIDIA A10,1,false,4,mps:"

PROFILE = {"name": "1g.5gb", "memoryMB": 4864, "core": 15, "sliceCount": 1, "placements": [{"start": 0, "size": 1}]}


def registered(text: str, **shares: str) -> NodeView:
    """Read a node with this register."""
    return read_node("alpha", node({REGISTER: text}, {"nvidia.com/gpu": "20", **shares}))


def test_json_of_v2_8_lists_cards() -> None:
    """Zero and false values are left out: index, numa, mode, and the health of a bad card."""
    view = hami()
    assert view.node.devices == (
        Device(A, 0, A100, 40960, core_steps=100),
        Device(B, 1, A100, 40960, numa=1, core_steps=100),
        Device(C, 2, A100, 40960, healthy=False, core_steps=100, reason=unhealthy(REGISTER)),
    )
    assert view.problems == ()


@pytest.mark.parametrize("beside", [{"id": C, "numa": -1}, {"id": C, "index": None}, {"id": "GPU ü"}, "card", 3, None])
def test_a_card_is_read_the_same_whatever_is_beside_it(beside: object) -> None:
    """Usual cards are decoded together, and one by one beside an unusual card; the result is the same."""
    cards = [*CARDS, MIG_CARD | {"id": "GPU-mig"}]
    alone = registered(json.dumps(cards)).node.devices
    assert registered(json.dumps([*cards, beside])).node.devices[: len(alone)] == alone
    assert len(alone) == len(cards)


def test_lines_of_nine_fields_list_cards() -> None:
    """HAMi v2.5 to v2.7 wrote this format; memory and cores may be scaled."""
    assert registered(NINE).node.devices == (
        Device(A, 3, "NVIDIA A10", 24576, core_steps=100),
        Device(
            B,
            4,
            "NVIDIA A10",
            49152,
            core_milli=2000,
            share_limit=5,
            numa=1,
            healthy=False,
            mode=DeviceMode.MPS,
            core_steps=100,
            reason=unhealthy(REGISTER),
        ),
    )


def test_lines_of_seven_fields_list_cards_in_their_order() -> None:
    """HAMi v2.4 had neither index nor mode."""
    assert registered(SEVEN).node.devices == (
        Device(A, 0, "NVIDIA Tesla T4", 24576, core_steps=100),
        Device(B, 1, "NVIDIA Tesla T4", 24576, numa=1, healthy=False, core_steps=100, reason=unhealthy(REGISTER)),
    )


def test_a_line_of_another_length_hides_no_neighbour() -> None:
    """It is left out and reported."""
    view = registered(f"{A},10,24576,100,T4,0,true,0,hami-core:GPU-x,1:{B},10,24576,100,T4,0,true,1,hami-core:")
    assert [device.uuid for device in view.node.devices] == [A, B]
    assert kinds(view) == [ProblemKind.BROKEN]
    assert "2 fields" in view.problems[0].text


@pytest.mark.parametrize(
    "broken",
    [
        {**CARDS[1], "devmem": "40960"},
        {**CARDS[1], "devmem": -1},
        {**CARDS[1], "count": True},
        {**CARDS[1], "devcore": 10**30},
        {**CARDS[1], "id": ""},
        {**CARDS[1], "id": "GPU 1"},
        {**CARDS[1], "health": "true"},
        {**CARDS[1], "migProfiles": 3},
        {},
        None,
        [],
    ],
)
def test_a_broken_card_hides_no_neighbour(broken: Any) -> None:  # noqa: ANN401
    """It is left out and reported."""
    view = registered(json.dumps([CARDS[0], broken, CARDS[2]]))
    assert [device.uuid for device in view.node.devices] == [A, C]
    assert kinds(view) == [ProblemKind.BROKEN]


@pytest.mark.parametrize("text", ["[{", "[1,2", "no colon", "{}"])
def test_a_register_that_cannot_be_read_leaves_no_card(text: str) -> None:
    """Cards are not counted instead, as the resource counts shares here."""
    view = registered(text)
    assert view.node.devices == ()
    assert kinds(view) == [ProblemKind.BROKEN]


@pytest.mark.parametrize("text", ["", "[]"])
def test_an_empty_register_is_no_error(text: str) -> None:
    """The node has no cards."""
    view = registered(text)
    assert (view.node.devices, view.problems) == ((), ())


def test_unknown_fields_are_passed_over() -> None:
    """HAMi v2.8 wrote scores of pairs."""
    assert hami([{**CARDS[0], "devicepairscore": {"x": 1}}]).problems == ()


def test_a_card_twice_counts_once() -> None:
    """The first one counts."""
    view = hami([CARDS[0], {**CARDS[1], "id": A}])
    assert [device.index for device in view.node.devices] == [0]
    assert kinds(view) == [ProblemKind.BROKEN]


def test_mig_cards_of_v2_10_have_profiles() -> None:
    """Profiles have memory in MiB, cores in percent, and placements in their order."""
    (device,) = hami([MIG_CARD]).node.devices
    assert device.mode is DeviceMode.MIG
    assert device.mig_profiles == (
        MigProfile("1g.5gb", 4864, 150, 1, 1, (0, 1, 2, 3, 4, 5, 6)),
        MigProfile("3g.20gb", 20096, 430, 3, 4, (0, 4)),
    )


def test_mig_cards_without_profiles_take_no_new_work() -> None:
    """Before v2.10 the profiles were in a ConfigMap; running pods still count."""
    view = hami([{**MIG_CARD, "migProfiles": []}])
    (device,) = view.node.devices
    assert (device.cordoned, device.mode) == (True, DeviceMode.HAMI_CORE)
    assert kinds(view) == [ProblemKind.UNUSABLE]


def test_a_broken_profile_hides_no_neighbour() -> None:
    """A profile is broken with placements beyond the card, without any, or with several sizes."""
    good: list[Any] = MIG_CARD["migProfiles"]  # type: ignore[assignment]
    bad = [
        {**good[0], "name": "a", "placements": [{"start": 8, "size": 1}]},
        {**good[0], "name": "b", "placements": []},
        {**good[0], "name": "c", "placements": [{"start": 0, "size": 1}, {"start": 2, "size": 2}]},
        "d",
    ]
    view = hami([{**MIG_CARD, "migProfiles": [*bad, *good]}])
    assert [profile.name for profile in view.node.devices[0].mig_profiles] == ["1g.5gb", "3g.20gb"]
    assert kinds(view) == [ProblemKind.BROKEN] * 4


def test_an_unknown_mode_takes_no_new_work() -> None:
    """Seaway has no way to request it."""
    view = hami([{**CARDS[0], "mode": "exclusive"}])
    assert view.node.devices[0].cordoned
    assert kinds(view) == [ProblemKind.UNUSABLE]


def test_cordoned_cards_are_cordoned() -> None:
    """HAMi v2.10 names them in an annotation of the node."""
    view = hami(notes={"hami.io/device-cordon": f"GPU-gone, {B},"})
    assert [device.cordoned for device in view.node.devices] == [False, True, False]


def test_a_register_outlives_its_plugin() -> None:
    """Without allocatable resources its cards are unhealthy, whatever the register has."""
    for amounts in ({"nvidia.com/gpu": "0"}, {}):
        view = read_node("alpha", node({REGISTER: json.dumps(CARDS)}, amounts))
        assert [device.healthy for device in view.node.devices] == [False, False, False]
        assert kinds(view) == [ProblemKind.UNUSABLE]


def test_the_resource_may_have_another_name() -> None:
    """A setting of HAMi's chart."""
    options = PluginOptions(nvidia_count="example.com/vgpu")
    view = read_node("alpha", node({REGISTER: json.dumps(CARDS)}, {"example.com/vgpu": "30"}), options=options)
    assert view.node.devices[0].healthy
    assert view.accesses[0].resources.count == "example.com/vgpu"


@pytest.mark.parametrize(
    ("handshake", "expected"),
    [
        ("Requesting_2026-07-09 07:22:10", []),
        ("Reported 2025-02-11 10:00:00 +0000 UTC", []),
        ("Deleted_2026-07-07 12:06:27", [ProblemKind.UNCERTAIN]),
        ("Deleted_2024.03.13 12:06:27", [ProblemKind.UNCERTAIN]),
        ("nonsense", []),
    ],
)
def test_the_handshake_is_a_warning_only(handshake: str, expected: list[ProblemKind]) -> None:
    """It never makes a card unusable."""
    view = hami(notes={"hami.io/node-handshake": handshake})
    assert [device.healthy for device in view.node.devices] == [True, True, False]
    assert kinds(view) == expected


def test_a_register_wins_over_counting() -> None:
    """On a node of HAMi, nvidia.com/gpu counts shares; labels of feature discovery may also exist."""
    labels = {"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-40GB", "nvidia.com/gpu.count": "3"}
    view = read_node("alpha", node({REGISTER: json.dumps(CARDS)}, {"nvidia.com/gpu": "30"}, labels))
    assert len(view.node.devices) == 3
    assert {access.resources.plugin for access in view.accesses} == {DevicePlugin.HAMI}


def test_a_register_that_was_left_behind_is_reported() -> None:
    """As many nvidia.com/gpu as cards, with shares in the register, show that another plugin runs now."""
    view = read_node("alpha", node({REGISTER: json.dumps(CARDS)}, {"nvidia.com/gpu": "3"}))
    assert kinds(view) == [ProblemKind.UNCERTAIN]


@pytest.mark.parametrize(
    ("key", "text", "vendor", "memory", "core_milli", "count"),
    [
        ("hami.io/node-dcu-register", "DCU-1,4,65520,100,DCU-K100,1,true:", "DCU", 65520, 1000, "hygon.com/dcunum"),
        ("hami.io/node-MR-V100-register", "GPU-i,10,32768,100,MR-V100,0,true:", "MR-V100", 32768, 1000,
         "iluvatar.ai/MR-V100-vgpu"),
        ("hami.io/node-register-Ascend910B3",
         '[{"id":"U1","count":4,"devmem":65536,"devcore":20,"type":"Ascend910B3","numa":1,"health":true}]',
         "Ascend910B3", 65536, 1000, "huawei.com/Ascend910B3"),
        ("hami.io/node-register-xpu",
         '[{"id":"X1","count":4,"devmem":98304,"devcore":100,"type":"P800","numa":1,"health":true}]',
         "XPU", 98304, 1000, "kunlunxin.com/vxpu"),
        ("hami.io/node-amd-register",
         '[{"id":"AMD-1","count":10,"devmem":196592,"devcore":100,"type":"MI300X","numa":1,"health":true}]',
         "AMD", 196592, 1000, "amd.com/gpu"),
        ("hami.io/node-biren-register", '[{"id":"B1","count":1,"devmem":32768,"type":"BR","numa":1,"health":true}]',
         "Biren", 32768, 1000, "birentech.com/gpu"),
        ("hami.io/node-va-register", '[{"id":"V1","count":1,"devmem":32768,"type":"VA16","numa":1,"health":true}]',
         "Vastai", 32768, 1000, "vastaitech.com/va"),
        ("metax-tech.com/node-gpu-devices",
         '[{"uuid":"GPU-m","model":"C500","totalDevCount":16,"totalCompute":100,"totalVRam":65536,"numa":1,'
         '"healthy":true,"qosPolicy":"best-effort","linkZone":1}]',
         "Metax-SGPU", 65536, 1000, "metax-tech.com/sgpu"),
    ],
)  # fmt: skip
def test_every_vendor_registers_in_its_way(
    key: str, text: str, vendor: str, memory: int, core_milli: int, count: str
) -> None:
    """A card is 1000 thousandths of a core, whatever its vendor's unit."""
    view = read_node("alpha", node({key: text}, {count: "4"}))
    (device,) = view.node.devices
    assert (device.vendor, device.memory_mib, device.core_milli) == (vendor, memory, core_milli)
    assert device.healthy
    assert view.accesses[0].resources.count == count
    assert view.problems == ()


def test_other_vendors_plugins_are_looked_at_only_where_they_count() -> None:
    """With 0 allocatable its cards are unhealthy; without the resource their health is not known."""
    card = {"hami.io/node-dcu-register": "DCU-1,4,65520,100,DCU-K100,1,true:"}
    dead = read_node("alpha", node(card, {"hygon.com/dcunum": 0}))
    unknown = read_node("alpha", node(card))
    assert (dead.node.devices[0].healthy, kinds(dead)) == (False, [ProblemKind.UNUSABLE])
    assert (unknown.node.devices[0].healthy, kinds(unknown)) == (True, [ProblemKind.UNCERTAIN])


def test_ids_that_only_a_node_knows_get_its_name_in_front() -> None:
    """They become unique in the fleet; ids that are already unique do not change."""
    one = '{"id":"Ascend910B3-0","count":4,"devmem":65536,"devcore":20,"health":true}'
    two = '{"id":"0A1B2C3D-20401234-56789ABC-DEF01234","count":4,"devmem":65536,"devcore":20,"health":true}'
    view = read_node("alpha", node({"hami.io/node-register-Ascend910B3": f"[{one},{two}]"}))
    assert [device.uuid for device in view.node.devices] == [
        "alpha/n1/Ascend910B3-0",
        "0A1B2C3D-20401234-56789ABC-DEF01234",
    ]
    assert view.by_plugin_id["Ascend910B3-0"].uuid == "alpha/n1/Ascend910B3-0"


def test_a_node_has_cpu_memory_labels_and_taints() -> None:
    """CPU and memory are the allocatable amounts."""
    taints = [{"key": "gpu", "value": "a100", "effect": "NoSchedule"}, {"key": "x", "effect": "Odd"}]
    view = read_node("alpha", node(labels={"zone": "a"}, taints=taints))
    assert (view.node.cpu_milli, view.node.memory_mib, view.node.labels) == (64_000, 256 * 1024, {"zone": "a"})
    assert [(taint.key, taint.value) for taint in view.node.taints] == [("gpu", "a100")]
    assert kinds(view) == [ProblemKind.BROKEN]


@pytest.mark.parametrize(("reported", "pods"), [({"pods": "110"}, 110), ({"pods": "0"}, 0), ({}, None)])
def test_a_node_says_how_many_pods_it_takes(reported: dict[str, str], pods: int | None) -> None:
    """Kubelets report the pod limit; without a report it is unknown."""
    assert read_node("alpha", node(allocatable=reported)).node.pods == pods


def test_a_node_is_ready_when_it_says_so_and_is_not_cordoned() -> None:
    """A node without the condition is not ready."""
    assert read_node("alpha", node()).node.ready
    assert not read_node("alpha", node(unschedulable=True)).node.ready


@pytest.mark.parametrize(
    "wrong",
    [
        {"devmem": 20_000_000},
        {"devcore": 2_000_000},
        {"mode": "mig", "migProfiles": [PROFILE | {"memoryMB": 20_000_000}]},
        {"mode": "mig", "migProfiles": [PROFILE | {"core": 2_000_000_000}]},
    ],
)
def test_a_card_too_large_to_count_with_is_left_out_alone(wrong: dict[str, Any]) -> None:
    """It is reported as broken; its neighbours and its node stay."""
    view = hami([CARDS[0] | wrong, CARDS[1]])
    assert [device.uuid for device in view.node.devices] == [B]
    assert kinds(view) == [ProblemKind.BROKEN]
    assert view.problems[0].where == f"{REGISTER}: {A}"
    assert view.problems[0].text.endswith("it is left out")


def test_cards_that_cannot_be_counted_together_are_left_out() -> None:
    """The first cards count, up to the limit of the sum."""
    cards = [CARDS[0] | {"id": f"GPU-{at:016x}", "devmem": 16_000_000} for at in range(140)]
    view = hami(cards)
    assert [device.uuid for device in view.node.devices] == [card["id"] for card in cards[:134]]
    assert kinds(view) == [ProblemKind.BROKEN] * 6


def test_an_amount_that_no_node_has_counts_as_nothing() -> None:
    """The amount is reported, and the node keeps its cards."""
    view = read_node("alpha", node(allocatable={"cpu": "2M", "memory": "3Pi", "pods": "1e12"}))
    assert (view.node.cpu_milli, view.node.memory_mib, view.node.pods) == (0, 0, (1 << 31) - 1)
    assert [each.where for each in view.problems] == ["status.allocatable: cpu", "status.allocatable: memory"]
    assert kinds(view) == [ProblemKind.BROKEN] * 2


def test_a_broken_amount_counts_as_nothing() -> None:
    """It is reported once."""
    view = read_node("alpha", node(allocatable={"cpu": "many", "memory": "-1", "pods": "few"}))
    assert (view.node.cpu_milli, view.node.memory_mib, view.node.pods) == (0, 0, 0)
    assert kinds(view) == [ProblemKind.BROKEN] * 3


@pytest.mark.parametrize(
    ("key", "register", "steps"),
    [
        (
            "hami.io/node-register-Ascend910B3",
            '[{"id":"U1","count":4,"devmem":65536,"devcore":20,"health":true}]',
            (20, 1),
        ),
        ("hami.io/node-MR-V100-register", "GPU-i,10,32768,100,MR-V100,0,true:", (100, 256)),
        (REGISTER, SEVEN, (100, 1)),
    ],
)
def test_cards_come_in_the_steps_in_which_they_are_asked_for(key: str, register: str, steps: tuple[int, int]) -> None:
    """Cores have the vendor's own steps, or whole points; memory has the unit of its resource."""
    view = read_node("alpha", node({key: register}, {"nvidia.com/gpu": "20"} if key == REGISTER else {}))
    assert {(each.core_steps, each.memory_step_mib) for each in view.node.devices} == {steps}
