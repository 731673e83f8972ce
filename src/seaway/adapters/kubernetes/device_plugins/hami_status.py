"""Cards that HAMi counts in the node's status, without a register: MLU, MUSA, Kunlun, MetaX, GCU, Neuron.

HAMi derives their IDs from the node's name. Seaway adds the cluster's name as a prefix.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import msgspec

from seaway.adapters.kubernetes.device_plugins.findings import Findings, bounded, bounded_text
from seaway.adapters.kubernetes.device_plugins.resources import MAX_CARDS, Amounts
from seaway.adapters.kubernetes.device_plugins.vendors import ENFLAME_KEY, ENFLAME_SLICES, METAX_KEY
from seaway.adapters.kubernetes.device_plugins.views import Access, CoreUnit, DevicePlugin, DeviceResources, core_steps
from seaway.adapters.kubernetes.objects.core import NodeObject
from seaway.domain.device import Device
from seaway.domain.errors import RejectedError
from seaway.domain.reasons import Reason

_XPU_KEY = "hami.io/node-register-xpu"
_PROFILE = re.compile(r"([0-9]{1,3})g?\.(?:([0-9]{1,4})gb)?", re.IGNORECASE)
MAX_SHARES = 100
"""HAMi's share limit for cards that are shared by percent."""

MLU = DeviceResources(
    DevicePlugin.HAMI_STATUS,
    "MLU",
    "cambricon.com/vmlu",
    "cambricon.com/mlu.smlu.vmemory",
    "cambricon.com/mlu.smlu.vcore",
    memory_unit_mib=256,
    pin="cambricon.com/use-gpuuuid",
)
MTHREADS = DeviceResources(
    DevicePlugin.HAMI_STATUS,
    "Mthreads",
    "mthreads.com/vgpu",
    "mthreads.com/sgpu-memory",
    "mthreads.com/sgpu-core",
    memory_unit_mib=512,
    pin="mthreads.ai/use-gpuuuid",
)
KUNLUN = DeviceResources(DevicePlugin.HAMI_STATUS, "kunlun", "kunlunxin.com/xpu", pin="baidu.com/use-gpuuuid")
METAX = DeviceResources(DevicePlugin.HAMI_STATUS, "Metax-GPU", "metax-tech.com/gpu", pin="metax-tech.com/use-gpuuuid")
GCU = DeviceResources(DevicePlugin.HAMI_STATUS, "GCU", "enflame.com/gcu", pin="enflame.com/use-gpuuuid")
NEURON = DeviceResources(
    DevicePlugin.HAMI_STATUS, "AWSNeuron", "aws.amazon.com/neuron", cores="aws.amazon.com/neuroncore"
)


@dataclass(frozen=True, slots=True)
class _Card:
    """Common properties of a vendor's cards on one node."""

    terms: DeviceResources
    stem: str
    memory_mib: int
    shares: int = 1
    cores: int = 100
    core_unit: CoreUnit = CoreUnit.SHARE


def read(node: NodeObject, findings: Findings) -> None:
    """Find the cards of a node that have no register."""
    amounts = Amounts(node, findings)
    _cut_by_cores(MLU, "cambricon-mlu", 100, amounts, findings)
    _cut_by_cores(MTHREADS, "mthreads", 16, amounts, findings)
    annotations = node.metadata.annotations
    if _XPU_KEY not in annotations:
        _whole(_Card(KUNLUN, "kunlun", 98304), amounts, findings)
    if METAX_KEY not in annotations:
        _whole(_Card(METAX, "metax", 65536), amounts, findings)
    if ENFLAME_KEY in annotations:
        _enflame(annotations[ENFLAME_KEY], findings)
    else:
        _whole(_Card(GCU, "GCU", 100), amounts, findings)
    _neuron(amounts, findings)


