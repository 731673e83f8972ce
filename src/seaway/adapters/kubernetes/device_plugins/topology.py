"""Connections between the devices of a node: NVLink islands, PCIe switches and NUMA nodes.

Labels that an administrator sets on the node take precedence. The other sources are HAMi's scores of pairs of cards,
the PCIe roots of resource slices, and the label of feature discovery for GPUs on one NVLink fabric.

References
----------
HAMi v2.10 ``pkg/device/nvidia/calculate_score.go``: a pair scores 100 for each NVLink between its cards, and 10 to 60
for its PCIe connection, of which 40 and more are connections through switches only.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from seaway.adapters.kubernetes.device_plugins.findings import Findings
from seaway.adapters.kubernetes.device_plugins.registers import json_list
from seaway.adapters.kubernetes.objects.core import NodeObject
from seaway.domain.device import Device
from seaway.domain.errors import RejectedError

SCORES = "hami.io/node-nvidia-score"
CLIQUE = "nvidia.com/gpu.clique"
LABELS = {
    "topology.seaway.io/nvlink": "island",
    "topology.seaway.io/pcie-switch": "pcie_switch",
    "topology.seaway.io/numa": "numa",
}
"""Labels of a node with groups of devices by index, such as ``0-3_4-7``, and the field that each sets."""

NVLINK_SCORE = 100
SWITCH_SCORE = 40

_ITEM = re.compile(r"([0-9]{1,4})(?:-([0-9]{1,4}))?")

Groups = Mapping[str, int]
"""Number of the group of each device, by UUID."""


def read(node: NodeObject, findings: Findings) -> None:
    """Set the connections of all devices of a node that were found."""
    labels = node.metadata.labels
    fabric = {each.uuid: 0 for each in findings.devices if each.vendor == "NVIDIA"} if labels.get(CLIQUE) else {}
    found: dict[str, Groups] = {"island": fabric} if len(fabric) > 1 else {}
    if SCORES in node.metadata.annotations:
        found |= _scored(node.metadata.annotations[SCORES], findings)
    for label, name in LABELS.items():
        if label in labels:
            try:
                found[name] = _labelled(labels[label], findings.devices)
            except RejectedError as error:
                findings.broken(label, error.message)
    if found:
        findings.devices[:] = [replace(each, **_fields(found, each.uuid)) for each in findings.devices]


def _fields(found: Mapping[str, Groups], uuid: str) -> dict[str, Any]:
    return {name: groups.get(uuid, 0 if name == "numa" else -1) for name, groups in found.items()}


def _scored(text: str, findings: Findings) -> dict[str, Groups]:
    """Return the groups of cards by HAMi's scores of pairs."""
    try:
        pairs = [pair for each in json_list(text) for pair in _pairs(each)]
    except RejectedError as error:
        findings.broken(SCORES, error.message)
        return {}
    uuids = [each.uuid for each in findings.devices]
    linked = [(one, other) for one, other, score in pairs if score >= NVLINK_SCORE]
    switched = [(one, other) for one, other, score in pairs if score % NVLINK_SCORE >= SWITCH_SCORE]
    return {"island": _connected(uuids, linked), "pcie_switch": _connected(uuids, switched)}


def _pairs(each: object) -> Iterator[tuple[str, str, int]]:
    scores = each.get("score") if isinstance(each, dict) else None
    if not isinstance(each, dict) or not isinstance(each.get("uuid"), str) or not isinstance(scores, dict):
        raise RejectedError("an element is not a card with its uuid and the score of each other card")
    for other, score in scores.items():
        if not isinstance(score, int) or isinstance(score, bool):
            raise RejectedError(f"the score of {each['uuid'][:60]!r} and {str(other)[:60]!r} is not a whole number")
        yield each["uuid"], other, score


def _connected(uuids: Iterable[str], pairs: Iterable[tuple[str, str]]) -> Groups:
    """Return the groups of devices that pairs connect, in the order of the devices. Single devices are no group."""
    group = {uuid: at for at, uuid in enumerate(uuids)}
    for one, other in pairs:
        if one in group and other in group and group[one] != group[other]:
            old, new = max(group[one], group[other]), min(group[one], group[other])
            group = {uuid: new if number == old else number for uuid, number in group.items()}
    members = list(group.values())
    numbers: dict[int, int] = {}
    for number in members:
        if members.count(number) > 1:
            numbers.setdefault(number, len(numbers))
    return {uuid: numbers[number] for uuid, number in group.items() if number in numbers}


def _labelled(text: str, devices: Iterable[Device]) -> Groups:
    """Return the groups that a label lists: separated by ``_``, each with indexes and ranges, separated by ``.``."""
    group: dict[int, int] = {}
    for number, part in enumerate(text.split("_")):
        for item in part.split("."):
            found = _ITEM.fullmatch(item)
            if found is None:
                raise RejectedError(f"{text[:63]!r} is not a list of groups of GPUs, such as 0-3_4-7 or 0.2_1.3")
            for index in range(int(found[1]), int(found[2] or found[1]) + 1):
                if group.setdefault(index, number) != number:
                    raise RejectedError(f"{text[:63]!r} has GPU {index} in two groups")
    return {each.uuid: group[each.index] for each in devices if each.index in group}
