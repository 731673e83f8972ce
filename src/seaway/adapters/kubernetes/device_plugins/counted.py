"""Gaudi, TPU and AMD devices that the plugins of their vendors count in a node's status, and their labels.

The ID of a device consists of its node's name and a number.

References
----------
Intel: gaudi-device-plugin, gaudi-feature-discovery. Google: TPUs in GKE. AMD: k8s-device-plugin with its node labeller,
"Resource naming strategy".
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from math import prod

from seaway.adapters.kubernetes.device_plugins.findings import Findings
from seaway.adapters.kubernetes.device_plugins.resources import MAX_CARDS, Amounts
from seaway.adapters.kubernetes.device_plugins.vendors import AMD_KEY
from seaway.adapters.kubernetes.device_plugins.views import Access, DevicePlugin, DeviceResources
from seaway.adapters.kubernetes.objects.core import NodeObject
from seaway.domain.device import WHOLE_DEVICE_MILLI, Device, DeviceMode
from seaway.domain.reasons import Reason

GAUDI = "habana.ai/gaudi"
TPU = "google.com/tpu"
AMD = "amd.com/gpu"

GAUDI_TYPES = ("habana.ai/device.type", "habana.ai/device.name")
GAUDI_MEMORY = "habana.ai/device.memory"
"""Label with the memory of a card in MiB, which administrators may set."""

GAUDI_GIB = {"": 32, "2": 96, "3": 128}
"""Memory of a card in GiB by generation."""

TPU_TYPE = "cloud.google.com/gke-tpu-accelerator"
TPU_TOPOLOGY = "cloud.google.com/gke-tpu-topology"
NODE_POOL = "cloud.google.com/gke-nodepool"
"""Label with the node pool. The nodes of a multi-host slice are one pool."""

TPU_GENERATIONS = (("v5-lite", "v5e", 16), ("v5p", "v5p", 95), ("v6e", "v6e", 32), ("7x", "7x", 192), ("v4", "v4", 32),
                   ("v3", "v3", 32))  # fmt: skip
"""Part of an accelerator's name, generation, and memory of a chip in GiB."""

AMD_PRODUCT = "amd.com/gpu.product-name"
AMD_MEMORY = re.compile(r"(?:beta\.)?amd\.com/gpu\.vram(?:\.([0-9]{1,5})G)?")
AMD_PARTITION = "amd.com/gpu.compute-memory-partition"
AMD_PARTS = {"spx": 1, "dpx": 2, "tpx": 3, "qpx": 4, "cpx": 8}
"""Compute partitions of a card by partition mode; all have the same share of its memory."""

_GENERATION = re.compile(r"gaudi[ _-]?([23])?", re.IGNORECASE)
_TOPOLOGY = re.compile(r"[1-9][0-9]{0,3}(?:x[1-9][0-9]{0,3}){1,2}")
_PARTITION = re.compile(r"amd\.com/((?:spx|dpx|tpx|qpx|cpx)_nps[1248])")
_GIB = re.compile(r"([0-9]{1,5})G(?:i?B)?")
MIB_PER_GIB = 1024


@dataclass(frozen=True, slots=True)
class _Kind:
    """Devices of one resource.

    Attributes
    ----------
    parts
        Number of devices that share a card.
    units
        Amount of the resource that one device counts as.
    connected
        Whether the devices of a node are directly connected.
    selector
        Node labels that pods must select.
    tpu_slice, slice_nodes
        As in `Device`.
    """

    resource: str
    vendor: str
    model: str
    memory_mib: int
    parts: int = 1
    units: int = 1
    connected: bool = False
    selector: Mapping[str, str] = field(default_factory=dict)
    tpu_slice: str = ""
    slice_nodes: int = 1


def read(node: NodeObject, findings: Findings) -> None:
    """Find the devices that plugins count in a node's status."""
    amounts = Amounts(node, findings)
    for kind in _kinds(node, findings):
        alive, total = amounts.allocatable(kind.resource), amounts.capacity(kind.resource)
        if max(total, alive) > MAX_CARDS:
            findings.broken(kind.resource, f"{total} devices are more than a node can have; all are ignored")
            continue
        total, alive = max(total, alive) // kind.units, alive // kind.units
        lacks = "" if alive >= total else Reason("few_allocatable", count=alive, total=total, resource=kind.resource)
        if lacks:
            findings.unusable(kind.resource, lacks)
        for number in range(total):
            _add(kind, number, total, "" if number < alive else lacks, findings)


def _kinds(node: NodeObject, findings: Findings) -> Iterator[_Kind]:
    labels = node.metadata.labels
    resources = {*node.status.allocatable, *node.status.capacity}
    if GAUDI in resources:
        yield _gaudi(labels, findings)
    if chips := Amounts(node, findings).capacity(TPU):
        yield _tpu(labels, chips, findings)
    if AMD_KEY not in node.metadata.annotations:
        for resource in sorted(resources):
            if resource == AMD or _PARTITION.fullmatch(resource):
                yield _amd(resource, labels, findings)


