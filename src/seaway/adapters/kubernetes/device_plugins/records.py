"""Records of HAMi and Volcano on pods, which list the allocated devices.

A device is ``id,word,MiB,cores`` and ends with a colon. A container ends with a semicolon, except the last one in
Volcano's record. A container without devices is empty or omitted.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from seaway.adapters.kubernetes.device_plugins.findings import bounded, bounded_text, named
from seaway.adapters.kubernetes.device_plugins.registers import json_list
from seaway.adapters.kubernetes.device_plugins.views import Problem, ProblemKind
from seaway.domain.errors import RejectedError

HAMI_NODE = "hami.io/vgpu-node"
VOLCANO_NODE = "volcano.sh/vgpu-node"
VOLCANO_RECORD = "volcano.sh/vgpu-ids-new"
MIG_RECORD = "hami.io/vgpu-mig-allocations"
NVIDIA_RECORD = "hami.io/vgpu-devices-allocated"

LAST_SLICE = 7
"""Index of the last memory slice of a card. MIG instances use ranges of memory slices."""

_HAMI_RECORD = re.compile(r"hami\.io/.+-devices-allocated|hami\.io/kunlun-allocated")


@dataclass(frozen=True, slots=True)
class Taken:
    """Device in a record.

    Attributes
    ----------
    slot
        Position of its container in the record.
    id
        ID of the device, or of the card if a MIG instance follows in brackets.
    memory, cores
        Allocated memory and cores in the device plugin's units.
    """

    slot: int
    id: str
    memory: int
    cores: int


@dataclass(frozen=True, slots=True)
class Record:
    """A decoded record; `slots` is its number of containers."""

    key: str
    slots: int
    taken: tuple[Taken, ...]
    problems: tuple[Problem, ...] = ()


@dataclass(frozen=True, slots=True)
class MigAllocation:
    """A MIG instance in HAMi's record of instances."""

    slot: int
    place: int
    uuid: str
    profile: str
    start: int


def records(annotations: Mapping[str, str]) -> list[Record]:
    """Decode the records of a pod, HAMi's before Volcano's.

    A record is valid only together with the node's annotation.
    """
    found = []
    if annotations.get(HAMI_NODE):
        keys = sorted(filter(_is_hami_record, annotations))
        found += [read_record(key, annotations[key]) for key in keys]
    if annotations.get(VOLCANO_NODE) and VOLCANO_RECORD in annotations:
        found.append(read_record(VOLCANO_RECORD, annotations[VOLCANO_RECORD]))
    return found


@lru_cache(4096)  # the annotations of a cluster's pods have the same few names
def _is_hami_record(key: str) -> bool:
    return _HAMI_RECORD.fullmatch(key) is not None


def read_record(key: str, text: str) -> Record:
    """Decode one record. Skip invalid devices and report them as problems."""
    slots = text.strip().split(";")
    if key != VOLCANO_RECORD and not slots[-1].strip():
        slots.pop()
    taken: list[Taken] = []
    problems: list[Problem] = []
    for slot, devices in enumerate(slots):
        for device in devices.split(":"):
            try:
                found = _taken(slot, device.strip())
            except RejectedError as error:
                problems.append(Problem(ProblemKind.BROKEN, key, f"container {slot}: {error}"))
            else:
                taken += found
    return Record(key, len(slots), tuple(taken), tuple(problems))


def _taken(slot: int, device: str) -> list[Taken]:
    """Decode one device. Return nothing for an empty text or a device without ID, as HAMi v2.5 writes for no device."""
    if not device or device.startswith(","):
        return []
    fields = device.split(",")
    if len(fields) < 4:
        raise RejectedError(f"{device[:60]!r} is not a device with id, word, memory and cores")
    return [
        Taken(
            slot,
            named(fields[0].partition("[")[0], "id"),
            bounded_text(fields[2], "memory"),
            bounded_text(fields[3], "cores"),
        )
    ]


def mig_allocations(annotations: Mapping[str, str]) -> tuple[list[MigAllocation], list[Problem]]:
    """Decode HAMi's record of MIG instances. Skip invalid instances and report them as problems."""
    if not annotations.get(MIG_RECORD) or not annotations.get(HAMI_NODE):
        return [], []
    found: list[MigAllocation] = []
    problems: list[Problem] = []
    try:
        entries = json_list(annotations[MIG_RECORD])
    except RejectedError as error:
        return [], [Problem(ProblemKind.BROKEN, MIG_RECORD, str(error))]
    for at, fields in enumerate(entries):
        try:
            found.append(_mig_allocation(fields))
        except RejectedError as error:
            problems.append(Problem(ProblemKind.BROKEN, MIG_RECORD, f"instance {at}: {error}"))
    return found, problems


def _mig_allocation(fields: object) -> MigAllocation:
    place = fields.get("placement") if isinstance(fields, dict) else None
    if not isinstance(fields, dict) or not isinstance(place, dict):
        raise RejectedError("not an object with a placement")
    return MigAllocation(
        bounded(fields.get("containerIndex", 0), "containerIndex"),
        bounded(fields.get("deviceIndex", 0), "deviceIndex"),
        named(fields.get("gpuUUID"), "gpuUUID"),
        named(fields.get("profile"), "profile"),
        _start(place.get("start", 0)),
    )


def _start(value: object) -> int:
    start = bounded(value, "start")
    if start > LAST_SLICE:
        raise RejectedError(f"start is {start}, but memory slices go from 0 to {LAST_SLICE}")
    return start
