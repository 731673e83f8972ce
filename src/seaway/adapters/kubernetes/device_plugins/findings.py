"""Collecting what is found on a node, and checks of what came from outside."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import lru_cache

from seaway.adapters.kubernetes.device_plugins.views import Access, NodeView, PluginOptions, Problem, ProblemKind
from seaway.domain.device import Device, MigProfile
from seaway.domain.errors import RejectedError
from seaway.domain.node import Node

LARGEST = (1 << 31) - 1
"""The largest figure; of memory 2 PiB."""

MAX_CPU_MILLI = (1 << 30) - 1
"""Of a node: a million cores."""

MAX_MIB = 1 << 24
"""Of a device: 16 TiB. One with a wrong figure leaves room for those beside it."""

MAX_CORE_MILLI = 1 << 20
"""Of a device: as much as a thousand unscaled ones."""

MAX_CORE_MILLI_TOGETHER = (1 << 26) - 1
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
"""Characters of what a cluster says of a node or a device, in its own words."""


@dataclass(slots=True)
class Findings:
    """Collects what is found on one node while its dialects are read.

    Attributes
    ----------
    cluster
        Its name; makes ids unique that are made from the node's name.
    """

    cluster: str
    node: str
    options: PluginOptions = field(default_factory=PluginOptions)
    devices: list[Device] = field(default_factory=list)
    accesses: list[Access] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    _uuids: set[str] = field(default_factory=set)
    _sizes: Sizes = field(default_factory=Sizes)

    def add(self, where: str, device: Device, access: Access) -> None:
        """Keep a device, unless one of its id was found before, or it is larger than Seaway can count with."""
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
        """Make an id for something that has none, or one that is unique within its node only."""
        return "/".join(part for part in (self.cluster, self.node, name) if part)

    def broken(self, where: str, text: str) -> None:
        """Note something that was left out."""
        self.problems.append(Problem(ProblemKind.BROKEN, where, text))

    def unusable(self, where: str, text: str) -> None:
        """Note something that takes no new work."""
        self.problems.append(Problem(ProblemKind.UNUSABLE, where, text))

    def uncertain(self, where: str, text: str) -> None:
        """Note something that may be otherwise."""
        self.problems.append(Problem(ProblemKind.UNCERTAIN, where, text))

    def close(self, node: Node, *, reachable: bool) -> NodeView:
        """Return all that was found."""
        found = replace(node, devices=tuple(self.devices))
        return NodeView(found, tuple(self.accesses), tuple(dict.fromkeys(self.problems)), reachable)


@lru_cache(64)
def unhealthy(where: str) -> str:
    """Say why a device takes no new work that is not healthy by what stands there; one text for all of them."""
    return f"not healthy, says {where}"


@lru_cache(64)
def not_served(count: str) -> str:
    """Say why a register counts no more whose resource, by this name, is not to be had; one text for all nodes."""
    return f"registered, but allocatable {count} is 0: the plugin does not run"


def bounded(value: object, what: str, *, least: int = 0) -> int:
    """Check a number that came from outside.

    Raises
    ------
    RejectedError
        When it is not a whole number from `least` to 2^31 - 1, which is as far as the vGPU layers count.
    """
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value < 1 << 31:
        shown = repr(value) if not isinstance(value, int) or abs(value) < 1 << 64 else "a huge number"
        raise RejectedError(f"{what} is {shown[:60]}, but must be a whole number from {least} to 2^31 - 1")
    return value


def bounded_text(value: str, what: str, *, least: int = 0) -> int:
    """Check a number that came from outside as text; see `bounded`.

    Raises
    ------
    RejectedError
        As `bounded` does.
    """
    digits = value.removeprefix("-")
    if not (digits.isascii() and digits.isdigit() and len(digits) <= 20):
        raise RejectedError(f"{what} is {value[:60]!r}, but must be a whole number from {least} to 2^31 - 1")
    return bounded(int(value), what, least=least)


def named(value: object, what: str) -> str:
    """Check an id that came from outside.

    Raises
    ------
    RejectedError
        When it is not a text, empty, longer than 200 characters, or has blanks or signs that cannot be shown.
    """
    if not isinstance(value, str) or not value or len(value) > 200 or not value.isprintable() or " " in value:
        raise RejectedError(f"{what} is {str(value)[:60]!r}, but must be a name without blanks")
    return value