def _gaudi(labels: Mapping[str, str], findings: Findings) -> _Kind:
    named = next((labels[label] for label in GAUDI_TYPES if labels.get(label)), "")
    found = _GENERATION.search(named)
    written = labels.get(GAUDI_MEMORY, "")
    if found is None:
        findings.uncertain(GAUDI, "no label names the generation; the cards count without it")
    memory_mib = MIB_PER_GIB * GAUDI_GIB[found[1] or ""] if found else 0
    if written.isascii() and written.isdigit() and len(written) <= 8:
        memory_mib = int(written)
    elif written:
        findings.broken(GAUDI_MEMORY, f"{written[:60]!r} is not a number of MiB")
    return _Kind(GAUDI, "Gaudi", f"Intel Gaudi {found[1]}" if found and found[1] else "Intel Gaudi", memory_mib,
                 connected=True)  # fmt: skip


def _tpu(labels: Mapping[str, str], chips: int, findings: Findings) -> _Kind:
    """Return all chips of a TPU node as one device, since a pod must request all of them.

    The model includes the topology of the slice, because programs depend on it.
    """
    named, topology = labels.get(TPU_TYPE, ""), labels.get(TPU_TOPOLOGY, "")
    generation, gib = next(((name, gib) for part, name, gib in TPU_GENERATIONS if part in named), ("", 0))
    if not generation:
        findings.uncertain(TPU, f"{TPU_TYPE} is {named[:60]!r}; the chips count without their memory")
    if topology and not _TOPOLOGY.fullmatch(topology):
        findings.broken(TPU_TOPOLOGY, f"{topology[:60]!r} is not a topology such as 2x4 or 4x4x4")
        topology = ""
    model = f"TPU {generation or named}".strip()
    nodes, rest = divmod(prod(map(int, topology.split("x"))), chips) if topology else (1, 0)
    if nodes > 1 and rest:
        findings.broken(
            TPU_TOPOLOGY, f"{topology} does not consist of nodes with {chips} chips; the chips are one slice"
        )
        nodes = 1
    if nodes > 1 and NODE_POOL not in labels:
        findings.uncertain(NODE_POOL, "is missing; nodes of slices with the same topology count as one slice")
    return _Kind(
        TPU,
        "TPU",
        f"{model} {topology}".strip(),
        MIB_PER_GIB * gib * chips,
        units=chips,
        selector={label: labels[label] for label in (TPU_TYPE, TPU_TOPOLOGY) if label in labels},
        tpu_slice=labels.get(NODE_POOL, "") if nodes > 1 else "",
        slice_nodes=max(nodes, 1),
    )


def _amd(resource: str, labels: Mapping[str, str], findings: Findings) -> _Kind:
    """Return the cards, or the partitions of cards, of a resource."""
    named = _PARTITION.fullmatch(resource)
    mode = named[1] if named else labels.get(AMD_PARTITION, "").lower()
    parts = AMD_PARTS.get(mode.partition("_")[0], 1)
    product = labels.get(AMD_PRODUCT, "").replace("_", " ").strip()
    model = product if product.startswith("AMD") else f"AMD {product or 'GPU'}"
    if not product:
        findings.uncertain(resource, f"no label {AMD_PRODUCT} names the cards")
    memory_gib = _amd_gib(labels)
    if not memory_gib:
        findings.uncertain(resource, "no label has the size of the cards; they count without memory")
    return _Kind(resource, "AMD", f"{model} {mode.upper()}" if parts > 1 else model, MIB_PER_GIB * memory_gib // parts,
                 parts)  # fmt: skip


def _amd_gib(labels: Mapping[str, str]) -> int:
    for label, value in labels.items():
        if (found := AMD_MEMORY.fullmatch(label)) and (size := found[1] or next(iter(_GIB.findall(value)), "")):
            return int(size)
    return 0


def _add(kind: _Kind, number: int, total: int, reason: str, findings: Findings) -> None:
    uuid = findings.own_device(f"{kind.resource.rpartition('/')[2]}-{number}")
    device = Device(
        uuid,
        number,
        kind.model,
        kind.memory_mib,
        kind.vendor,
        WHOLE_DEVICE_MILLI // kind.parts,
        share_limit=1,
        healthy=not reason,
        mode=DeviceMode.WHOLE,
        even_shares=True,
        reason=reason,
        island=0 if kind.connected and total > 1 else -1,
        tpu_slice=kind.tpu_slice,
        slice_nodes=kind.slice_nodes,
    )
    terms = DeviceResources(DevicePlugin.COUNTING, kind.vendor, kind.resource)
    findings.add(kind.resource, device, Access(uuid, "", terms, selector=kind.selector, units=kind.units))
