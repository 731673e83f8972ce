"""Reasons why devices and nodes accept no new jobs, for each decoder that knows them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from seaway.adapters.kubernetes.device_plugins.nodes import read_node
from seaway.adapters.kubernetes.device_plugins.views import NodeView
from seaway.adapters.kubernetes.objects.core import NodeObject
from tests.unit.adapters.kubernetes.device_plugins.samples import (
    CARDS,
    MIG_CARD,
    A,
    B,
    C,
    decoded,
    hami,
    node,
    resource_slice,
)

METAX = "metax-tech.com/node-gpu-devices"
VOLCANO = "volcano.sh/node-vgpu-register"
DCU = "hami.io/node-dcu-register"
NVIDIA = "hami.io/node-nvidia-register"


def reasons(view: NodeView) -> list[str]:
    """Return the reasons of a node's devices, in their order."""
    return [device.reason for device in view.node.devices]


def test_hami_says_which_cards_are_unhealthy_and_which_are_cordoned() -> None:
    """A cordon is shown first, whatever else is wrong with the card."""
    assert reasons(hami()) == ["", "", f"not healthy, says {NVIDIA}"]
    view = hami(notes={"hami.io/device-cordon": f"{B},{C}"})
    assert reasons(view) == ["", "cordoned by hami.io/device-cordon", "cordoned by hami.io/device-cordon"]


@pytest.mark.parametrize(
    ("card", "reason"),
    [
        ({"mode": "exclusive"}, "the mode 'exclusive' is not known"),
        ({"mode": "mig"}, "in MIG mode without profiles, as before HAMi v2.10"),
        (MIG_CARD | {"health": False}, f"not healthy, says {NVIDIA}"),
    ],
)
def test_a_mode_that_nothing_can_be_placed_in_is_a_reason(card: dict[str, Any], reason: str) -> None:
    """A worse reason of the card comes first."""
    assert reasons(hami([CARDS[0] | card, CARDS[1]])) == [reason, ""]


@pytest.mark.parametrize(
    ("notes", "amounts", "expected"),
    [
        ({DCU: "D1,4,65520,100,K100,1,true:D2,4,65520,100,K100,1,false:"}, {"hygon.com/dcunum": "8"},
         ["", f"not healthy, says {DCU}"]),
        ({DCU: "D1,4,65520,100,K100,1,true:"}, {"hygon.com/dcunum": "0"},
         ["registered, but allocatable hygon.com/dcunum is 0: the plugin does not run"]),
        ({METAX: json.dumps([{"uuid": "G1", "totalDevCount": 16, "healthy": False}])}, {"metax-tech.com/sgpu": "16"},
         [f"not healthy, says {METAX}"]),
        ({VOLCANO: f"{A},10,16384,A10,true,hami-core:{B},10,16384,A10,false,hami-core:{C},7,16384,A30,true,mig:"},
         {"volcano.sh/vgpu-number": "27"},
         ["", f"not healthy, says {VOLCANO}", "in mode 'mig', which Volcano does not describe"]),
        ({VOLCANO: f"{A},10,16384,A10,true,hami-core:"}, {},
         ["registered, but allocatable volcano.sh/vgpu-number is 0: the plugin does not run"]),
    ],
)  # fmt: skip
def test_other_registers_say_it_in_their_way(
    notes: dict[str, str], amounts: dict[str, str], expected: list[str]
) -> None:
    """Other vendors under HAMi, MetaX's own plugin and Volcano's report what they know."""
    assert reasons(read_node("alpha", node(notes, amounts))) == expected


@pytest.mark.parametrize(
    "resource", ["nvidia.com/gpu", "nvidia.com/mig-1g.10gb", "metax-tech.com/gpu", "enflame.com/gcu"]
)
def test_plugins_that_count_say_how_many_there_are_to_be_had(resource: str) -> None:
    """They do not name the broken ones, nor a reason."""
    view = read_node("alpha", node(allocatable={resource: "1"}, capacity={resource: "2"}))
    assert reasons(view) == ["", f"only 1 of 2 {resource} are allocatable"]


def test_drivers_of_resource_slices_say_it_by_taints() -> None:
    """Taints that prevent new jobs are reasons, with their values; others are not."""
    taints = [
        {"key": "gpu.nvidia.com/xid", "value": "79", "effect": "NoExecute"},
        {"key": "noted", "effect": "None"},
        {"key": "drained", "effect": "NoSchedule"},
    ]
    listed = [
        {
            "name": f"gpu-{at}",
            "attributes": {
                "type": {"string": "gpu"},
                "uuid": {"string": uuid},
                "productName": {"string": "NVIDIA A30"},
            },
            "capacity": {"memory": {"value": "24Gi"}},
            "taints": marks,
        }
        for at, uuid, marks in ((0, A, taints), (1, B, taints[1:2]))
    ]
    view = read_node("alpha", node(), [resource_slice(listed)])
    assert reasons(view) == ["tainted gpu.nvidia.com/xid=79:NoExecute, drained:NoSchedule", ""]


@pytest.mark.parametrize(
    ("condition", "reason"),
    [
        ({"status": "True", "message": "kubelet is posting ready status"}, ""),
        ({"status": "Unknown", "reason": "NodeStatusUnknown", "message": "Kubelet stopped posting node status."},
         "not ready: Kubelet stopped posting node status."),
        ({"status": "False", "reason": "KubeletNotReady"}, "not ready: KubeletNotReady"),
        ({"status": "False"}, "not ready: False"),
        ({"status": "False", "message": f"two\nlines {'x' * 500}"}, f"not ready: two lines {'x' * 190}"),
        ({"type": "DiskPressure", "status": "False"}, "not ready: its kubelet has not reported yet"),
    ],
)  # fmt: skip
def test_a_node_says_why_it_is_not_ready(condition: dict[str, str], reason: str) -> None:
    """The reason is the kubelet's, on one line, or the cluster's if the kubelet stopped reporting."""
    reported = {"metadata": {"name": "n1"}, "status": {"conditions": [{"type": "Ready", **condition}]}}
    view = read_node("alpha", decoded(reported, NodeObject))
    assert (view.node.reason, view.node.ready) == (reason, not reason)
    cordoned = read_node("alpha", decoded({**reported, "spec": {"unschedulable": True}}, NodeObject))
    assert not cordoned.node.ready
    assert cordoned.node.reason == (f"{reason}; cordoned in its cluster" if reason else "cordoned in its cluster")


def test_what_keeps_many_devices_is_one_text_for_all() -> None:
    """Ten thousand nodes with a broken device each share one text."""
    one, other = (hami().node.devices[2].reason for _ in range(2))
    assert one is other
    stale = {"status": {"conditions": [{"type": "Ready", "status": "Unknown", "message": "Kubelet stopped posting"}]}}
    first, second = (read_node("alpha", decoded(stale, NodeObject)).node.reason for _ in range(2))
    assert first is second
