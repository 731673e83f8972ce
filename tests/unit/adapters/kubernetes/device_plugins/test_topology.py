"""Connections between the devices of a node, from every source."""

from __future__ import annotations

import json
from typing import Any

import pytest

from seaway.adapters.kubernetes.device_plugins.nodes import read_node
from seaway.adapters.kubernetes.device_plugins.topology import CLIQUE, SCORES
from seaway.adapters.kubernetes.device_plugins.views import NodeView, ProblemKind
from tests.unit.adapters.kubernetes.device_plugins.samples import (
    A100,
    REGISTER,
    A,
    B,
    C,
    hami,
    listed,
    node,
    resource_slice,
)

D = "GPU-00000000-dddd-4000-8000-000000000004"
UUIDS = (A, B, C, D)
CARDS: list[dict[str, Any]] = [
    {"id": uuid, "index": at, "numa": at // 2, "count": 10, "devmem": 40960, "devcore": 100, "type": A100}
    | {"health": True}
    for at, uuid in enumerate(UUIDS)
]
NVLINK = "topology.seaway.io/nvlink"


def scores(**pairs: int) -> str:
    """Write HAMi's scores of four cards: 20 for each pair but those given by their indexes, such as ``p02``."""

    def score(one: int, other: int) -> int:
        return pairs.get(f"p{min(one, other)}{max(one, other)}", 20)

    return json.dumps(
        [
            {"uuid": uuid, "score": {peer: score(one, other) for other, peer in enumerate(UUIDS) if other != one}}
            for one, uuid in enumerate(UUIDS)
        ]
    )


def labelled(**labels: str) -> NodeView:
    """Read a node of four cards with labels of the topology."""
    named = {f"topology.seaway.io/{name.replace('_', '-')}": text for name, text in labels.items()}
    return read_node("alpha", node({REGISTER: json.dumps(CARDS)}, {"nvidia.com/gpu": "40"}, named))


def connections(view: NodeView) -> list[tuple[int, int, int]]:
    """Return island, switch and NUMA node of each device."""
    return [(each.island, each.pcie_switch, each.numa) for each in view.node.devices]


def test_devices_without_any_source_are_not_connected() -> None:
    """Only HAMi's register names the NUMA node."""
    assert connections(hami(CARDS)) == [(-1, -1, 0), (-1, -1, 0), (-1, -1, 1), (-1, -1, 1)]


def test_pair_scores_give_islands_and_switches() -> None:
    """A score has 100 for each NVLink, and 40 or more for a connection through PCIe switches only."""
    view = hami(CARDS, {SCORES: scores(p02=420, p13=210, p01=50, p23=140)})
    assert connections(view) == [(0, 0, 0), (0, 0, 0), (0, 1, 1), (0, 1, 1)]
    view = hami(CARDS, {SCORES: scores(p02=420, p13=1830)})
    assert connections(view) == [(0, -1, 0), (1, -1, 0), (0, -1, 1), (1, -1, 1)]
    view = hami(CARDS, {SCORES: scores(p12=110)})
    assert [each.island for each in view.node.devices] == [-1, 0, 0, -1]
    assert view.problems == ()


@pytest.mark.parametrize(
    "text",
    [
        *("", "{}", "[3]", "[{}]"),
        *('[{"uuid":1,"score":{}}]', '[{"uuid":"a","score":{"b":"7"}}]', '[{"uuid":"a","score":[]}]'),
    ],
)
def test_broken_scores_are_reported(text: str) -> None:
    """The devices stay usable, without connections."""
    view = hami(CARDS, {SCORES: text})
    assert [each.island for each in view.node.devices] == [-1] * 4
    assert [(each.kind, each.where) for each in view.problems] == [(ProblemKind.BROKEN, SCORES)]


def test_one_fabric_is_one_island() -> None:
    """Feature discovery labels a node whose GPUs are on one NVLink fabric; HAMi's scores are more exact."""
    cards, amounts = {REGISTER: json.dumps(CARDS)}, {"nvidia.com/gpu": "40"}
    fabric = {CLIQUE: "6f4c0a2e-0000-4000-8000-000000000001.0"}
    assert [each.island for each in read_node("alpha", node(cards, amounts, fabric)).node.devices] == [0] * 4
    cards[SCORES] = scores(p01=100)
    assert [each.island for each in read_node("alpha", node(cards, amounts, fabric)).node.devices] == [0, 0, -1, -1]


def test_resource_slices_name_pcie_roots() -> None:
    """Cards below one PCIe root are below one switch."""
    root = "resource.kubernetes.io/pcieRoot"
    cards = [
        listed(f"gpu-{at}", type="gpu", uuid=uuid, productName=A100, **({root: name} if name else {}))
        for at, (uuid, name) in enumerate(zip(UUIDS, ("pci0000:17", "pci0000:3a", "pci0000:17", ""), strict=True))
    ]
    view = read_node("alpha", node(), [resource_slice(cards)])
    assert [each.pcie_switch for each in view.node.devices] == [0, 1, 0, -1]


def test_labels_of_administrators_take_precedence() -> None:
    """They list groups of GPUs by index, of which GPUs that are not listed are no part."""
    assert connections(labelled(nvlink="0.3_1", pcie_switch="0-1_2-3", numa="2-3")) == [
        (0, 0, 0),
        (1, 0, 0),
        (-1, 1, 0),
        (0, 1, 0),
    ]
    annotations = {REGISTER: json.dumps(CARDS), SCORES: scores(p01=100)}
    view = read_node("alpha", node(annotations, {"nvidia.com/gpu": "40"}, {NVLINK: "2-3"}))
    assert [each.island for each in view.node.devices] == [-1, -1, 0, 0]


@pytest.mark.parametrize(
    ("text", "says"),
    [("all", "not a list of groups"), ("0-", "not a list"), ("", "not a list"), ("0-2_2-3", "has GPU 2 in two groups")],
)
def test_invalid_labels_are_reported(text: str, says: str) -> None:
    """The label is ignored."""
    view = labelled(nvlink=text)
    assert [each.island for each in view.node.devices] == [-1] * 4
    [problem] = view.problems
    assert (problem.kind, problem.where) == (ProblemKind.BROKEN, NVLINK)
    assert says in problem.text
