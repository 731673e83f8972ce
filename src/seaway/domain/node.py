"""Nodes, and what keeps pods away from them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from seaway.domain.device import Device
from seaway.domain.errors import RejectedError


class TaintEffect(Enum):
    """Effect of a taint on pods that do not tolerate it, in Kubernetes' terms."""

    NO_SCHEDULE = "NoSchedule"
    PREFER_NO_SCHEDULE = "PreferNoSchedule"
    NO_EXECUTE = "NoExecute"

    @property
    def refuses(self) -> bool:
        """True if the effect refuses new pods rather than only discouraging them."""
        return self is not TaintEffect.PREFER_NO_SCHEDULE


@dataclass(frozen=True, slots=True)
class Taint:
    """A mark on a node that refuses pods which do not tolerate it."""

    key: str
    value: str = ""
    effect: TaintEffect = TaintEffect.NO_SCHEDULE


@dataclass(frozen=True, slots=True)
class Toleration:
    """A job's leave to run in spite of taints.

    Attributes
    ----------
    key
        The taint's key; empty tolerates every taint.
    value
        The taint's value; None tolerates any value (Kubernetes' operator ``Exists``).
    effect
        The taint's effect; None tolerates any.
    """

    key: str = ""
    value: str | None = None
    effect: TaintEffect | None = None

    def tolerates(self, taint: Taint) -> bool:
        """Tell whether this toleration covers `taint`."""
        return (
            (not self.key or self.key == taint.key)
            and (self.value is None or self.value == taint.value)
            and (self.effect is None or self.effect is taint.effect)
        )


@dataclass(frozen=True, slots=True)
class Node:
    """A machine of a cluster.

    Attributes
    ----------
    name
        Name within its cluster.
    cpu_milli, memory_mib
        What the node can give to pods, thousandths of a core and MiB.
    devices
        Its GPUs and NPUs.
    labels, taints
        As in Kubernetes.
    ready
        False when the node does not answer or is cordoned: it takes no new work.
    pods
        How many pods it takes; None where no one says, which is as many as come.
    reason
        Why it is not ready; empty while it is, and where its cluster does not say.
    """

    name: str
    cpu_milli: int
    memory_mib: int
    devices: tuple[Device, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Taint, ...] = ()
    ready: bool = True
    pods: int | None = None
    reason: str = ""

    def __post_init__(self) -> None:
        """Reject negative capacity."""
        if self.cpu_milli < 0 or self.memory_mib < 0 or (self.pods or 0) < 0:
            raise RejectedError(f"node {self.name!r}: CPU, memory and pods may not be negative")
