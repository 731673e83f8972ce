"""Nodes, taints and tolerations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from seaway.domain.device import Device
from seaway.domain.errors import RejectedError
from seaway.domain.reasons import Reason


class TaintEffect(Enum):
    """Effect of a taint on pods that do not tolerate it, in Kubernetes' terms."""

    NO_SCHEDULE = "NoSchedule"
    PREFER_NO_SCHEDULE = "PreferNoSchedule"
    NO_EXECUTE = "NoExecute"

    @property
    def refuses(self) -> bool:
        """True if the effect excludes new pods, False if it only discourages them."""
        return self is not TaintEffect.PREFER_NO_SCHEDULE


@dataclass(frozen=True, slots=True)
class Taint:
    """A mark of a node that excludes pods without a matching toleration."""

    key: str
    value: str = ""
    effect: TaintEffect = TaintEffect.NO_SCHEDULE


@dataclass(frozen=True, slots=True)
class Toleration:
    """Permission of a job to run on nodes with a taint.

    Attributes
    ----------
    key
        Key of the taint; empty tolerates all taints.
    value
        Value of the taint; None tolerates any value (Kubernetes' operator ``Exists``).
    effect
        Effect of the taint; None tolerates any effect.
    """

    key: str = ""
    value: str | None = None
    effect: TaintEffect | None = None

    def tolerates(self, taint: Taint) -> bool:
        """Report whether this toleration matches a taint."""
        return (
            (not self.key or self.key == taint.key)
            and (self.value is None or self.value == taint.value)
            and (self.effect is None or self.effect is taint.effect)
        )


REGION_LABELS = ("topology.kubernetes.io/region", "failure-domain.beta.kubernetes.io/region")
ZONE_LABELS = ("topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone")
"""Labels with the region and the zone of a node, the current name first."""

CORDONS = ("cordoned_there", "cordoned_by")
"""Codes of the reasons of nodes that answer and accept no new work."""

SPOT_LABELS = (
    ("karpenter.sh/capacity-type", "spot"),
    ("eks.amazonaws.com/capacitytype", "spot"),
    ("cloud.google.com/gke-spot", "true"),
    ("cloud.google.com/gke-preemptible", "true"),
    ("kubernetes.azure.com/scalesetpriority", "spot"),
    ("node.kubernetes.io/lifecycle", "spot"),
    ("seaway.io/spot", "true"),
)
"""Labels of nodes that their provider may take back at any time, in lower case."""


@dataclass(frozen=True, slots=True)
class Node:
    """A machine of a cluster.

    Attributes
    ----------
    name
        Name within its cluster.
    cpu_milli, memory_mib
        Allocatable CPU and memory, thousandths of a core and MiB.
    devices
        GPUs and NPUs.
    labels, taints
        As in Kubernetes.
    ready
        False if the node does not answer or is cordoned: it accepts no new work.
    pods
        Maximum number of pods; None for no known limit.
    reason
        Reason why it is not ready; empty if it is ready, or if its cluster reports no reason.
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
            raise RejectedError(Reason("node_negative", name=self.name))

    @property
    def answers(self) -> bool:
        """False if its cluster reports it as not ready, for another reason than a cordon."""
        return self.ready or getattr(self.reason, "code", "") in CORDONS

    @property
    def region(self) -> str:
        """Region by its labels; empty if unknown."""
        return next((self.labels[each] for each in REGION_LABELS if self.labels.get(each)), "")

    @property
    def zone(self) -> str:
        """Zone by its labels; empty if unknown."""
        return next((self.labels[each] for each in ZONE_LABELS if self.labels.get(each)), "")

    @property
    def spot(self) -> bool:
        """True if its labels mark it as spot capacity, which its provider may take back at any time."""
        return any((key.lower(), value.lower()) in SPOT_LABELS for key, value in self.labels.items())
