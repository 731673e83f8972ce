"""What copies would really use of what they hold: most of their memory, and cores that go up and down."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import pi, sin
from zlib import crc32

from seaway.adapters.simulated.books import NodeBook
from seaway.adapters.simulated.record import Record
from seaway.application.ports.usage import NodeUsage, Used
from seaway.domain.deployment import CopyPhase

MEASURE_EVERY_NS = 5_000_000_000
"""How often it is measured."""

SWING_NS = 300_000_000_000
"""How long cores take to go up and down once."""

BYTES_PER_MIB = 1 << 20
PARTS = 1000


def used_of(nodes: Mapping[str, NodeBook], records: Iterable[Record], now_ns: int) -> dict[str, NodeUsage]:
    """Return what is used of each device, by node; the same for the same copies and time.

    A replica uses 60 to 95 % of the memory that it holds, and 20 to 100 % of the cores.
    """
    memory_bytes = {uuid: 0 for node in nodes.values() for uuid in node.devices}
    core_milli = dict.fromkeys(memory_bytes, 0)
    for record in records:
        if record.phase is not CopyPhase.RUNNING:
            continue
        for placement in record.made.placements:
            habit = crc32(f"{record.made.job_id}/{placement.replica}".encode()) % PARTS / PARTS
            cores = 0.6 + 0.4 * sin(2 * pi * (now_ns / SWING_NS + habit))
            for taken in placement.slices:
                memory_bytes[taken.uuid] += round((0.6 + 0.35 * habit) * taken.memory_mib * BYTES_PER_MIB)
                core_milli[taken.uuid] += round(cores * taken.core_milli)
    return {
        name: NodeUsage(0.0, {uuid: Used(memory_bytes[uuid], core_milli[uuid]) for uuid in node.devices}, {})
        for name, node in nodes.items()
    }
