"""How large figures may be that Seaway can count with: more is a mistake, and left out like all else that is broken.

The engine keeps figures of 32 bits, and among them sums over the devices of a node.
"""

from __future__ import annotations

from dataclasses import dataclass

from seaway.domain.device import Device, MigProfile
from seaway.domain.errors import RejectedError

LARGEST = (1 << 31) - 1
"""The largest figure; of memory 2 PiB."""

MOST_CPU_MILLI = (1 << 30) - 1
"""Of a node: a million cores."""

MOST_MIB = 1 << 24
"""Of a device: 16 TiB. One with a wrong figure leaves room for those beside it."""

MOST_CORE_MILLI = 1 << 20
"""Of a device: as much as a thousand unscaled ones."""

MOST_CORE_MILLI_TOGETHER = (1 << 26) - 1
"""Of all devices of a node."""


@dataclass(slots=True)
class Sizes:
    """What the devices of a node come to so far."""

    memory_mib: int = 0
    core_milli: int = 0

    def take(self, device: Device) -> None:
        """Add a device.

        Raises
        ------
        RejectedError
            When it is larger than Seaway can count with, or the node is with it; it is not added.
        """
        parts: tuple[Device | MigProfile, ...] = (device, *device.mig_profiles)
        for each in parts:
            if each.memory_mib > MOST_MIB:
                raise _too_large(f"{each.memory_mib} MiB", MOST_MIB)
            if each.core_milli > MOST_CORE_MILLI:
                raise _too_large(f"{each.core_milli} thousandths of cores", MOST_CORE_MILLI)
        memory_mib, core_milli = self.memory_mib + device.memory_mib, self.core_milli + device.core_milli
        if memory_mib > LARGEST or core_milli > MOST_CORE_MILLI_TOGETHER:
            raise RejectedError("with it the node's devices are larger than Seaway can count with; it is left out")
        self.memory_mib, self.core_milli = memory_mib, core_milli


def _too_large(figure: str, most: int) -> RejectedError:
    return RejectedError(f"{figure} are more than a device can have ({most}); it is left out")