def _cut_by_cores(terms: DeviceResources, stem: str, cores: int, amounts: Amounts, findings: Findings) -> None:
    """Find cards whose total cores and memory are in the node's status."""
    total = amounts.capacity(terms.cores)
    if total:
        memory = amounts.capacity(terms.memory) * terms.memory_unit_mib * cores // total
        alive = -(-amounts.allocatable(terms.cores) // cores)
        _add(_Card(terms, stem, memory, MAX_SHARES, cores), -(-total // cores), alive, findings)


def _whole(card: _Card, amounts: Amounts, findings: Findings) -> None:
    """Find cards that are allocated as a whole."""
    _add(card, amounts.capacity(card.terms.count), amounts.allocatable(card.terms.count), findings)


def _neuron(amounts: Amounts, findings: Findings) -> None:
    cards = amounts.capacity(NEURON.count)
    if cards:
        each = max(amounts.capacity(NEURON.cores) // cards, 1)
        _add(
            _Card(NEURON, "AWSNeuron", 0, each, each, CoreUnit.BITS), cards, amounts.allocatable(NEURON.count), findings
        )


def _add(card: _Card, total: int, alive: int, findings: Findings) -> None:
    """Add cards. Mark the last ones as not allocatable, because the status does not identify the missing cards."""
    where = card.terms.count
    if total > MAX_CARDS:
        findings.broken(where, f"{total} cards are more than a node can have; all are ignored")
        return
    lacks = "" if alive >= total else Reason("few_allocatable", count=alive, total=total, resource=where)
    if lacks:
        findings.unusable(where, lacks)
    for index in range(total):
        numa = int(card.terms is KUNLUN and index >= total // 2)
        _add_one(card, index, "" if index < alive else lacks, numa, findings)


def _add_one(card: _Card, index: int, reason: str, numa: int, findings: Findings) -> None:
    native = f"{findings.node}-{card.stem}-{index}"
    uuid = f"{findings.cluster}/{native}" if findings.cluster else native
    vendor = card.terms.vendor
    device = Device(
        uuid,
        index,
        vendor,
        card.memory_mib,
        vendor,
        share_limit=card.shares,
        numa=numa,
        healthy=not reason,
        core_steps=core_steps(card.cores, card.core_unit),
        memory_step_mib=card.terms.memory_unit_mib,
        reason=reason,
    )
    findings.add(card.terms.count, device, Access(uuid, native, card.terms, card.cores, card.core_unit, init_adds=True))


def _enflame(text: str, findings: Findings) -> None:
    """Find Enflame cards with hardware slices. The largest profile defines the memory of a card."""
    try:
        found = msgspec.json.decode(text)
    except (ValueError, RecursionError) as error:
        findings.broken(ENFLAME_KEY, f"not JSON: {error}")
        return
    profiles = found.get("profiles") if isinstance(found, dict) else None
    cards = found.get("devices") if isinstance(found, dict) else None
    if not isinstance(profiles, dict) or not isinstance(cards, list):
        findings.broken(ENFLAME_KEY, "not an object with a list of devices and profiles by name")
        return
    sizes = [(int(match[1]), int(match[2] or 0)) for name in profiles if (match := _PROFILE.match(str(name).strip()))]
    memory_gib = max((memory for _, memory in sizes), default=0) or max((slices for slices, _ in sizes), default=0)
    if not memory_gib:
        findings.broken(ENFLAME_KEY, "no profile with the size of a card")
        return
    for at, fields in enumerate(cards):
        try:
            index, shares = _enflame_card(at, fields)
        except RejectedError as error:
            findings.broken(ENFLAME_KEY, f"card {at}: {error}")
        else:
            _add_one(_Card(ENFLAME_SLICES, "enflame-drs", memory_gib * 1024, shares), index, "", 0, findings)


def _enflame_card(at: int, fields: object) -> tuple[int, int]:
    """Return index and number of slices of a card."""
    if not isinstance(fields, dict):
        raise RejectedError("not a JSON object")
    index, shares = fields.get("index", ""), fields.get("capacity")
    known = isinstance(index, str) and index.isascii() and index.isdigit() and len(index) <= 4
    if isinstance(shares, str):
        return int(index) if known else at, bounded_text(shares.strip(), "capacity", least=1)
    return int(index) if known else at, bounded(shares, "capacity", least=1)
