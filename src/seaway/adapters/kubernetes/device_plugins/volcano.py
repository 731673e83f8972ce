"""Volcano's vGPU plugin: a register similar to HAMi's early format."""

from __future__ import annotations

from collections.abc import Iterator

from seaway.adapters.kubernetes.device_plugins.findings import Findings, bounded_text, named, not_served, unhealthy
from seaway.adapters.kubernetes.device_plugins.registers import HAMI_CORE, Entry, parse_bool
from seaway.adapters.kubernetes.device_plugins.resources import Amounts
from seaway.adapters.kubernetes.device_plugins.vendors import nvidia_model
from seaway.adapters.kubernetes.device_plugins.views import (
    Access,
    CoreUnit,
    DevicePlugin,
    DeviceResources,
    PluginOptions,
    core_steps,
)
from seaway.adapters.kubernetes.objects.core import NodeObject
from seaway.domain.device import Device, DeviceMode
from seaway.domain.errors import RejectedError
from seaway.domain.reasons import Reason

REGISTER_KEY = "volcano.sh/node-vgpu-register"
HANDSHAKE_KEY = "volcano.sh/node-vgpu-handshake"
COUNT = "volcano.sh/vgpu-number"

MIN_PLAUSIBLE_MIB = 1024
"""Minimum plausible memory of a card. A smaller number indicates a wrong memory factor in the configuration."""


def terms(options: PluginOptions) -> DeviceResources:
    """Return the resources of Volcano's cards."""
    factor = options.volcano_memory_factor
    return DeviceResources(
        DevicePlugin.VOLCANO,
        "NVIDIA",
        COUNT,
        "volcano.sh/vgpu-memory",
        "volcano.sh/vgpu-cores",
        memory_unit_mib=factor,
        record_unit_mib=factor,
    )


def is_used(node: NodeObject) -> bool:
    """Report whether a node has Volcano's register."""
    return REGISTER_KEY in node.metadata.annotations


def read(node: NodeObject, findings: Findings) -> None:
    """Find the cards of Volcano's register."""
    entries = list(read_register(node.metadata.annotations[REGISTER_KEY]))
    unserved = "" if Amounts(node, findings).allocatable(COUNT) > 0 else not_served(COUNT)
    if unserved and any(isinstance(entry, Entry) for entry in entries):
        findings.unusable(REGISTER_KEY, unserved)
    for entry in entries:
        if isinstance(entry, RejectedError):
            findings.broken(REGISTER_KEY, str(entry))
        else:
            _add(entry, unserved, findings)
    if node.metadata.annotations.get(HANDSHAKE_KEY, "").startswith("Deleted"):
        findings.uncertain(HANDSHAKE_KEY, "Volcano gave up on this node's plugin; it may not place pods here")


def read_register(text: str) -> Iterator[Entry | RejectedError]:
    """Yield each card of a register, or the error of an invalid card."""
    if text.strip() and ":" not in text:
        yield RejectedError("no cards that end with a colon")
        return
    for at, line in enumerate(part for part in text.split(":") if part.strip()):
        try:
            yield _entry(at, line.strip().split(","))
        except RejectedError as error:
            yield RejectedError(f"card {at}: {error}")


def _entry(at: int, fields: list[str]) -> Entry:
    if len(fields) not in {5, 6}:
        raise RejectedError(f"{len(fields)} fields, but there must be 5 or 6")
    return Entry(
        named(fields[0], "uuid"),
        at,
        bounded_text(fields[1], "count"),
        bounded_text(fields[2], "devmem"),
        100,
        fields[3],
        0,
        parse_bool(fields[4], "health"),
        fields[5] if len(fields) == 6 else HAMI_CORE,
    )


def _add(entry: Entry, unserved: str, findings: Findings) -> None:
    where = f"{REGISTER_KEY}: {entry.id}"
    factor = findings.options.volcano_memory_factor
    mode = DeviceMode.MPS if entry.mode == DeviceMode.MPS.value else DeviceMode.HAMI_CORE
    closed = ""
    if entry.mode not in {"", HAMI_CORE, DeviceMode.MPS.value}:
        closed = Reason("mode_undescribed", mode=entry.mode[:60])
        findings.unusable(where, f"{closed}; no new work there")
    if 0 < entry.memory * factor < MIN_PLAUSIBLE_MIB:
        findings.uncertain(where, f"only {entry.memory * factor} MiB of memory: is Volcano's memory factor {factor}?")
    device = Device(
        entry.id,
        entry.index,
        nvidia_model(entry.type),
        entry.memory * factor,
        share_limit=entry.count,
        healthy=entry.healthy and not unserved,
        cordoned=bool(closed),
        mode=mode,
        core_steps=core_steps(100, CoreUnit.PERCENT),
        memory_step_mib=factor,
        reason=unserved or ("" if entry.healthy else unhealthy(REGISTER_KEY)) or closed,
    )
    findings.add(where, device, Access(entry.id, entry.id, terms(findings.options)))
