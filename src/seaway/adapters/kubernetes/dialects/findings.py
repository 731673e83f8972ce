"""Collecting what is found on a node, and checks of what came from outside."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import lru_cache

from seaway.adapters.kubernetes.dialects.sizes import Sizes
from seaway.adapters.kubernetes.dialects.views import Access, NodeView, Options, Trouble, TroubleKind
from seaway.domain.device import Device
from seaway.domain.errors import RejectedError
from seaway.domain.node import Node

MOST_SAID = 200
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
    options: Options = field(default_factory=Options)
    devices: list[Device] = field(default_factory=list)
    accesses: list[Access] = field(default_factory=list)
    troubles: list[Trouble] = field(default_factory=list)
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

    def own(self, name: str) -> str:
        """Make an id for something that has none, or one that is unique within its node only."""
        return "/".join(part for part in (self.cluster, self.node, name) if part)

    def broken(self, where: str, text: str) -> None:
        """Note something that was left out."""
        self.troubles.append(Trouble(TroubleKind.BROKEN, where, text))

    def unusable(self, where: str, text: str) -> None:
        """Note something that takes no new work."""
        self.troubles.append(Trouble(TroubleKind.UNUSABLE, where, text))

    def uncertain(self, where: str, text: str) -> None:
        """Note something that may be otherwise."""
        self.troubles.append(Trouble(TroubleKind.UNCERTAIN, where, text))

    def close(self, node: Node, *, answers: bool) -> NodeView:
        """Return all that was found."""
        found = replace(node, devices=tuple(self.devices))
        return NodeView(found, tuple(self.accesses), tuple(dict.fromkeys(self.troubles)), answers)


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
        When it is no whole number from `least` to 2^31 - 1, which is as far as the vGPU layers count.
    """
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value < 1 << 31:
        shown = repr(value) if not isinstance(value, int) or abs(value) < 1 << 64 else "a huge number"
        raise RejectedError(f"{what} is {shown[:60]}, but has to be a whole number from {least} to 2^31 - 1")
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
        raise RejectedError(f"{what} is {value[:60]!r}, but has to be a whole number from {least} to 2^31 - 1")
    return bounded(int(value), what, least=least)


def named(value: object, what: str) -> str:
    """Check an id that came from outside.

    Raises
    ------
    RejectedError
        When it is no text, empty, longer than 200 characters, or has blanks or signs that cannot be shown.
    """
    if not isinstance(value, str) or not value or len(value) > 200 or not value.isprintable() or " " in value:
        raise RejectedError(f"{what} is {str(value)[:60]!r}, but has to be a name without blanks")
    return value
