"""Collector for the devices and problems of a node, and validation of external data."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import lru_cache

from seaway.adapters.kubernetes.device_plugins.views import Access, NodeView, PluginOptions, Problem, ProblemKind
from seaway.domain.device import Device, MigProfile
from seaway.domain.errors import RejectedError
from seaway.domain.node import Node
from seaway.domain.reasons import Reason

LARGEST = (1 << 31) - 1
"""Largest accepted number; as MiB, it is 2 PiB of memory."""

MAX_CPU_MILLI = (1 << 30) - 1
"""CPU limit of a node in thousandths of a core: about a million cores."""

MAX_MIB = 1 << 24
"""Memory limit of a device in MiB: 16 TiB.

The limit ensures that one wrong number does not exhaust the node's total.
"""

MAX_CORE_MILLI = 1 << 20
"""Core limit of a device in thousandths: a thousand unscaled devices."""

MAX_CORE_MILLI_TOGETHER = (1 << 26) - 1
"""Core limit of all devices of a node, in thousandths of a device."""


@dataclass(slots=True)
class Sizes:
    """Total size of a node's devices."""

    memory_mib: int = 0
    core_milli: int = 0

    def take(self, device: Device) -> None:
        """Add a device.

        Raises
        ------
        RejectedError
            When the device or the total exceeds the limits; the device is not added.
        """
        parts: tuple[Device | MigProfile, ...] = (device, *device.mig_profiles)
        for each in parts:
            if each.memory_mib > MAX_MIB:
                raise _too_large(f"{each.memory_mib} MiB", MAX_MIB)
            if each.core_milli > MAX_CORE_MILLI:
                raise _too_large(f"{each.core_milli} thousandths of cores", MAX_CORE_MILLI)
        memory_mib, core_milli = self.memory_mib + device.memory_mib, self.core_milli + device.core_milli
        if memory_mib > LARGEST or core_milli > MAX_CORE_MILLI_TOGETHER:
            raise RejectedError("with it the node's devices are larger than Seaway can count with; it is left out")
        self.memory_mib, self.core_milli = memory_mib, core_milli


def _too_large(figure: str, most: int) -> RejectedError:
    return RejectedError(f"{figure} are more than a device can have ({most}); it is left out")


MAX_QUOTED = 200
"""Maximum length in characters of texts from a cluster about a node or a device."""


@dataclass(slots=True)
class Findings:
    """Collector of the devices and problems of one node.

    Attributes
    ----------
    cluster
        Name of the cluster. It makes IDs unique that contain the node's name.
    pcie_roots
        Numbers of the PCIe roots of resource slices, by name.
    """

    cluster: str
    node: str
    options: PluginOptions = field(default_factory=PluginOptions)
    devices: list[Device] = field(default_factory=list)
    accesses: list[Access] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    pcie_roots: dict[str, int] = field(default_factory=dict)
    _uuids: set[str] = field(default_factory=set)
    _sizes: Sizes = field(default_factory=Sizes)

    def add(self, where: str, device: Device, access: Access) -> None:
        """Add a device, unless its ID is a duplicate or it exceeds the limits."""
        if device.uuid in self._uuids:
            self.broken(where, f"device {device.uuid!r} appears more than once; the first counts")
            return
        try:
            self._sizes.take(device)
        except RejectedError as error:
            self.broken(where, str(error))
            return
        self._uuids.add(device.uuid)
        self.devices.append(device)
        self.accesses.append(access)

    def own_device(self, name: str) -> str:
        """Return an ID for a device whose own ID is missing or unique only on its node."""
        return "/".join(part for part in (self.cluster, self.node, name) if part)

    def broken(self, where: str, text: str) -> None:
        """Record skipped data."""
        self.problems.append(Problem(ProblemKind.BROKEN, where, text))

    def unusable(self, where: str, text: str) -> None:
        """Record data about a device or node that accepts no new workloads."""
        self.problems.append(Problem(ProblemKind.UNUSABLE, where, text))

    def uncertain(self, where: str, text: str) -> None:
        """Record data that may be wrong."""
        self.problems.append(Problem(ProblemKind.UNCERTAIN, where, text))

    def close(self, node: Node, *, reachable: bool) -> NodeView:
        """Return the view of the node."""
        found = replace(node, devices=tuple(self.devices))
        return NodeView(found, tuple(self.accesses), tuple(dict.fromkeys(self.problems)), reachable)


@lru_cache(64)
def unhealthy(where: str) -> Reason:
    """Return the reason of an unhealthy device. The cache shares one text among all of them."""
    return Reason("device_unhealthy", source=where)


@lru_cache(64)
def not_served(count: str) -> Reason:
    """Return the reason for ignoring a register whose resource is not allocatable. The cache shares the text."""
    return Reason("not_served", resource=count)


def bounded(value: object, what: str, *, least: int = 0) -> int:
    """Check an external number.

    Raises
    ------
    RejectedError
        When it is not an integer from `least` to 2^31 - 1, the limit of the vGPU device plugins.
    """
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value < 1 << 31:
        shown = repr(value) if not isinstance(value, int) or abs(value) < 1 << 64 else "a huge number"
        raise RejectedError(f"{what} is {shown[:60]}, but must be a whole number from {least} to 2^31 - 1")
    return value


def bounded_text(value: str, what: str, *, least: int = 0) -> int:
    """Check an external number in text form; see `bounded`.

    Raises
    ------
    RejectedError
        As for `bounded`.
    """
    digits = value.removeprefix("-")
    if not (digits.isascii() and digits.isdigit() and len(digits) <= 20):
        raise RejectedError(f"{what} is {value[:60]!r}, but must be a whole number from {least} to 2^31 - 1")
    return bounded(int(value), what, least=least)


def named(value: object, what: str) -> str:
    """Check an external ID.

    Raises
    ------
    RejectedError
        When it is not a text, is empty, exceeds 200 characters, or contains spaces or unprintable characters.
    """
    if not isinstance(value, str) or not value or len(value) > 200 or not value.isprintable() or " " in value:
        raise RejectedError(f"{what} is {str(value)[:60]!r}, but must be a name without blanks")
    return value
