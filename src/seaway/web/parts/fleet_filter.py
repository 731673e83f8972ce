"""What of the fleet is looked for, as it stands in a page's address, and as the API is asked for it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from seaway.client.calls.fleet import FleetFilter
from seaway.domain.errors import RejectedError

if TYPE_CHECKING:
    from seaway.wire.fleet import DeviceOut

TEXTS = ("cluster", "name", "model", "device")
MIB_PER_GIB = 1024
MILLI_PER_PERCENT = 10
READY = {"yes": True, "no": False}

AMOUNTS: Mapping[str, tuple[str, int]] = {
    "memory": ("free_memory_mib", MIB_PER_GIB),
    "cores": ("free_core_milli", MILLI_PER_PERCENT),
}
"""Amounts by their name in addresses: what the API calls each, and how many of its units one is."""

FIELDS = (*TEXTS, *AMOUNTS, "ready")
"""Names in addresses."""


def wanted_of(given: Mapping[str, str]) -> FleetFilter:
    """Return what to ask the API for.

    Raises
    ------
    RejectedError
        For what is no amount; it says of which field.
    """
    wanted = FleetFilter(ready=READY.get(given.get("ready", "")))
    for name in TEXTS:
        wanted[name] = given.get(name, "")  # type: ignore[literal-required]  # one of its own names
    for name, (field, units) in AMOUNTS.items():
        wanted[field] = _amount(name, given.get(name, ""), units)  # type: ignore[literal-required]
    return wanted


def is_meant(wanted: FleetFilter) -> Callable[[DeviceOut], bool]:
    """Return what tells of a device whether it is one of those that are looked for."""

    def meant(device: DeviceOut) -> bool:
        return (
            wanted.get("model", "").casefold() in device.model.casefold()
            and wanted.get("device", "").casefold() in device.uuid.casefold()
            and device.memory_mib.free >= wanted.get("free_memory_mib", 0)
            and device.core_milli.free >= wanted.get("free_core_milli", 0)
        ) or not any(wanted.get(each) for each in ("model", "device", "free_memory_mib", "free_core_milli"))

    return meant


def _amount(name: str, text: str, units: int) -> int:
    if not text:
        return 0
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not 0 <= number < 2**31 / units:
        raise RejectedError("has to be a number, 0 or more", where=name)
    return round(number * units)
